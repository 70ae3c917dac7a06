"""The cost formula, over plain numbers."""

from dataclasses import replace

from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.way.refresh_cost import WayCost, with_state


def test_a_small_change_is_cheaper_than_everything_and_a_large_one_is_not() -> None:
    full = WayCost(WidgetVariant.BATCH, 1, 7_500_000)
    assert WayCost(WidgetVariant.INCREMENTAL, 1, 300_000, 7_500, 9).seconds < full.seconds / 5
    assert WayCost(WidgetVariant.INCREMENTAL, 1, 7_000_000, 2_250_000, 9).seconds > full.seconds


def test_rows_that_a_change_becomes_cost_more_than_it_does() -> None:
    few = WayCost(WidgetVariant.INCREMENTAL, 1, 1_000_000, 2_000, 2)
    assert few.seconds < WayCost(WidgetVariant.BATCH, 1, 1_000_000).seconds
    many = replace(few, rows_made=500_000)
    assert many.seconds > 2 * WayCost(WidgetVariant.BATCH, 1, 1_000_000).seconds
    assert "2,000 changed, which become 502,000" in str(many)


def test_a_cost_says_what_it_is_made_of() -> None:
    cost = WayCost(WidgetVariant.INCREMENTAL, 2, 1_000, 10, 4, correction=2.0)
    assert str(cost) == "incremental: 2 queries, 1,000 rows read, 10 changed, about 0.5 s"
    # The cost does not mention rows that nobody counted.
    unread = replace(cost, rows_read=0)
    assert str(unread) == "incremental: 2 queries, 10 changed, about 0.5 s"


def test_building_state_costs_what_has_to_be_read_again_for_it() -> None:
    plain = WayCost(WidgetVariant.BATCH, 1, 6_250_000)
    assert plain.estimate == 4.0
    assert with_state(plain, 1.0, 0).estimate == 8.0
    # Hidden columns cost little, but the rows of hidden tables must be written.
    assert with_state(plain, 0.0, 0).estimate == 5.0
    assert with_state(plain, 0.0, 500_000).estimate == 6.0
