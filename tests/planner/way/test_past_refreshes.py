"""Estimates in seconds, corrected by the durations of past refreshes of all views."""

from dataclasses import dataclass

import pytest

from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.way.past_refreshes import BUILDING, Learned, Lesson, Past
from springhouse.planner.way.refresh_cost import WayCost

INCREMENTAL, FULL = "incremental", "full"


@dataclass(frozen=True)
class Refresh:
    variant: str
    seconds: float
    expected: float
    stateful: bool = False
    foreseen: float = 0.0
    missed: float = 0.0
    kind: str = "merge"
    at: float = 0.0


def took(way: str, seconds: float, expected: float) -> Lesson:
    return Lesson(way, expected, expected, seconds)


def correction(way: str, estimate: float, *lessons: Lesson) -> float:
    return Past(lessons).correction(way, estimate)


def learned(*refreshes: tuple[str, Refresh]) -> Learned:
    found = Learned()
    for view, refresh in refreshes:
        found.take(view, refresh)
    return found


# The factor of a view, apart from the machine


def test_what_was_wrong_is_corrected_by_its_median() -> None:
    past = (took(INCREMENTAL, 3.0, 1.0), took(INCREMENTAL, 2.0, 1.0), took(FULL, 1.0, 4.0))
    assert correction(INCREMENTAL, 1.0, *past) == 2.0
    assert correction(FULL, 4.0, *past) == pytest.approx((1.0 + 0.25) / 2)


def test_a_large_change_does_not_spoil_the_estimate_of_a_small_one() -> None:
    small, large = took(INCREMENTAL, 0.3, 0.3), took(INCREMENTAL, 16.0, 2.0)
    past = (small, large, small, large, small, large)
    assert correction(INCREMENTAL, 0.4, *past) == 1.0
    assert correction(INCREMENTAL, 1.5, *past) == 8.0


def test_what_was_never_tried_is_like_the_others() -> None:
    assert correction(INCREMENTAL, 1.0, *[took(FULL, 2.0, 1.0)] * 3) == 2.0
    assert correction(INCREMENTAL, 1.0) == 1.0


def test_one_slow_start_says_little() -> None:
    assert correction(INCREMENTAL, 1.0, took(INCREMENTAL, 30.0, 1.0)) == 4.0
    recovered = [took(INCREMENTAL, 30.0, 1.0), *[took(INCREMENTAL, 1.0, 1.0)] * 2]
    assert correction(INCREMENTAL, 1.0, *recovered) == 1.0


def test_a_recomputation_is_like_one_that_builds_state() -> None:
    built, slow = took(BUILDING, 1.5, 3.0), took(INCREMENTAL, 1.0, 0.1)
    assert correction(FULL, 3.0, built, built, slow, slow) == 0.5
    assert correction(INCREMENTAL, 0.1, built, slow, slow) == 10.0
    # A slow build counts, too: a release that ignored slow builds lost the view's state.
    long = took(BUILDING, 30.0, 3.0)
    assert correction(FULL, 3.0, long, long, long) == 10.0
    assert correction(BUILDING, 3.0, took(FULL, 6.0, 3.0), took(FULL, 6.0, 3.0)) == 2.0


def test_one_pause_is_no_evidence() -> None:
    cost = WayCost(WidgetVariant.INCREMENTAL, 5, 0)
    pause, usual = took(INCREMENTAL, 6.0, 0.6), took(INCREMENTAL, 0.9, 0.6)
    assert Past((pause,)).corrected(cost, hopeful=True).correction == 1.0
    assert Past((pause, usual)).corrected(cost, hopeful=True).correction == pytest.approx(1.5)
    assert Past((pause,) * 3).corrected(cost, hopeful=True).correction == pytest.approx(10.0)


def test_what_was_read_is_compared_with_what_was_read() -> None:
    past = Past((Lesson(INCREMENTAL, 2.0, 1.0, 4.0),) * 2)
    assert past.correction(INCREMENTAL, 2.0) == 2.0
    assert past.correction(INCREMENTAL, 1.0, unread=True) == 4.0


# How fast the machine is


def test_the_first_build_tells_how_fast_the_machine_is() -> None:
    found = learned(("v", Refresh(FULL, 36.0, 7.2, stateful=True)))
    assert found.machine == pytest.approx(5.0)
    assert found.past("another").corrected(WayCost(WidgetVariant.BATCH, 1, 1_000_000)).seconds == (
        pytest.approx(5.0 * 0.85)
    )


def test_a_machine_that_becomes_slower_is_noticed_when_most_views_say_so() -> None:
    views = [f"v{number}" for number in range(5)]
    same = [(view, Refresh(INCREMENTAL, 1.0, 1.0)) for _ in range(4) for view in views]
    slower = [(view, Refresh(INCREMENTAL, 4.0, 1.0)) for view in views]
    assert learned(*same).machine == 1.0
    assert learned(*same, *slower[:2]).machine == 1.0
    assert learned(*same, *slower).machine == pytest.approx(4.0)


def test_what_was_learned_of_a_way_survives_a_change_of_speed() -> None:
    views = [f"v{number}" for number in range(5)]
    built = [(view, Refresh(FULL, 8.0, 4.0)) for view in views]
    fast = [(view, Refresh(INCREMENTAL, 2.0, 1.0)) for _ in range(3) for view in views]
    slow = [(view, Refresh(INCREMENTAL, 12.0, 1.0)) for _ in range(3) for view in views]
    batch = WayCost(WidgetVariant.BATCH, 1, 6_250_000)
    before = learned(*built, *fast).past("v0").corrected(batch).seconds
    after = learned(*built, *fast, *slow).past("v0").corrected(batch).seconds
    assert before == pytest.approx(8.0)
    assert after == pytest.approx(6 * 8.0)


def test_a_view_that_is_slow_by_itself_says_nothing_about_the_machine() -> None:
    usual = [(f"v{n}", Refresh(INCREMENTAL, 1.0, 1.0)) for _ in range(3) for n in range(4)]
    slow = [("slow", Refresh(INCREMENTAL, 9.0, 1.0))] * 2
    found = learned(*usual, *slow, *usual)
    assert found.machine == pytest.approx(1.0)
    assert found.past("slow").correction(INCREMENTAL, 1.0) == pytest.approx(9.0)


def test_refreshes_that_nobody_estimated_teach_nothing() -> None:
    found = learned(("v", Refresh(FULL, 5.0, 0.0)), ("v", Refresh(FULL, 0.0, 1.0)))
    assert found.past("v") == Past()
