"""Does the scheduler learn the cost of a refresh, without being misled by a single odd one?"""

import random

import pytest

from springhouse.refresh.table.load_cost import FIRST_GUESS, LearnedCost, LoadCost, TypicalRefresh


def noisy(cost: LoadCost, interval: float, dice: random.Random) -> float:
    return cost.seconds(interval) * dice.uniform(0.5, 1.5)


def test_start_and_rate_are_told_apart_when_refreshes_differ_in_size() -> None:
    true, learned, dice = LoadCost(2.0, 0.1), LearnedCost(LoadCost(1.0, 1.0)), random.Random(1)
    for _ in range(200):
        interval = dice.uniform(10.0, 200.0)
        learned.observe(interval, true.seconds(interval) * dice.uniform(0.9, 1.1))
    assert learned.cost.alpha == pytest.approx(2.0, abs=0.8)
    assert learned.cost.beta == pytest.approx(0.1, rel=0.1)


def test_equal_refreshes_are_expected_as_they_are_and_split_as_the_prior_says() -> None:
    learned = LearnedCost(LoadCost(1.0, 0.01))
    for _ in range(20):
        learned.observe(100.0, 0.04)
    assert learned.seconds(100.0) == pytest.approx(0.04)
    assert learned.cost.alpha == pytest.approx(0.02)


def test_a_prior_that_is_far_off_is_forgotten_at_once() -> None:
    learned = LearnedCost(LoadCost(60.0, 1.0))
    learned.observe(10.0, 0.5)
    assert learned.seconds(10.0) == pytest.approx(0.5)


def test_one_outlier_changes_little_and_a_new_pace_is_learned() -> None:
    learned, dice = LearnedCost(LoadCost(1.0, 0.1)), random.Random(2)
    for _ in range(50):
        learned.observe(100.0, 11.0 * dice.uniform(0.9, 1.1))
    learned.observe(100.0, 3000.0)
    assert learned.seconds(100.0) == pytest.approx(11.0, rel=0.15)
    for _ in range(40):
        learned.observe(100.0, 33.0)
    assert learned.seconds(100.0) == pytest.approx(33.0, rel=0.2)


def test_costs_are_never_negative() -> None:
    falling, steep = LearnedCost(LoadCost(1.0, 1.0)), LearnedCost(LoadCost(1.0, 1.0))
    for n in range(1, 30):
        falling.observe(float(n), 30.0 - n)
        steep.observe(float(n), max(n - 10.0, 0.0))
    for learned in (falling, steep):
        assert learned.cost.alpha >= 0.0
        assert learned.cost.beta >= 0.0
        assert learned.seconds(0.0) > 0.0


def test_rows_count_as_the_time_in_which_so_many_usually_arrive() -> None:
    told, silent = LearnedCost(LoadCost(0.0, 0.1)), LearnedCost(LoadCost(0.0, 0.1))
    for _ in range(10):
        told.observe(100.0, 10.0, rows=1000)
        silent.observe(100.0, 10.0)
    # A burst: a long refresh with ten times the rows. An estimate that knows the rows expects it.
    told.observe(100.0, 100.0, rows=10_000)
    silent.observe(100.0, 100.0)
    assert told.deviation < silent.deviation


def test_a_table_never_refreshed_is_like_the_others() -> None:
    typical = TypicalRefresh()
    assert typical.cost().seconds(60.0) == pytest.approx(FIRST_GUESS)
    for _ in range(200):
        typical.observe(4.0)
    typical.observe(4000.0)
    assert typical.cost().seconds(60.0) == pytest.approx(4.0, rel=0.5)


def test_a_long_silence_does_not_make_a_refresh_long() -> None:
    """Data comes every 3 s; the table also reads an input that changes once a day."""
    learned, dice = LearnedCost(LoadCost(1.0, 1.0)), random.Random(3)
    for number in range(200):
        rows = dice.randint(50, 150)
        interval = 20_000.0 if number % 50 == 49 else 3.0
        learned.observe(interval, 2.0 + 0.009 * rows, rows=rows)
    assert 1.0 < learned.seconds(3.0) < 4.0
    # After a night of silence, a night's data waits, and the refresh takes little more than usual.
    assert learned.seconds(20_000.0) < 60.0


def test_time_is_learned_per_row() -> None:
    learned, dice = LearnedCost(LoadCost(1.0, 1.0)), random.Random(4)
    for _ in range(100):
        rows = dice.randint(100, 1000)
        learned.observe(10.0 * dice.uniform(0.5, 2.0), 2.0 + 0.01 * rows, rows=rows)
    assert learned.cost.alpha == pytest.approx(2.0, abs=0.4)
