"""Workloads: the paper's, changed ones, and impossible ones."""

import pytest
from _chains import chains

from springhouse.errors import SpringhouseError
from springhouse.refresh.table.load_cost import LoadCost
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.simulate.workload import PAPER_COST, Workload, equal_tables, exact


def test_the_papers_table_2():
    workload = Workload(equal_tables(30))
    assert {(t.period_seconds, t.cost, t.priority) for t in workload.tables} == {
        (100.0, LoadCost(1.0, 0.1), 1.0)
    }
    assert workload.busy == pytest.approx(30 * 11 / 100)


def test_at_utilisation():
    workload = Workload(equal_tables(30)).at_utilisation(0.9, tracks=4)
    assert workload.busy == pytest.approx(3.6)


def test_costs_times():
    assert Workload(equal_tables(30)).costs_times(1.5).busy == pytest.approx(3.3 * 1.5)


def test_twice_the_arrivals_are_batches_of_the_same_size_twice_as_often():
    (table,) = Workload(equal_tables(1)).arrivals_times(2.0).tables
    assert table.period_seconds == 50.0
    assert table.cost is not None
    assert table.cost.seconds(50.0) == pytest.approx(PAPER_COST.seconds(100.0))


def test_a_derived_table_has_the_longest_period_of_what_it_reads():
    fast, slow = (
        TableProfile("fast", (), 10.0, cost=PAPER_COST),
        TableProfile("slow", (), 60.0, cost=PAPER_COST),
    )
    both = TableProfile("both", ("fast", "slow"), cost=PAPER_COST)
    assert Workload((fast, slow, both)).periods == {"fast": 10.0, "slow": 60.0, "both": 60.0}


def test_chains_read_each_other_and_take_turns_with_priorities():
    made = chains(2, [(0.001, 1.0, 10.0), (0.001, 1.0, 100.0)])
    assert [t.upstream for t in made[:3]] == [(), ("chain_1_level_1",), ("chain_1_level_2",)]
    assert [t.priority for t in made] == [0.001, 1.0, 10.0, 0.001, 1.0, 100.0]


def test_exact_times_add_up():
    first = exact(33.333333)
    assert sum([first] + [exact(0.1)] * 1000) == first + 1000 * exact(0.1)


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        ((), "nothing to simulate"),
        ((TableProfile("a", (), 0.0, cost=PAPER_COST),), "needs a period above 0"),
        ((TableProfile("a", (), cost=PAPER_COST),), "needs a period above 0"),
        ((TableProfile("a", (), 10.0),), "cost of a refresh must be above 0"),
        (
            (TableProfile("a", (), 10.0, cost=LoadCost(0.0, 0.0)),),
            "cost of a refresh must be above 0",
        ),
        ((TableProfile("a", ("b",), cost=PAPER_COST),), 'reads "b", which must come before it'),
        ((TableProfile("a", (), 10.0, -1.0, cost=PAPER_COST),), "a number of at least 0"),
        (equal_tables(1) * 2, "two tables have this name"),
    ],
)
def test_what_can_not_be(tables, problem):
    with pytest.raises(SpringhouseError, match=problem):
        Workload(tables)
