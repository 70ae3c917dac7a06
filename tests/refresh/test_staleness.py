"""Staleness (001, section 2.3) and lag (004)."""

from springhouse.refresh.staleness import kept_share, lag, staleness, trailing_edge
from springhouse.units import Instant, Seconds


def test_staleness_grows_also_when_nothing_arrives() -> None:
    assert staleness(Instant(100.0), Instant(130.0)) == 30.0
    assert staleness(Instant(100.0), Instant(160.0)) == 60.0
    assert staleness(None, Instant(160.0)) is None


def test_what_is_derived_is_as_fresh_as_the_least_fresh_table() -> None:
    # 001 section 2.2: T1 is safe up to 9:58, T2 up to 10:01.
    assert trailing_edge([Instant(9 * 60 + 58.0), Instant(10 * 60 + 1.0)]) == 9 * 60 + 58.0
    assert trailing_edge([]) is None


def test_lag_is_the_wait_of_the_oldest_data_and_0_when_up_to_date() -> None:
    assert lag([], Instant(50.0)) == 0.0
    assert lag([Instant(40.0), Instant(10.0)], Instant(50.0)) == 40.0


def test_a_promise_is_kept_for_a_share_of_the_time() -> None:
    assert kept_share(Seconds(10.0), [Seconds(5.0), Seconds(20.0)]) == 0.5
    assert kept_share(Seconds(10.0), []) == 1.0
