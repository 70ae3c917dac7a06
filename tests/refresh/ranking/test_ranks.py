"""Does a table that is far behind rank by all of its waiting data, though it loads only a part?"""

from dataclasses import replace

from springhouse.refresh.policy import PAPER, Global
from springhouse.refresh.scheduler import Scheduler
from springhouse.refresh.table.load_cost import LoadCost
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.units import Instant, Seconds


def table(name: str, priority: float = 1.0, promise: float | None = None) -> TableProfile:
    promised = None if promise is None else Seconds(promise)
    return TableProfile(name, (), Seconds(10.0), priority, promised, LoadCost(1.0, 0.1))


def scheduled(*tables: TableProfile) -> Scheduler:
    scheduler = Scheduler(1, replace(PAPER, tracks=Global()))
    for each in tables:
        scheduler.declare(each, freshness=Instant(0.0))
    return scheduler


def behind(scheduler: Scheduler, name: str, periods: int) -> None:
    for number in range(1, periods + 1):
        at = Instant(10.0 * number)
        scheduler.arrived(name, at, freshness=at)


def test_it_loads_three_periods_and_ranks_by_twenty() -> None:
    scheduler = scheduled(table("t"))
    behind(scheduler, "t", 20)
    (waiting,) = scheduler.order(Instant(200.0))
    assert waiting.freshness_delta == 200.0
    assert waiting.number == 200.0 / (1.0 + 0.1 * 200.0)
    (start,) = scheduler.starts([1], Instant(200.0))
    assert (start.until, start.expected_seconds) == (30.0, 1.0 + 0.1 * 30.0)


def test_further_behind_goes_first() -> None:
    scheduler = scheduled(table("ten_behind"), table("four_behind"))
    behind(scheduler, "four_behind", 4)
    behind(scheduler, "ten_behind", 10)
    order = [waiting.table for waiting in scheduler.order(Instant(100.0))]
    assert order == ["ten_behind", "four_behind"]


def test_parts_are_no_shorter_than_what_a_promise_lets_wait() -> None:
    scheduler = scheduled(table("t", promise=90.0))
    scheduler.remember("t", loaded=Seconds(10.0), seconds=2.0)
    behind(scheduler, "t", 9)
    # Just in time for the batch of 10 s: one refresh of all nine, not three of three.
    change = scheduler.next_change(Instant(90.0))
    assert change is not None
    (start,) = scheduler.starts([1], Instant(change))
    assert start.until == 90.0
