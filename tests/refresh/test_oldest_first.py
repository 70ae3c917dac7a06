"""Which refresh starts? Scenarios that read aloud."""

import pytest

from springhouse.refresh.job import Job, Start
from springhouse.refresh.oldest_first import decide, in_order
from springhouse.units import Instant


def job(table: str, since: float, priority: float = 1.0, released: float = 0.0) -> Job:
    return Job(table, Instant(since), "new data", priority, Instant(released))


SCENARIOS = [
    ("nothing waits", [], [1, 2], []),
    ("no track is free", [job("orders", 10)], [], []),
    (
        "the oldest data first",
        [job("orders", 20), job("payments", 10)],
        [7],
        [Start("payments", 7)],
    ),
    (
        "one for each free track",
        [job("a", 3), job("b", 1), job("c", 2)],
        [2, 1],
        [Start("b", 1), Start("c", 2)],
    ),
    (
        "equally old: the higher priority",
        [job("low", 5), job("high", 5, priority=10)],
        [1],
        [Start("high", 1)],
    ),
    (
        "one that failed waits for its next try",
        [job("failing", 1, released=101), job("fine", 50)],
        [1, 2],
        [Start("fine", 1)],
    ),
]


@pytest.mark.parametrize(("name", "waiting", "free", "starts"), SCENARIOS)
def test_decide(name: str, waiting: list[Job], free: list[int], starts: list[Start]) -> None:
    assert decide(waiting, free, Instant(100.0)) == starts, name


def test_a_table_that_waits_moves_to_the_front() -> None:
    waiting = [job("busy", since=90), job("forgotten", since=1)]
    assert [j.table for j in in_order(waiting, Instant(100.0))] == ["forgotten", "busy"]
