"""Section 6.2: the blocks that the search skips."""

from springhouse.planner.provenance import Provenance
from springhouse.planner.search.blocks import BASE, MONOTONE, STRONG, Block
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.search.pruning import chain_deltas, frontiers, is_older, without_old
from springhouse.planner.search.widgets import view, workflow
from springhouse.simulate.paper_widgets import join, stateless

AT = [Provenance.of(a=version) for version in range(8)]


def base(version):
    return Block("a", BASE, AT[version])


def delta(start, end, kind=STRONG, rows=1.0):
    return Block("a", kind, AT[end], AT[start], rows)


def test_section_6_2_1_nothing_is_kept_before_the_last_base_that_consumers_have_passed():
    blocks = [base(0), delta(0, 2), base(2), delta(2, 3), base(3), delta(3, 5), base(5)]
    assert without_old(blocks, [AT[3]]) == [delta(2, 3), base(3), delta(3, 5), base(5)]
    assert without_old(blocks, [AT[4]]) == [delta(2, 3), base(3), delta(3, 5), base(5)]
    assert without_old(blocks, []) == blocks


def test_section_6_2_1_the_slowest_consumer_counts():
    blocks = [base(0), delta(0, 2), base(2), delta(2, 3), base(3)]
    assert without_old(blocks, [AT[3], AT[1]]) == blocks


def test_section_6_2_1_what_lags_on_one_side_is_measured_by_its_newest():
    mixed = Provenance({"a": frozenset({1, 4})})
    assert without_old([base(1), base(4), base(5)], [mixed]) == [base(4), base(5)]


def test_section_6_2_2_deltas_that_abut_are_one():
    chain = [delta(0, 1, rows=2.0), delta(1, 2, rows=3.0), delta(2, 4, rows=4.0)]
    (one,) = chain_deltas(chain, [])
    assert (one, one.rows) == (delta(0, 4), 9.0)


def test_section_6_2_2_but_not_over_a_base_or_the_frontier():
    chain = [delta(0, 1), delta(1, 2), delta(2, 3), delta(3, 4)]
    assert set(chain_deltas([base(2), *chain], [])) == {base(2), delta(0, 2), delta(2, 4)}
    assert set(chain_deltas(chain, [AT[1]])) == {delta(0, 1), delta(1, 4)}


def test_section_6_2_2_only_deltas_of_one_kind_and_one_way_on():
    assert set(chain_deltas([delta(0, 1), delta(1, 2, MONOTONE)], [])) == {
        delta(0, 1),
        delta(1, 2, MONOTONE),
    }
    fork = [delta(0, 1), delta(1, 2), delta(1, 3)]
    assert set(chain_deltas(fork, [])) == set(fork)


def test_a_chain_keeps_the_versions_it_is_stored_between():
    one = Block("a", STRONG, AT[1], AT[0], 1.0, (10, 11))
    other = Block("a", STRONG, AT[2], AT[1], 1.0, (11, 12))
    assert chain_deltas([one, other], [])[0].versions == (10, 12)


def test_the_frontier_goes_upstream():
    flow = workflow(["a", "b"], [stateless("a1", "a"), join("v", "a1", "b")])
    held = {"v": Provenance({"a>a1": frozenset({3}), "b": frozenset({1, 2})})}
    found = frontiers(flow, held, flow.order)
    assert found["a1"] == found["a"] == (Provenance.of(a=3),)
    assert found["b"] == (Provenance({"b": frozenset({1, 2})}),)


def test_a_channel_with_several_ways_down_has_a_set_of_frontiers():
    flow = workflow(
        ["a"],
        [view(name, ["a"], [WidgetVariant.BATCH]) for name in ("v", "w")],
        strict=["v", "w"],
    )
    found = frontiers(flow, {"v": AT[3], "w": AT[1]}, flow.order)
    assert set(found["a"]) == {AT[1], AT[3]}


def test_one_side_of_a_union_is_not_older_than_both():
    side, both = Provenance.of(a=1), Provenance.of(a=1, b=1)
    assert side.precedes(both)
    assert not is_older(side, both)
    assert is_older(AT[1], AT[2])
