"""How do bad records get into a table's quarantine, each exactly once?

A record of a range of offsets is in the table or in its quarantine, never in both and never in
neither. One commit can't change two tables, so the table's own commit decides. Before this commit,
the bad records go to a file, and the note of the commit names the file. After it, the quarantine
adds the file. If the process dies in between, the next refresh of the table finds a note whose file
the quarantine lacks, and adds the file:

    settled  =  the quarantine has the transactions of the note, up to its ends

So the decision about each record is final, even if the declaration changes in between.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from springhouse.errors import CommitConflict
from springhouse.lake.delta.commits import Change, commit, ensure
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.tables import TableVersion
from springhouse.lake.delta.writing import add_action, write_arrow
from springhouse.lake.lake import QUARANTINE, Lake
from springhouse.lake.spark.quality import QUARANTINE_SCHEMA
from springhouse.units import Instant

QuarantinedRecord = tuple[str, str | None, str]
"""Reason, record (None: there is no record to show) and origin of a quarantined record."""

_TRIES = 5


class UnsettledRecords(NamedTuple):
    """A file of bad records that the quarantine lacks, and the transactions that add it."""

    path: str
    ends: Mapping[str, int]


def write_quarantine_file(
    lake: Lake, table: str, flow: str, rows: Sequence[QuarantinedRecord], at: Instant
) -> str:
    """Write records to a file that the quarantine can add; its path, or "" without records."""
    if not rows:
        return ""
    when = datetime.fromtimestamp(at, UTC)
    columns = {
        "reason": pa.array([reason for reason, _, _ in rows], pa.string()),
        "record": pa.array([record for _, record, _ in rows], pa.string()),
        "origin": pa.array([origin for _, _, origin in rows], pa.string()),
        "flow": pa.array([flow] * len(rows), pa.string()),
        "quarantined_at": pa.array([when] * len(rows), pa.timestamp("us", tz="UTC")),
    }
    return str(write_arrow(lake.place(table + QUARANTINE), pa.table(columns)).path)


def pending_records(lake: Lake, table: str) -> list[UnsettledRecords]:
    """The files that the table's commits name and its quarantine lacks, oldest first."""
    stored = _Offsets(lake, table)
    newest_first: list[UnsettledRecords] = []
    for entry in reversed(lake.log(table).commits()):
        for noted in entry.note.flows.values() if entry.note else ():
            ends = {app: end for app, (_, end) in noted.offsets.items()}
            if not noted.aside or all(stored.of(app) >= end for app, end in ends.items()):
                continue
            if not lake.place(table + QUARANTINE).inside(noted.aside).exists():
                # The quarantine was deleted, with all older files.
                return newest_first[::-1]
            newest_first.append(UnsettledRecords(noted.aside, ends))
    return newest_first[::-1]


def settle_quarantine(lake: Lake, table: str) -> None:
    """Add to the quarantine the files that the table's commits name and the quarantine lacks."""
    for _ in range(_TRIES):
        unsettled = pending_records(lake, table)
        if not unsettled:
            return
        # A conflict means that another process adds the same file right now: look again.
        with suppress(CommitConflict):
            for each in unsettled:
                _add(lake, table, each.path, each.ends)
    for each in pending_records(lake, table):
        _add(lake, table, each.path, each.ends)


def quarantine_view_rows(
    lake: Lake, table: str, flow: str, rows: Sequence[QuarantinedRecord], at: Instant
) -> None:
    """Add rows to the quarantine of a view. A recomputation of the view empties it first."""
    path = write_quarantine_file(lake, table, flow, rows, at)
    if path:
        _add(lake, table, path, {})


def _add(lake: Lake, table: str, path: str, ends: Mapping[str, int]) -> None:
    place = lake.place(table + QUARANTINE)
    at = lake.now()
    made = Note(kind="schema", at=at, channel=True)
    ground = ensure(place, QUARANTINE_SCHEMA, made, lake.required)
    if ends and all(ground.offset(app) >= end for app, end in ends.items()):
        return
    with place.filesystem.open_input_file(f"{place.path}/{path}") as file:
        metadata = pq.read_metadata(file)
        add = add_action(path, file.size(), metadata)
    note = Note(kind="append", at=at, channel=True, rows_added=metadata.num_rows)
    commit(ground, Change(note, [add], transactions=ends), lake.required)


class _Offsets:
    """The transactions of a quarantine, which is opened on first use."""

    def __init__(self, lake: Lake, table: str) -> None:
        self._lake, self._table = lake, table
        self._known: dict[str, int] = {}
        self._opened: TableVersion | None = None
        self._is_open = False

    def of(self, app: str) -> int:
        if app not in self._known:
            if not self._is_open:
                self._opened, self._is_open = self._lake.find(self._table + QUARANTINE), True
            self._known[app] = self._opened.offset(app) if self._opened else 0
        return self._known[app]
