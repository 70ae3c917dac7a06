"""What happened to a Delta table, commit by commit?

delta-rs gives the files of a version. What each commit did (its note, whether it changed data, the
files that it added) stands in `_delta_log/N.json`; `TableLog` reads those once each and remembers.
A commit without a note was made by somebody else: it counts as a change of data unless its actions
say otherwise, and its change is worked out from the files.

A table that is deleted and made anew begins again at version 0. `TableLog` notices it by the last
entry that it read (its size and time differ, or it is gone), forgets everything, and reads the new
log. Whoever remembers a version for longer remembers the table's id with it, and asks `has_id`.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from springhouse.lake.note import KEY, Note
from springhouse.lake.storage import Storage
from springhouse.lake.tables import open_table
from springhouse.planner.provenance import Channel, Provenance, joined
from springhouse.units import Instant


@dataclass(frozen=True)
class Commit:
    """One version of a table, as its log tells it."""

    version: int
    at: Instant
    operation: str
    note: Note | None
    added: tuple[str, ...]  # paths relative to the table, of files that hold new data
    removed: tuple[str, ...]  # of files whose data went away
    transactions: Mapping[str, int]
    columns: int = 0  # how often the log has described the table's columns so far
    sizes: Mapping[str, int] = field(default_factory=dict)  # bytes of the added files
    table_id: str | None = None  # the id that this commit gives the table, if it describes it

    @property
    def changes_data(self) -> bool:
        if self.note is not None:
            return self.note.changes_data
        return bool(self.added or self.removed)

    @property
    def appends_only(self) -> bool:
        """Whether the change is exactly the rows of the added files."""
        if self.note is not None:
            return self.note.changes is None and not self.removed
        return not self.removed


@dataclass(frozen=True)
class Snapshot:
    """A state of a table's rows: a version to read it at, since when it is there, what it reflects.

    `version` is the newest version with these rows: a compaction after the commit that made them
    changes the version to read, and nothing else.
    """

    version: int
    made: int
    at: Instant
    provenance: Provenance
    note: Note | None


_LOOKING = threading.local()


@contextmanager
def one_look() -> Iterator[None]:
    """Within it, this thread asks the storage once per log whether there is anything new.

    For decisions that ask about the same few tables over and over: all of them are about one
    moment, and where the storage is far away, each question is a request.
    """
    before: set[TableLog] | None = getattr(_LOOKING, "at", None)
    _LOOKING.at = set()
    try:
        yield
    finally:
        _LOOKING.at = before


class TableLog:
    """The commits of one table, read once and kept; `name` is its channel if it is a base table."""

    def __init__(self, storage: Storage, name: str) -> None:
        self.storage = storage
        self.name = name
        # A table of others may be a view of another warehouse: what its notes say it reflects are
        # that warehouse's tables, not ours.
        self._foreign = name.startswith("delta.`")
        self._log = storage.inside("_delta_log")
        self._commits: list[Commit] = []
        self._snapshots: list[Snapshot] = []
        self._channel = Channel((), ())
        # Size and time of the last entry that was read; and every id that the table ever had.
        self._last_entry: tuple[int, int] | None = None
        self._ids: list[str] = []
        self._lock = threading.RLock()

    def table_id(self) -> str | None:
        """The id that Delta gave the table when it was made; None if there is no table."""
        with self._lock:
            self._catch_up()
            return self._known_ids()[-1] if self._commits else None

    def has_id(self, table_id: str) -> bool:
        """Whether the table is the one with this id: it may have been given another one since."""
        with self._lock:
            self._catch_up()
            return bool(self._commits) and table_id in self._known_ids()

    def _known_ids(self) -> list[str]:
        """The ids in the log, oldest first; a log whose first entries are gone has a checkpoint."""
        if not self._ids:
            opened = open_table(self.storage)
            self._ids = [str(opened.delta.metadata().id)] if opened is not None else [""]
        return self._ids

    def commits(self) -> Sequence[Commit]:
        """All commits whose log entries are still there, oldest first, up to this very moment."""
        with self._lock:
            self._catch_up()
            return tuple(self._commits)

    def snapshots(self) -> Sequence[Snapshot]:
        """The distinct states of the table, oldest first."""
        with self._lock:
            self._catch_up()
            return tuple(self._snapshots)

    def newest(self) -> Snapshot | None:
        """The state that a reader sees now; None before the first commit."""
        with self._lock:
            self._catch_up()
            return self._snapshots[-1] if self._snapshots else None

    def channel(self) -> Channel:
        """The table as an input channel: every state that it was in, and since when."""
        with self._lock:
            made = self.snapshots()
            if len(self._channel.versions) != len(made):
                self._channel = Channel(tuple(s.made for s in made), tuple(s.at for s in made))
            return self._channel

    def _catch_up(self) -> None:
        looked_at: set[TableLog] | None = getattr(_LOOKING, "at", None)
        if looked_at is not None:
            if self in looked_at:
                return
            looked_at.add(self)
        if self._commits and not self._goes_on():
            self._forget()
        if not self._commits:
            # The first entries may be gone (log retention); begin where the log begins.
            for info in self._log.files():
                if info.base_name.endswith(".json") and info.base_name[:20].isdigit():
                    self._append(int(info.base_name[:20]))

    def _goes_on(self) -> bool:
        """Read what is new; whether the last entry that was read is still the one that it was."""
        while True:
            version = self._commits[-1].version
            names = [f"{each:020}.json" for each in (version, version + 1)]
            last, following = self._log.entries(names)
            if last != self._last_entry:
                return False
            if following is None or not self._append(version + 1):
                return True

    def _forget(self) -> None:
        """The table was deleted: what was known of it says nothing about one in its place."""
        self._commits.clear()
        self._snapshots.clear()
        self._ids.clear()
        self._channel = Channel((), ())
        self._last_entry = None

    def _append(self, version: int) -> bool:
        name = f"{version:020}.json"
        text = self._log.read_text(name)
        if not text:
            return False
        (self._last_entry,) = self._log.entries([name])
        commit = _parsed(version, text)
        if self._foreign and commit.note is not None:
            own = replace(commit.note, after=Provenance(), channel=True, ids={})
            commit = replace(commit, note=own)
        if self._commits:
            commit = replace(commit, columns=commit.columns + self._commits[-1].columns)
        if commit.table_id is not None and commit.table_id not in self._ids[-1:]:
            self._ids.append(commit.table_id)
        self._commits.append(commit)
        self._snapshots_with(commit)
        return True

    def _snapshots_with(self, commit: Commit) -> None:
        before = self._snapshots[-1] if self._snapshots else None
        if commit.note is not None and commit.note.partial:
            return
        if before is not None and not _makes_a_state(commit, before):
            maintenance = commit.note is None or commit.note.kind in ("schema", "compaction")
            note = before.note if maintenance else commit.note
            self._snapshots[-1] = replace(before, version=commit.version, note=note)
            return
        if before is None and _only_made(commit):
            return
        # Timestamps of one channel never step back, even if a clock does.
        at = Instant(max(commit.at, before.at)) if before else commit.at
        provenance = _provenance(commit, self.name)
        made = Snapshot(commit.version, commit.version, at, provenance, commit.note)
        self._snapshots.append(made)


def read_commit(storage: Storage, version: int) -> Commit | None:
    """One commit of a table, without the others; None if its log has no such entry."""
    text = storage.inside("_delta_log").read_text(f"{version:020}.json")
    return _parsed(version, text) if text else None


def _makes_a_state(commit: Commit, before: Snapshot) -> bool:
    """Whether the table is in a new state: it holds other rows, or reflects other versions."""
    note, noted_before = commit.note, before.note
    if commit.changes_data or note is None or noted_before is None:
        return commit.changes_data
    return note.kind not in ("schema", "compaction") and note.after != noted_before.after


def _only_made(commit: Commit) -> bool:
    """Whether the table was made to be filled from other tables, and reflects none of them yet.

    That is no state: with an empty provenance it would count as right at every moment.
    """
    return commit.note is not None and commit.note.kind == "schema" and not commit.note.channel


def _provenance(commit: Commit, channel: str) -> Provenance:
    own = Provenance({channel: frozenset({commit.version})})
    if commit.note is None:
        return own
    return joined([commit.note.after, own]) if commit.note.channel else commit.note.after


def _parsed(version: int, text: str) -> Commit:
    actions: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines() if line.strip()]
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for action in actions:
        for kind, body in action.items():
            by_kind.setdefault(kind, []).append(body)
    info = by_kind.get("commitInfo", [{}])[0]
    noted = info.get(KEY)
    note = Note.from_json(noted) if isinstance(noted, dict) else None
    # Prefer the in-commit timestamp or our own instant; a log without either is dated by its files.
    stamp = info.get("inCommitTimestamp") or info.get("timestamp") or _newest_file(by_kind)
    return Commit(
        version=version,
        at=note.at if note else Instant(float(stamp) / 1000.0),
        operation=str(info.get("operation", "")),
        note=note,
        added=_data_paths(by_kind.get("add", ())),
        removed=_data_paths(by_kind.get("remove", ())),
        transactions={t["appId"]: int(t["version"]) for t in by_kind.get("txn", ())},
        columns=len(by_kind.get("metaData", ())),
        table_id=next((str(each["id"]) for each in by_kind.get("metaData", ())), None),
        sizes={
            unquote(add["path"]): int(add["size"])
            for add in by_kind.get("add", ())
            if "size" in add
        },
    )


def _data_paths(actions: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(unquote(action["path"]) for action in actions if action.get("dataChange", True))


def _newest_file(by_kind: Mapping[str, Sequence[Mapping[str, Any]]]) -> int:
    return max((int(add.get("modificationTime", 0)) for add in by_kind.get("add", ())), default=0)
