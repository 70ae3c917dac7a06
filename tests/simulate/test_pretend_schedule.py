"""A pretend warehouse keeps the laws of the real one."""

from heapq import heappop
from math import inf

import pytest
from _chains import chains
from _lateness import compared, simulate

from springhouse.refresh.policy import EdfPartitioned, Global, Policy, Proportional
from springhouse.refresh.ranking.basic import Basic
from springhouse.refresh.ranking.chopping import Chopping
from springhouse.refresh.table.load_cost import LoadCost
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.simulate.pretend_schedule import PretendWarehouse, ScheduleConditions
from springhouse.simulate.slowdowns import Slowdowns
from springhouse.simulate.workload import Workload, equal_tables
from springhouse.units import Instant, Seconds

POLICIES = [
    Policy(),
    Policy(chopping=None),
    Policy(Basic.RANDOM, Global()),
    Policy(Basic.EDF_P, EdfPartitioned()),
    Policy(Basic.LOOKAHEAD, Proportional(0, aggressive=False, k=1.0)),
    Policy(Basic.FIFO, Global(), chopping=Chopping(1.0, fixed=True)),
]
DIAMOND = Workload(
    (
        TableProfile("fast", (), Seconds(10.0), cost=LoadCost(0.5, 0.05)),
        TableProfile("slow", (), Seconds(60.0), cost=LoadCost(0.5, 0.05)),
        TableProfile("left", ("fast",), cost=LoadCost(0.5, 0.01)),
        TableProfile("right", ("fast", "slow"), cost=LoadCost(0.5, 0.01)),
        TableProfile("both", ("left", "right"), priority=10.0, cost=LoadCost(0.5, 0.01)),
    )
)


def loaded(utilisation, count=30, tracks=4):
    return Workload(equal_tables(count)).at_utilisation(utilisation, tracks)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_the_same_seed_brings_the_same_run(policy):
    slow = ScheduleConditions(slowdowns=Slowdowns())
    first, again = (simulate(loaded(0.6), slow, policy, 3_000) for _ in range(2))
    assert first == again
    assert first != simulate(
        loaded(0.6), ScheduleConditions(slowdowns=Slowdowns(), seed=2), policy, 3_000
    )


def test_going_on_is_the_same_as_not_stopping():
    stopping, through = (
        PretendWarehouse(loaded(0.9), ScheduleConditions(), Policy()) for _ in range(2)
    )
    through.run(3_000)
    for _ in range(30):
        stopping.run(100)
    assert stopping.outcome() == through.outcome()


class EndingWarehouse(PretendWarehouse):
    def drain(self) -> None:
        """Let no more data arrive, and go on until all of it is loaded."""
        self._events = [event for event in self._events if event[3] is not None]
        self._events.sort()
        while self._events or self._waits:
            if self._waits and self._wake_early(self._events[0][0] if self._events else inf):
                continue
            if not self._events:
                return
            at, _, table, ended = heappop(self._events)
            assert ended is not None
            self.now = Instant(at)
            self._end(table, ended, self.now)
            self.counted += 1
            self._start(self.now)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("workload", [loaded(1.1), DIAMOND, Workload(chains(10, [(1.0, 9.0)]))])
def test_all_data_is_loaded_in_the_end(policy, workload):
    world = EndingWarehouse(workload, ScheduleConditions(slowdowns=Slowdowns()), policy)
    world.run(2_000)
    ended = world.now
    world.drain()
    told = {table.name: table for table in world.outcome().tables}
    for table in workload.tables:
        if table.upstream:
            assert told[table.name].freshness == min(told[n].freshness for n in table.upstream)
        else:
            assert 0 <= ended - told[table.name].freshness < workload.periods[table.name]


def test_one_table_alone_by_hand():
    """Data every 100 s that is loaded at once: staleness rises from 0 to 100, again and again."""
    workload = Workload(equal_tables(1, cost=LoadCost(1e-9, 0.0)))
    (told,) = simulate(workload, ScheduleConditions(1), Policy(), until=1_000.0).tables
    assert told.average_staleness == pytest.approx(50.0)
    assert (told.refreshes, told.worst_lag) == (10, pytest.approx(0.0, abs=1e-8))


def test_a_refresh_takes_what_it_costs():
    """A refresh of 100 s of data takes between b and 1 + b times 11 s, on average 11 s."""
    workload = Workload(equal_tables(1))
    outcome = simulate(workload, ScheduleConditions(1), Policy(), until=1_000_000.0)
    (told,) = outcome.tables
    assert told.average_staleness == pytest.approx(50.0 + 11.0, rel=0.005)
    assert outcome.work_seconds == pytest.approx(11.0 * told.refreshes, rel=0.01)
    assert 1.49 * 11.0 < told.worst_lag <= 1.5 * 11.0


@pytest.mark.parametrize("workload", [loaded(0.9), DIAMOND, Workload(chains(5, [(1.0, 1.0, 5.0)]))])
def test_relative_lateness_is_1_without_contention(workload):
    tracks = ScheduleConditions(len(workload.tables), Slowdowns())
    both = compared(workload, tracks, Policy(tracks=Global(), chopping=None), 3_000)
    assert both.relative_lateness == 1.0
    assert both.outcome.tables == both.ideal.tables


def test_contention_makes_tables_late():
    lateness = [
        compared(loaded(u), ScheduleConditions(), Policy(), 5_000) for u in (0.5, 0.9, 1.05)
    ]
    early, busy, over = (each.relative_lateness for each in lateness)
    assert 1.0 <= early < 1.01 < busy < over


def test_slow_periods_are_slow():
    """In a slow period a refresh takes three times as long, so lags are longer then."""
    workload = Workload(equal_tables(1))
    worst = {
        times: simulate(workload, ScheduleConditions(1, Slowdowns(times)), Policy(), 2_000)
        .tables[0]
        .worst_lag
        for times in (1.0, 3.0)
    }
    assert worst[1.0] <= 1.5 * 11.0 < worst[3.0] <= 3 * 1.5 * 11.0


def test_a_derived_table_is_never_fresher_than_what_it_reads():
    world = PretendWarehouse(DIAMOND, ScheduleConditions(2), Policy())
    for _ in range(300):
        world.run(5)
        fresh = {table.name: table.freshness for table in world.outcome().tables}
        for table in DIAMOND.tables:
            assert all(fresh[table.name] <= fresh[name] for name in table.upstream)


def test_a_refresh_is_wanted_once_per_arrival_when_there_is_time():
    told = simulate(Workload(chains(1, [(1.0, 1.0, 1.0)])), ScheduleConditions(), Policy(), 4_000)
    counts = {table.refreshes for table in told.tables}
    assert max(counts) - min(counts) <= 1
    assert told.events == pytest.approx(4 * max(counts), abs=4)


@pytest.mark.parametrize("learning", [True, False])
def test_a_promise_is_kept_when_there_is_time(learning):
    tables = (
        TableProfile("base", (), Seconds(10.0), cost=LoadCost(0.5, 0.05)),
        TableProfile("view", ("base",), promise_seconds=Seconds(60.0), cost=LoadCost(0.5, 0.05)),
    )
    told = simulate(Workload(tables), ScheduleConditions(1, learning=learning), Policy(), 6_000)
    base, view = told.tables
    assert (base.kept_share, view.kept_share) == (None, pytest.approx(1.0, abs=0.01))
    if learning:
        # Just in time: about once a minute, and not every ten seconds.
        assert view.refreshes < base.refreshes / 3
        assert view.worst_lag > 40.0


def test_priorities_decide_who_waits():
    tables = equal_tables(15, prefix="low") + equal_tables(15, prefix="high", priority=10.0)
    workload = Workload(tables).at_utilisation(1.05, 4)
    told = simulate(workload, ScheduleConditions(), Policy(), 20_000).tables
    low, high = (
        sum(t.average_staleness for t in told if t.name.startswith(kind))
        for kind in ("low", "high")
    )
    assert high < 0.7 * low
