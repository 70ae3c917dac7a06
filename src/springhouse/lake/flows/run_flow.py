"""How does a flow run on Spark, so that its rows reach each table exactly once?

`stage_jobs` runs the stages and writes files. Then every target gets its files in one atomic
commit, with a transaction that names the batch (`batches`). If a driver dies between two commits,
the same batch can run again: it adds to the tables that lack it and skips those that have it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from springhouse.errors import CommitConflict, LakeError
from springhouse.flows.declare import Flow
from springhouse.flows.flow_graph import FlowError, FlowGraph
from springhouse.flows.flow_settings import Settings
from springhouse.lake.delta.commits import Change, commit, create
from springhouse.lake.delta.note import FlowNote, Note
from springhouse.lake.delta.requirements import Requirement
from springhouse.lake.delta.tables import (
    arrow_schema,
    open_table,
    spark_schema,
)
from springhouse.lake.delta.writing import rows_of
from springhouse.lake.flows.batches import FlowBatch, Pin
from springhouse.lake.flows.portions import TableSource
from springhouse.lake.flows.stage_jobs import WrittenFiles, run_stages
from springhouse.lake.storage.clock import steady_clock, steady_seconds
from springhouse.lake.storage.leases import hold_in
from springhouse.lake.storage.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run_flow(
    spark: "SparkSession",
    flow: Flow,
    *,
    sources: "Mapping[str, DataFrame | str]",
    targets: Mapping[str, str],
    batch: int | None = None,
    settings: Settings | None = None,
    requires: Sequence[Requirement] = (),
) -> Mapping[str, int]:
    """Run a flow on Spark, between Delta tables by path. Gives the number of new rows by target.

    A source may also be a DataFrame, and then Spark computes its rows. With a `batch` number (1, 2,
    3, …) the rows of that batch reach each table once, even if the batch runs again: a table that
    has the batch gets no rows. Every attempt reads the same versions of the source tables as the
    first attempt. The caller ensures that a DataFrame gives the same rows again. Every commit
    checks the conditions in `requires`.
    """
    numbered = None if batch is None else FlowBatch(flow.name, batch)
    all_places = {name: Storage.at(target) for name, target in targets.items()}
    _prove_apart(flow.name, all_places)
    if numbered is not None and numbered.is_done(all_places):
        # Do not open the sources: they may no longer exist.
        return dict.fromkeys(all_places, 0)
    pins = numbered.pins(all_places) if numbered is not None else None
    opened = _open_sources(sources, numbered, pins)
    graph = flow.graph({name: _columns(source) for name, source in opened.items()})
    places = _places_of(flow, graph, all_places)
    schemas = {name: spark_schema(graph.nodes[name].inputs[0]) for name in places}
    for name, place in places.items():
        _prove_same(name, place, schemas[name])
    if numbered is not None:
        if not numbered.missing(places):
            return dict.fromkeys(places, 0)
        if pins is None:
            opened |= _pin_tables(numbered, opened, sources, places, schemas, requires)
    _validate_files(opened)
    began = steady_seconds()
    with hold_in(places.values()):
        written = run_stages(spark, graph, opened, places, settings or flow.settings())
        seconds = steady_seconds() - began
        return commit_targets(flow.name, graph, places, written, numbered, seconds, requires)


def _pin_tables(
    batch: FlowBatch,
    opened: "Mapping[str, DataFrame | TableSource]",
    sources: "Mapping[str, DataFrame | str]",
    places: Mapping[str, Storage],
    schemas: Mapping[str, StructType],
    requires: Sequence[Requirement],
) -> "dict[str, DataFrame | TableSource]":
    """Record which versions of the source tables the batch reads, and open these versions."""
    tables = {name: table for name, table in opened.items() if isinstance(table, TableSource)}
    if not tables:
        return {}
    pins = batch.pin(places, schemas, tables, requires)
    # Another attempt may have committed its pins first, so open the versions in `pins`.
    return _open_sources({name: sources[name] for name in tables}, batch, pins)


def _validate_files(sources: "Mapping[str, DataFrame | TableSource]") -> None:
    """Raise an error if a file of a source table is missing."""
    for source in sources.values():
        if isinstance(source, TableSource):
            source.validate_files()


def _open_sources(
    sources: "Mapping[str, DataFrame | str]",
    batch: FlowBatch | None,
    pins: Mapping[str, Pin] | None,
) -> "dict[str, DataFrame | TableSource]":
    """The sources, with each path as a table at the version that the batch reads."""
    opened: dict[str, DataFrame | TableSource] = {}
    for name, source in sources.items():
        if not isinstance(source, str):
            opened[name] = source
        elif batch is None:
            opened[name] = TableSource(source)
        else:
            opened[name] = batch.opened(source, name, pins)
    return opened


def _places_of(flow: Flow, graph: FlowGraph, places: Mapping[str, Storage]) -> dict[str, Storage]:
    """The place of each target; an error if a target has no place."""
    missing = [name for name in graph.targets if name not in places]
    if missing:
        raise FlowError(
            f'the flow "{flow.name}" writes "{missing[0]}", and no path is given for it',
            hint=f'targets={{"{missing[0]}": "a folder for its Delta table", …}}',
        )
    return {name: places[name] for name in graph.targets}


def _columns(source: "DataFrame | TableSource") -> pa.Schema:
    return source.schema if isinstance(source, TableSource) else arrow_schema(source.schema)


def commit_targets(
    flow: str,
    graph: FlowGraph,
    places: Mapping[str, Storage],
    written: WrittenFiles,
    batch: FlowBatch | None,
    seconds: float,
    requires: Sequence[Requirement] = (),
) -> dict[str, int]:
    """Commit the written files, with one atomic commit per table. Gives the new rows by table."""
    transactions = {} if batch is None else {batch.transaction: batch.number}
    delivered: dict[str, int] = {}
    for name, place in places.items():
        ground = open_table(place)
        delivered[name] = 0
        if ground is not None and any(ground.offset(a) >= n for a, n in transactions.items()):
            continue
        adds = written.files[name]
        delivered[name] = rows_of(adds)
        note = Note(
            kind="append",
            at=steady_clock(),
            channel=True,
            variant="flow",
            rows_added=delivered[name],
            rows=delivered[name] + (ground.rows if ground is not None else 0),
            seconds=seconds,
            changes=None if adds else (),
            flows={flow: _flow_note(batch, written)},
            activities={name: did.as_json() for name, did in written.activities.items()},
        )
        change = Change(note, adds, transactions=transactions)
        try:
            if ground is None:
                create(place, spark_schema(graph.nodes[name].inputs[0]), change, requires)
            elif adds or transactions:
                commit(ground, change, requires)
        except CommitConflict:
            if batch is None or batch.missing({name: place}):
                raise
            # Another attempt committed this batch first, and no commit names our files.
            delivered[name] = 0
    return delivered


def _flow_note(batch: FlowBatch | None, written: WrittenFiles) -> FlowNote:
    read = [
        did.rows_out for name, did in written.activities.items() if name.startswith("this task")
    ]
    offsets = {} if batch is None else {batch.transaction: (batch.number - 1, batch.number)}
    return FlowNote(offsets, rows_in=max(read, default=0))


def _prove_apart(flow: str, places: Mapping[str, Storage]) -> None:
    by_place: dict[Storage, str] = {}
    for name, place in places.items():
        other = by_place.setdefault(place, name)
        if other != name:
            raise FlowError(
                f'the flow "{flow}" would write "{other}" and "{name}" to one place',
                where=place.root,
                hint="Give each target a folder of its own, or unite their rows in the flow: "
                "one.union(other).write(…).",
            )


def _prove_same(name: str, place: Storage, wanted: StructType) -> None:
    ground = open_table(place)
    if ground is None:
        return
    result = ground.schema

    def columns(schema: StructType) -> Iterable[tuple[str, str]]:
        return [(field.name, field.dataType.simpleString()) for field in schema.fields]

    if columns(wanted) != columns(result):
        raise LakeError(
            f'the flow makes "{name}" with the columns {wanted.simpleString()}, '
            f"and the table has {result.simpleString()}",
            where=place.root,
            hint="Nothing was committed. Write to another table, or make the columns the same.",
        )
