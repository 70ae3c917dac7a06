"""Are promises that are due together kept, and each of them still just in time?"""

from collections.abc import Sequence

from springhouse.refresh.policy import Global, Policy
from springhouse.refresh.scheduler import Scheduler
from springhouse.refresh.table.load_cost import LoadCost
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.units import Instant, Seconds


def report(number: int, promise: float = 60.0, seconds: float = 4.0) -> TableProfile:
    return TableProfile(
        f"report_{number}", (), Seconds(10.0), 1.0, Seconds(promise), LoadCost(seconds, 0.0)
    )


def scheduled(tables: Sequence[TableProfile], tracks: int = 1) -> Scheduler:
    """Every table has been refreshed once, in exactly the time that it costs."""
    scheduler = Scheduler(tracks, Policy(tracks=Global()))
    for table in tables:
        assert table.cost is not None
        scheduler.declare(table, freshness=Instant(0.0))
        scheduler.remember(table.name, loaded=Seconds(10.0), seconds=table.cost.seconds(10.0))
    return scheduler


def ends(
    scheduler: Scheduler, tracks: int, until: float, began: float = 0.0
) -> dict[str, tuple[float, float]]:
    """The start and end of each refresh, if all take the expected time."""
    found: dict[str, tuple[float, float]] = {}
    running: dict[str, tuple[float, int]] = {}
    free, now = {*range(1, tracks + 1)}, Instant(began)
    while now < until:
        for start in scheduler.starts(sorted(free), now):
            free.discard(start.track)
            running[start.table] = now + start.expected_seconds, start.track
            found[start.table] = now, now + start.expected_seconds
        change = scheduler.next_change(now)
        now = Instant(
            min([until, *([change] if change else []), *(end for end, _ in running.values())])
        )
        for name, (end, track) in [*running.items()]:
            if end <= now:
                del running[name]
                free.add(track)
                scheduler.finished(name, now, seconds=found[name][1] - found[name][0])
    return found


def test_one_alone_starts_at_its_latest_start() -> None:
    scheduler = scheduled([report(1)])
    scheduler.arrived("report_1", Instant(100.0))
    assert scheduler.next_change(Instant(100.0)) == 156.0


def test_five_on_one_track_start_one_after_the_other_and_all_are_kept() -> None:
    scheduler = scheduled([report(n) for n in range(5)])
    for n in range(5):
        scheduler.arrived(f"report_{n}", Instant(100.0))
    # The last refresh must start at 156, and four refreshes of four seconds come before it.
    assert scheduler.next_change(Instant(100.0)) == 140.0
    assert sorted(ends(scheduler, 1, 400.0).values()) == [
        (140.0, 144.0),
        (144.0, 148.0),
        (148.0, 152.0),
        (152.0, 156.0),
        (156.0, 160.0),
    ]


def test_who_was_hurried_by_a_crowd_rests_as_long_the_next_time() -> None:
    """The table has not waited for a track since its data came: it could have rested longer."""
    scheduler = scheduled([report(n) for n in range(5)])
    for at in (100.0, 200.0, 300.0):
        for n in range(5):
            scheduler.arrived(f"report_{n}", Instant(at))
        started = [start for start, _ in ends(scheduler, 1, at + 100.0, began=at).values()]
        assert min(started) == at + 40.0


def test_two_tracks_take_half_of_the_time() -> None:
    scheduler = scheduled([report(n) for n in range(5)], tracks=2)
    for n in range(5):
        scheduler.arrived(f"report_{n}", Instant(100.0))
    found = ends(scheduler, 2, 400.0)
    assert min(start for start, _ in found.values()) == 148.0
    assert max(end for _, end in found.values()) == 160.0


def test_those_in_a_crowd_outrank_what_has_no_promise() -> None:
    important = TableProfile("important", (), Seconds(10.0), 1000.0, None, LoadCost(4.0, 0.0))
    scheduler = scheduled([important, *(report(n) for n in range(5))])
    for name in ("important", *(f"report_{n}" for n in range(5))):
        scheduler.arrived(name, Instant(100.0))
    assert scheduler.order(Instant(139.0))[0].table == "important"
    first = scheduler.order(Instant(140.0))[0]
    assert (first.table, first.why) == ("report_0", "seconds until its promise breaks")


def test_one_that_is_broken_already_goes_before_those_who_have_time() -> None:
    late = TableProfile("late", (), Seconds(10.0), 1.0, Seconds(20.0), LoadCost(4.0, 0.0))
    scheduler = scheduled([late, *(report(n) for n in range(5))])
    for name in ("late", *(f"report_{n}" for n in range(5))):
        scheduler.arrived(name, Instant(100.0))
    order = [waiting.table for waiting in scheduler.order(Instant(140.0))]
    assert order[:2] == ["late", "report_0"]


def test_who_comes_due_much_later_hurries_nobody() -> None:
    scheduler = scheduled([report(1), report(2, promise=600.0, seconds=100.0)])
    scheduler.arrived("report_1", Instant(100.0))
    scheduler.arrived("report_2", Instant(100.0))
    assert scheduler.next_change(Instant(100.0)) == 156.0


def test_nobody_is_hurried_before_half_of_its_time() -> None:
    scheduler = scheduled([report(n, seconds=12.0) for n in range(5)])
    for n in range(5):
        scheduler.arrived(f"report_{n}", Instant(100.0))
    # All five need the whole minute. The latest start is at 148: half of that is left.
    assert scheduler.next_change(Instant(100.0)) == 124.0


def test_promises_of_which_there_are_too_many_are_no_crowd() -> None:
    scheduler = scheduled([report(n, seconds=40.0) for n in range(5)])
    for n in range(5):
        scheduler.arrived(f"report_{n}", Instant(100.0))
    # No promise can be kept. The tables rest as long as they may, and then their weights decide.
    assert scheduler.next_change(Instant(100.0)) == 120.0
    first = scheduler.order(Instant(121.0))[0]
    assert first.why == "benefit over time"


def test_a_table_that_loses_its_promise_leaves_the_crowd() -> None:
    scheduler = scheduled([report(n) for n in range(5)])
    for n in range(5):
        scheduler.arrived(f"report_{n}", Instant(100.0))
    for n in range(1, 5):
        scheduler.drop(f"report_{n}")
    assert scheduler.next_change(Instant(100.0)) == 156.0
