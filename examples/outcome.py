"""How did a workflow do, as its Delta logs tell it?

Times are those of the clock that the warehouse ran by. Nothing here asks the planner what it meant
to do: provenance, variants and reasons are what commits say, and bounds are the declared ones.
"""

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from springhouse.lake.delta.note import Note
from springhouse.lake.delta.table_snapshots import Snapshot
from springhouse.planner.provenance import Channel, Provenance
from springhouse.units import Instant, Seconds
from springhouse.warehouse import Warehouse

_REFRESHES = ("merge", "replace")
"""The kinds of commits that refreshes of views make; others change no rows."""


@dataclass(frozen=True)
class Critical:
    """The data that is wanted first: from a base table, `through` these views, with a bound."""

    source: str
    through: tuple[str, ...]
    bound: Seconds = Seconds(0.0)

    def newest(self, reflected: Provenance) -> int:
        """The newest version of the base table that came this way."""
        return min((reflected.newest(each) or 0 for each in self._pathways(reflected)), default=-1)

    def _pathways(self, reflected: Provenance) -> Iterator[str]:
        for pathway in reflected.reflected:
            source, *passed = pathway.split(">")
            # Where nothing is told apart, all that comes from the source is one.
            if source == self.source and (not passed or {*self.through} <= {*passed}):
                yield pathway


@dataclass(frozen=True)
class Bound:
    """A bound on staleness, and the longest that data waited which it allows to wait."""

    view: str
    pathway: str
    seconds: Seconds
    greatest: Seconds


@dataclass(frozen=True)
class Outcome:
    """What the logs tell of a run.

    `one_sided` refreshes of the output left its inputs at different moments. `with_steps` are the
    refreshes, of any view, that began with refreshes of views upstream.
    """

    refreshes: Counter[str]
    one_sided: int
    with_steps: int
    apart: tuple[Seconds, ...]
    lag: Seconds
    cost: Seconds
    rows: int
    bounds: tuple[Bound, ...]


def outcome_of(
    warehouse: Warehouse, output: str, critical: Critical, began: Instant, ended: Instant
) -> Outcome:
    """What became of a warehouse between two moments."""
    views = list(warehouse.project.views)
    notes = {view: _refreshes(warehouse, view, began) for view in views}
    channels = warehouse.internals.watch.chooser.channels()
    snapshots = [
        each for each in warehouse.internals.lake.log(output).snapshots() if each.at > began
    ]
    apart = [_apart(each, channels) for each in snapshots]
    return Outcome(
        Counter(note.variant for note in notes[output]),
        sum(each > 0 for each in apart),
        sum(_with_steps(view, notes) for view in views),
        tuple(apart),
        Seconds(statistics.median(_lags(warehouse, output, critical, began) or [0.0])),
        Seconds(sum(note.seconds for each in notes.values() for note in each)),
        sum(note.rows_added + note.rows_removed for each in notes.values() for note in each),
        tuple(
            bound for view in views for bound in _bounds(warehouse, view, channels, began, ended)
        ),
    )


def _refreshes(warehouse: Warehouse, view: str, began: Instant) -> list[Note]:
    commits = warehouse.internals.lake.log(view).commits()
    return [c.note for c in commits if c.note and c.note.kind in _REFRESHES and c.at > began]


def _apart(snapshot: Snapshot, channels: Mapping[str, Channel]) -> Seconds:
    """How far apart the data is that a snapshot reflects; 0 if it is consistent."""
    left, right = snapshot.provenance.interval(channels)
    return Seconds(max(left - right, 0.0))


def _with_steps(view: str, notes: Mapping[str, Sequence[Note]]) -> int:
    """How many refreshes of a view came after one that was done for them."""
    steps = [n.at for each in notes.values() for n in each if n.reason == f"{view} needs it"]
    between = pairwise([Instant(0.0), *(note.at for note in notes[view])])
    return sum(any(before < at <= after for at in steps) for before, after in between)


def _lags(warehouse: Warehouse, output: str, critical: Critical, began: Instant) -> list[float]:
    """How long each batch of the critical data waited for the output, beyond its bound."""
    had = [(each.at, critical.newest(each.provenance)) for each in _snapshots(warehouse, output)]
    found = []
    for came in _snapshots(warehouse, critical.source):
        taken = next((at for at, newest in had if newest >= came.made), None)
        if came.at > began and taken is not None:
            found.append(max(taken - came.at - critical.bound, 0.0))
    return found


def _bounds(
    warehouse: Warehouse, view: str, channels: Mapping[str, Channel], began: Instant, ended: Instant
) -> Iterator[Bound]:
    """The bounds on a view's staleness, but those that let nothing wait."""
    promise = warehouse.project.views[view].promise
    if promise.strictest_seconds is None and not promise.is_relaxed:
        return
    greatest: dict[str, float] = {}
    snapshots = _snapshots(warehouse, view)
    for held, until in zip(snapshots, [*(s.at for s in snapshots[1:]), ended], strict=True):
        if until <= began:
            continue
        for pathway in held.provenance.reflected:
            waited = until - _stale_at(held.provenance, pathway, channels)
            greatest[pathway] = max(greatest.get(pathway, 0.0), waited)
    for pathway, seconds in greatest.items():
        bound = warehouse.internals.watch.planning.waits.bound(view, pathway)
        if bound > 0:
            yield Bound(view, pathway, bound, Seconds(seconds))


def _stale_at(held: Provenance, pathway: str, channels: Mapping[str, Channel]) -> float:
    """When the first data came that is not reflected along a pathway."""
    source = pathway.partition(">")[0]
    return min(channels[source].interval(each)[1] for each in held.reflected[pathway])


def _snapshots(warehouse: Warehouse, table: str) -> Sequence[Snapshot]:
    return warehouse.internals.lake.log(table).snapshots()
