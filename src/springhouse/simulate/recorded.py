"""What did the logs of a project record: when did data come, and what did refreshes take?

    arrivals   for each base table, when how many rows were there to be taken in: from when the
               first of them was seen until a refresh began, once per period
    durations  for each table and way, how many rows had changed and how long the refresh took
    pause      what passes on a track from the end of one refresh to the beginning of the next: a
               commit can't tell how long it took to be written

A table without a past has neither. Its data is then taken to come once per period, and its
refreshes to take as long as those of the other tables do.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from statistics import fmean, median

from springhouse.planner.logs import Log, Logs, PastRefresh
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
    """So many rows came at a moment, counted from the beginning of the record."""

    at: float
    rows: int


@dataclass(frozen=True)
class RefreshSample:
    """A refresh: how many rows its inputs had changed by, and how long it took."""

    rows: float
    seconds: float


@dataclass(frozen=True)
class Duration:
    """What refreshes in one way take: `start + per_row × rows`, times a number of the `spread`."""

    start: float
    per_row: float = 0.0
    spread: tuple[float, ...] = (1.0,)

    def seconds(self, rows: float) -> float:
        """What a refresh after a change of so many rows is expected to take."""
        return self.start + self.per_row * rows


@dataclass(frozen=True)
class TableRecord:
    """What is known of one table: `made_of` rows come out for each row that goes in."""

    rows: int = 0
    first_rows: int = 0
    arrivals: tuple[RecordedArrival, ...] = ()
    durations: Mapping[str, Duration] = field(default_factory=dict)
    made_of: float = 1.0
    together: frozenset[str] = frozenset()
    # After how long the arrivals come again, if not after the whole record.
    cycle_seconds: float | None = None

    @property
    def is_guessed(self) -> bool:
        """Whether nothing is known of what its refreshes take."""
        return not self.durations


@dataclass(frozen=True)
class ProjectRecord:
    """What the logs of a project say, and for how long they were written."""

    tables: Mapping[str, TableRecord]
    seconds: Seconds
    pause: Seconds = Seconds(0.0)


def record_of(project: Project, logs: Logs, since: Instant | None = None) -> ProjectRecord:
    """What the logs say of each table and view of a project, or what they say `since` a moment."""
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
    """What passes between refreshes where data waits already: the lower quartile.

    Longer pauses are mostly rest, because a promise allows it.
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
    """The refreshes of a table, and the one before them: it tells what they began with."""
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
    came, went = 0.0, 0.0
    for (_, before), (_, note) in pairwise(refreshes):
        changed = float(note.rows_added + note.rows_removed)
        rows = (
            changed
            if period is not None or not note.read
            else _changed(logs, before.read, note.read)
        )
        if note.seconds > 0:
            # As if it had been alone: who shares a scan with whom is for the planner to say.
            sample = RefreshSample(rows, note.seconds + note.saved)
            samples.setdefault(note.variant or note.kind, []).append(sample)
        came, went = came + rows, went + changed
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
        {way: fitted(found[-_MOST_REMEMBERED:]) for way, found in samples.items()},
        went / came if came > 0 else 1.0,
        together - {name},
    )


def _arrivals(
    at: Instant, note: PastRefresh, began: Instant, period: Seconds
) -> Iterable[RecordedArrival]:
    """When the rows came that a refresh took in: some with every look at their source."""
    start = at - note.seconds
    first = min(start, note.since if note.since is not None else start)
    looks = int((start - first) / period) + 1 if period > 0 else 1
    looks = min(looks, note.rows_added, _MOST_LOOKS)
    for look in range(looks):
        rows = note.rows_added * (look + 1) // looks - note.rows_added * look // looks
        yield RecordedArrival(max(first + (start - first) * look / looks - began, 0.0), rows)


def _changed(logs: Logs, before: Mapping[str, int], after: Mapping[str, int]) -> float:
    """How many rows the inputs of a view changed by between two of its refreshes."""
    rows = 0
    for key, version in after.items():
        start = before.get(key, -1)
        notes = (e.note for e in logs.log(key).commits() if start < e.version <= version)
        rows += sum(note.rows_added + note.rows_removed for note in notes if note is not None)
    return float(rows)


def fitted(samples: Sequence[RefreshSample]) -> Duration:
    """What refreshes take, by least squares; no row ever makes one shorter.

    >>> fitted([RefreshSample(0.0, 1.0), RefreshSample(100.0, 2.0), RefreshSample(200.0, 3.0)])
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
    """What a refresh takes of which nothing is known."""
    known = [d.seconds(0.0) for each in records for d in each.durations.values()]
    return Duration(median(known) if known else _USUAL_SECONDS)
