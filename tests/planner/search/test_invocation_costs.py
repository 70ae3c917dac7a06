"""Costs that are linear in rows."""

from _linear_costs import Linear, Price

from springhouse.planner.search.converters import converters
from springhouse.planner.search.invocation_costs import InputRead
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.search.widgets import view
from springhouse.simulate.cached_costs import CachedCosts
from springhouse.simulate.paper_widgets import join, split

BATCH, INCREMENTAL, LEFT, _ = join("v", "a", "b").operators
READ = [InputRead(100.0, 4.0), InputRead(50.0, 2.0)]


def test_alpha_plus_beta_times_rows():
    price = Price(start=1.0, per_base_row=0.1, per_delta_row=0.5)
    found = price.estimate(INCREMENTAL, READ)
    assert found.cost == 1.0 + 15.0 + 3.0
    assert found.rows == (6.0,)


def test_a_batch_makes_a_share_of_its_bases():
    assert Price(rows_out=(0.5,)).estimate(BATCH, READ).rows == (75.0,)
    assert Price(rows_out=(0.5,), most_rows=20.0).estimate(BATCH, READ).rows == (20.0,)


def test_each_block_has_its_own_share():
    _, operator = split("s", "a", ["x", "y"]).operators
    found = Price(rows_out=(0.25, 0.75)).estimate(operator, [InputRead(0.0, 8.0)])
    assert found.rows == (2.0, 6.0)
    assert Price().estimate(operator, [InputRead(0.0, 8.0)]).rows == (8.0, 8.0)


def test_a_converted_base_grows_by_the_delta():
    to_base, _ = converters("v")
    assert Price().estimate(to_base.operator, [InputRead(100.0, 5.0)]).rows == (105.0,)


def test_in_place_the_new_base_and_what_changed():
    (incremental,) = view("v", ["a"], [WidgetVariant.INCREMENTAL]).operators
    read = [InputRead(1000.0, 10.0), InputRead(40.0)]
    found = Price(rows_out=(0.03, 0.5)).estimate(incremental, read)
    assert found.rows == (40.0, 5.0)


def test_what_was_never_run_costs_the_usual():
    usual = Price(7.0)
    costs = Linear({BATCH.name: Price(3.0)}, usual)
    assert costs.estimate(BATCH, READ).cost == 3.0
    assert costs.estimate(LEFT, READ).cost == 7.0


def test_what_was_asked_before_is_remembered():
    asked = []

    class Counting:
        def estimate(self, operator, readings):
            asked.append(operator.name)
            return Linear().estimate(operator, readings)

    costs = CachedCosts(Counting())
    for readings in (READ, tuple(READ), READ[:1] * 2):
        assert costs.estimate(BATCH, readings) == Linear().estimate(BATCH, readings)
    costs.estimate(INCREMENTAL, READ)
    assert asked == [BATCH.name, BATCH.name, INCREMENTAL.name]
