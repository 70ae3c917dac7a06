"""What must a sink be able to do?

Paper 003, section 2.3: a sink is where transformed data is written to. Here it takes the changes of
one table or view, version by version. Offsets count versions, as in `read_delta`: the range
`[start, end)` is what the versions `start` to `end - 1` changed, and `[0, end)` is the whole table
as of version `end - 1`, as if all its rows had just been inserted. A user's own sink is a small
class:

    @springhouse.sink("pager")
    class Pager:
        def __init__(self, number):       # the options of the table's properties, as text
            ...
        def write(self, changes, given):  # Changes, and the Range of versions that they are of
            for batch in changes.batches():
                ...

    CREATE MATERIALIZED VIEW late_orders
      TBLPROPERTIES ('springhouse.sink.boss' = 'pager', 'springhouse.sink.boss.number' = '555')
      AS SELECT …;

Ranges come in order and without a gap, from one process at a time. Only the last one may come
again, exactly as it was, because a process died and nobody knows how far it got. What a sink makes
of that decides what it delivers: all that it is given twice shows twice (at least once), or it
knows what it has (exactly once). A sink may also take a keyword `context` (a `SinkContext`), and
have a method `close`.

Rows have the columns of the table and those of Delta's change data feed:

    _change_type        insert or delete; of one version, deletes come first
    _commit_version     the version of the table that changed it
    _commit_timestamp   when that was committed
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import pyarrow as pa

from springhouse.lake.sources.source import Range
from springhouse.units import Instant

CHANGE_TYPE = "_change_type"
VERSION = "_commit_version"
TIMESTAMP = "_commit_timestamp"
INSERT, DELETE = "insert", "delete"


@dataclass(frozen=True)
class SinkContext:
    """What a sink may know of the world it is used in."""

    table: str
    name: str  # of the sink, among those of the table
    project: str
    folder: Path  # the project's: relative paths are relative to it
    now: Callable[[], Instant]
    node: str = "local"
    # Which warehouse and which table it is, whatever their names: what is made anew has other ids.
    warehouse: str = ""
    table_id: str = ""

    @property
    def identity(self) -> str:
        """Whose changes the sink is given, for a sink that remembers how far it has got."""
        return f"{self.warehouse}/{self.table_id}" if self.warehouse or self.table_id else ""


class Changes(Protocol):
    """The rows that some versions of a table inserted and deleted, in order."""

    @property
    def columns(self) -> pa.Schema:
        """The columns of the table, and then the three that say what happened to a row."""
        ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, a part at a time, each of one version and one kind of change.

        Every call begins anew and gives the same.
        """
        ...


@runtime_checkable
class Sink(Protocol):
    """Something outside the warehouse that takes changes."""

    def write(self, changes: Changes, given: Range) -> None:
        """Take the changes of these versions, for good: when it returns they must be durable."""
        ...
