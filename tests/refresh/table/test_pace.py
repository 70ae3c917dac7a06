"""Does the scheduler learn the pace of arrivals?"""

import pytest

from springhouse.refresh.table.pace import Pace


def paced(*arrivals: float) -> Pace:
    pace = Pace()
    for at in arrivals:
        pace.arrived(at)
    return pace


def test_the_declared_period_counts_until_more_is_known_and_is_the_least() -> None:
    assert paced(0, 300).period(1.0) == 1.0
    assert paced(*range(20)).period(5.0) == 5.0


def test_data_that_comes_more_seldom_than_it_is_asked_for() -> None:
    assert paced(0, 300, 600, 900, 1200).period(1.0) == 300.0


def test_a_night_without_data_counts_as_a_few_gaps() -> None:
    assert paced(*range(0, 1000, 10), 40_000).period(1.0) == pytest.approx(13.0)


def test_the_next_arrival() -> None:
    assert paced().next_arrival(10.0) is None
    assert paced(5, 15).next_arrival(10.0) == 25.0
