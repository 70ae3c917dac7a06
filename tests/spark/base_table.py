"""Base tables that a test fills and changes by hand, with the lake's own commits."""

import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from springhouse.lake.delta import changes
from springhouse.lake.delta.commits import Change, commit, create
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.tables import arrow_schema
from springhouse.lake.delta.writing import paths_of, write_arrow
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.units import Instant
from springhouse.warehouse import Warehouse
from springhouse.warehouse.running.view_execution import refreshed

Row = tuple[Any, ...]


def declaration(name: str, ddl: str) -> str:
    """The SQL of a table without flows: only the test fills it."""
    return (
        f"CREATE STREAMING TABLE {name} AS SELECT * FROM STREAM "
        f"read_files('none/{name}', format => 'parquet', schema => '{ddl}');\n"
    )


def refresh(warehouse: Warehouse, view: str, driver: str | None = None) -> None:
    """Refresh a view from the newest versions of its inputs."""
    refreshed(
        warehouse.internals.lake,
        warehouse.project,
        RefreshPlan(view, "test", warehouse.internals.lake.now(), driver=driver),
    )


class BaseTable:
    """A base table of a warehouse, and a copy of its rows for comparison."""

    def __init__(self, warehouse: Warehouse, name: str, ddl: str) -> None:
        self.name = name
        self.rows: list[Row] = []
        self._lake = warehouse.internals.lake
        self._place = warehouse.internals.lake.place(name)
        self._schema = warehouse.internals.lake.spark.session().createDataFrame([], ddl).schema
        self._arrow = arrow_schema(self._schema)

    def load(self, rows: Sequence[Row]) -> None:
        """Create the table with these rows."""
        self.rows = list(rows)
        note = Note(kind="append", at=_now(), channel=True, rows_added=len(rows), rows=len(rows))
        add = [write_arrow(self._place, self.table(rows))] if rows else []
        create(self._place, self._schema, Change(note, add))

    def change(self, deleted: Sequence[Row] = (), inserted: Sequence[Row] = ()) -> None:
        """Delete one copy of each deleted row and insert the new rows, in one commit."""
        ground = self._lake.open(self.name)
        for row in deleted:
            self.rows.remove(row)
        self.rows += inserted
        delta = changes.netted_difference(self.table(deleted), self.table(inserted))
        written = [write_arrow(self._place, delta, changes.FOLDER)] if delta.num_rows else []
        note = Note(
            kind="merge",
            at=_now(),
            channel=True,
            rows=len(self.rows),
            rows_added=len(inserted),
            rows_removed=len(deleted),
            changes=paths_of(written),
        )
        add = [write_arrow(self._place, self.table(self.rows))] if self.rows else []
        commit(ground, Change(note, add, ground.files))

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows in a commit that is its own strong delta."""
        ground = self._lake.open(self.name)
        self.rows += rows
        note = Note(kind="append", at=_now(), channel=True, rows_added=len(rows))
        commit(ground, Change(note, [write_arrow(self._place, self.table(rows))]))

    def table(self, rows: Sequence[Row] | None = None) -> pa.Table:
        """The given rows as an Arrow table, or all rows of the table."""
        rows = self.rows if rows is None else rows
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(self._arrow)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, self._arrow, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self._arrow)


def _now() -> Instant:
    return Instant(round(time.time(), 3))
