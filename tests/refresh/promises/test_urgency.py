"""Is a promise kept just in time, and does one that is about to break come first?"""

import pytest

from springhouse.refresh.policy import Global, Policy, Proportional
from springhouse.refresh.promises.urgency import DownstreamReader, Margin, allowance
from springhouse.refresh.scheduler import Scheduler
from springhouse.refresh.table.load_cost import LoadCost
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.units import Instant, Seconds

MINUTE = Seconds(60.0)


def scheduled(*tables: TableProfile, policy: Policy | None = None) -> Scheduler:
    """Every table has been refreshed once, in exactly the time that it costs."""
    scheduler = Scheduler(1, policy or Policy(tracks=Global()))
    for table in tables:
        assert table.cost is not None
        scheduler.declare(table, freshness=Instant(0.0))
        scheduler.remember(table.name, loaded=Seconds(10.0), seconds=table.cost.seconds(10.0))
    return scheduler


def promised(
    name: str, promise: Seconds | None, priority: float = 1.0, seconds: float = 5.0
) -> TableProfile:
    return TableProfile(name, (), Seconds(10.0), priority, promise, LoadCost(seconds, 0.0))


def started(scheduler: Scheduler, now: float) -> list[str]:
    return [start.table for start in scheduler.starts([1], Instant(now))]


def test_without_a_promise_as_soon_as_data_is_there() -> None:
    scheduler = scheduled(promised("t", None))
    scheduler.arrived("t", Instant(100.0))
    assert started(scheduler, 100.0) == ["t"]


def test_with_a_promise_just_in_time_with_all_that_came_meanwhile() -> None:
    scheduler = scheduled(promised("t", MINUTE))
    scheduler.arrived("t", Instant(100.0), freshness=Instant(100.0))
    assert started(scheduler, 100.0) == []
    scheduler.arrived("t", Instant(130.0), freshness=Instant(130.0))
    # The oldest data came at 100 and must be there by 160; the refresh takes 5.
    assert scheduler.next_change(Instant(130.0)) == 155.0
    (waiting,) = scheduler.order(Instant(150.0))
    assert (waiting.released, waiting.number) == (155.0, 5.0)
    assert started(scheduler, 154.9) == []
    (start,) = scheduler.starts([1], Instant(155.0))
    assert (start.table, start.since) == ("t", 100.0)
    assert (start.number, start.why) == (5.0, "seconds until its promise breaks")


def test_a_table_never_refreshed_does_not_wait() -> None:
    scheduler = Scheduler(1)
    scheduler.declare(promised("t", MINUTE))
    scheduler.arrived("t", Instant(100.0))
    assert started(scheduler, 100.0) == ["t"]


def test_what_was_never_made_comes_first_and_only_once() -> None:
    scheduler = scheduled(promised("breaking", MINUTE), promised("broken", Seconds(20.0)))
    scheduler.declare(promised("new", None, priority=0.001, seconds=500.0))
    for name in ("breaking", "broken", "new"):
        scheduler.arrived(name, Instant(100.0))
    order = [(w.table, w.why) for w in scheduler.order(Instant(157.0))]
    assert order[0] == ("new", "never made, benefit over time")
    assert started(scheduler, 157.0) == ["new"]
    scheduler.finished("new", Instant(158.0), seconds=1.0)
    scheduler.arrived("new", Instant(158.0))
    assert started(scheduler, 158.0) == ["breaking"]


def test_what_was_never_made_waits_its_turn_where_promises_are_ignored() -> None:
    scheduler = scheduled(promised("old", None), policy=Policy(heed_promises=False))
    scheduler.declare(promised("new", None, priority=0.001))
    for name in ("new", "old"):
        scheduler.arrived(name, Instant(100.0))
    assert started(scheduler, 100.0) == ["old"]


def test_a_margin_is_for_all_that_passes_until_a_refresh_has_ended() -> None:
    scheduler = scheduled(promised("t", MINUTE, seconds=5.0))
    for now in (1000.0, 2000.0):
        scheduler.arrived("t", Instant(now), freshness=Instant(now))
        release = scheduler.next_change(Instant(now))
        assert release is not None
        scheduler.starts([1], release)
        # The refresh reports 5 seconds, but its track was free again only after 8.
        scheduler.finished("t", Instant(release + 8.0), seconds=5.0)
    known = scheduler.known("t", Instant(3000.0))
    assert known is not None
    assert known.error_seconds > 1.5


def test_a_promise_that_cannot_be_kept_takes_no_more_than_its_weight() -> None:
    """Such a promise is no deadline. The weight of the table decides, as without a promise."""
    turns = {}
    for promise in (Seconds(3.0), None):
        cheap = [promised(f"cheap {n}", None, priority=9.0, seconds=4.0) for n in range(4)]
        dear = promised("dear", promise, priority=0.01, seconds=30.0)
        scheduler = scheduled(dear, *cheap)
        begun, now = [], 100.0
        while now < 20_000.0:
            for table in (*cheap, dear):
                scheduler.arrived(table.name, Instant(now), freshness=Instant(now))
            for name in started(scheduler, now):
                begun.append(name)
                seconds = 30.0 if name == "dear" else 4.0
                now += seconds
                scheduler.finished(name, Instant(now), seconds=seconds)
            now += 0.5
        turns[promise] = begun.count("dear")
    assert 1 <= turns[Seconds(3.0)] <= turns[None] <= 40


def test_promises_can_be_ignored() -> None:
    scheduler = scheduled(promised("t", MINUTE), policy=Policy(heed_promises=False))
    scheduler.arrived("t", Instant(100.0))
    assert started(scheduler, 100.0) == ["t"]


def test_about_to_break_then_broken_then_all_else_by_benefit() -> None:
    scheduler = scheduled(
        promised("important", None, priority=1000.0),
        promised("broken", Seconds(20.0)),
        promised("breaking", MINUTE),
        promised("later", Seconds(100.0)),
    )
    for name in ("important", "broken", "breaking", "later"):
        scheduler.arrived(name, Instant(100.0))
    order = [(w.table, w.why) for w in scheduler.order(Instant(157.0))]
    assert order == [
        ("breaking", "seconds until its promise breaks"),
        ("broken", "promise broken, benefit over time"),
        ("important", "benefit over time"),
        ("later", "seconds until it is released"),
    ]


def test_refreshes_that_took_longer_than_expected_are_released_earlier() -> None:
    scheduler = scheduled(promised("t", MINUTE, seconds=5.0))
    now = 0.0
    for seconds in (5.0, 9.0, 5.0, 9.0, 5.0, 9.0):
        now += 1000.0
        scheduler.arrived("t", Instant(now), freshness=Instant(now))
        release = scheduler.next_change(Instant(now))
        assert release is not None
        scheduler.starts([1], release)
        scheduler.finished("t", Instant(release + seconds), seconds=seconds)
    scheduler.arrived("t", Instant(9000.0), freshness=Instant(9000.0))
    known, release = scheduler.known("t", Instant(9000.0)), scheduler.next_change(Instant(9000.0))
    assert known is not None
    assert release is not None
    assert 9.0 < 9060.0 - release < 20.0
    assert known.error_seconds > 1.0


def test_a_source_hurries_for_the_promise_of_a_view() -> None:
    scheduler = scheduled(
        promised("base", None),
        promised("other", None, priority=1000.0),
        TableProfile("view", ("base",), None, 1.0, Seconds(20.0), LoadCost(5.0, 0.0)),
    )
    scheduler.arrived("base", Instant(100.0))
    scheduler.arrived("other", Instant(100.0))
    # 20 for the view, less 5 for its refresh, less 5 for that of the base table.
    assert [w.table for w in scheduler.order(Instant(109.0))] == ["other", "base"]
    assert [w.table for w in scheduler.order(Instant(110.0))] == ["base", "other"]


def test_how_wrong_the_estimates_of_a_view_are_is_passed_on_to_what_it_reads() -> None:
    scheduler = scheduled(
        promised("base", None),
        TableProfile("view", ("base",), None, 1.0, MINUTE, LoadCost(5.0, 0.0)),
    )
    scheduler.arrived("base", Instant(100.0), freshness=Instant(100.0))
    assert _latest_start(scheduler, "base", 100.0) == 100.0 + 60.0 - 5.0 - 5.0
    scheduler.withdrawn("base", Instant(100.0))
    scheduler.arrived("view", Instant(200.0), freshness=Instant(200.0))
    assert started(scheduler, 255.0) == ["view"]
    scheduler.finished("view", Instant(268.0), seconds=13.0)
    known = scheduler.known("view", Instant(268.0))
    assert known is not None
    assert known.error_seconds == 5.0
    scheduler.arrived("base", Instant(300.0), freshness=Instant(300.0))
    left = 60.0 - known.cost.seconds(60.0) - known.error_seconds
    assert _latest_start(scheduler, "base", 300.0) == pytest.approx(300.0 + left - 5.0)


def _latest_start(scheduler: Scheduler, name: str, now: float) -> float:
    """When a table that may start at any time becomes urgent."""
    assert [(w.table, w.why) for w in scheduler.order(Instant(now))] == [
        (name, "benefit over time")
    ]
    change = scheduler.next_change(Instant(now))
    assert change is not None
    return change


def test_a_view_that_is_held_up_hurries_what_holds_it() -> None:
    scheduler = scheduled(
        promised("orders", None),
        promised("customers", Seconds(600.0)),
        TableProfile(
            "segments", ("orders", "customers"), None, 1.0, Seconds(30.0), LoadCost(5.0, 0.0)
        ),
    )
    scheduler.declare(promised("lonely", Seconds(600.0)), freshness=Instant(0.0))
    for name in ("customers", "lonely"):
        scheduler.arrived(name, Instant(110.0), freshness=Instant(110.0))
    # By its own promise, customers has until 710; for segments, which promises 30, until 130.
    assert scheduler.next_change(Instant(110.0)) == 110.0 + 30.0 - 5.0 - 5.0
    # But the orders of 100 wait: segments can take them in only with the customers of that time.
    scheduler.held_up("segments", Instant(100.0), Instant(110.0))
    assert scheduler.next_change(Instant(110.0)) == 100.0 + 30.0 - 5.0 - 5.0
    first = scheduler.order(Instant(120.0))[0]
    assert (first.table, first.why) == ("customers", "seconds until its promise breaks")


def test_what_held_up_a_reader_is_in_no_hurry_afterwards() -> None:
    scheduler = scheduled(
        promised("customers", Seconds(600.0)),
        TableProfile("segments", ("customers",), None, 1.0, Seconds(300.0), LoadCost(5.0, 0.0)),
    )
    scheduler.arrived("customers", Instant(110.0), freshness=Instant(110.0))
    scheduler.held_up("segments", Instant(0.0), Instant(110.0))
    assert scheduler.next_change(Instant(110.0)) == 290.0
    assert started(scheduler, 290.0) == ["customers"]
    scheduler.finished("customers", Instant(295.0), seconds=5.0)
    scheduler.arrived("customers", Instant(1000.0), freshness=Instant(1000.0))
    assert scheduler.next_change(Instant(1000.0)) == 1290.0


def test_what_has_nothing_to_load_is_not_hurried_for_later() -> None:
    scheduler = scheduled(
        promised("customers", Seconds(600.0)),
        TableProfile("segments", ("customers",), None, 1.0, Seconds(300.0), LoadCost(5.0, 0.0)),
    )
    scheduler.held_up("segments", Instant(0.0), Instant(110.0))
    scheduler.arrived("customers", Instant(1000.0), freshness=Instant(1000.0))
    assert scheduler.next_change(Instant(1000.0)) == 1290.0


def test_one_that_is_held_up_without_a_promise_hurries_nobody() -> None:
    scheduler = scheduled(
        promised("customers", Seconds(600.0)),
        TableProfile("segments", ("customers",), None, 1.0, None, LoadCost(5.0, 0.0)),
    )
    scheduler.arrived("customers", Instant(110.0), freshness=Instant(110.0))
    scheduler.held_up("segments", Instant(0.0), Instant(110.0))
    assert scheduler.next_change(Instant(110.0)) == 705.0


def test_a_promise_about_to_break_may_use_every_track() -> None:
    slow = TableProfile("slow", (), Seconds(1000.0), 1.0, MINUTE, LoadCost(50.0, 0.0))
    fast = promised("fast", None)
    policy = Policy(tracks=Proportional(k=1.0))
    scheduler = Scheduler(2, policy)
    for table in (slow, fast):
        scheduler.declare(table, freshness=Instant(0.0))
        scheduler.remember(table.name, loaded=Seconds(10.0), seconds=5.0 if table is fast else 50.0)
    home = scheduler.layout(Instant(0.0)).lanes[0].homes
    assert home == (2,)
    scheduler.arrived("slow", Instant(100.0), freshness=Instant(100.0))
    assert scheduler.starts([1], Instant(109.0)) == []
    assert [start.track for start in scheduler.starts([1], Instant(110.0))] == [1]


def test_an_input_that_may_wait_longer_is_not_hurried_by_the_other_one() -> None:
    chart = TableProfile(
        "chart",
        ("orders", "customers"),
        promise_seconds=Seconds(20.0),
        cost=LoadCost(5.0, 0.0),
        promise_by_input={"orders": Seconds(20.0), "customers": MINUTE},
    )
    scheduler = scheduled(promised("orders", None), promised("customers", None), chart)
    scheduler.arrived("customers", Instant(100.0), freshness=Instant(100.0))
    assert _latest_start(scheduler, "customers", 100.0) == 100.0 + 60.0 - 5.0 - 5.0
    scheduler.withdrawn("customers", Instant(100.0))
    scheduler.arrived("orders", Instant(100.0), freshness=Instant(100.0))
    assert _latest_start(scheduler, "orders", 100.0) == 100.0 + 20.0 - 5.0 - 5.0


def test_a_reader_in_a_hurry_hurries_only_the_inputs_on_its_pathway() -> None:
    """`queue` is bound to 20 seconds along orders, and to a minute along customers."""
    chart = TableProfile(
        "chart",
        ("orders", "customers"),
        promise_seconds=MINUTE,
        cost=LoadCost(5.0, 0.0),
        patience_by_input={"orders": Seconds(0.0), "customers": Seconds(40.0)},
    )
    queue = TableProfile(
        "queue", ("chart",), promise_seconds=Seconds(20.0), cost=LoadCost(5.0, 0.0)
    )
    tables = promised("orders", None), promised("customers", None), chart, queue
    scheduler = scheduled(*tables)
    for name, bound in (("orders", 20.0), ("customers", 60.0)):
        scheduler.arrived(name, Instant(100.0), freshness=Instant(100.0))
        # Subtract the time of the table itself and of its two readers.
        assert _latest_start(scheduler, name, 100.0) == 100.0 + bound - 3 * 5.0
        scheduler.withdrawn(name, Instant(100.0))


def test_allowance() -> None:
    assert allowance(None, []) is None
    assert allowance(MINUTE, []) == 60.0
    assert allowance(None, [DownstreamReader(MINUTE, 70.0)]) == 0.0


def test_a_margin_rises_fast_and_falls_slowly() -> None:
    margin = Margin()
    for _ in range(5):
        margin.observe(8.0)
    high = margin.seconds
    assert high == pytest.approx(10.0, rel=0.05)
    margin.observe(-3.0)
    assert 0.9 * high < margin.seconds < high
