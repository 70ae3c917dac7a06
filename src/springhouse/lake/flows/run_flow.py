"""How does a flow run on Spark, and reach each table exactly once?

Stage by stage: a stage is one Spark job over `mapInArrow`, whose tasks write files and report them;
stages of one level run at the same time. Rows that change hands rest as Parquet files in a staging
folder, and Spark's shuffle brings them to the next stage. When all stages are done, every target
gets its files in one atomic commit, with a transaction that names the batch: whoever runs the same
batch again, after a driver died between two commits, adds to the tables that were missing and skips
those that were not (`batches`).
"""

import json
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake.transaction import AddAction
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from springhouse.errors import CommitConflict, LakeError
from springhouse.flows.declare import Flow
from springhouse.flows.flow_graph import FlowError, FlowGraph
from springhouse.flows.flow_settings import Settings
from springhouse.flows.monitor import ActivityStatistics
from springhouse.flows.stages import Exchange, Stage, StageFeed, StageInput, divide_into_stages
from springhouse.lake.delta.commits import Change, commit, create
from springhouse.lake.delta.note import FlowNote, Note
from springhouse.lake.delta.requirements import Requirement
from springhouse.lake.delta.tables import (
    arrow_schema,
    open_table,
    quoted,
    read_parquet,
    spark_schema,
)
from springhouse.lake.delta.writing import rows_of, write_arrow
from springhouse.lake.flows.batches import FlowBatch
from springhouse.lake.flows.failures import one_sentence
from springhouse.lake.flows.portions import TableSource
from springhouse.lake.flows.task import INPUT, KEY, REPORT, StageTask
from springhouse.lake.storage.clock import never_jumps, steady_clock
from springhouse.lake.storage.leases import held_in
from springhouse.lake.storage.storage import Storage
from springhouse.logs import passing

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LOG = logging.getLogger("springhouse.flows")

_REPORT = spark_schema(REPORT)


@dataclass(frozen=True)
class WrittenFiles:
    """What a flow wrote and nobody committed yet: files by target, and what each activity did."""

    files: Mapping[str, tuple[AddAction, ...]]
    activities: Mapping[str, ActivityStatistics]


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
    """Run a flow on Spark, from and into Delta tables by path; gives the rows that each got.

    A source may also be a DataFrame: then Spark computes its rows and hands them over. With a
    `batch` number (1, 2, 3, …) the rows of that batch reach each table once, however often it is
    run: a table that has it already gets nothing. Every attempt reads the versions of the sources
    that the first one read; what a DataFrame gives is up to its owner. Each commit requires what
    `requires` says.
    """
    numbered = None if batch is None else FlowBatch(flow.name, batch)
    all_places = {name: Storage.at(target) for name, target in targets.items()}
    _prove_apart(flow.name, all_places)
    if numbered is not None and numbered.is_done(all_places):
        # Whatever became of its sources.
        return dict.fromkeys(all_places, 0)
    pins = numbered.pins(all_places) if numbered is not None else None

    def open_source(name: str, source: "DataFrame | str") -> "DataFrame | TableSource":
        if not isinstance(source, str):
            return source
        return TableSource(source) if numbered is None else numbered.opened(source, name, pins)

    opened = {name: open_source(name, source) for name, source in sources.items()}
    graph = flow.graph({name: _columns(source) for name, source in opened.items()})
    missing = [name for name in graph.targets if name not in targets]
    if missing:
        raise FlowError(
            f'the flow "{flow.name}" writes "{missing[0]}", and nobody said where that is',
            hint=f'targets={{"{missing[0]}": "a folder for its Delta table", …}}',
        )
    places = {name: all_places[name] for name in graph.targets}
    schemas = {name: spark_schema(graph.nodes[name].inputs[0]) for name in places}
    for name, place in places.items():
        _prove_same(name, place, schemas[name])
    if numbered is not None:
        if not numbered.missing(places):
            return dict.fromkeys(places, 0)
        tables = {n: s for n, s in opened.items() if isinstance(s, TableSource)}
        if pins is None and tables:
            pins = numbered.pin(places, schemas, tables, requires)
            # Another attempt may have begun at the same time, a moment earlier.
            opened |= {n: numbered.opened(str(sources[n]), n, pins) for n in tables}
    for table in opened.values():
        if isinstance(table, TableSource):
            table.prove_present()
    began = never_jumps()
    with held_in(places.values()):
        written = run_stages(spark, graph, opened, places, settings or flow.settings())
        seconds = never_jumps() - began
        return commit_targets(flow.name, graph, places, written, numbered, seconds, requires)


def run_stages(
    spark: "SparkSession",
    graph: FlowGraph,
    sources: "Mapping[str, DataFrame | TableSource]",
    places: Mapping[str, Storage],
    settings: Settings,
) -> WrittenFiles:
    """Run all stages of a flow; its targets' files are written and not committed."""
    staging = next(iter(places.values())).inside(f"_staging-{uuid.uuid4().hex}")
    pouring = _StageJobs(spark, dict(sources), places, staging, settings)
    try:
        return pouring.run(divide_into_stages(graph))
    finally:
        with passing(LOG, "vacuum removes what is left", OSError):
            staging.remove()


class _StageJobs:
    """The stages of one run, and what they have written so far."""

    def __init__(
        self,
        spark: "SparkSession",
        sources: "dict[str, DataFrame | TableSource]",
        places: Mapping[str, Storage],
        staging: Storage,
        settings: Settings,
    ) -> None:
        self._spark, self._sources, self._places = spark, sources, places
        self._staging, self._settings = staging, settings
        self._files: dict[str, list[AddAction]] = {}
        self._did: dict[str, ActivityStatistics] = {}

    def run(self, all_stages: tuple[Stage, ...]) -> WrittenFiles:
        for level in sorted({stage.level for stage in all_stages}):
            now = [stage for stage in all_stages if stage.level == level]
            with ThreadPoolExecutor(len(now)) as side_by_side:
                for reported in side_by_side.map(self._run_stage, now):
                    self._note(reported)
        files = {name: tuple(self._files.get(name, ())) for name in self._places}
        return WrittenFiles(files, self._did)

    def _run_stage(self, stage: Stage) -> pa.Table:
        places = {name: self._place(name).root for name in (*stage.targets, *stage.passed)}
        held = {str(i.feed): self._held(i) for i in stage.inputs if i.hand is Exchange.HELD}
        task = StageTask(stage, places, held, self._settings)
        shuffled = stage.shuffled_inputs
        if not shuffled:
            return pa.Table.from_batches(task(()))
        table = self._read_by_tasks(shuffled)
        if table is None:
            rows = self._gathered(stage, shuffled)
        else:
            task = replace(task, portions=table.portions())
            rows = table.numbers(self._spark, task.portions)
        with one_sentence():
            reported = rows.mapInArrow(task, _REPORT).toArrow()
        # Of no rows at all Spark may start no task; an aggregate of nothing is still a row.
        return reported if reported.num_rows else pa.Table.from_batches(task(()))

    def _read_by_tasks(self, shuffled: tuple[StageInput, ...]) -> TableSource | None:
        """The table that tasks read by themselves, if that is all they need."""
        if len(shuffled) > 1 or shuffled[0].hand is not Exchange.AS_THEY_ARE:
            return None
        source = self._source(shuffled[0])
        return source if isinstance(source, TableSource) and source.is_plain else None

    def _source(self, intake: StageInput) -> "DataFrame | TableSource | None":
        return self._sources.get(intake.feed.name) if intake.feed.port is None else None

    def _gathered(self, stage: Stage, shuffled: tuple[StageInput, ...]) -> "DataFrame":
        by_key = any(intake.hand is Exchange.BY_KEY for intake in shuffled)
        if len(shuffled) == 1:
            (intake,) = shuffled
            rows = self._rows(intake)
            keys = [sf.col(quoted(name)) for name in intake.keys]
            if stage.alone:
                return rows.repartition(1)
            return rows.repartition(*keys) if by_key else rows
        tagged = [self._tagged(port, shuffled) for port in range(len(shuffled))]
        union = tagged[0]
        for rows in tagged[1:]:
            union = union.unionByName(rows)
        if stage.alone:
            union = union.repartition(1)
        elif by_key:
            union = union.repartition(sf.col(KEY))
        return union.drop(KEY)

    def _tagged(self, port: int, shuffled: tuple[StageInput, ...]) -> "DataFrame":
        rows = self._rows(shuffled[port])
        columns = [sf.col(quoted(name)) for name in rows.columns]
        keys = [_hashable(rows, name) for name in shuffled[port].keys or rows.columns]
        own = [
            (sf.struct(*columns) if i == port else sf.lit(None).cast(_struct(intake))).alias(
                f"in{i}"
            )
            for i, intake in enumerate(shuffled)
        ]
        return rows.select(sf.lit(port).alias(INPUT), sf.xxhash64(*keys).alias(KEY), *own)

    def _rows(self, intake: StageInput) -> "DataFrame":
        source = self._source(intake)
        if source is not None:
            return source.read(self._spark) if isinstance(source, TableSource) else source
        schema = spark_schema(intake.schema)
        return read_parquet(self._spark, *self._written(intake.feed), schema)

    def _written(self, feed: StageFeed) -> tuple[Storage, list[str]]:
        return self._place(str(feed)), [add.path for add in self._files.get(str(feed), ())]

    def _held(self, intake: StageInput) -> tuple[str, ...]:
        source = self._source(intake)
        if isinstance(source, TableSource) and source.is_plain:
            return source.files
        if source is not None:
            rows = self._rows(intake).toArrow()
            place = self._staging.inside(f"held-{uuid.uuid4().hex}")
            return (f"{place.root}/{write_arrow(place, rows).path}",)
        place, paths = self._written(intake.feed)
        return tuple(f"{place.root}/{path}" for path in paths)

    def _place(self, name: str) -> Storage:
        return self._places.get(name) or self._staging.inside(name.replace("/", "_"))

    def _note(self, reported: pa.Table) -> None:
        for row in reported.to_pylist():
            told = json.loads(row["told"])
            if row["kind"] == "files":
                self._files.setdefault(row["name"], []).extend(AddAction(**add) for add in told)
            else:
                self._did.setdefault(row["name"], ActivityStatistics()).add(
                    ActivityStatistics(**told)
                )


def _columns(source: "DataFrame | TableSource") -> pa.Schema:
    return source.schema if isinstance(source, TableSource) else arrow_schema(source.schema)


def _struct(intake: StageInput) -> StructType:
    return spark_schema(intake.schema)


def _hashable(rows: "DataFrame", name: str) -> "Column":
    """A key as it is hashed: whole numbers of all sizes alike, as joins compare them alike."""
    column = sf.col(quoted(name))
    kind = rows.schema[name].dataType.typeName()
    return column.cast("bigint") if kind in ("byte", "short", "integer", "long") else column


def commit_targets(
    flow: str,
    graph: FlowGraph,
    places: Mapping[str, Storage],
    written: WrittenFiles,
    batch: FlowBatch | None,
    seconds: float,
    requires: Sequence[Requirement] = (),
) -> dict[str, int]:
    """Commit what was written, one atomic commit per table; gives the rows that each got."""
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
            # Another attempt of the same batch was first; our files are nobody's.
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
    found = ground.schema

    def columns(schema: StructType) -> Iterable[tuple[str, str]]:
        return [(field.name, field.dataType.simpleString()) for field in schema.fields]

    if columns(wanted) != columns(found):
        raise LakeError(
            f'the flow makes "{name}" with the columns {wanted.simpleString()}, '
            f"and the table has {found.simpleString()}",
            where=place.root,
            hint="Nothing was committed. Write to another table, or make the columns the same.",
        )
