"""What would the scheduler do with this workload?

This is the pretend warehouse of 001 section 4.1. Base tables get data once per period, each from a
random moment on. A derived table can load the data of its sources as soon as they are refreshed, up
to the least fresh of them. Every arrival and every end of a refresh is an event. After each event
the module asks the same `Scheduler` that runs a warehouse what to start. A refresh of `n` seconds
of data takes

    factor(now) × E(n) × a number that is uniform in [b, 1 + b]

where `factor` is that of the slowdowns, and the scheduler expects its mean. The k-th refresh of a
table has the same random number under every policy, so that only the policies differ.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Protocol

from springhouse.refresh.job import Start
from springhouse.refresh.policy import Policy
from springhouse.refresh.scheduler import Scheduler
from springhouse.refresh.table.load_cost import LoadCost
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.refresh.waiting import Waiting
from springhouse.simulate.slowdowns import NEVER, Slowdowns
from springhouse.simulate.table_measures import ScheduleOutcome, TableMeasures
from springhouse.simulate.uncontended import Uncontended
from springhouse.simulate.workload import Workload, cost_of, exact
from springhouse.units import Dice, Instant, Seconds


@dataclass(frozen=True)
class ScheduleConditions:
    """The world around the scheduler; the defaults are those of the paper's Table 2.

    `spread` is b. With `learning`, the scheduler learns how long each refresh took. `wrong` has the
    factors by which its first estimates of the start and the data of a refresh are wrong.
    """

    tracks: int = 4
    slowdowns: Slowdowns = field(default=NEVER)
    spread: float = 0.5
    seed: int = 1
    learning: bool = False
    wrong: Mapping[str, tuple[float, float]] = field(default_factory=dict)


class Decider(Protocol):
    """Decides what to start; the docstrings are those of `Scheduler`."""

    @property
    def tracks(self) -> tuple[int, ...]: ...
    def declare(self, table: TableProfile, freshness: Instant | None = None) -> None: ...
    def arrived(
        self, name: str, now: Instant, *, freshness: Instant, since: Instant | None = None
    ) -> None: ...
    def finished(self, name: str, now: Instant, *, seconds: float | None = None) -> None: ...
    def starts(self, free_tracks: Collection[int], now: Instant) -> list[Start]: ...
    def order(self, now: Instant) -> list[Waiting]: ...
    def next_change(self, now: Instant) -> Instant | None: ...


class PretendTable:
    """A table in the world: its cost, its readers, and how fresh its sources can make it."""

    __slots__ = (
        "alpha",
        "beta",
        "dice",
        "edge",
        "first",
        "measures",
        "name",
        "period",
        "readers",
        "since",
        "sources",
        "started",
    )

    def __init__(
        self, table: TableProfile, period: float, sources: "list[PretendTable]", seed: str
    ) -> None:
        cost = cost_of(table)
        self.name = table.name
        self.alpha, self.beta = cost.alpha, cost.beta
        self.period = period
        self.dice = Dice(seed_number(seed))
        self.first = exact(self.dice.between(0.0, period))
        self.started = 0.0
        self.sources = sources
        self.readers: list[PretendTable] = []
        for source in sources:
            source.readers.append(self)
        # A table starts as if all data before the first batch was loaded.
        reached = min((each.edge for each in sources), default=self.first - period)
        # How fresh its sources could make it, and since when their data waits for it.
        self.edge: float = reached
        self.since = inf
        self.measures = TableMeasures(table, Instant(reached))

    def seconds(self, loaded: float, spread: float) -> float:
        """The seconds of a refresh when the machine is not slow."""
        return self.dice.between(spread, 1.0 + spread) * (self.alpha + self.beta * loaded)

    def source_moved(self, since: float) -> bool:
        """Note that a source has data from `since` on; return whether more can be loaded."""
        self.since = min(self.since, since)
        freshness = [source.measures.freshness for source in self.sources]
        edge = min(freshness)
        moved = edge > self.edge
        self.edge = max(edge, self.edge)
        return moved

    def take_since(self) -> float:
        """Take the arrival time of the oldest data that can be loaded now."""
        since = self.since
        ahead = any(source.measures.freshness > self.edge for source in self.sources)
        self.since = self.edge if ahead else inf
        return since


Event = tuple[float, int, PretendTable, Start | None]
"""The time, a number that orders events at the same time, the table, and the refresh that ended
(None: data arrived)."""


class PretendWarehouse:
    """One run. A second call of `run` continues it."""

    def __init__(
        self,
        workload: Workload,
        conditions: ScheduleConditions,
        policy: Policy | None = None,
        allowed: Mapping[str, float] | None = None,
    ) -> None:
        """Without a policy, no refresh ever waits for a track.

        Staleness up to what is `allowed` does not count in the areas.
        """
        self.now = Instant(0.0)
        self.counted = 0
        self._work = 0.0
        self._conditions = conditions
        self._scheduler: Decider = Uncontended()
        if policy is not None:
            self._scheduler = Scheduler(conditions.tracks, policy, Dice(conditions.seed))
        self._free = set(self._scheduler.tracks)
        self._waits = (
            policy is not None
            and policy.heed_promises
            and any(table.promise_seconds is not None for table in workload.tables)
        )
        self._ticks = count()
        self._events: list[Event] = []
        self._tables = pretend_tables(workload, conditions.seed)
        for table in workload.tables:
            pretend = self._tables[table.name]
            pretend.measures.allow((allowed or {}).get(table.name, 0.0))
            wrong = conditions.wrong.get(table.name, (1.0, 1.0))
            expected = _expected(table, pretend.period, conditions.slowdowns.mean, wrong)
            self._scheduler.declare(expected, pretend.measures.freshness)
            if not pretend.sources:
                heappush(self._events, (pretend.first, next(self._ticks), pretend, None))

    def run(self, events: float = inf, until: float = inf) -> None:
        """Let so many events happen, or all until that moment."""
        heap, scheduler, last = self._events, self._scheduler, self.counted + events
        while self.counted < last and heap:
            if self._waits and self._wake_early(min(heap[0][0], until)):
                continue
            if heap[0][0] > until:
                self.now = Instant(until)
                return
            at, _, table, ended = heappop(heap)
            self.now = now = Instant(at)
            if ended is None:
                scheduler.arrived(table.name, now, freshness=now)
                heappush(heap, (now + table.period, next(self._ticks), table, None))
            else:
                self._end(table, ended, now)
            self.counted += 1
            self._start(now)

    def outcome(self) -> ScheduleOutcome:
        """The measures until now."""
        waiting = {each.table: each.since for each in self._scheduler.order(self.now)}
        for _, _, table, ended in self._events:
            if ended is not None and ended.since is not None:
                waiting[table.name] = ended.since
        return ScheduleOutcome(
            self.now,
            self.counted,
            Seconds(self._work),
            tuple(
                table.measures.outcome_at(self.now, waiting.get(table.name))
                for table in self._tables.values()
            ),
        )

    def area(self) -> float:
        """The weighted staleness of all tables, integrated over time until now."""
        return sum(table.measures.area(self.now) for table in self._tables.values())

    def _start(self, now: Instant) -> None:
        free = self._free
        conditions = self._conditions
        for start in self._scheduler.starts(free, now):
            free.discard(start.track)
            table = self._tables[start.table]
            assert start.until is not None
            seconds = table.seconds(start.until - table.measures.freshness, conditions.spread)
            table.started = now
            ends = now + conditions.slowdowns.factor(now) * seconds
            heappush(self._events, (ends, next(self._ticks), table, start))

    def _end(self, table: PretendTable, start: Start, now: Instant) -> None:
        assert start.until is not None
        assert start.since is not None
        measures = table.measures
        self._free.add(start.track)
        seconds = now - table.started
        self._work += seconds
        learned = seconds if self._conditions.learning else None
        self._scheduler.finished(table.name, now, seconds=learned)
        measures.refreshed(now, start.until, start.since)
        for reader in table.readers:
            if reader.source_moved(start.since):
                since = Instant(reader.take_since())
                edge = Instant(reader.edge)
                self._scheduler.arrived(reader.name, now, freshness=edge, since=since)

    def _wake_early(self, before: float) -> bool:
        """Start what became urgent before the next event; return whether anything did."""
        at = self._scheduler.next_change(self.now)
        if at is None or at >= before:
            return False
        self.now = max(at, self.now)
        self._start(self.now)
        return True


def pretend_tables(workload: Workload, seed: int) -> dict[str, PretendTable]:
    """The tables of a workload in the world; equal seeds give equal tables."""
    tables: dict[str, PretendTable] = {}
    for table in workload.tables:
        sources = [tables[name] for name in table.upstream]
        period = workload.periods[table.name]
        tables[table.name] = PretendTable(table, period, sources, f"{seed} {len(tables)}")
    return tables


def seed_number(text: str) -> int:
    """A number for a text: different for different texts, and the same on every machine."""
    return int.from_bytes(text.encode(), "big")


def _expected(
    table: TableProfile, period: float, mean: float, wrong: tuple[float, float]
) -> TableProfile:
    """The profile that the scheduler gets, with costs that include the slow periods."""
    cost = cost_of(table)
    usual = LoadCost(cost.alpha * mean * wrong[0], cost.beta * mean * wrong[1])
    return replace(table, cost=usual, period_seconds=None if table.upstream else Seconds(period))
