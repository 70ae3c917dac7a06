"""What happened to a Delta table, commit by commit?

delta-rs gives the files of a version. A `TableLog` says what each commit did. It reads each entry
of `_delta_log` once (`commit_entry`), keeps the entries and the table's snapshots
(`table_snapshots`), and corrects wrong dates (`commit_times`).

Reading stops at the first unreadable entry. `damage` says which file that is and why. So one
damaged log does not stop the observation of other tables. Call `validate_log` before you compute or
delete anything.

A table that is deleted and created again starts at version 0 again. `TableLog` checks the last
entry that it read: if its size or time differs, or if it is gone, the log forgets everything and
reads the new entries. To remember a version for longer, keep the table's id and the version's mark,
and check them with `has_id` and `has_mark`. The id alone is not enough: a table that is restored
from a backup has its old id, and other versions under the same numbers.
"""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from springhouse.errors import LakeError
from springhouse.lake.delta.commit_entry import Commit, damaged_entry, read_entry
from springhouse.lake.delta.commit_times import believable_commits, made_at
from springhouse.lake.delta.table_snapshots import Snapshot, add_to_snapshots
from springhouse.lake.storage.clock import CLOCK_TOLERANCE, steady_clock
from springhouse.lake.storage.storage import Storage
from springhouse.planner.provenance import Channel, Provenance
from springhouse.units import Instant

_LOOKING = threading.local()
"""`at` holds the logs that this thread has looked at inside `one_look`."""


@contextmanager
def one_look() -> Iterator[None]:
    """Inside this context, the thread looks for new entries only once per log.

    Use it for decisions that need the same few tables again and again. All of them then see the
    same moment. A remote storage gets one request per log.
    """
    before: set[TableLog] | None = getattr(_LOOKING, "at", None)
    _LOOKING.at = set()
    try:
        yield
    finally:
        _LOOKING.at = before


class TableLog:
    """The commits of one table; `name` is also the table's channel if it is a base table."""

    def __init__(
        self, storage: Storage, name: str, now: Callable[[], Instant] = steady_clock
    ) -> None:
        self.storage = storage
        self.name = name
        self._now = now
        self._damage: LakeError | None = None
        # A table of another writer may be a view of another warehouse. Its notes then name the
        # tables of that warehouse, not ours.
        self._foreign = name.startswith("delta.`")
        self._log = storage.inside("_delta_log")
        self._commits: list[Commit] = []
        self._snapshots: list[Snapshot] = []
        # Copies for callers. Callers ask far more often than the lists change.
        self._told_commits: tuple[Commit, ...] = ()
        self._told_snapshots: tuple[Snapshot, ...] | None = None
        self._channel = Channel((), ())
        # The size and time of the last entry read, and every id that the table ever had.
        self._last_entry: tuple[int, int] | None = None
        self._ids: list[str] = []
        self._lock = threading.RLock()

    def table_id(self) -> str | None:
        """The table's current id from Delta's metadata; None if there is no table."""
        with self._lock:
            self._catch_up()
            return self._known_ids()[-1] if self._commits else None

    def has_id(self, table_id: str) -> bool:
        """Whether the table has this id, or had it before it got another one."""
        with self._lock:
            self._catch_up()
            return bool(self._commits) and table_id in self._known_ids()

    def mark(self, version: int) -> str | None:
        """A mark that differs if another copy of the table has another version of this number."""
        with self._lock:
            self._catch_up()
            found = self._commit_at(version)
            return f"{version}:{found.mark}" if found is not None else None

    def has_mark(self, mark: str) -> bool:
        """Whether the table has the version with this mark, as far as its log shows."""
        version, _, known = mark.partition(":")
        with self._lock:
            self._catch_up()
            if not self._commits or self._commits[-1].version < int(version):
                # The mark may be newer than this thread's one look.
                self._look()
            if not self._commits or self._commits[-1].version < int(version):
                # A damaged entry is another error, and the version may come after that entry.
                return self._damage is not None
            found = self._commit_at(int(version))
            return found is None or found.mark == known

    def _commit_at(self, version: int) -> Commit | None:
        place = version - self._commits[0].version if self._commits else -1
        return self._commits[place] if 0 <= place < len(self._commits) else None

    def _known_ids(self) -> list[str]:
        """The ids in the log, oldest first; the checkpoint's id if the first entries are gone."""
        if not self._ids:
            try:
                opened = DeltaTable(self.storage.root, storage_options=self.storage.delta_options)
                self._ids = [str(opened.metadata().id)]
            except DeltaError:
                self._ids = [""]
        return self._ids

    def commits(self) -> Sequence[Commit]:
        """All commits whose log entries still exist, oldest first, up to now."""
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
        """The table as an input channel: every state of the table, with the time it began."""
        with self._lock:
            made = self.snapshots()
            if len(self._channel.versions) != len(made):
                self._channel = Channel(tuple(s.made for s in made), tuple(s.at for s in made))
            return self._channel

    def damage(self) -> LakeError | None:
        """The error for the first unreadable entry; None if all entries are readable."""
        with self._lock:
            self._catch_up()
            return self._damage

    def validate_log(self) -> None:
        """Raise an error if the log is damaged."""
        found = self.damage()
        if found is not None:
            raise LakeError(found.problem, where=found.where, hint=found.hint)

    def dated_ahead(self) -> Instant | None:
        """The date of the newest commit, if this machine's clock has not reached it."""
        commits = self.commits()
        if not commits or commits[-1].dated <= self._now() + CLOCK_TOLERANCE:
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
        for commit in believable_commits(found, self._now()):
            self._take(commit)
        if found:
            (self._last_entry,) = self._log.entries([f"{found[-1].version:020}.json"])

    def _is_the_same(self) -> bool:
        """Whether the last entry that the log read is unchanged."""
        return self._log.entries([f"{self._commits[-1].version:020}.json"]) == [self._last_entry]

    def _forget(self) -> None:
        """Forget a deleted table: the table in its place is another one."""
        self._commits.clear()
        self._snapshots.clear()
        self._told_commits, self._told_snapshots = (), None
        self._ids.clear()
        self._channel = Channel((), ())
        self._last_entry = None

    def _unread(self) -> Iterator[int]:
        """The versions of the next entries; the caller stops at the first missing one."""
        if self._commits:
            version = self._commits[-1].version
            while True:
                version += 1
                yield version
        # Log retention may have deleted the first entries; begin where the log begins.
        names = [info.base_name for info in self._log.files()]
        listed = [int(name[:20]) for name in names if _ENTRY.fullmatch(name)]
        for place, version in enumerate(listed):
            if version != listed[0] + place:
                raise damaged_entry(self._log, listed[0] + place, self.name, "the file is missing")
            yield version

    def _take(self, commit: Commit) -> None:
        if self._foreign and commit.note is not None:
            own = replace(commit.note, after=Provenance(), channel=True, ids={})
            commit = replace(commit, note=own)
        if self._commits:
            commit = replace(commit, columns=commit.columns + self._commits[-1].columns)
        if self._commits and commit.at < self._commits[-1].at:
            # A clock went back, or two clocks differ. A later commit is never older.
            commit = made_at(commit, self._commits[-1].at)
        if commit.table_id is not None and commit.table_id not in self._ids[-1:]:
            self._ids.append(commit.table_id)
        self._commits.append(commit)
        self._told_snapshots = None
        add_to_snapshots(self._snapshots, commit, self.name)


_ENTRY = re.compile(r"\d{20}\.json")
"""The name of an entry of the log."""
