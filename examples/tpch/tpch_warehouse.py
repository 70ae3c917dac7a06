"""How do the eight tables and the 22 views become a warehouse?

A project with a streaming table per TPC-H table and a view per query. The tables are filled and
changed by hand, through the lake's own commits: each change rewrites the files that it touches and
writes its rows down as the strong delta, as an AUTO CDC flow does, without the events in between.
"""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import tpch
from pyspark.sql.pandas.types import from_arrow_schema

from springhouse.lake.delta import changes
from springhouse.lake.delta.commits import Change, commit, create
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.stores import Store, describe_file, replace_keys, write_sorted
from springhouse.lake.delta.writing import paths_of, write_arrow
from springhouse.units import Instant
from springhouse.warehouse import Warehouse

_PIPELINE = """name: tpch
storage: storage
configuration:
{settings}libraries:
  - glob:
      include: transformations/**
"""


def write_project(
    folder: Path,
    schemas: Mapping[str, pa.Schema],
    settings: Mapping[str, str],
    queries: Iterable[int] = tpch.QUERIES,
    refresh: str = "auto",
) -> Path:
    """A project with the tables and one view per query: `q01` and so on."""
    (folder / "transformations").mkdir(parents=True, exist_ok=True)
    given = "".join(f'  {key}: "{value}"\n' for key, value in settings.items())
    (folder / "spark-pipeline.yml").write_text(_PIPELINE.format(settings=given))
    statements = []
    for name, schema in schemas.items():
        fields = from_arrow_schema(schema).fields
        ddl = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields)
        statements.append(
            f"CREATE STREAMING TABLE {name} AS SELECT * FROM STREAM "
            f"read_files('data/{name}', format => 'parquet', schema => '{ddl}');"
        )
    statements += [
        f"CREATE MATERIALIZED VIEW {view_of(number)} "
        f"TBLPROPERTIES ('springhouse.refresh' = '{refresh}') AS\n{tpch.query(number)};"
        for number in queries
    ]
    (folder / "transformations" / "tpch.sql").write_text("\n".join(statements))
    return folder


def view_of(number: int) -> str:
    """What the view of a query is called."""
    return f"q{number:02}"


class BaseTable:
    """A base table that is filled and changed by hand."""

    def __init__(self, warehouse: Warehouse, name: str) -> None:
        self.name = name
        self._lake = warehouse.internals.lake
        self._keys = tpch.TABLES[name]
        self._place = warehouse.internals.lake.place(name)
        self.store: Store | None = None

    def load(self, rows: pa.Table) -> None:
        """Make the table with these rows, sorted by key."""
        store = Store(self._place, "", (), rows.schema)
        added = write_sorted(store, self._keys, rows)
        note = Note(kind="append", at=_now(), channel=True, rows=len(rows), rows_added=len(rows))
        create(self._place, from_arrow_schema(rows.schema), Change(note, added))
        files = tuple(describe_file(self._place, add.path) for add in added)
        self.store = Store(self._place, "", files, rows.schema)

    def change(self, change: tpch.Change) -> None:
        """Delete and insert rows, in one commit."""
        assert self.store is not None
        ground = self._lake.open(self.name)
        keys = change.deleted.select(list(self._keys))
        done = replace_keys(self.store, self._keys, keys, change.inserted)
        delta = changes.netted_difference(done.gone, done.come)
        note = Note(
            kind="merge",
            at=_now(),
            channel=True,
            rows=done.store.rows,
            rows_added=len(change.inserted),
            rows_removed=len(change.deleted),
            changes=paths_of([write_arrow(self._place, delta, changes.FOLDER)]),
        )
        gone = {file.path for file in done.removed}
        removed = [file for file in ground.files if file.path in gone]
        commit(ground, Change(note, done.added, removed))
        self.store = done.store


def _now() -> Instant:
    return Instant(round(time.time(), 3))
