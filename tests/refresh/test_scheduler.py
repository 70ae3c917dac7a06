"""What does the scheduler do with each event? Scenarios that read aloud."""

from dataclasses import replace

import pytest

from springhouse.refresh.policy import PAPER, Global, Policy, Proportional
from springhouse.refresh.ranking.basic import Basic
from springhouse.refresh.ranking.chopping import Chopping
from springhouse.refresh.scheduler import Scheduler
from springhouse.refresh.table.load_cost import LoadCost
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.units import Dice, Instant, RowCount, Seconds


def table(
    name: str, period: float = 10.0, priority: float = 1.0, seconds: float = 1.0
) -> TableProfile:
    return TableProfile(name, (), Seconds(period), priority, None, LoadCost(seconds, 0.0))


def scheduled(
    *tables: TableProfile, basic: Basic = Basic.MAX_BENEFIT, tracks: int = 1
) -> Scheduler:
    scheduler = Scheduler(tracks, replace(PAPER, basic=basic, tracks=Global()))
    for each in tables:
        scheduler.declare(each, freshness=Instant(0.0))
    return scheduler


def order(scheduler: Scheduler, now: float) -> list[str]:
    return [waiting.table for waiting in scheduler.order(Instant(now))]


# Data came for a at 1 (up to 1), for b at 2 (up to 2), for c at 3 (up to 3).
ORDERS = [
    (Basic.FIFO, ["a", "b", "c"]),
    (Basic.EDF, ["c", "b", "a"]),
    (Basic.EDF_P, ["b", "c", "a"]),
    (Basic.MAX_BENEFIT, ["b", "a", "c"]),
    (Basic.LOOKAHEAD, ["b", "a", "c"]),
    (Basic.WHITTLE, ["b", "a", "c"]),
    (Basic.ROUND_ROBIN, ["a", "b", "c"]),
]


@pytest.mark.parametrize(("basic", "expected"), ORDERS)
def test_the_order_of_the_basic_algorithms(basic: Basic, expected: list[str]) -> None:
    scheduler = scheduled(
        table("a", period=100.0, seconds=0.1),
        table("b", period=50.0, priority=30.0, seconds=0.5),
        table("c", period=5.0, seconds=2.0),
        basic=basic,
    )
    for at, name in enumerate("abc", start=1):
        scheduler.arrived(name, Instant(float(at)), freshness=Instant(float(at)))
    assert order(scheduler, 4.0) == expected
    found = [scheduler.starts([1], Instant(4.0))[0].table]
    for name in expected[:2]:
        scheduler.finished(name, Instant(5.0))
        found.append(scheduler.starts([1], Instant(5.0))[0].table)
    assert found == expected


def test_round_robin_takes_turns() -> None:
    scheduler = scheduled(table("a"), table("b"), basic=Basic.ROUND_ROBIN)
    turns = []
    for now in range(1, 7):
        for name in "ab":
            scheduler.arrived(name, Instant(float(now)), freshness=Instant(float(now)))
        (start,) = scheduler.starts([1], Instant(float(now)))
        scheduler.finished(start.table, Instant(now + 0.5))
        turns.append(start.table)
    assert turns == ["a", "b", "a", "b", "a", "b"]


def test_random_gives_those_who_waited_and_those_who_came_the_same_chance() -> None:
    firsts = []
    for seed in range(400):
        policy = Policy(basic=Basic.RANDOM, tracks=Global())
        scheduler = Scheduler(1, policy, Dice(seed))
        for name in ("old", "new", "other"):
            scheduler.declare(table(name))
        scheduler.arrived("old", Instant(1.0))
        scheduler.arrived("other", Instant(1.0))
        (start,) = scheduler.starts([1], Instant(1.0))
        if start.table == "other":
            scheduler.finished("other", Instant(2.0))
            scheduler.arrived("new", Instant(2.0))
            firsts.append(scheduler.starts([1], Instant(2.0))[0].table)
    assert 0.4 < firsts.count("old") / len(firsts) < 0.6


def test_a_refresh_that_failed_waits_with_everything_it_had() -> None:
    scheduler = scheduled(table("t"))
    scheduler.arrived("t", Instant(10.0), freshness=Instant(10.0))
    scheduler.starts([1], Instant(10.0))
    scheduler.arrived("t", Instant(11.0), freshness=Instant(11.0))
    scheduler.failed("t", Instant(12.0), retry_at=Instant(20.0))
    assert scheduler.starts([1], Instant(12.0)) == []
    assert scheduler.next_change(Instant(12.0)) == 20.0
    (start,) = scheduler.starts([1], Instant(20.0))
    assert (start.since, start.until) == (10.0, 11.0)


LOADING = replace(table("t"), cost=LoadCost(alpha=0.1, beta=0.1))
"""A table whose refreshes are long because there is much to load."""


def test_a_long_wait_is_loaded_in_chops_each_after_the_other() -> None:
    scheduler = scheduled(LOADING)
    for at in range(10, 110, 10):
        scheduler.arrived("t", Instant(float(at)), freshness=Instant(float(at)))
    untils, sinces = [], []
    while starts := scheduler.starts([1], Instant(200.0)):
        untils.append(starts[0].until)
        sinces.append(starts[0].since)
        scheduler.finished("t", Instant(200.0))
    assert untils == [30.0, 60.0, 90.0, 100.0]
    assert sinces == [10.0, 40.0, 70.0, 100.0]


def test_a_single_batch_is_never_cut() -> None:
    scheduler = scheduled(LOADING)
    for at in (10.0, 500.0, 510.0):
        scheduler.arrived("t", Instant(at), freshness=Instant(at))
    untils = []
    while starts := scheduler.starts([1], Instant(600.0)):
        untils.append(starts[0].until)
        scheduler.finished("t", Instant(600.0))
    assert untils == [10.0, 500.0, 510.0]


def test_where_starting_costs_more_than_loading_nothing_is_cut() -> None:
    for cost, expected in ((LoadCost(5.0, 0.1), [50.0, 100.0]), (LoadCost(5.0, 0.0), [100.0])):
        scheduler = scheduled(replace(table("t"), cost=cost))
        for at in range(10, 110, 10):
            scheduler.arrived("t", Instant(float(at)), freshness=Instant(float(at)))
        untils = []
        while starts := scheduler.starts([1], Instant(200.0)):
            untils.append(starts[0].until)
            scheduler.finished("t", Instant(200.0))
        assert untils == expected


def test_what_a_refresh_did_not_reach_waits_on() -> None:
    scheduler = scheduled(table("t"))
    for at in (10.0, 20.0):
        scheduler.arrived("t", Instant(at), freshness=Instant(at))
    scheduler.starts([1], Instant(20.0))
    scheduler.finished("t", Instant(21.0), freshness=Instant(10.0))
    (start,) = scheduler.starts([1], Instant(21.0))
    assert (start.since, start.until) == (20.0, 20.0)


def test_late_records_are_loaded_though_they_make_nothing_fresher() -> None:
    scheduler = scheduled(table("t"))
    scheduler.arrived("t", Instant(10.0), freshness=Instant(10.0))
    scheduler.starts([1], Instant(10.0))
    scheduler.finished("t", Instant(11.0))
    scheduler.arrived("t", Instant(12.0), freshness=Instant(7.0))
    assert [start.table for start in scheduler.starts([1], Instant(12.0))] == ["t"]
    scheduler.finished("t", Instant(13.0))
    known = scheduler.known("t", Instant(13.0))
    assert known is not None
    assert known.freshness == 10.0


def test_what_is_not_wanted_any_more_does_not_start() -> None:
    scheduler = scheduled(table("t"))
    scheduler.arrived("t", Instant(10.0))
    scheduler.withdrawn("t", Instant(11.0))
    assert scheduler.starts([1], Instant(11.0)) == []
    assert order(scheduler, 11.0) == []


def test_a_table_that_goes_and_comes_back_is_not_refreshed_twice_at_once() -> None:
    scheduler = scheduled(table("t"), tracks=2)
    scheduler.arrived("t", Instant(10.0))
    scheduler.starts([1, 2], Instant(10.0))
    scheduler.drop("t")
    scheduler.arrived("t", Instant(11.0))
    assert scheduler.known("t", Instant(11.0)) is None
    scheduler.declare(table("t"))
    scheduler.arrived("t", Instant(12.0))
    assert scheduler.starts([2], Instant(12.0)) == []
    scheduler.finished("t", Instant(13.0))
    assert [start.table for start in scheduler.starts([1, 2], Instant(13.0))] == ["t"]


def test_a_table_that_is_gone_is_gone() -> None:
    scheduler = scheduled(table("a"), table("b"))
    scheduler.arrived("a", Instant(10.0))
    scheduler.arrived("b", Instant(10.0))
    scheduler.drop("a")
    assert order(scheduler, 10.0) == ["b"]
    scheduler.finished("a", Instant(11.0))
    scheduler.drop("a")


def homes(scheduler: Scheduler, now: float) -> dict[str, tuple[int, ...]]:
    layout = scheduler.layout(Instant(now))
    return {name: layout.lanes[lane].homes for name, lane in layout.lane_of.items()}


def test_tracks_are_divided_anew_when_tables_come_go_or_change_speed() -> None:
    scheduler = Scheduler(2, Policy(tracks=Proportional(k=2.0)))
    scheduler.declare(table("fast", period=1.0, seconds=0.1))
    assert homes(scheduler, 0.0) == {"fast": (1, 2)}
    scheduler.declare(table("slow", period=100.0, seconds=10.0))
    assert homes(scheduler, 0.0) == {"fast": (1,), "slow": (2,)}
    # The slow table takes nine times as long as before: it gets most of the second track.
    for _ in range(30):
        scheduler.remember("slow", loaded=Seconds(100.0), seconds=90.0)
    assert homes(scheduler, 0.0) == {"fast": (1,), "slow": (1, 2)}
    scheduler.drop("fast")
    assert set(homes(scheduler, 0.0)["slow"]) == {1, 2}
    scheduler.resize(1)
    assert homes(scheduler, 0.0) == {"slow": (1,)}


def test_waiting_jobs_survive_a_new_layout() -> None:
    scheduler = Scheduler(2, Policy(tracks=Proportional(k=2.0)))
    for i in range(6):
        scheduler.declare(table(f"t{i}", period=4.0**i, seconds=4.0**i / 20))
        scheduler.arrived(f"t{i}", Instant(1.0 + i), freshness=Instant(1.0 + i))
    scheduler.drop("t2")
    scheduler.declare(table("t6", period=1.0, seconds=0.9))
    started = []
    now = 10.0
    while starts := scheduler.starts([1, 2], Instant(now)):
        now += 1.0
        started += [start.table for start in starts]
        for start in starts:
            scheduler.finished(start.table, Instant(now))
    assert sorted(started) == ["t0", "t1", "t3", "t4", "t5"]


def test_data_that_comes_more_seldom_than_it_is_asked_for_is_not_chopped_by_the_question() -> None:
    scheduler = scheduled(table("t", period=1.0))
    for at in range(300, 3000, 300):
        now = Instant(float(at))
        scheduler.arrived("t", now, freshness=now)
        while scheduler.starts([1], now):
            scheduler.finished("t", now)
    now = Instant(3000.0)
    scheduler.arrived("t", now, freshness=now)
    assert [start.until for start in scheduler.starts([1], now)] == [3000.0]


def test_events_of_tables_that_nobody_declared_are_not_errors() -> None:
    scheduler = Scheduler(1)
    scheduler.arrived("t", Instant(0.0))
    scheduler.finished("t", Instant(0.0))
    scheduler.failed("t", Instant(0.0), Instant(1.0))
    scheduler.withdrawn("t", Instant(0.0))
    assert scheduler.starts([1], Instant(0.0)) == []
    assert scheduler.next_change(Instant(0.0)) is None


def test_what_reads_the_same_source_goes_along_on_one_track() -> None:
    """Even if another track is free, and if the table could wait; but not if it has just failed."""
    scheduler = scheduled(table("a", priority=9.0), table("b"), table("c"), table("d"), tracks=3)
    for name in "abcd":
        scheduler.arrived(name, Instant(1.0), freshness=Instant(1.0))
    (first,) = scheduler.starts([3], Instant(1.0), lambda name: ())
    scheduler.failed(first.table, Instant(2.0), Instant(9.0))
    assert first.table == "a"
    started = scheduler.starts([1, 2], Instant(3.0), lambda name: {"b": ["a", "c"]}.get(name, ()))
    assert [(start.table, start.track) for start in started] == [("b", 1), ("c", 1), ("d", 2)]
    assert started[1].why == "with b"
    # The tables run one after the other: waiting inside the job is no error of the estimate.
    assert [start.expected_seconds for start in started[:2]] == [1.0, 2.0]
    assert order(scheduler, 3.0) == ["a"]
    # Each table ends on its own: the failed one waits again, the other is as fresh as planned.
    scheduler.failed("b", Instant(4.0), Instant(4.0))
    scheduler.finished("c", Instant(4.0), seconds=0.5)
    known = scheduler.known("c", Instant(4.0))
    assert known is not None
    assert (known.freshness, known.track) == (1.0, None)
    assert order(scheduler, 4.0) == ["b", "a"]


def test_what_went_along_and_did_not_get_as_far_waits_on() -> None:
    scheduler = scheduled(table("a"), table("b"), basic=Basic.FIFO)
    scheduler.arrived("a", Instant(1.0), freshness=Instant(1.0))
    for at in (1.0, 2.0):
        scheduler.arrived("b", Instant(at), freshness=Instant(at))
    assert len(scheduler.starts([1], Instant(2.0), lambda name: ["b"])) == 2
    scheduler.finished("b", Instant(3.0), freshness=Instant(1.0))
    scheduler.finished("a", Instant(3.0))
    assert order(scheduler, 3.0) == ["b"]


def test_what_a_view_costs_is_asked_for_its_own_pace_not_for_its_slowest_ancestor() -> None:
    """Clicks come every 3 s. The table of countries arrived once, and is checked once a day."""
    scheduler = Scheduler(1)
    scheduler.declare(TableProfile("clicks", period_seconds=Seconds(3.0)), freshness=Instant(0.0))
    scheduler.declare(
        TableProfile("countries", period_seconds=Seconds(86_400.0)), freshness=Instant(0.0)
    )
    scheduler.declare(TableProfile("by_country", ("clicks", "countries")), freshness=Instant(0.0))
    for at in range(3, 300, 3):
        now = Instant(float(at))
        scheduler.arrived("by_country", now, freshness=now)
        assert len(scheduler.starts([1], now)) == 1
        rows = RowCount(90 + at % 20)
        scheduler.finished("by_country", Instant(at + 2.9), seconds=2.9, rows=rows)
    known = scheduler.known("by_country", Instant(300.0))
    assert known is not None
    assert known.period_seconds == 86_400.0
    assert known.expected_seconds == pytest.approx(2.9, rel=0.1)


def test_nothing_is_cut_where_nothing_is_worth_more() -> None:
    for rival, expected in ((None, 1000.0), (table("vip", 1.0, 10_000.0, 0.1), 500.0)):
        scheduler = Scheduler(1, Policy(chopping=Chopping(50.0)))
        scheduler.declare(LOADING, freshness=Instant(0.0))
        if rival is not None:
            scheduler.declare(rival, freshness=Instant(0.0))
        for at in range(10, 1010, 10):
            scheduler.arrived("t", Instant(float(at)), freshness=Instant(float(at)))
        (start,) = scheduler.starts([1], Instant(1000.0))
        assert start.until == expected


def test_a_table_of_unknown_cost_gets_its_turn_however_much_waits() -> None:
    """One refresh can't show the cost per row, so waiting data must not raise the estimate."""
    scheduler = Scheduler(1)
    for name in ("seldom", "often"):
        priority = 1.0 if name == "seldom" else 100.0
        declared = TableProfile(name, period_seconds=Seconds(1.0), priority=priority)
        scheduler.declare(declared, freshness=Instant(0.0))
    began: list[str] = []
    now = 1.0
    while now < 300.0:
        for name in ("seldom", "often"):
            scheduler.arrived(name, Instant(now), freshness=Instant(now))
        (start,) = scheduler.starts([1], Instant(now))
        began.append(start.table)
        now += 1.0
        scheduler.finished(start.table, Instant(now), seconds=1.0, rows=RowCount(1))
    # In proportion to the square roots of their priorities.
    assert 15 <= began.count("seldom") <= 45


@pytest.mark.parametrize("basic", Basic)
def test_a_refresh_that_is_said_to_take_no_time_has_a_place(basic: Basic) -> None:
    scheduler = scheduled(table("a"), table("b"), basic=basic)
    for name in "ab":
        scheduler.arrived(name, Instant(1.0), freshness=Instant(1.0), seconds=0.0)
    assert sorted(order(scheduler, 2.0)) == ["a", "b"]
