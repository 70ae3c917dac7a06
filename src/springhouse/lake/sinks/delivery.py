"""How do all changes of a table get to a sink, in order?

A ledger in the storage, a Delta table without rows, holds the position of a sink. A delivery writes
two commits into the ledger, and to the sink in between:

    intended   = end     these versions are about to be written: this range does not change any more
    delivered  = end     the sink has them

If the process dies, the same range comes again, and a sink can recognise it. If two processes want
to deliver the same range, the first commit rejects the second process. And `vacuum` knows from the
ledger which versions are still needed.

Each commit in the ledger also says which table's versions it counts, by the table's id and the mark
of the last version. A table that was created again, or restored, has other versions: a sink that
has the old ones does not get the new ones in their place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import LongType, StructField, StructType

from springhouse.errors import SinkError, SpringhouseError
from springhouse.lake.delta.commit_entry import Commit, read_commit
from springhouse.lake.delta.commits import Change, commit, ensure
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.tables import TableVersion, open_table
from springhouse.lake.lake import Lake
from springhouse.lake.sinks.sink import Changes, Sink
from springhouse.lake.sinks.table_changes import TableChanges
from springhouse.lake.sources.source import Range
from springhouse.lake.storage.durable import sync_entries
from springhouse.lake.storage.storage import Storage
from springhouse.planner.delta_logs import made_anew
from springhouse.project.declarations.declaration import Project, SinkCall

_INTENDED = "springhouse/intended"
_DELIVERED = "springhouse/delivered"
_NO_ROWS = StructType([StructField("nothing", LongType())])

MOST_VERSIONS = 20
"""The most versions in one delivery, after the first delivery of the whole table."""


@dataclass(frozen=True)
class Delivered:
    """A sink received the changes of these versions of a table."""

    table: str
    sink: str
    versions: Range
    rows: int
    seconds: float


@dataclass
class _Counted:
    """Changes that count the rows that the sink reads."""

    changes: TableChanges
    rows: int = 0

    @property
    def columns(self) -> pa.Schema:
        return self.changes.columns

    def batches(self) -> Iterator[pa.RecordBatch]:
        self.rows = 0
        for batch in self.changes.batches():
            self.rows += batch.num_rows
            yield batch


def deliver(lake: Lake, table: str, sink: SinkCall, opened: Sink) -> Delivered | None:
    """Deliver the next versions to a sink, or those that a dead process may not have delivered."""
    began = lake.now()
    lake.log(table).validate_log()
    newest = lake.log(table).newest()
    if newest is None:
        return None
    ledger = ensure(_place(lake, table, sink.name), _NO_ROWS, Note("schema", began))
    _prove_same(lake, table, sink, ledger)
    versions = _next(ledger, newest.made + 1, lake.log(table).commits(), sink)
    if versions is None:
        return None
    if ledger.offset(_INTENDED) != versions.end:
        ledger = _note_position(lake, table, ledger, _INTENDED, versions.end)
    sync_entries(lake.place(table), newest.version)
    counted = _Counted(TableChanges(lake, table, versions))
    changes: Changes = counted
    opened.write(changes, versions)
    _note_position(lake, table, ledger, _DELIVERED, versions.end)
    return Delivered(table, sink.name, versions, counted.rows, lake.now() - began)


def delivered(lake: Lake, table: str, sink: str) -> int:
    """One above the last version that a sink has; 0 before the first."""
    ledger = open_table(_place(lake, table, sink))
    return ledger.offset(_DELIVERED) if ledger else 0


def ledger_problem(lake: Lake, table: str, sink: SinkCall) -> str | None:
    """In which way a ledger disagrees with the table that it counts; None if it agrees."""
    newest = lake.log(table).newest()
    made = newest.made + 1 if newest is not None else 0
    try:
        ledger = open_table(_place(lake, table, sink.name))
        end = ledger.offset(_DELIVERED) if ledger is not None else 0
        if end > made:
            return f'the sink "{sink.name}" has {end} versions of it, and it has {made}'
        if ledger is not None:
            _prove_same(lake, table, sink, ledger)
    except SpringhouseError as error:
        return error.problem
    return None


def needed_by_sinks(lake: Lake, project: Project, table: str) -> Sequence[int]:
    """The versions of a table from which its sinks continue."""
    reached = [delivered(lake, table, sink.name) for sink in project.sinks_of(table)]
    return [max(end - 1, 0) for end in reached]


def _next(
    ledger: TableVersion, end: int, commits: Sequence[Commit], sink: SinkCall
) -> Range | None:
    """The next range: the one that was intended and not finished, or else new versions."""
    start, intended = ledger.offset(_DELIVERED), ledger.offset(_INTENDED)
    if max(start, intended) > end:
        raise _other_table_error(sink)
    if intended > start:
        return Range(start, intended)
    new = [commit for commit in commits if start <= commit.version < end]
    if start == 0 or len(new) < end - start:
        # The whole table; or all at once, if the log does not have every version any more.
        return Range(start, end) if start < end else None
    changing = [commit.version for commit in new if commit.changes_data][:MOST_VERSIONS]
    return Range(start, changing[-1] + 1) if changing else None


def _prove_same(lake: Lake, table: str, sink: SinkCall, ledger: TableVersion) -> None:
    """Raise an error if the sink has versions of another table with this name."""
    last = read_commit(ledger.storage, ledger.version)
    if last is not None and last.note is not None and made_anew(lake, last.note):
        raise _other_table_error(sink)


def _other_table_error(sink: SinkCall) -> SinkError:
    return SinkError(
        f'the sink "{sink.name}" has the changes of another table: the table was deleted and '
        "created again, or an older copy of it was put in its place",
        where=str(sink.place),
        hint="Give the sink another name and a new place to write to: then it gets the whole table "
        "first. Or put the newer table back.",
    )


def warehouse_id(lake: Lake) -> str:
    """The id of this warehouse, which the first call creates and which never changes.

    It is the id of a Delta table without rows: only one of two processes can create it.
    """
    return ensure(lake.storage.inside("warehouse"), _NO_ROWS, Note("schema", lake.now())).table_id


def _note_position(
    lake: Lake, table: str, ledger: TableVersion, position: str, end: int
) -> TableVersion:
    reason = position.removeprefix("springhouse/")
    mark = lake.log(table).mark(end - 1)
    note = Note(
        "append",
        lake.now(),
        changes=(),
        reason=reason,
        ids=_own_id(lake, table),
        marks={table: mark} if mark is not None else {},
    )
    commit(ledger, Change(note, transactions={position: end}))
    after = open_table(ledger.storage)
    assert after is not None
    return after


def _own_id(lake: Lake, table: str) -> dict[str, str]:
    own = lake.log(table).table_id()
    return {table: own} if own is not None else {}


def _place(lake: Lake, table: str, sink: str) -> Storage:
    return lake.storage.inside("sinks", f"{table}.{sink}")
