"""How do change events become the rows of a table?

AUTO CDC applies the events of a key in the order of a sequence, whatever the order of their
arrival. Both types work in the same way: recover the events from the stored rows, add the new
events, and derive the rows of the touched keys again.

    type 1   for each key, the event with the highest sequence: its row, or no row if it deletes
    type 2   every event that is not a delete is a row, from its sequence until the next event's

So an event that arrives twice or late gives the same rows. Some facts can't be recovered from the
rows, and the same commit stores them as state: the sequence of a type 1 row (a hidden column), and
deletes that no row shows (`tombstones`). An older event that arrives after a delete stays deleted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.transaction import AddAction
from pyspark.sql import Window
from pyspark.sql import functions as sf
from pyspark.sql.types import BooleanType, DataType, StructField, StructType

from springhouse.errors import LakeError, SchemaError
from springhouse.lake.delta import buckets, changes
from springhouse.lake.delta.alignment import align
from springhouse.lake.delta.commits import Change
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.tables import (
    DataFile,
    TableVersion,
    file_columns,
    frame_of,
    quoted,
    read_parquet,
)
from springhouse.lake.delta.writing import paths_of, write_arrow, write_with_spark
from springhouse.lake.flows.flow_configuration import flow_settings
from springhouse.lake.ingest.feeds import Feed
from springhouse.lake.ingest.flow_commit import (
    batch_of_ranges,
    commit_batch,
    with_quarantine_file,
)
from springhouse.lake.ingest.ingest_rows import IngestRows
from springhouse.lake.ingest.target_columns import TargetColumns, fit_columns
from springhouse.lake.lake import Lake
from springhouse.lake.landing.inputs import RefreshInputs
from springhouse.lake.landing.landing import Done, Landed, land
from springhouse.lake.landing.quarantine import settle_quarantine
from springhouse.lake.spark.queries import errors_at
from springhouse.planner.placement import fits_here
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.project.declarations.declaration import (
    CdcFlow,
    Expectation,
    OnViolation,
    Project,
    Table,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START, END = "__START_AT", "__END_AT"
SEQUENCE = "__springhouse_sequence"
DELETE = "__springhouse_delete"
TOMBSTONES = "tombstones"
_NEW = "__springhouse_new"


def apply_changes(
    lake: Lake,
    project: Project,
    table: Table,
    feed: Feed,
    plan: RefreshPlan,
    until: Mapping[str, int] | None = None,
) -> Done | None:
    """Apply all new events of the flow's stream; None if there are none."""
    flow = feed.flow
    assert isinstance(flow, CdcFlow)
    began = lake.now()
    ground = lake.find(table.name)
    settle_quarantine(lake, table.name)
    ranges = feed.behind(ground, until)
    if not ranges:
        return None
    feed.admit(lake.required)
    with errors_at(flow.place), feed.keeping_memory():
        taken = IngestRows(lake, feed, ranges)
        inputs = RefreshInputs(lake, project, {}, taken.good())
        source = inputs.resolve(flow.source)
        assert source is not None
        events = _events(source, flow)
        arrived = land(
            lake,
            table.name,
            events,
            size=feed.size(ranges),
            expectations=_expected_of_events(table, flow),
            timestamp=table.timestamp if table.timestamp in events.columns else None,
            write=False,
            settings=flow_settings(project, table),
        )
        quarantined = [*taken.bad, *arrived.quarantined]
        no_rows = _row_columns(events, flow, empty=True)
        columns, _ = fit_columns(lake, project, table, flow, ground, no_rows)
        _prove_same_types(columns, table, flow)
        ground = columns.ready(lake, table.name)
        events = _checked_events(lake, table.name, arrived, events.schema)
        merged = _merge(lake, flow, ground, events, small=arrived.rows is not None)
        batch = batch_of_ranges(lake, project, feed, ranges, taken.count, len(quarantined))
        batch = with_quarantine_file(lake, table, flow, batch, quarantined)
        note = Note(
            kind="merge",
            at=lake.now(),
            variant=f"scd {flow.scd_type}",
            reason=plan.reason,
            since=plan.since,
            rows=ground.rows + merged.inserted - merged.deleted,
            rows_added=merged.inserted,
            rows_removed=merged.deleted,
            seconds=lake.now() - began,
            changes=merged.changes,
            state={TOMBSTONES: merged.tombstones} if merged.tombstones else {},
        )
        change = Change(note, merged.add, merged.remove)
        commit_batch(lake, table, flow, ground, batch, arrived, change)
        return Done(
            table.name,
            "merge",
            note.rows,
            merged.inserted,
            merged.deleted,
            len(quarantined),
            lake.now() - began,
            plan.reason,
        )


def _prove_same_types(columns: TargetColumns, table: Table, flow: CdcFlow) -> None:
    """Raise an error if a stored column would become wider: the table's files also hold state."""
    stored = columns.ground.schema if columns.ground is not None else columns.schema
    for old, new in zip(stored.fields, columns.schema.fields, strict=False):
        if old.dataType != new.dataType:
            was, now = (f.dataType.simpleString().upper() for f in (old, new))
            raise SchemaError(
                f'the column "{old.name}" of "{table.name}" is {was}, and {now} in the events',
                where=str(flow.place),
                hint=f"Cast it to {was} in a temporary view that the flow reads, or delete the "
                "table's folder: the next run creates the table again from its source.",
            )


def _events(source: "DataFrame", flow: CdcFlow) -> "DataFrame":
    """The events with the stored columns, their sequence, and whether they delete."""
    spellings = {name.lower(): name for name in source.columns}
    if flow.columns is not None:
        names = [spellings.get(name.lower(), name) for name in flow.columns]
    else:
        excluded = {name.lower() for name in flow.except_columns}
        names = [name for name in source.columns if name.lower() not in excluded]
    missing = [key for key in flow.keys if key.lower() not in {name.lower() for name in names}]
    if missing:
        raise SchemaError(
            f'the key "{missing[0]}" is not among the columns that the flow "{flow.name}" stores',
            where=str(flow.place),
            hint=f"They are: {', '.join(names)}",
        )
    deletes = sf.expr(flow.delete_when) if flow.delete_when else sf.lit(False)
    return source.select(
        *(sf.col(quoted(name)) for name in names),
        sf.expr(flow.sequence_by).alias(SEQUENCE),
        sf.coalesce(deletes, sf.lit(False)).alias(DELETE),
    )


def _expected_of_events(table: Table, flow: CdcFlow) -> tuple[Expectation, ...]:
    """Every event needs a sequence and a key; events that do not delete, the expectations too."""
    place = flow.place
    needed = [("sequence", f"{SEQUENCE} IS NOT NULL")]
    needed += [(f"key {key}", f"{quoted(key)} IS NOT NULL") for key in flow.keys]
    required = tuple(Expectation(n, c, OnViolation.QUARANTINE, place) for n, c in needed)
    declared = tuple(
        replace(e, condition=f"{DELETE} OR ({e.condition})") for e in table.expectations
    )
    return required + declared


def _row_columns(events: "DataFrame", flow: CdcFlow, *, empty: bool = False) -> "DataFrame":
    """Rows with the columns of the table, from the columns of the events."""
    rows = events.where(sf.lit(False)) if empty else events
    if flow.scd_type == 2:
        sequence = rows.schema[SEQUENCE].dataType
        rows = rows.withColumn(START, sf.lit(None).cast(sequence))
        rows = rows.withColumn(END, sf.lit(None).cast(sequence))
    return rows.drop(SEQUENCE, DELETE)


def _checked_events(lake: Lake, table: str, arrived: Landed, schema: StructType) -> "DataFrame":
    """The checked events, without a second read of the source."""
    session = lake.spark.session()
    if arrived.rows is not None:
        return frame_of(session, arrived.rows, schema)
    paths, scans = paths_of(arrived.add), lake.remote_scans
    return read_parquet(session, lake.place(table), paths, schema, scans)


@dataclass(frozen=True)
class _Merged:
    """Files that are written but not yet committed."""

    add: Sequence[AddAction]
    remove: Sequence[DataFile]
    tombstones: tuple[str, ...]
    changes: tuple[str, ...]
    inserted: int
    deleted: int


def _merge(
    lake: Lake, flow: CdcFlow, ground: TableVersion, events: "DataFrame", *, small: bool
) -> _Merged:
    """Derive the rows of the touched buckets again, and write those buckets."""
    session = lake.spark.session()
    stored, wanted = buckets.count_of(ground.files), buckets.count_for(ground.rows)
    count = max(stored or 1, wanted)
    touched = ground.files
    if stored == count and count > 1:
        hit = events.select(buckets.bucket_column(flow.keys, count).alias("b")).distinct().collect()
        touched = tuple(buckets.in_buckets(ground.files, [row["b"] for row in hit]))
    sequence = events.schema[SEQUENCE].dataType
    hidden = StructType([StructField(SEQUENCE, sequence)]) if flow.scd_type == 1 else None
    if hidden is not None:
        _prove_sequenced(ground, touched, flow)
    old = ground.read_files(session, touched, hidden, lake.remote_scans)
    tombstones = _tombstones(lake, session, ground, flow, sequence)
    derive = _latest_state if flow.scd_type == 1 else _history
    derived = derive(flow, ground.schema, old, tombstones, events)
    if small and fits_here(sum(file.size for file in touched)):
        return _write_small(ground, flow, old, derived.toArrow(), touched, count)
    return _write_large(ground, flow, old, derived, touched, count)


def _prove_sequenced(ground: TableVersion, files: Sequence[DataFile], flow: CdcFlow) -> None:
    """Raise an error if another writer rewrote files and lost the sequences of their rows."""
    for file in files:
        # Our own files lie in buckets; files of another writer do not.
        if buckets.count_of([file]) is None and SEQUENCE not in file_columns(ground.storage, file):
            raise LakeError(
                f'the table "{flow.target}" was rewritten by another writer, and the sequences of '
                "its rows are lost: a late event could not be told from a new one",
                where=f"{ground.storage.root}/{file.path}",
                hint="Delete the table's folder: the next run creates it again from its source.",
            )


def _latest_state(
    flow: CdcFlow,
    schema: StructType,
    old: "DataFrame",
    tombstones: "DataFrame",
    events: "DataFrame",
) -> "DataFrame":
    """Type 1: the last of all events of a key, recovered and new."""
    known = old.withColumn(DELETE, sf.lit(False)).unionByName(tombstones, allowMissingColumns=True)
    everything = _old_and_new(known, events, schema)
    return _last_of_each(everything, [*flow.keys]).drop(_NEW)


def _history(
    flow: CdcFlow,
    schema: StructType,
    old: "DataFrame",
    tombstones: "DataFrame",
    events: "DataFrame",
) -> "DataFrame":
    """Type 2: the events of a key in order; each is valid until the next."""
    keys = [sf.col(quoted(key)) for key in flow.keys]
    upserts = old.withColumn(SEQUENCE, sf.col(START)).withColumn(DELETE, sf.lit(False))
    # If a row ended before the next row began, a delete ended it.
    in_order = Window.partitionBy(*keys).orderBy(sf.col(START))
    ended = old.withColumn("__next", sf.lead(START).over(in_order)).where(
        sf.col(END).isNotNull() & ~sf.col(END).eqNullSafe(sf.col("__next"))
    )
    deletes = ended.select(*keys, sf.col(END).alias(SEQUENCE), sf.lit(True).alias(DELETE))
    known = upserts.unionByName(deletes, allowMissingColumns=True)
    known = known.unionByName(tombstones, allowMissingColumns=True)
    everything = _last_of_each(_old_and_new(known, events, schema), [*flow.keys, SEQUENCE])
    by_sequence = Window.partitionBy(*keys).orderBy(sf.col(SEQUENCE))
    dated = everything.withColumn(START, sf.col(SEQUENCE)).withColumn(
        END, sf.lead(SEQUENCE).over(by_sequence)
    )
    # The end of a row shows a delete after it; only a delete that follows no row must be stored.
    follows_a_row = sf.coalesce(~sf.lag(DELETE).over(by_sequence), sf.lit(False))
    marked = dated.withColumn("__shown", sf.col(DELETE) & follows_a_row)
    return marked.where(~sf.col("__shown")).drop("__shown", _NEW)


def _old_and_new(known: "DataFrame", events: "DataFrame", schema: StructType) -> "DataFrame":
    """Recovered and new events with the columns of the table; `_NEW` tells them apart."""
    extra = [
        StructField(SEQUENCE, events.schema[SEQUENCE].dataType),
        StructField(DELETE, BooleanType()),
    ]
    whole = StructType([*schema.fields, *extra])
    before = align(known, whole, "").withColumn(_NEW, sf.lit(0))
    return before.unionByName(align(events, whole, "").withColumn(_NEW, sf.lit(1)))


def _last_of_each(events: "DataFrame", keys: Sequence[str]) -> "DataFrame":
    """For each key, the event with the highest sequence; of equal events, the last to arrive."""
    # If two events arrived together, their text decides, so that a replay decides in the same way.
    text = sf.to_json(sf.struct(*(sf.col(quoted(name)) for name in events.columns)))
    order = [sf.col(SEQUENCE).desc_nulls_last(), sf.col(_NEW).desc(), sf.col(DELETE).desc(), text]
    ranked = Window.partitionBy(*(sf.col(quoted(key)) for key in keys)).orderBy(*order)
    numbered = events.withColumn("__rank", sf.row_number().over(ranked))
    return numbered.where("__rank = 1").drop("__rank")


def _tombstones(
    lake: Lake,
    session: "SparkSession",
    ground: TableVersion,
    flow: CdcFlow,
    sequence: DataType,
) -> "DataFrame":
    """Deletes that no row shows, as events."""
    fields = [StructField(key, ground.schema[key].dataType) for key in _cased(ground, flow.keys)]
    schema = StructType([*fields, StructField(SEQUENCE, sequence)])
    paths = _state(lake, flow.target, ground.version)
    rows = read_parquet(session, ground.storage, paths, schema, lake.remote_scans)
    return rows.withColumn(DELETE, sf.lit(True))


def _state(lake: Lake, table: str, version: int) -> list[str]:
    for entry in reversed(lake.log(table).commits()):
        if entry.version <= version and entry.note is not None and entry.note.kind == "merge":
            return list(entry.note.state.get(TOMBSTONES, ()))
    return []


def _cased(ground: TableVersion, keys: Sequence[str]) -> list[str]:
    names = {name.lower(): name for name in ground.schema.fieldNames()}
    return [names[key.lower()] for key in keys]


def _write_small(
    ground: TableVersion,
    flow: CdcFlow,
    old: "DataFrame",
    derived: pa.Table,
    touched: Sequence[DataFile],
    count: int,
) -> _Merged:
    deleted = pc.fill_null(derived[DELETE], False)
    columns = ground.schema.fieldNames()
    hidden = [SEQUENCE] if flow.scd_type == 1 else []
    rows = derived.filter(pc.invert(deleted)).select([*columns, *hidden])
    before = old.select(*(sf.col(quoted(name)) for name in columns)).toArrow()
    delta = changes.difference(before, rows.select(columns))
    if delta is None:
        session = old.sparkSession
        fresh = frame_of(session, rows.select(columns), ground.schema)
        kept = old.select(*(sf.col(quoted(name)) for name in columns))
        delta = changes.spark_difference(kept, fresh).toArrow()
    inserted, removed = changes.weights(delta)
    paths = paths_of([write_arrow(ground.storage, delta, changes.FOLDER)]) if delta.num_rows else ()
    dead = derived.filter(deleted).select([*_cased(ground, flow.keys), SEQUENCE])
    tombs = paths_of([write_arrow(ground.storage, dead, "_state")]) if dead.num_rows else ()
    if not delta.num_rows and hidden == []:
        return _Merged((), (), tombs, (), 0, 0)
    add = _in_bucket_files(ground, flow, old.sparkSession, rows, count, old.schema)
    return _Merged(add, touched, tombs, paths, inserted, removed)


def _in_bucket_files(
    ground: TableVersion,
    flow: CdcFlow,
    session: "SparkSession",
    rows: pa.Table,
    count: int,
    schema: StructType,
) -> list[AddAction]:
    if not rows.num_rows:
        return []
    if count == 1:
        return [write_arrow(ground.storage, rows, buckets.folder(1, 0))]
    marked = frame_of(session, rows, schema).withColumn(
        buckets.COLUMN, buckets.bucket_column(flow.keys, count)
    )
    table = marked.toArrow()
    add = []
    for bucket in sorted(set(table[buckets.COLUMN].to_pylist())):
        part = table.filter(pc.equal(table[buckets.COLUMN], bucket)).drop_columns([buckets.COLUMN])
        add.append(write_arrow(ground.storage, part, buckets.folder(count, bucket)))
    return add


def _write_large(
    ground: TableVersion,
    flow: CdcFlow,
    old: "DataFrame",
    derived: "DataFrame",
    touched: Sequence[DataFile],
    count: int,
) -> _Merged:
    columns = [sf.col(quoted(name)) for name in ground.schema.fieldNames()]
    hidden = [sf.col(SEQUENCE)] if flow.scd_type == 1 else []
    derived = derived.persist()
    try:
        rows = derived.where(~sf.col(DELETE)).select(*columns, *hidden)
        marked = rows.withColumn(buckets.COLUMN, buckets.bucket_column(flow.keys, count))
        spread = marked.repartition(count, sf.col(buckets.COLUMN))
        add = write_with_spark(
            ground.storage, spread, buckets.folder(count), apart_by=buckets.COLUMN
        )
        delta = changes.spark_difference(old.select(*columns), rows.select(*columns))
        written = write_with_spark(ground.storage, delta, changes.FOLDER)
        keys = [sf.col(quoted(key)) for key in _cased(ground, flow.keys)]
        dead = derived.where(sf.col(DELETE)).select(*keys, sf.col(SEQUENCE))
        tombs = paths_of(write_with_spark(ground.storage, dead, "_state"))
    finally:
        derived.unpersist()
    inserted, removed = changes.spark_weights(old.sparkSession, ground.storage, paths_of(written))
    return _Merged(add, touched, tombs, paths_of(written), inserted, removed)
