"""Does a long refresh leave the last free track to short ones, as long as that is better?"""

import pytest

from springhouse.refresh.policy import Global, Policy
from springhouse.refresh.scheduler import Scheduler
from springhouse.refresh.table.load_cost import LoadCost
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.units import Instant, Seconds


def clicks(priority: float = 100.0) -> TableProfile:
    return TableProfile("clicks", (), Seconds(1.0), priority, None, LoadCost(0.3, 0.0))


def report(name: str, seconds: float = 60.0, promise: float | None = None) -> TableProfile:
    promised = None if promise is None else Seconds(promise)
    return TableProfile(name, (), Seconds(300.0), 1.0, promised, LoadCost(seconds, 0.0))


def scheduled(*tables: TableProfile, policy: Policy | None = None, tracks: int = 2) -> Scheduler:
    scheduler = Scheduler(tracks, policy or Policy(tracks=Global()))
    for table in tables:
        scheduler.declare(table, freshness=Instant(0.0))
    return scheduler


def started(scheduler: Scheduler, now: float, free: list[int]) -> list[str]:
    return [start.table for start in scheduler.starts(free, Instant(now))]


def two_reports(scheduler: Scheduler) -> Scheduler:
    for name in ("daily", "monthly"):
        scheduler.arrived(name, Instant(300.0), freshness=Instant(300.0))
    return scheduler


def test_the_second_report_leaves_a_track_for_the_clicks() -> None:
    scheduler = two_reports(scheduled(clicks(), report("daily"), report("monthly")))
    assert started(scheduler, 300.0, [1, 2]) == ["daily"]
    scheduler.arrived("clicks", Instant(301.0), freshness=Instant(301.0))
    assert started(scheduler, 301.0, [2]) == ["clicks"]


def test_it_starts_when_the_first_is_nearly_done() -> None:
    scheduler = scheduled(clicks(), report("daily"), report("monthly"))
    for name in ("daily", "monthly"):
        scheduler.arrived(name, Instant(700.0), freshness=Instant(700.0))
    assert started(scheduler, 700.0, [1, 2]) == ["daily"]
    # The report loses 700 in each second of waiting. The clicks lose 100 more in each second than
    # in the one before: both losses are equal when no track is free for 14 seconds.
    assert started(scheduler, 745.9, [2]) == []
    assert started(scheduler, 746.0, [2]) == ["monthly"]


def test_not_when_the_first_takes_longer_than_expected() -> None:
    scheduler = two_reports(scheduled(clicks(), report("daily"), report("monthly")))
    assert started(scheduler, 300.0, [1, 2]) == ["daily"]
    assert started(scheduler, 370.0, [2]) == []


def test_the_paper_takes_every_track() -> None:
    policy = Policy(tracks=Global(), weigh_last_track=False)
    scheduler = two_reports(scheduled(clicks(), report("daily"), report("monthly"), policy=policy))
    assert started(scheduler, 300.0, [1, 2]) == ["daily", "monthly"]


def test_nothing_is_kept_for_what_matters_little() -> None:
    scheduler = two_reports(scheduled(clicks(priority=1.0), report("daily"), report("monthly")))
    assert started(scheduler, 300.0, [1, 2]) == ["daily", "monthly"]


def test_nothing_is_kept_where_nothing_is_shorter() -> None:
    scheduler = two_reports(scheduled(report("daily"), report("monthly"), report("yearly")))
    assert started(scheduler, 300.0, [1, 2]) == ["daily", "monthly"]


def test_a_single_track_is_never_kept() -> None:
    scheduler = two_reports(scheduled(clicks(), report("daily"), report("monthly"), tracks=1))
    assert started(scheduler, 300.0, [1]) == ["daily"]


def test_a_third_track_is_kept_and_not_the_second() -> None:
    tables = (clicks(), report("daily"), report("monthly"), report("yearly"))
    scheduler = two_reports(scheduled(*tables, tracks=3))
    scheduler.arrived("yearly", Instant(300.0), freshness=Instant(300.0))
    assert started(scheduler, 300.0, [1, 2, 3]) == ["daily", "monthly"]


def test_a_promise_about_to_break_takes_the_last_track() -> None:
    promised = report("monthly", promise=61.0)
    scheduler = two_reports(scheduled(clicks(), report("daily"), promised))
    assert started(scheduler, 300.0, [1, 2]) == ["daily"]
    assert started(scheduler, 301.0, [2]) == ["monthly"]


def test_a_report_that_waits_long_enough_gets_the_last_track() -> None:
    scheduler = two_reports(scheduled(clicks(), report("daily"), report("monthly")))
    assert started(scheduler, 300.0, [1, 2]) == ["daily"]
    # The first refresh hangs; every five minutes more data waits for the second.
    waited = 300.0
    while not started(scheduler, waited, [2]):
        waited += 300.0
        scheduler.arrived("monthly", Instant(waited), freshness=Instant(waited))
        assert waited < 10_000.0
    assert waited == pytest.approx(3_000.0, abs=300.0)


def test_a_shorter_job_behind_it_may_have_the_track() -> None:
    quick = report("quick", seconds=0.2)
    scheduler = two_reports(scheduled(clicks(), report("daily"), report("monthly"), quick))
    assert started(scheduler, 300.0, [1, 2]) == ["daily"]
    scheduler.arrived("quick", Instant(310.0), freshness=Instant(0.5))
    assert [waiting.table for waiting in scheduler.order(Instant(310.0))] == ["monthly", "quick"]
    assert started(scheduler, 310.0, [2]) == ["quick"]
