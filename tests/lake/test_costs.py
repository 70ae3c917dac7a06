"""Estimates in seconds, corrected by what the refreshes of a view really took."""

from dataclasses import replace

import pytest

from springhouse.lake.costs import Cost, lessons
from springhouse.lake.note import Note
from springhouse.units import Instant
from springhouse.views.variants import Way


def took(variant: str, seconds: float, expected: float) -> Note:
    return Note("merge", Instant(0.0), variant=variant, seconds=seconds, expected=expected)


def test_a_small_change_is_cheaper_than_everything_and_a_large_one_is_not() -> None:
    full = Cost(Way.BATCH, 1, 7_500_000)
    assert Cost(Way.INCREMENTAL, 1, 300_000, 7_500, 9).seconds < full.seconds / 5
    assert Cost(Way.INCREMENTAL, 1, 7_000_000, 2_250_000, 9).seconds > full.seconds


def test_what_was_wrong_is_corrected_by_its_median() -> None:
    past = lessons(
        [took("incremental", 3.0, 1.0), took("incremental", 2.0, 1.0), took("full", 1.0, 4.0)]
    )
    assert past.correction(Way.INCREMENTAL, 1.0) == 2.0
    assert past.correction(Way.BATCH, 4.0) == pytest.approx((1.0 + 0.25) / 2)


def test_a_large_change_does_not_spoil_the_estimate_of_a_small_one() -> None:
    small, large = took("incremental", 0.3, 0.3), took("incremental", 16.0, 2.0)
    past = lessons([small, large, small, large, small, large])
    assert past.correction(Way.INCREMENTAL, 0.4) == 1.0
    assert past.correction(Way.INCREMENTAL, 1.5) == 8.0


def test_what_was_never_tried_is_like_the_others() -> None:
    past = lessons([took("full", 2.0, 1.0)] * 3)
    assert past.correction(Way.INCREMENTAL, 1.0) == 2.0
    assert lessons([]).correction(Way.INCREMENTAL, 1.0) == 1.0


def test_rows_that_a_change_becomes_cost_more_than_it_does() -> None:
    few = Cost(Way.INCREMENTAL, 1, 1_000_000, 2_000, 2)
    assert few.seconds < Cost(Way.BATCH, 1, 1_000_000).seconds
    many = replace(few, rows_made=500_000)
    assert many.seconds > 2 * Cost(Way.BATCH, 1, 1_000_000).seconds
    assert "2,000 changed, which become 502,000" in str(many)


def test_one_slow_start_says_little() -> None:
    assert lessons([took("incremental", 30.0, 1.0)]).correction(Way.INCREMENTAL, 1.0) == 4.0
    recovered = [took("incremental", 30.0, 1.0), *[took("incremental", 1.0, 1.0)] * 2]
    assert lessons(recovered).correction(Way.INCREMENTAL, 1.0) == 1.0


def test_refreshes_that_nobody_estimated_teach_nothing() -> None:
    assert lessons([took("full", 5.0, 0.0)]).lessons == ()


def test_a_cost_says_what_it_is_made_of() -> None:
    cost = Cost(Way.INCREMENTAL, 2, 1_000, 10, 4, correction=2.0)
    assert str(cost) == "incremental: 2 queries, 1,000 rows read, 10 changed, about 0.5 s"


def test_a_recomputation_takes_no_longer_than_one_that_builds_state() -> None:
    built = replace(took("full", 1.5, 3.0), stateful=True)
    slow = took("incremental", 1.0, 0.1)
    assert lessons([built, slow, slow]).correction(Way.BATCH, 3.0) == 0.5
    assert lessons([replace(built, seconds=30.0), slow]).correction(Way.BATCH, 3.0) == 1.0
    assert lessons([built, slow, slow]).correction(Way.INCREMENTAL, 0.1) == 10.0
    # A small build says little, but not nothing.
    small = replace(took("full", 0.6, 0.3), stateful=True)
    assert lessons([small, slow, slow]).correction(Way.BATCH, 0.3) == 2.0
