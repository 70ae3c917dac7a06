"""What happened to a Delta table, commit by commit?

delta-rs gives the files of a version. What each commit did (its note, whether it changed data, the
files that it added) stands in `_delta_log/N.json`; `TableLog` reads those once each and remembers.
A commit without a note was made by somebody else: it counts as a change of data unless its actions
say otherwise, and its change is worked out from the files.

Damage: a log is read up to the first entry that can't be (`damage` says which file, and why), so
that what is observed of other tables goes on. Whoever computes or deletes anything calls
`prove_whole` first.

Dates: an entry that is dated ahead of now was written under a wrong clock. It counts as made before
the next entry with a believable date, or when it was first seen; nobody waits for the date. An
entry that is dated before the one below it counts as made with that. So

    at of a commit  <=  at of the next commit  <=  now, or a minute later

A table that is deleted and made anew begins again at version 0. `TableLog` notices it by the last
entry that it read (its size and time differ, or it is gone), forgets everything, and reads the new
log. Whoever remembers a version for longer remembers the table's id and the version's mark with it,
and asks `has_id` and `has_mark`: a table that was restored from a backup has its old id, and other
versions under the numbers that were read.
"""

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from springhouse.errors import LakeError
from springhouse.lake.delta.note import FORMAT, KEY, NewerNote, Note
from springhouse.lake.storage.clock import AHEAD, steady_clock
from springhouse.lake.storage.storage import Storage
from springhouse.planner.provenance import Channel, Provenance, joined
from springhouse.units import Instant


@dataclass(frozen=True)
class Commit:
    """One version of a table, as its log tells it.

    `dated` is what the log says; `at` is the same, unless that is ahead of now.
    """

    version: int
    at: Instant
    dated: Instant
    operation: str
    note: Note | None
    added: tuple[str, ...]  # paths relative to the table, of files that hold new data
    removed: tuple[str, ...]  # of files whose data went away
    transactions: Mapping[str, int]
    columns: int = 0  # how often the log has described the table's columns so far
    sizes: Mapping[str, int] = field(default_factory=dict)  # bytes of the added files
    table_id: str | None = None  # the id that this commit gives the table, if it describes it
    mark: str = ""  # a hash of the entry: that of another copy of the table is another one

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

    @property
    def size(self) -> int:
        """The bytes of the files that hold new data."""
        return sum(self.sizes.values())

    @property
    def only_adds(self) -> bool:
        """Whether rows only came: a view that is written anew says what became of its rows."""
        note = self.note
        is_told = note is not None and note.changes is not None and note.rows_removed == 0
        return is_told or self.appends_only


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

    def __init__(
        self, storage: Storage, name: str, now: Callable[[], Instant] = steady_clock
    ) -> None:
        self.storage = storage
        self.name = name
        self._now = now
        self._damage: LakeError | None = None
        # A table of others may be a view of another warehouse: what its notes say it reflects are
        # that warehouse's tables, not ours.
        self._foreign = name.startswith("delta.`")
        self._log = storage.inside("_delta_log")
        self._commits: list[Commit] = []
        self._snapshots: list[Snapshot] = []
        # The same as they were told last: they are asked for far more often than they change.
        self._told_commits: tuple[Commit, ...] = ()
        self._told_snapshots: tuple[Snapshot, ...] | None = None
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

    def mark(self, version: int) -> str | None:
        """What tells this version from one with the same number of another copy of the table."""
        with self._lock:
            self._catch_up()
            found = self._commit_at(version)
            return f"{version}:{found.mark}" if found is not None else None

    def has_mark(self, mark: str) -> bool:
        """Whether the version with this mark is one of the table, as far as its log can tell."""
        version, _, known = mark.partition(":")
        with self._lock:
            self._catch_up()
            if not self._commits or self._commits[-1].version < int(version):
                # Who remembers it may have seen more of the table than this thread in its one look.
                self._look()
            if not self._commits or self._commits[-1].version < int(version):
                # A damaged entry is another error; and the version may well stand behind it.
                return self._damage is not None
            found = self._commit_at(int(version))
            return found is None or found.mark == known

    def _commit_at(self, version: int) -> Commit | None:
        place = version - self._commits[0].version if self._commits else -1
        return self._commits[place] if 0 <= place < len(self._commits) else None

    def _known_ids(self) -> list[str]:
        """The ids in the log, oldest first; a log whose first entries are gone has a checkpoint."""
        if not self._ids:
            try:
                opened = DeltaTable(self.storage.root, storage_options=self.storage.delta_options)
                self._ids = [str(opened.metadata().id)]
            except DeltaError:
                self._ids = [""]
        return self._ids

    def commits(self) -> Sequence[Commit]:
        """All commits whose log entries are still there, oldest first, up to this very moment."""
        with self._lock:
            self._catch_up()
            if len(self._told_commits) != len(self._commits):
                self._told_commits = tuple(self._commits)
            return self._told_commits

    def snapshots(self) -> Sequence[Snapshot]:
        """The distinct states of the table, oldest first."""
        with self._lock:
            self._catch_up()
            if self._told_snapshots is None:
                self._told_snapshots = tuple(self._snapshots)
            return self._told_snapshots

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

    def damage(self) -> LakeError | None:
        """What is wrong with the first entry that can't be read; None if all can."""
        with self._lock:
            self._catch_up()
            return self._damage

    def prove_whole(self) -> None:
        """Raise what is wrong with the log, if anything is."""
        found = self.damage()
        if found is not None:
            raise LakeError(found.problem, where=found.where, hint=found.hint)

    def dated_ahead(self) -> Instant | None:
        """The date of the newest commit, if that is still to come on this machine's clock."""
        commits = self.commits()
        if not commits or commits[-1].dated <= self._now() + AHEAD:
            return None
        return commits[-1].dated

    def _catch_up(self) -> None:
        looked_at: set[TableLog] | None = getattr(_LOOKING, "at", None)
        if looked_at is not None:
            if self in looked_at:
                return
            looked_at.add(self)
        self._look()

    def _look(self) -> None:
        if self._commits and not self._is_the_same():
            self._forget()
        self._damage = None
        found: list[Commit] = []
        try:
            for version in self._unread():
                commit = read_entry(self._log, version, self.name)
                if commit is None:
                    break
                found.append(commit)
        except LakeError as error:
            self._damage = error
        for commit in _believable(found, self._now()):
            self._take(commit)
        if found:
            (self._last_entry,) = self._log.entries([f"{found[-1].version:020}.json"])

    def _is_the_same(self) -> bool:
        """Whether the last entry that was read is still the one that it was."""
        return self._log.entries([f"{self._commits[-1].version:020}.json"]) == [self._last_entry]

    def _forget(self) -> None:
        """The table was deleted: what was known of it says nothing about one in its place."""
        self._commits.clear()
        self._snapshots.clear()
        self._told_commits, self._told_snapshots = (), None
        self._ids.clear()
        self._channel = Channel((), ())
        self._last_entry = None

    def _unread(self) -> Iterator[int]:
        """The versions whose entries come next, as far as they may be there."""
        if self._commits:
            version = self._commits[-1].version
            while True:
                version += 1
                yield version
        # The first entries may be gone (log retention); begin where the log begins.
        names = [info.base_name for info in self._log.files()]
        listed = [int(name[:20]) for name in names if _ENTRY.fullmatch(name)]
        for place, version in enumerate(listed):
            if version != listed[0] + place:
                raise _damaged(self._log, listed[0] + place, self.name, "the file is missing")
            yield version

    def _take(self, commit: Commit) -> None:
        if self._foreign and commit.note is not None:
            own = replace(commit.note, after=Provenance(), channel=True, ids={})
            commit = replace(commit, note=own)
        if self._commits:
            commit = replace(commit, columns=commit.columns + self._commits[-1].columns)
        if self._commits and commit.at < self._commits[-1].at:
            # A clock went back, or two machines differ. A later commit is never older.
            commit = _made_at(commit, self._commits[-1].at)
        if commit.table_id is not None and commit.table_id not in self._ids[-1:]:
            self._ids.append(commit.table_id)
        self._commits.append(commit)
        self._told_snapshots = None
        self._snapshots_with(commit)

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


_ENTRY = re.compile(r"\d{20}\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.")
_LATEST = 1e11
"""No date is later (the year 5138), so that every one can be shown."""


def read_entry(log: Storage, version: int, name: str) -> Commit | None:
    """An entry of the log of the table `name`; None if it is not there, else an error names it."""
    try:
        text = log.read_text(f"{version:020}.json")
        return None if text is None else _parsed(version, text)
    except NewerNote as newer:
        raise LakeError(
            f'version {version} of "{name}" has a note in format {newer.format}, and this '
            f"Springhouse reads format {FORMAT}",
            where=_where(log, version),
            hint="It was written by a newer Springhouse: update this one.",
        ) from None
    except UnicodeDecodeError:
        raise _damaged(log, version, name, "the file is not text") from None
    except (ValueError, RecursionError) as error:
        raise _damaged(log, version, name, str(error)) from None


def prove_entries(storage: Storage, identity: str, version: int) -> None:
    """Raise what is wrong with an entry that a version of a table is read from.

    Those are the entries after the newest checkpoint below the version. Each is looked at once in
    the life of a process, and of the table that the identity names.
    """
    log = storage.inside("_delta_log")
    proven = _PROVEN.setdefault((storage.root, identity), set())
    if version in proven:
        return
    start = version
    if version - 1 not in proven:
        start = max((each + 1 for each in _checkpoints(log) if each <= version), default=0)
    for each in range(start, version + 1):
        if each not in proven and read_entry(log, each, _name_of(storage)) is None:
            raise _damaged(log, each, _name_of(storage), "the file is missing")
        proven.add(each)
    proven.add(version)


_PROVEN: dict[tuple[str, str], set[int]] = {}
"""The entries that were found whole, by place and identity of the table."""


def find_damage(storage: Storage) -> LakeError | None:
    """What is wrong with the log of a table that can't be opened, if it is one of its files."""
    name, log = _name_of(storage), storage.inside("_delta_log")
    found = TableLog(storage, name).damage()
    return found if found is not None else _checkpoint_damage(log, name)


def _checkpoint_damage(log: Storage, name: str) -> LakeError | None:
    """What is wrong with the newest checkpoint."""
    hinted = _hinted_checkpoint(log)
    newest = max([*_checkpoints(log), *([] if hinted is None else [hinted])], default=None)
    if newest is None:
        return None
    parts = [i.base_name for i in log.files() if i.base_name.startswith(f"{newest:020}.checkpoint")]
    file, problem = f"{newest:020}.checkpoint.parquet", "the file is missing"
    for file in parts:
        problem = ""
        if file.endswith(".parquet"):
            problem = _unreadable(log, file)
        if problem:
            break
    if not problem:
        return None
    # Without its checkpoint a table is read from all its entries, if they are still there.
    whole = read_entry(log, 0, name) is not None
    return LakeError(
        f'the checkpoint of "{name}" at version {newest} is damaged: {problem}',
        where=f"{log.root}/{file}",
        hint="Delete this file and _last_checkpoint beside it: the log holds all that is in it."
        if whole
        else "Restore this file from a backup.",
    )


def _unreadable(log: Storage, file: str) -> str:
    """Why a Parquet file can't be read; empty if it can."""
    try:
        with log.filesystem.open_input_file(f"{log.path}/{file}") as opened:
            pq.read_table(opened)
    except (OSError, pa.ArrowException) as error:
        return next(iter(str(error).splitlines()), type(error).__name__)
    return ""


def _checkpoints(log: Storage) -> list[int]:
    """The versions that have a checkpoint."""
    found = [_CHECKPOINT.match(info.base_name) for info in log.files()]
    return [int(each[1]) for each in found if each]


def _hinted_checkpoint(log: Storage) -> int | None:
    """The version of the newest checkpoint as `_last_checkpoint` says, if it says any."""
    try:
        found = json.loads(log.read_text("_last_checkpoint") or "{}")["version"]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, int) else None


def _name_of(storage: Storage) -> str:
    return storage.root.rpartition("/")[2]


def _damaged(log: Storage, version: int, name: str, what: str) -> LakeError:
    return LakeError(
        f'the log of "{name}" is damaged at version {version}: {what}',
        where=_where(log, version),
        hint=_NEWEST
        if log.modified(f"{version + 1:020}.json") is None
        else "Restore this file from a backup. A view can also be made anew: delete its folder.",
    )


_NEWEST = (
    "It is the newest entry: if a power cut damaged it, it was never reported, and deleting it "
    "loses nothing. Otherwise restore it from a backup."
)


def _where(log: Storage, version: int) -> str:
    return f"{log.root}/{version:020}.json"


def _believable(commits: Sequence[Commit], now: Instant) -> list[Commit]:
    """The commits, none of them made later than now."""
    found: list[Commit] = []
    latest = now
    for commit in reversed(commits):
        if commit.dated > now + AHEAD:
            found.append(_made_at(commit, latest))
        else:
            latest = min(latest, commit.dated)
            found.append(commit)
    return found[::-1]


def _made_at(commit: Commit, at: Instant) -> Commit:
    note = commit.note
    if note is not None:
        # A table whose records have no date is as fresh as its commit.
        fresh = note.freshness
        if fresh is not None and (fresh == note.at or fresh > at):
            fresh = at
        note = replace(note, at=at, freshness=fresh)
    return replace(commit, at=at, note=note)


class _NoCommit(ValueError):
    """The text is no entry of a Delta log."""


def _parsed(version: int, text: str) -> Commit:
    by_kind = _actions(text)
    info = by_kind.get("commitInfo", [{}])[0]
    noted = info.get(KEY)
    note = None if noted is None else Note.from_json(noted)
    for kind, count in (note.holds if note else {}).items():
        if len(by_kind.get(kind, ())) < count:
            raise _NoCommit(f'it has {len(by_kind.get(kind, ()))} of {count} "{kind}" actions')
    # Prefer the in-commit timestamp or our own instant; a log without either is dated by its files.
    stamp = info.get("inCommitTimestamp") or info.get("timestamp") or _newest_file(by_kind)
    at = note.at if note else Instant(_number(stamp, "timestamp") / 1000.0)
    if not abs(at) < _LATEST:
        raise _NoCommit(f"it is dated {at:g}")
    return Commit(
        version=version,
        at=at,
        dated=at,
        operation=str(info.get("operation", "")),
        note=note,
        added=_data_paths(by_kind.get("add", ())),
        removed=_data_paths(by_kind.get("remove", ())),
        transactions=dict(_transaction(each) for each in by_kind.get("txn", ())),
        columns=len(by_kind.get("metaData", ())),
        table_id=next((str(m["id"]) for m in by_kind.get("metaData", ()) if "id" in m), None),
        mark=hashlib.sha256(text.encode()).hexdigest()[:16],
        sizes=dict(_size(add) for add in by_kind.get("add", ()) if "size" in add),
    )


def _actions(text: str) -> dict[str, list[dict[str, Any]]]:
    """The actions of an entry, by kind: one JSON object a line."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise _NoCommit("the file is empty")
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for number, line in lines:
        try:
            action = json.loads(line)
        except ValueError:
            raise _NoCommit(f"line {number} is no JSON") from None
        if not isinstance(action, dict):
            raise _NoCommit(f"line {number} is no action")
        for kind, body in action.items():
            if not isinstance(body, dict):
                raise _NoCommit(f'"{kind}" in line {number} is no object')
            by_kind.setdefault(kind, []).append(body)
    return by_kind


def _transaction(action: Mapping[str, Any]) -> tuple[str, int]:
    app, version = action.get("appId"), action.get("version")
    if not isinstance(app, str) or not isinstance(version, int):
        raise _NoCommit('a "txn" has no appId or version')
    return app, version


def _size(action: Mapping[str, Any]) -> tuple[str, int]:
    return _path(action), int(_number(action["size"], "size"))


def _path(action: Mapping[str, Any]) -> str:
    path = action.get("path")
    if not isinstance(path, str):
        raise _NoCommit('an "add" or "remove" has no path')
    return unquote(path)


def _number(value: Any, what: str) -> float:
    if not isinstance(value, (int, float)):
        raise _NoCommit(f'"{what}" is no number')
    return float(min(max(value, -1e300), 1e300))


def _data_paths(actions: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(_path(action) for action in actions if action.get("dataChange", True))


def _newest_file(by_kind: Mapping[str, Sequence[Mapping[str, Any]]]) -> float:
    times = [add.get("modificationTime", 0) for add in by_kind.get("add", ())]
    return max((_number(each, "modificationTime") for each in times), default=0.0)
