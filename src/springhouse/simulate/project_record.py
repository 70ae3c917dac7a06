"""What do the logs of a project record: when did data arrive, and how long did refreshes take?

    arrivals   for each base table, the moments at which rows were ready, and their number: once
               per period, from the first row that was seen until a refresh began
    durations  for each table and way, the number of changed rows and the seconds of a refresh
    pause      the seconds on a track from the end of one refresh to the beginning of the next:
               a commit does not say how long it took to be written

A table without a past has no such record. The simulation then assumes that its data arrives once
per period, and that its refreshes take as long as those of the other tables.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from statistics import fmean, median

from springhouse.planner.delta_logs import Log, Logs, PastRefresh
from springhouse.project.declarations.declaration import Project
from springhouse.project.lineage.channels import is_channel
from springhouse.project.lineage.graph import Graph
from springhouse.units import Instant, Seconds

_REFRESHES = ("append", "replace", "merge")
_USUAL_SECONDS = 1.0
_USUAL_ROWS = 100
_MOST_REMEMBERED = 200
_MOST_LOOKS = 1000


@dataclass(frozen=True)
class RecordedArrival:
    """Rows that arrived at a moment, in seconds since the beginning of the record."""

    at: float
    rows: int


@dataclass(frozen=True)
class RefreshSample:
    """A refresh: the number of rows that its inputs had changed by, and its duration."""

    rows: float
    seconds: float


@dataclass(frozen=True)
class Duration:
    """How long refreshes take: `start + per_row × rows`, times a factor from the `spread`."""

    start: float
    per_row: float = 0.0
    spread: tuple[float, ...] = (1.0,)

    def seconds(self, rows: float) -> float:
        """The expected seconds of a refresh after so many rows have changed."""
        return self.start + self.per_row * rows


@dataclass(frozen=True)
class TableRecord:
    """The record of one table. `output_ratio` is its output rows per row of its inputs."""

    rows: int = 0
    first_rows: int = 0
    arrivals: tuple[RecordedArrival, ...] = ()
    durations: Mapping[str, Duration] = field(default_factory=dict)
    output_ratio: float = 1.0
    together: frozenset[str] = frozenset()
    # The seconds after which the arrivals repeat, if not those of the whole record.
    cycle_seconds: float | None = None

    @property
    def is_guessed(self) -> bool:
        """Whether the record has no refresh, so that durations are a guess."""
        return not self.durations


@dataclass(frozen=True)
class ProjectRecord:
    """The records of all tables, and the seconds that they cover."""

    tables: Mapping[str, TableRecord]
    seconds: Seconds
    pause: Seconds = Seconds(0.0)


def read_record(project: Project, logs: Logs, since: Instant | None = None) -> ProjectRecord:
    """The records of all tables and views of a project, or those `since` a moment."""
    graph = Graph(project)
    every = {name: _refreshes(logs.log(name), since) for name in graph.order}
    first = min((at for each in every.values() for at, _ in each[:1]), default=Instant(0.0))
    began = first if since is None else since
    ended = max((at for each in every.values() for at, _ in each[-1:]), default=began)
    found = {}
    for name in graph.order:
        channel = name in project.tables and is_channel(project, name)
        period = project.tables[name].period_seconds if channel else None
        found[name] = _record(logs, name, every[name], began, period)
        if channel and not every[name]:
            data = (RecordedArrival(0.0, _USUAL_ROWS),)
            found[name] = TableRecord(arrivals=data, cycle_seconds=period)
    notes = [each for refreshes in every.values() for each in refreshes[1:]]
    return ProjectRecord(found, Seconds(max(ended - began, 0.0)), pause_between(notes))


def pause_between(refreshes: Iterable[tuple[Instant, PastRefresh]]) -> Seconds:
    """The pause between refreshes while data waits: the lower quartile.

    Longer pauses mostly mean that a promise allowed the refresh to wait.
    """
    found = sorted((at, Instant(at - note.seconds), note.since) for at, note in refreshes)
    ends = [at for at, _, _ in found]
    pauses = []
    for _, start, since in found:
        before = bisect_right(ends, start)
        if before and since is not None and since < ends[before - 1]:
            pauses.append(start - ends[before - 1])
    return Seconds(sorted(pauses)[len(pauses) // 4] if pauses else 0.0)


def _refreshes(log: Log, since: Instant | None) -> list[tuple[Instant, PastRefresh]]:
    """The refreshes of a table, and the one before them, which shows their first state."""
    notes = [(each.at, each.note) for each in log.commits()]
    found = [(at, note) for at, note in notes if note is not None and note.kind in _REFRESHES]
    before = 0 if since is None else sum(at < since for at, _ in found)
    return found[max(before - 1, 0) :]


def _record(
    logs: Logs,
    name: str,
    refreshes: Sequence[tuple[Instant, PastRefresh]],
    began: Instant,
    period: Seconds | None,
) -> TableRecord:
    if not refreshes:
        return TableRecord()
    samples: dict[str, list[RefreshSample]] = {}
    rows_in, rows_out = 0.0, 0.0
    for (_, before), (_, note) in pairwise(refreshes):
        changed = float(note.rows_added + note.rows_removed)
        rows = (
            changed
            if period is not None or not note.read
            else _changed(logs, before.read, note.read)
        )
        if note.seconds > 0:
            # As if the refresh had been alone: the planner decides which ones share a scan.
            sample = RefreshSample(rows, note.seconds + note.saved)
            samples.setdefault(note.variant or note.kind, []).append(sample)
        rows_in, rows_out = rows_in + rows, rows_out + changed
    arrivals = [
        arrival
        for at, note in refreshes[1:]
        if period is not None and note.rows_added
        for arrival in _arrivals(at, note, began, period)
    ]
    together = frozenset(n for _, note in refreshes for n in getattr(note, "together", ()))
    return TableRecord(
        refreshes[-1][1].rows,
        refreshes[0][1].rows,
        tuple(arrivals),
        {way: fit_duration(found[-_MOST_REMEMBERED:]) for way, found in samples.items()},
        rows_out / rows_in if rows_in > 0 else 1.0,
        together - {name},
    )


def _arrivals(
    at: Instant, note: PastRefresh, began: Instant, period: Seconds
) -> Iterable[RecordedArrival]:
    """The arrivals of the rows of a refresh: some with every look at their source."""
    start = at - note.seconds
    first = min(start, note.since if note.since is not None else start)
    looks = int((start - first) / period) + 1 if period > 0 else 1
    looks = min(looks, note.rows_added, _MOST_LOOKS)
    for look in range(looks):
        rows = note.rows_added * (look + 1) // looks - note.rows_added * look // looks
        yield RecordedArrival(max(first + (start - first) * look / looks - began, 0.0), rows)


def _changed(logs: Logs, before: Mapping[str, int], after: Mapping[str, int]) -> float:
    """The number of rows by which the inputs of a view changed between two refreshes."""
    rows = 0
    for key, version in after.items():
        start = before.get(key, -1)
        notes = (e.note for e in logs.log(key).commits() if start < e.version <= version)
        rows += sum(note.rows_added + note.rows_removed for note in notes if note is not None)
    return float(rows)


def fit_duration(samples: Sequence[RefreshSample]) -> Duration:
    """The duration of refreshes, fitted by least squares; more rows never take less time.

    >>> samples = [RefreshSample(0.0, 1.0), RefreshSample(100.0, 2.0), RefreshSample(200.0, 3.0)]
    >>> fit_duration(samples)
    Duration(start=1.0, per_row=0.01, spread=(1.0, 1.0, 1.0))
    """
    rows, seconds = fmean(s.rows for s in samples), fmean(s.seconds for s in samples)
    varied = sum((s.rows - rows) ** 2 for s in samples)
    slope = sum((s.rows - rows) * (s.seconds - seconds) for s in samples) / varied if varied else 0
    slope = min(max(slope, 0.0), seconds / rows if rows > 0 else inf)
    line = Duration(seconds - slope * rows, slope)
    spread = tuple(s.seconds / max(line.seconds(s.rows), 1e-6) for s in samples)
    return Duration(line.start, line.per_row, spread)


def usual_duration(records: Iterable[TableRecord]) -> Duration:
    """The duration of a refresh without a record."""
    known = [d.seconds(0.0) for each in records for d in each.durations.values()]
    return Duration(median(known) if known else _USUAL_SECONDS)
