"""Which columns must a table have before these rows can be committed to it?

The table needs its present columns, the columns that its declaration adds, and the columns that
only the rows have. A type becomes wider if the declaration or the rows need it. The table is
created, or its columns grow, only after the rows are written, directly before their commit. So a
refresh that fails earlier leaves no trace in the schema.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from springhouse.lake.delta.alignment import (
    align,
    new_columns,
    parsed_schema,
    same_columns,
    validate_types,
    widened,
)
from springhouse.lake.delta.commits import Change, add_columns, commit, ensure, with_features_for
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.tables import TableVersion
from springhouse.lake.delta.writing import write_with_spark
from springhouse.lake.lake import Lake
from springhouse.project.declarations.declaration import Flow, Project, Table
from springhouse.project.lineage.channels import is_channel

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class TargetColumns:
    """A table version (None before the table exists) and the columns that the table must have."""

    ground: TableVersion | None
    schema: StructType
    channel: bool = False

    def ready(self, lake: Lake, table: str) -> TableVersion:
        """The table with these columns; it is created, or gets new or wider columns, if needed."""
        if self.ground is None:
            note = _schema_note(lake, "created", channel=self.channel)
            # Another process may have created the table meanwhile, with other columns.
            created = ensure(lake.place(table), self.schema, note, lake.required)
            return TargetColumns(created, self.schema, self.channel).ready(lake, table)
        ground, names = self.ground, {name.lower() for name in self.ground.schema.fieldNames()}
        extra = [field for field in self.schema.fields if field.name.lower() not in names]
        wider = widened(ground.schema, self.schema)
        must_widen = not same_columns(wider, ground.schema)
        if extra or must_widen:
            note = _schema_note(lake, "new types", channel=self.channel)
            ground = with_features_for(ground, self.schema, note, lake.required)
        if must_widen:
            ground = _widen(lake, ground, wider, channel=self.channel)
        if extra:
            added = ", ".join(field.name for field in extra)
            note = _schema_note(lake, f"new columns: {added}", channel=self.channel)
            ground = add_columns(ground, extra, note, lake.required)
        return ground


def fit_columns(
    lake: Lake,
    project: Project,
    table: Table,
    flow: Flow,
    ground: TableVersion | None,
    rows: "DataFrame",
) -> "tuple[TargetColumns, DataFrame]":
    """The columns that the table must have, and the rows with the same columns."""
    declared = StructType([])
    if table.schema is not None:
        declared = parsed_schema(lake.spark.session(), table.schema, str(table.place))
    # Keep columns of a flow that are not in the declaration, too.
    schema = StructType([*declared.fields, *new_columns(rows, declared)])
    if ground is not None:
        schema = _grown(widened(ground.schema, schema), schema)
    validate_types(schema, str(flow.place))
    columns = TargetColumns(ground, schema, is_channel(project, table.name))
    return columns, align(rows, schema, str(flow.place))


def _grown(schema: StructType, wanted: StructType) -> StructType:
    """The columns of a table, and then the wanted columns that it lacks."""
    names = {name.lower() for name in schema.fieldNames()}
    return StructType([*schema.fields, *(f for f in wanted.fields if f.name.lower() not in names)])


def _widen(lake: Lake, ground: TableVersion, schema: StructType, *, channel: bool) -> TableVersion:
    """The table with wider types, with its files rewritten so that any Delta reader reads them."""
    began = lake.now()
    wider = [
        f"{new.name} {old.dataType.simpleString()} to {new.dataType.simpleString()}".upper()
        for old, new in zip(ground.schema.fields, schema.fields, strict=True)
        if old.dataType != new.dataType
    ]
    stored = ground.read(lake.spark.session(), scans=lake.remote_scans)
    rows = align(stored, schema, ground.storage.root)
    add = write_with_spark(ground.storage, rows) if ground.files else []
    note = Note(
        kind="compaction",
        at=lake.now(),
        channel=channel,
        variant="widening",
        reason=f"wider types: {', '.join(wider)}",
        rows=ground.rows,
        seconds=lake.now() - began,
    )
    commit(ground, Change(note, add, replace=schema), lake.required)
    after = lake.find(ground.storage.root.rpartition("/")[2])
    assert after is not None
    return after


def _schema_note(lake: Lake, reason: str, *, channel: bool) -> Note:
    return Note(kind="schema", at=lake.now(), channel=channel, reason=reason)
