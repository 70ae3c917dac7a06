"""Which tables does this warehouse have, and how are they opened?

A `Lake` is the storage, the Spark and the Delta logs of one House. Inputs have keys: a table or
view of the project by its name, a Delta table that others write by ``delta.`path` ``.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from springhouse.errors import LakeError
from springhouse.lake.clock import steady_clock
from springhouse.lake.durable import sync_entries
from springhouse.lake.leases import Leases
from springhouse.lake.log import TableLog
from springhouse.lake.note import Note
from springhouse.lake.session import Spark
from springhouse.lake.storage import Storage
from springhouse.lake.tables import TableVersion, open_table
from springhouse.planner.provenance import Provenance, joined, source_of, through
from springhouse.project.declaration import Reading, Reference
from springhouse.units import Instant

QUARANTINE = "_quarantine"


def input_key(reading: Reading, name: str) -> str:
    """The key of what a query reads.

    >>> input_key(Reading.TABLE, "orders"), input_key(Reading.DELTA, "data/rates")
    ('orders', 'delta.`data/rates`')
    """
    if reading in (Reading.DELTA, Reading.DELTA_STREAM):
        return f"delta.`{name}`"
    return name


def key_of(reference: Reference) -> str:
    """The key of what a reference names."""
    return input_key(reference.reading, reference.name)


_MOST_KEPT = 64
"""How many versions of tables are remembered."""


@dataclass(frozen=True)
class Lake:
    """The storage and the Spark of one House."""

    storage: Storage
    spark: Spark
    folder: Path
    # What time it is, for everything that is written down: a House has one clock.
    now: Callable[[], Instant] = steady_clock
    # What was worked out about views and stays true while the process lives.
    plans: dict[Any, Any] = field(default_factory=dict)
    _kept: "OrderedDict[tuple[str, int, int | None], TableVersion]" = field(
        default_factory=OrderedDict
    )
    _logs: dict[str, TableLog] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def leases(self) -> Leases:
        """Which processes are writing into this storage now, this one among them."""
        return Leases(self.storage)

    def place(self, key: str) -> Storage:
        """Where the table with this key lies."""
        if key.startswith("delta.`"):
            return Storage.at(key[len("delta.`") : -1], self.folder)
        return self.storage.inside("tables", key)

    def log(self, key: str) -> TableLog:
        """The log of a table, which remembers what it has read."""
        with self._lock:
            if key not in self._logs:
                self._logs[key] = TableLog(self.place(key), key, self.now)
            return self._logs[key]

    def open(self, key: str, version: int | None = None) -> TableVersion:
        """The table as of a version; an error if it is not there."""
        opened = self.find(key) if version is None else self.as_of(key, version)
        if opened is None:
            raise LakeError(
                f'there is no table "{key}" yet',
                where=self.place(key).root,
                hint="Run `springhouse run --once`: the first refresh makes it.",
            )
        return opened

    def as_of(self, key: str, version: int) -> TableVersion | None:
        """The table as of a version, which is remembered: many views read it, and more than once.

        Who deletes a table and makes it anew begins again with its versions, but not at the same
        moment: so the time of the log's entry is remembered too.
        """
        place = self.place(key)
        asked = (key, version, place.inside("_delta_log").modified(f"{version:020}.json"))
        with self._lock:
            if asked in self._kept:
                self._kept.move_to_end(asked)
                return self._kept[asked]
        opened = open_table(place, version)
        with self._lock:
            if opened is not None:
                self._kept[asked] = opened
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return opened

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


def ids_of(lake: Lake, read: Mapping[str, int]) -> dict[str, str]:
    """The ids of the tables whose versions these are, and of the tables that views among them read.

    A version of a view counts for what it was computed from, which may be gone by now.
    """
    found: dict[str, str] = {}
    for key, version in read.items():
        log = lake.log(key)
        states = [s for s in log.snapshots() if s.made <= version]
        note = states[-1].note if states else None
        behind = note.ids if note is not None and note.kind in ("replace", "merge") else {}
        own = log.table_id()
        found |= dict(behind)
        found |= {key: own} if own is not None else {}
    return found


def marks_of(lake: Lake, read: Mapping[str, int]) -> dict[str, str]:
    """The marks of the versions that made these rows, and those behind the views among them."""
    found: dict[str, str] = {}
    for key, version in read.items():
        log = lake.log(key)
        states = [s for s in log.snapshots() if s.made <= version]
        for state in states[-1:]:
            note = state.note
            if note is not None and note.kind in ("replace", "merge"):
                found |= note.marks
            own = log.mark(state.made)
            found |= {key: own} if own is not None else {}
    return found


def sync_inputs(lake: Lake, read: Mapping[str, int]) -> None:
    """Return when the versions that something was computed from are on the disk.

    Else a power cut might take a commit away, and leave what was computed from it.
    """
    for key, version in read.items():
        sync_entries(lake.place(key), version)


def made_anew(lake: Lake, note: Note) -> list[str]:
    """The tables that are not those that a note counts: made anew, or an older copy of them."""
    other = {key for key, known in note.ids.items() if not lake.log(key).has_id(known)}
    other |= {key for key, mark in note.marks.items() if not lake.log(key).has_mark(mark)}
    return sorted(other)


def provenance_of(lake: Lake, read: Mapping[str, int], *, apart: bool = False) -> Provenance:
    """What rows reflect that were computed from these versions of these tables.

    All that comes from one base table is one, unless pathways are to be told `apart`: then what
    came through a view is so marked (`planner.workflow` says when that is needed).
    """
    parts = []
    for key, version in read.items():
        states = [s for s in lake.log(key).snapshots() if s.made <= version]
        for state in states[-1:]:
            parts += [
                Provenance({_pathway(pathway, key, apart=apart): versions})
                for pathway, versions in state.provenance.reflected.items()
            ]
    return joined(parts)


def _pathway(pathway: str, key: str, *, apart: bool) -> str:
    source = source_of(pathway)
    return through(source, key) if apart and source != key else source
