"""Which files are which offsets?

A folder has no order and no memory, so its files are noted in a log before they are ever read: one
Delta table per use of `read_files`, one row per file.

    offset n   =   the file whose row says position n
    positions are 0, 1, 2, … without a gap; a row, once committed, never changes

`status` and `plan` write nothing: files that are not in the log yet follow those that are, in the
order in which they were listed.

If two processes list the same file, the commit decides: each appends to the version at which it
counted, with the same transaction. So the second one is rejected, reads what the first one wrote,
and tries again with the files that remain.
"""

import hashlib
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType

from springhouse.errors import CommitConflict, SourceError
from springhouse.lake.delta.commits import Change, commit, ensure
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.requirements import Requirement
from springhouse.lake.delta.tables import TableVersion, open_table, read_arrow
from springhouse.lake.delta.writing import write_arrow
from springhouse.lake.sources.source import Range, SourceContext
from springhouse.lake.storage.presence import FileLost

COMPACT_AT = 100
"""With this many small files, the log is rewritten as one."""

_COLUMNS = StructType(
    [
        StructField("position", LongType()),
        StructField("path", StringType()),
        StructField("size", LongType()),
        StructField("modified_nanoseconds", LongType()),
    ]
)


class FoundFile(NamedTuple):
    """A file as a listing shows it; `path` is relative to the folder that is read."""

    path: str
    size: int
    modified_nanoseconds: int


class FileLog:
    """The files of a stream, in the order of their offsets."""

    def __init__(self, context: SourceContext) -> None:
        self._storage = context.storage
        self._now = context.now
        self._ground: TableVersion | None = None
        self._entry: tuple[int, int] | None = None  # of the ground in the Delta log
        self._loaded: set[str] = set()  # data files of the log itself that were read
        self._files: list[FoundFile] = []
        self._paths: set[str] = set()
        self._unwritten: dict[str, FoundFile] = {}  # listed, and not in the log yet, by path
        self._lock = threading.Lock()

    def see(self, listed: Sequence[FoundFile]) -> int:
        """Add new files behind all others, oldest first; returns the number of all files."""
        with self._lock:
            self._catch_up()
            known = self._paths | self._unwritten.keys()
            new = [file for file in listed if file.path not in known]
            new.sort(key=lambda file: (file.modified_nanoseconds, file.path))
            self._unwritten |= {file.path: file for file in new}
            return len(self._files) + len(self._unwritten)

    def admit(self, requires: Sequence[Requirement] = ()) -> None:
        """Note the listed files in the log."""
        with self._lock:
            while self._unwritten:
                # Read again after it is created: another process may have created and filled it.
                if self._ground is None:
                    self.make(requires)
                else:
                    with suppress(CommitConflict):
                        self._append(self._ground, list(self._unwritten.values()), requires)
                self._catch_up()

    def has_admitted(self, offsets: Range) -> bool:
        """Whether the files at these offsets are in the log, as far as this process has read it."""
        with self._lock:
            return offsets.end <= len(self._files)

    def incarnation(self) -> str | None:
        """The id of the log; None if there is none."""
        with self._lock:
            self._catch_up()
            return self._ground.table_id if self._ground is not None else None

    def mark(self, end: int) -> str | None:
        """The fingerprint of the last file below an offset; None if it is not in the log."""
        with self._lock:
            if end > len(self._files):
                self._catch_up()
            if not 0 < end <= len(self._files):
                return None
            last = repr(tuple(self._files[end - 1]))
            return f"{end}:{hashlib.sha256(last.encode()).hexdigest()[:16]}"

    def make(self, requires: Sequence[Requirement] = ()) -> None:
        """Create an empty log, unless there is one."""
        ensure(self._storage, _COLUMNS, Note("schema", self._now()), requires)

    def files(self, offsets: Range) -> Sequence[FoundFile]:
        """The files at these offsets."""
        with self._lock:
            if offsets.end > len(self._files):
                self._catch_up()
            known = [*self._files, *self._unwritten.values()]
            if offsets.end > len(known):
                raise SourceError(
                    f"{offsets.end} files were read and only {len(known)} are in the log of files",
                    where=self._storage.root,
                    hint="The log was removed or replaced: rebuild the table.",
                )
            return tuple(known[offsets.start : offsets.end])

    def _append(
        self, ground: TableVersion, new: Sequence[FoundFile], requires: Sequence[Requirement]
    ) -> None:
        first = len(self._files)
        columns = {
            "position": pa.array(range(first, first + len(new)), pa.int64()),
            "path": pa.array([file.path for file in new], pa.string()),
            "size": pa.array([file.size for file in new], pa.int64()),
            "modified_nanoseconds": pa.array([f.modified_nanoseconds for f in new], pa.int64()),
        }
        count = first + len(new)
        note = Note("append", self._now(), rows=count, rows_added=len(new))
        add = write_arrow(self._storage, pa.table(columns))
        commit(ground, Change(note, [add], transactions={"springhouse/files": count}), requires)
        if len(ground.files) >= COMPACT_AT:
            self._compact(requires)

    def _compact(self, requires: Sequence[Requirement]) -> None:
        newest = open_table(self._storage)
        assert newest is not None
        rows = newest.to_arrow().sort_by("position")
        note = Note("compaction", self._now(), rows=rows.num_rows)
        # Another process that compacts at the same moment does the same work.
        with suppress(CommitConflict):
            change = Change(note, [write_arrow(self._storage, rows)], newest.files)
            commit(newest, change, requires)

    def _catch_up(self) -> None:
        """Read the files that were appended since the last time, here or by another process."""
        if self._ground is not None and self._is_newest(self._ground):
            return
        before, self._ground = self._ground, open_table(self._storage)
        if before is not None and (
            self._ground is None
            or self._ground.table_id != before.table_id
            or self._entries(before.version)[0] != self._entry
        ):
            # Another log, or an older copy, has taken its place: forget what was read before.
            self._loaded, self._files, self._paths = set(), [], set()
        if self._ground is None:
            return
        self._entry = self._entries(self._ground.version)[0]
        unread = [f.path for f in self._ground.files if f.path not in self._loaded]
        try:
            rows = read_arrow(self._storage, unread, _COLUMNS.fieldNames()).to_pylist()
        except FileLost as lost:
            self._ground = None  # The next call reads it again.
            raise SourceError(
                f"the list of the files that were read is lost: {lost.problem}",
                where=self._storage.root,
                hint="Restore it from a backup. To read everything anew: delete this folder, and "
                "the folder of the table that reads the files.",
            ) from lost
        self._loaded = {file.path for file in self._ground.files}
        for row in sorted(rows, key=lambda row: int(row["position"])):
            position = row.pop("position")
            # A compacted file repeats known rows.
            if position < len(self._files):
                continue
            assert position == len(self._files), f"the log has no file {len(self._files)}"
            self._files.append(FoundFile(**row))
            self._paths.add(row["path"])
            self._unwritten.pop(row["path"], None)

    def _is_newest(self, ground: TableVersion) -> bool:
        entry, following = self._entries(ground.version, ground.version + 1)
        return following is None and entry == self._entry

    def _entries(self, *versions: int) -> list[tuple[int, int] | None]:
        return self._storage.inside("_delta_log").entries([f"{v:020}.json" for v in versions])
