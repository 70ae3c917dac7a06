"""What must a sink be able to do?

Paper 003, section 2.3: a sink is where transformed data is written to. Here a sink takes the
changes of one table or view, version by version. Offsets count versions, as in `read_delta`: the
range `[start, end)` holds what the versions `start` to `end - 1` changed, and `[0, end)` holds the
whole table as of version `end - 1`, as if all its rows had just been inserted.

A user's own sink is a subclass of `Sink` with one method:

    @springhouse.sink("pager")
    class Pager(springhouse.Sink):
        def __init__(self, number):          # the options of the table's properties, as text
            ...
        def write(self, changes, versions):  # Changes, and the Range of versions they belong to
            for batch in changes.batches():
                ...

    CREATE MATERIALIZED VIEW late_orders
      TBLPROPERTIES ('springhouse.sink.boss' = 'pager', 'springhouse.sink.boss.number' = '555')
      AS SELECT …;

A class with this method that is no subclass works, too. A sink may take a keyword argument
`context`: a `SinkContext`.

Ranges come in order and without a gap, from one process at a time. Only the last range may come
again, exactly as it was: a process died, and nobody knows how much of the range it had written. A
sink that writes a repeated range twice delivers at least once. A sink that knows what it has
written delivers exactly once.

Rows have the columns of the table and those of Delta's change data feed:

    _change_type        insert or delete; within one version, deletes come first
    _commit_version     the version of the table that changed the row
    _commit_timestamp   when that version was committed
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from springhouse.lake.sources.source import Range
from springhouse.units import Instant

CHANGE_TYPE = "_change_type"
VERSION = "_commit_version"
TIMESTAMP = "_commit_timestamp"
INSERT, DELETE = "insert", "delete"


@dataclass(frozen=True)
class SinkContext:
    """What a sink may know about the table and the node that use it."""

    table: str
    name: str  # of the sink, among those of the table
    project: str
    folder: Path  # the project's: relative paths are relative to it
    now: Callable[[], Instant]
    node: str = "local"
    # The ids of the warehouse and the table: those that are created again have other ids.
    warehouse: str = ""
    table_id: str = ""

    @property
    def identity(self) -> str:
        """Which table's changes the sink gets; a sink that keeps its position keeps this, too."""
        return f"{self.warehouse}/{self.table_id}" if self.warehouse or self.table_id else ""


class Changes(Protocol):
    """The rows that some versions of a table inserted and deleted, in order."""

    @property
    def columns(self) -> pa.Schema:
        """The columns of the table, and then the three that say what happened to a row."""
        ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches, each of one version and one kind of change.

        Every call starts at the first row and gives the same rows.
        """
        ...


class Sink(ABC):
    """Something outside the warehouse that takes changes."""

    @abstractmethod
    def write(self, changes: Changes, versions: Range) -> None:
        """Write the changes of these versions; they must be durable when this returns."""

    def close(self) -> None:  # noqa: B027  optional
        """Release files and connections; the sink may be opened again, here or on another node."""
