"""What does the planner know of the logs of tables?

All lasting facts are commits. So the planner reads from logs which versions exist, what each
version reflects, how many rows it changed, and how long past refreshes took. It reads through these
small protocols, and writes nothing. The Delta logs of the lake implement them, and so do the
pretend logs of a simulator.

A log has an entry for each commit, and a state for each version with new rows: `made` is the
version that made the rows, `version` the newest version that still has them.
"""

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from springhouse.errors import SpringhouseError
from springhouse.planner.provenance import (
    Channel,
    Provenance,
    along,
    join_provenances,
    source_of,
    through,
)
from springhouse.project.declarations.declaration import Project, View
from springhouse.units import Instant


class PastRefresh(Protocol):
    """The note that this program writes into its commits."""

    @property
    def kind(self) -> str: ...
    @property
    def at(self) -> Instant: ...
    @property
    def variant(self) -> str: ...
    @property
    def after(self) -> Provenance: ...
    @property
    def definition(self) -> str: ...
    @property
    def read(self) -> Mapping[str, int]: ...
    @property
    def ids(self) -> Mapping[str, str]: ...
    @property
    def marks(self) -> Mapping[str, str]: ...
    @property
    def stateful(self) -> bool: ...
    @property
    def since(self) -> Instant | None: ...
    @property
    def rows(self) -> int: ...
    @property
    def rows_added(self) -> int: ...
    @property
    def rows_removed(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def saved(self) -> float: ...
    @property
    def expected(self) -> float: ...
    @property
    def foreseen(self) -> float: ...
    @property
    def missed(self) -> float: ...


class LogEntry(Protocol):
    """One commit; another program's has no note. `size` is the number of bytes of added files."""

    @property
    def version(self) -> int: ...
    @property
    def at(self) -> Instant: ...
    @property
    def note(self) -> PastRefresh | None: ...
    @property
    def changes_data(self) -> bool: ...
    @property
    def appends_only(self) -> bool: ...
    @property
    def size(self) -> int: ...


class TableState(Protocol):
    """The rows that some versions of a table share: since when they exist, what they reflect."""

    @property
    def version(self) -> int: ...
    @property
    def made(self) -> int: ...
    @property
    def at(self) -> Instant: ...
    @property
    def provenance(self) -> Provenance: ...
    @property
    def note(self) -> PastRefresh | None: ...


class Log(Protocol):
    """The log of one table, as far as it can be read."""

    def newest(self) -> TableState | None: ...
    def snapshots(self) -> Sequence[TableState]: ...
    def commits(self) -> Sequence[LogEntry]: ...
    def channel(self) -> Channel: ...
    def table_id(self) -> str | None: ...
    def has_id(self, table_id: str) -> bool: ...
    def mark(self, version: int) -> str | None: ...
    def has_mark(self, mark: str) -> bool: ...
    def damage(self) -> SpringhouseError | None: ...


class Logs(Protocol):
    """The logs of all tables, by key."""

    def log(self, key: str) -> Log: ...


class Channels(dict[str, Channel]):
    """Every table as an input channel, read from its log at the first access."""

    def __init__(self, logs: Logs) -> None:
        super().__init__()
        self._logs = logs

    def __missing__(self, key: str) -> Channel:
        self[key] = self._logs.log(key).channel()
        return self[key]


def newest_note(logs: Logs, key: str) -> PastRefresh | None:
    """The note of the newest commit of a table; None if another program made it."""
    newest = logs.log(key).newest()
    return newest.note if newest is not None else None


def state_at(log: Log, version: int) -> TableState | None:
    """The state of a table as of a version; None before its first one."""
    states = log.snapshots()
    place = bisect_right(states, version, key=lambda state: state.made)
    return states[place - 1] if place else None


def ids_of(logs: Logs, read: Mapping[str, int]) -> dict[str, str]:
    """The ids of these tables, and of the tables that views among them read.

    A view keeps the ids of the tables that it was computed from, which may be deleted by now.
    """
    ids: dict[str, str] = {}
    for key, version in read.items():
        log = logs.log(key)
        state = state_at(log, version)
        note = state.note if state is not None else None
        behind = note.ids if note is not None and note.kind in ("replace", "merge") else {}
        own = log.table_id()
        ids |= dict(behind)
        ids |= {key: own} if own is not None else {}
    return ids


def marks_of(logs: Logs, read: Mapping[str, int]) -> dict[str, str]:
    """The marks of the versions that made these rows, also of tables that views among them read."""
    marks: dict[str, str] = {}
    for key, version in read.items():
        log = logs.log(key)
        state = state_at(log, version)
        if state is None:
            continue
        note = state.note
        if note is not None and note.kind in ("replace", "merge"):
            marks |= note.marks
        own = log.mark(state.made)
        marks |= {key: own} if own is not None else {}
    return marks


def made_anew(logs: Logs, note: PastRefresh) -> list[str]:
    """The tables that were created again, or replaced by an older copy, after this note."""
    other = {key for key, known in note.ids.items() if not logs.log(key).has_id(known)}
    other |= {key for key, mark in note.marks.items() if not logs.log(key).has_mark(mark)}
    return sorted(other)


def reflected_by(
    logs: Logs, project: Project, view: View | None, read: Mapping[str, int]
) -> Provenance:
    """The provenance of a view computed from these versions, in the view's pathways.

    Without a view, it is the provenance of a table.
    """
    is_relaxed = view is not None and view.promise.is_relaxed
    return provenance_of(logs, read, named=project.named if is_relaxed else None)


def provenance_of(
    logs: Logs, read: Mapping[str, int], *, named: Collection[str] | None = None
) -> Provenance:
    """The provenance of rows computed from these versions of these tables.

    All data of one base table is one pathway. With `named`, pathways stay separate: a pathway then
    names the view through which the data came, and the `named` views before it
    (`search.workflow` says when that is needed).
    """
    parts = []
    for key, version in read.items():
        state = state_at(logs.log(key), version)
        if state is not None:
            parts += [
                Provenance({_pathway(pathway, key, named): versions})
                for pathway, versions in state.provenance.reflected.items()
            ]
    return join_provenances(parts)


def _pathway(pathway: str, key: str, named: Collection[str] | None) -> str:
    source = source_of(pathway)
    if named is None or source == key:
        return source
    return through(along(pathway, named), key)
