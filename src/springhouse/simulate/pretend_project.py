"""What would this project do: with other tracks, more data, other costs, other promises?

This module runs the loop of a warehouse (`loop.turns`), with its planner, scheduler and promises,
over a pretend lake, pretend sources and a pretend clock. Data arrives as the logs recorded it, and
repeats if the pretend time is longer than the record. A refresh takes as long as such refreshes
took, times a factor drawn from those of the past. At its end it becomes a commit in a pretend log.
So the loop sees what it would see in a warehouse, and the measures are those of a warehouse.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from springhouse.loop.facts import facts_of
from springhouse.loop.observing import LastRun, SourceAnswer
from springhouse.loop.order import Order
from springhouse.loop.turns import FreshnessRecord, Turns
from springhouse.planner.delta_logs import reflected_by
from springhouse.planner.offers import Offer, Offered
from springhouse.planner.provenance import Provenance
from springhouse.planner.refresh_plan import OtherWay, RefreshPlan
from springhouse.planner.search.invocation_costs import Estimate, InputRead
from springhouse.planner.search.operators import Operator, WidgetVariant
from springhouse.planner.strict.versions import Chooser
from springhouse.project.declarations.declaration import Project
from springhouse.project.lineage.channels import is_channel
from springhouse.project.lineage.fingerprint import fingerprint
from springhouse.project.lineage.graph import Graph
from springhouse.refresh.policy import Policy
from springhouse.simulate.pretend_logs import PretendLogs, PretendNote
from springhouse.simulate.project_record import (
    Duration,
    ProjectRecord,
    RecordedArrival,
    usual_duration,
)
from springhouse.units import Dice, Instant, Seconds


@dataclass(frozen=True)
class WhatIf:
    """How the pretend world differs from the recorded one."""

    tracks: int = 2
    arrivals_times: float = 1.0
    costs_times: float = 1.0
    seed: int = 1


class PretendSources:
    """Sources whose data arrives by itself: the `Sources` of `loop.observing`."""

    def __init__(
        self,
        project: Project,
        graph: Graph,
        logs: PretendLogs,
        arrivals: Mapping[str, Sequence[RecordedArrival]],
    ) -> None:
        self._project = project
        self._graph = graph
        self._logs = logs
        self._times = {name: [each.at for each in batches] for name, batches in arrivals.items()}
        self._rows = {
            name: [0, *accumulate(each.rows for each in batches)]
            for name, batches in arrivals.items()
        }
        self.loaded = dict.fromkeys(project.tables, 0)
        self.groups: Mapping[str, frozenset[str]] = {}

    def count_arrived(self, table: str, now: float) -> int:
        """The number of batches that have arrived for a table."""
        return bisect_right(self._times.get(table, ()), now)

    def next_arrival(self, now: float) -> float:
        """The moment of the next arrival."""
        moments = (t[bisect_right(t, now)] for t in self._times.values() if t and t[-1] > now)
        return min(moments, default=float("inf"))

    def rows(self, table: str, start: int, end: int) -> int:
        """The number of rows in these batches."""
        counts = self._rows.get(table, [0])
        return counts[end] - counts[start]

    def ask(self, table: str, last: LastRun, now: Instant) -> SourceAnswer:
        if not is_channel(self._project, table):
            return SourceAnswer(calls=self._is_behind(table))
        start, end = self.loaded[table], self.count_arrived(table, now)
        made = self._logs.log(table).newest() is not None
        if end <= start:
            return SourceAnswer(calls=not made and last.at is None)
        return SourceAnswer({table: start}, {table: end})

    def _is_behind(self, table: str) -> bool:
        """Whether a table that reads other tables lacks some of their data."""
        newest = self._logs.log(table).newest()
        heads = {k: self._logs.log(k).newest() for k in self._graph.tables_read(table)}
        if not heads or any(head is None for head in heads.values()):
            return False
        read = newest.note.read if newest is not None else {}
        return any(head is not None and head.made > read.get(k, -1) for k, head in heads.items())

    def versions_read(self, table: str) -> Sequence[int]:
        heads = (self._logs.log(each).newest() for each in self._graph.tables_read(table))
        return tuple(-1 if head is None else head.version for head in heads)

    def has(self, table: str, ends: Mapping[str, int]) -> bool:
        return self.loaded[table] >= ends.get(table, 0)

    def purpose(self, table: str) -> str:
        return "new records"

    def companions(self, table: str, others: Sequence[str]) -> list[str]:
        return [each for each in others if each in self.groups.get(table, ())]


class PretendOffers:
    """The recorded durations of refreshes: the `Offers` of the planner."""

    def __init__(
        self,
        project: Project,
        graph: Graph,
        logs: PretendLogs,
        recorded: ProjectRecord,
        offered: Mapping[str, Offered],
    ) -> None:
        self._project = project
        self._graph = graph
        self._logs = logs
        self._chooser = Chooser(project, graph, logs)
        self._tables = recorded.tables
        self._offered = offered
        self._usual = usual_duration(recorded.tables.values())
        self.learned: Callable[[str], Seconds | None] = lambda name: None

    def over(self, chooser: Chooser) -> "PretendOffers":
        """These offers, for a loop with this chooser."""
        self._chooser = chooser
        return self

    def duration(self, name: str, way: str) -> Duration:
        """How long a refresh takes in some way; a way without a record is like one that has one."""
        known = self._tables[name].durations
        if way in known:
            return known[way]
        return next(iter(known.values()), self._usual)

    def offered(self, name: str) -> Offered:
        inputs = tuple(self._inputs(name))
        if name in self._offered and self._logs.log(name).newest() is not None:
            return replace(self._offered[name], inputs=inputs)
        return Offered(inputs, (WidgetVariant.BATCH,))

    def cheapest(self, name: str, versions: Mapping[str, int]) -> Offer | None:
        newest = self._logs.log(name).newest()
        if newest is None or not versions:
            return None
        moved = sum(self.changed(key, newest.note.read, v) for key, v in versions.items())
        ways = [w for w in self._tables[name].durations if w != WidgetVariant.ASYNCHRONOUS.value]
        offered = sorted((self.duration(name, way).seconds(moved), way) for way in ways)
        if not offered:
            return None
        (seconds, way), *others = offered
        rest = tuple(OtherWay(each, other) for other, each in others)
        return Offer(way, Seconds(seconds), rest)

    def estimate(self, operator: Operator, readings: Sequence[InputRead]) -> Estimate:
        name = operator.outputs[0].channel
        way = "full" if operator.variant is WidgetVariant.BATCH else operator.variant.value
        moved = sum(each.delta_rows for each in readings[: len(operator.ports)])
        rows = float(self._rows(name))
        changed = moved * self._tables[name].output_ratio if operator.moves else rows
        return Estimate(self.duration(name, way).seconds(moved), (rows, changed))

    def last_seconds(self, name: str) -> Sequence[float]:
        return [each.note.seconds for each in self._logs.log(name).commits()[-20:]]

    def changed(self, key: str, read: Mapping[str, int], version: int) -> int:
        """The number of rows of an input that have changed since it was read."""
        commits = self._logs.log(key).commits()[read.get(key, -1) + 1 : version + 1]
        return sum(each.note.rows_added + each.note.rows_removed for each in commits)

    def _inputs(self, name: str) -> Sequence[str]:
        if name in self._project.views:
            return [key for key in self._chooser.inputs(name).keys if key != name]
        return self._graph.tables_read(name)

    def _rows(self, name: str) -> int:
        newest = self._logs.log(name).newest()
        return newest.note.rows if newest is not None else self._tables[name].rows


@dataclass(frozen=True)
class _PretendWork:
    """The work of a refresh: the rows that it takes in, and the versions that it then reflects.

    `saved` are the seconds that it saves because it shares a scan.
    """

    rows: int
    seconds: float
    read: Mapping[str, int]
    loaded: int = 0
    saved: float = 0.0


@dataclass(frozen=True)
class _Running:
    """A running refresh, until it ends; those in `later` begin after it."""

    ends: Instant
    plan: RefreshPlan
    track: int
    work: _PretendWork
    later: tuple[RefreshPlan, ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.plan.table, *(each.table for each in self.later))


class PretendProject:
    """One run of a project in a pretend world. A second call of `run` continues it."""

    def __init__(
        self,
        project: Project,
        recorded: ProjectRecord,
        offered: Mapping[str, Offered],
        policy: Policy,
        what_if: WhatIf,
        seconds: float,
    ) -> None:
        self.now = Instant(0.0)
        self.refreshes = dict.fromkeys((*project.tables, *project.views), 0)
        self._seconds = dict.fromkeys(self.refreshes, 0.0)
        self._project = project
        self._what_if = what_if
        self._recorded = recorded
        self._logs = PretendLogs()
        graph = Graph(project)
        arrivals = {
            name: arrivals_until(
                each.arrivals,
                recorded.seconds if each.cycle_seconds is None else each.cycle_seconds,
                seconds,
                what_if.arrivals_times,
            )
            for name, each in recorded.tables.items()
        }
        self._sources = PretendSources(project, graph, self._logs, arrivals)
        self._sources.groups = {name: each.together for name, each in recorded.tables.items()}
        self._make_all(graph)
        self._offers = PretendOffers(project, graph, self._logs, recorded, offered)
        self._facts = facts_of(
            project, self._logs, self._sources, lambda _, chooser: self._offers.over(chooser)
        )
        self._dice = {n: Dice(what_if.seed * 7919 + i) for i, n in enumerate(graph.order)}
        self._turns = Turns(self._facts, policy, what_if.tracks, self.now)
        self._running: list[_Running] = []

    @property
    def work_seconds(self) -> float:
        """The seconds that all refreshes together took."""
        return sum(self._seconds.values())

    @property
    def logs(self) -> PretendLogs:
        """The logs of the pretend lake."""
        return self._logs

    @property
    def kept(self) -> Mapping[str, FreshnessRecord]:
        """The lag of each table, second by second, as a warehouse measures it."""
        return self._turns.kept

    def mean_seconds(self, name: str) -> float | None:
        """The mean seconds of the refreshes of a table; None without any."""
        count = self.refreshes[name]
        return self._seconds[name] / count if count else None

    def run(self, until: float) -> None:
        """Let time pass until then."""
        while self.now < until:
            running = {table for each in self._running for table in each.tables}
            taken = {each.track for each in self._running}
            free = [t for t in range(1, self._what_if.tracks + 1) if t not in taken]
            for order in self._turns.turn(self.now, running, free):
                self._start(order)
            wakes = self.now + self._turns.pause(self.now)
            ends = min((each.ends for each in self._running), default=Instant(until))
            self.now = Instant(min(wakes, ends, until))
            for each in [each for each in self._running if each.ends <= self.now]:
                self._running.remove(each)
                self._end(each)

    # --- Refreshes -------------------------------------------------------------------------------

    def _start(self, order: Order) -> None:
        """Begin a refresh, and those that share its scan.

        The record gives each table of a pass an equal share of its time, and all are committed at
        its end. Views are committed one after the other.
        """
        if order.first:
            step, *later = (*order.first, order.plan)
            self._begin(step, order.start.track, tuple(later))
            return
        plans = (order.plan, *order.along)
        works = [self._work(plan, order.until) for plan in plans]
        ends = [self._ends(works[:count]) for count in range(1, len(works) + 1)]
        if order.plan.table in self._project.tables:
            ends = ends[-1:] * len(ends)
        for plan, work, end in zip(plans, works, ends, strict=True):
            self._running.append(_Running(end, plan, order.start.track, work))

    def _begin(self, plan: RefreshPlan, track: int, later: tuple[RefreshPlan, ...]) -> None:
        """Begin one step of several."""
        work = self._work(plan, None)
        self._running.append(_Running(self._ends([work]), plan, track, work, later))

    def _ends(self, works: Sequence[_PretendWork]) -> Instant:
        """When the track of this work is free again."""
        return Instant(self.now + sum(work.seconds for work in works) + self._recorded.pause)

    def _begin_next(self, ended: _Running) -> None:
        """Begin the next step of several, planned anew after the steps before it."""
        if not ended.later:
            return
        step, *later = ended.later
        plan = self._facts.planning.step(step, self.now)
        if plan is None:
            for each in ended.later:
                self._turns.schedule.finished(each.table, self.now, None)
        else:
            self._begin(plan, ended.track, tuple(later))

    def _work(self, plan: RefreshPlan, until: Instant | None) -> _PretendWork:
        name, log = plan.table, self._logs.log(plan.table)
        newest, loaded = log.newest(), 0
        read = newest.note.read if newest is not None else {}
        if name in self._project.views:
            versions = {**self._newest(read), **plan.versions}
            moved = {plan.driver: versions[plan.driver]} if plan.driver else versions
            rows = sum(self._offers.changed(key, read, version) for key, version in moved.items())
            read = versions
        elif is_channel(self._project, name):
            start, loaded = self._sources.loaded[name], self._sources.count_arrived(name, self.now)
            ends = None if until is None else self._facts.observing.ends_at(name, until)
            loaded = loaded if ends is None else ends.get(name, loaded)
            rows = self._sources.rows(name, start, loaded)
        else:
            to = self._newest(read)
            rows = sum(self._offers.changed(key, read, version) for key, version in to.items())
            read = to
        duration, dice = self._offers.duration(name, plan.way), self._dice[name]
        saved = plan.scan.saved_by_each if plan.scan is not None else 0.0
        usual = duration.seconds(rows) * dice.pick(duration.spread) - saved
        times = self._what_if.costs_times
        return _PretendWork(rows, max(usual * times, 0.001), read, loaded, saved * times)

    def _newest(self, keys: Iterable[str]) -> dict[str, int]:
        heads = {key: self._logs.log(key).newest() for key in keys}
        return {key: head.made for key, head in heads.items() if head is not None}

    def _end(self, ended: _Running) -> None:
        """Commit a refresh, and report it to the loop."""
        name, work = ended.plan.table, ended.work
        changed = round(work.rows * self._recorded.tables[name].output_ratio)
        before = self._logs.log(name).newest()
        view = self._project.views.get(name)
        if view is None:
            self._sources.loaded[name] = max(work.loaded, self._sources.loaded[name])
        self._commit(
            name,
            PretendNote(
                "append" if view is None else "merge",
                ended.plan.way,
                since=ended.plan.since,
                definition=fingerprint(self._project, view) if view is not None else "",
                read=work.read,
                rows=before.note.rows + changed if before is not None else changed,
                rows_added=changed,
                seconds=work.seconds,
                saved=work.saved,
            ),
            ended.plan.reaches if ended.plan.driver else None,
        )
        self.refreshes[name] += 1
        self._seconds[name] += work.seconds
        self._facts.planning.refreshed(name, self.now, found_something=True)
        self._facts.observing.ran(name, self.now, found_something=True)
        self._turns.schedule.finished(name, self.now, Seconds(work.seconds), changed)
        self._begin_next(ended)

    # --- The lake --------------------------------------------------------------------------------

    def _make_all(self, graph: Graph) -> None:
        """Make all tables, up to date when the pretend time begins."""
        chooser = Chooser(self._project, graph, self._logs)
        for name in graph.order:
            view = self._project.views.get(name)
            keys = chooser.inputs(name).keys if view is not None else graph.tables_read(name)
            for key in keys:
                if self._logs.log(key).newest() is None:
                    # A Delta table of other writers, or an unknown one: it does not change.
                    note = PretendNote("append", "append")
                    self._logs.log(key).commit(self.now, note, is_channel=True)
            definition = fingerprint(self._project, view) if view is not None else ""
            note = PretendNote(
                "append" if view is None else "merge",
                "full",
                definition=definition,
                read=dict.fromkeys(keys, 0),
                rows=self._recorded.tables[name].first_rows,
            )
            self._commit(name, note)

    def _commit(self, name: str, note: PretendNote, reaches: Provenance | None = None) -> None:
        view = self._project.views.get(name)
        channel = view is None and is_channel(self._project, name)
        if not channel and reaches is None:
            reaches = reflected_by(self._logs, self._project, view, note.read)
        note = note if reaches is None else replace(note, after=reaches)
        self._logs.log(name).commit(self.now, note, is_channel=channel)


def arrivals_until(
    recorded: Sequence[RecordedArrival], length: float, seconds: float, times: float
) -> list[RecordedArrival]:
    """The recorded arrivals, so many times as often, repeated until `seconds` have passed.

    >>> recorded = [RecordedArrival(1.0, 5), RecordedArrival(3.0, 5)]
    >>> [each.at for each in arrivals_until(recorded, 4.0, 8.0, 2.0)]
    [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5]
    """
    arrivals: list[RecordedArrival] = []
    start, length = 0.0, length / times
    while recorded and start < seconds and length > 0:
        moved = (RecordedArrival(start + each.at / times, each.rows) for each in recorded)
        arrivals += [each for each in moved if each.at < seconds]
        start += length
    return arrivals
