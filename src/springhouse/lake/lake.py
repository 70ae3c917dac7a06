"""Which tables does this warehouse have, and how are they opened?

A `Lake` is the storage, the Spark and the Delta logs of one warehouse. Every input has a key. The
key of a table or view of the project is its name. The key of a Delta table that others write is
``delta.`path` ``.

Each refresh works with its own lake, `lake.under(permit)`. This lake shares everything with the
original, but each of its commits requires the permit.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from springhouse.errors import CommitConflict, LakeError
from springhouse.lake.delta.log import TableLog
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.requirements import CommitPermit, Requirement
from springhouse.lake.delta.tables import TableVersion, open_table
from springhouse.lake.spark.kept_change import SharedScan
from springhouse.lake.spark.session import Spark
from springhouse.lake.storage.clock import steady_clock
from springhouse.lake.storage.durable import sync_entries
from springhouse.lake.storage.leases import Leases
from springhouse.lake.storage.presence import RemoteScans
from springhouse.lake.storage.storage import Storage
from springhouse.planner.delta_logs import made_anew
from springhouse.units import Instant

QUARANTINE = "_quarantine"

_MOST_VERSIONS = 64
"""How many open table versions a lake keeps."""


class _NoSuchVersion(Exception):
    """There is no such table; `lru_cache` does not remember errors."""


def _open_version(place: Storage, version: int, written: int | None) -> TableVersion:
    """A version of a table; `written` is the time of its log entry, and part of the cache key."""
    opened = open_table(place, version)
    if opened is None:
        raise _NoSuchVersion
    return opened


@dataclass(frozen=True)
class Lake:
    """The storage and the Spark of one warehouse."""

    storage: Storage
    spark: Spark
    folder: Path
    # The clock for all dates that the warehouse writes: a warehouse has only one.
    now: Callable[[], Instant] = steady_clock
    # The permit for the commits of one piece of work; None for a lake without such work.
    permit: CommitPermit | None = None
    # Facts about views that stay true while the process lives, such as compiled plans.
    plans: dict[Any, Any] = field(default_factory=dict)
    # The changes that the process keeps while several views read them.
    scans: list[SharedScan] = field(default_factory=list)
    _versions: Callable[[Storage, int, int | None], TableVersion] = field(
        default_factory=lambda: lru_cache(maxsize=_MOST_VERSIONS)(_open_version)
    )
    _logs: dict[str, TableLog] = field(default_factory=dict)
    _leases: list[Leases] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def under(self, permit: CommitPermit) -> "Lake":
        """The same lake for a piece of work whose commits require this permit."""
        return replace(self, permit=permit)

    @property
    def required(self) -> tuple[Requirement, ...]:
        """The requirements of every commit of this piece of work."""
        return () if self.permit is None else self.permit.requirements()

    @property
    def remote_scans(self) -> RemoteScans | None:
        """The list in which this piece of work records the files that a remote engine reads."""
        return None if self.permit is None else self.permit.scans

    @property
    def leases(self) -> Leases:
        """The leases of all processes that write into this storage now, including this one."""
        with self._lock:
            if not self._leases:
                self._leases.append(Leases(self.storage))
            return self._leases[0]

    def place(self, key: str) -> Storage:
        """The storage of the table with this key."""
        if key.startswith("delta.`"):
            return Storage.at(key[len("delta.`") : -1], self.folder)
        return self.storage.inside("tables", key)

    def log(self, key: str) -> TableLog:
        """The log of a table; it keeps the entries that it has read."""
        with self._lock:
            if key not in self._logs:
                self._logs[key] = TableLog(self.place(key), key, self.now)
            return self._logs[key]

    def open(self, key: str, version: int | None = None) -> TableVersion:
        """The table as of a version; raises an error if there is no such version."""
        opened = self.find(key) if version is None else self.as_of(key, version)
        if opened is None:
            raise LakeError(
                f'there is no table "{key}" yet',
                where=self.place(key).root,
                hint="Run `springhouse run --once`: the first refresh makes it.",
            )
        return opened

    def as_of(self, key: str, version: int) -> TableVersion | None:
        """The table as of a version. The lake keeps it, because views read it many times.

        A table that is deleted and created again has the same version numbers at other times. So
        the lake keeps the time of the log entry, too.
        """
        place = self.place(key)
        written = place.inside("_delta_log").modified(f"{version:020}.json")
        try:
            return self._versions(place, version, written)
        except _NoSuchVersion:
            return None

    def find(self, key: str) -> TableVersion | None:
        """The newest version of a table, or None if it has none."""
        return open_table(self.place(key))

    def tables(self) -> list[str]:
        """The keys of all tables in the storage, declared or not."""
        return [
            name
            for name in self.storage.inside("tables").folders()
            if self.log(name).newest() is not None or self.log(name).damage() is not None
        ]


@dataclass(frozen=True)
class InputsSame:
    """The tables that the note names as read are the same tables: none was created again."""

    lake: Lake
    note: Note

    def check(self) -> None:
        other = made_anew(self.lake, self.note)
        if other:
            raise CommitConflict(f'"{other[0]}" was made anew while it was read')


@dataclass(frozen=True)
class InputsDurable:
    """The versions that the work read are on the disk.

    Otherwise a power cut may delete such a version and leave the results computed from it.
    """

    lake: Lake
    note: Note

    def check(self) -> None:
        for key, version in self.note.read.items():
            sync_entries(self.lake.place(key), version)


def required_of_view(lake: Lake, note: Note) -> tuple[Requirement, ...]:
    """The requirements of a view's commit; the note names the versions that the refresh read."""
    return InputsSame(lake, note), InputsDurable(lake, note), *lake.required
