"""How do the stages of a flow become Spark jobs, and where are rows stored between two stages?

A stage is one Spark job with `mapInArrow`. Its tasks write files and report their names. Stages of
one level run at the same time. Rows for a later stage are stored as Parquet files in a staging
folder, and Spark's shuffle brings rows that belong together to one task. This module commits
nothing.
"""

import json
import logging
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake.transaction import AddAction
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from springhouse.flows.flow_graph import FlowGraph
from springhouse.flows.flow_settings import Settings
from springhouse.flows.monitor import ActivityStatistics
from springhouse.flows.stages import Exchange, Stage, StageFeed, StageInput, divide_into_stages
from springhouse.lake.delta.tables import (
    quoted,
    read_parquet,
    spark_schema,
)
from springhouse.lake.delta.writing import write_arrow
from springhouse.lake.flows.failures import one_sentence
from springhouse.lake.flows.portions import TableSource
from springhouse.lake.flows.task import INPUT, KEY, REPORT, StageTask
from springhouse.lake.storage.storage import Storage
from springhouse.logged_errors import passing

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LOG = logging.getLogger("springhouse.flows")

_REPORT = spark_schema(REPORT)


@dataclass(frozen=True)
class WrittenFiles:
    """The uncommitted result of a flow: files by target, and the statistics of each activity."""

    files: Mapping[str, tuple[AddAction, ...]]
    activities: Mapping[str, ActivityStatistics]


def run_stages(
    spark: "SparkSession",
    graph: FlowGraph,
    sources: "Mapping[str, DataFrame | TableSource]",
    places: Mapping[str, Storage],
    settings: Settings,
) -> WrittenFiles:
    """Run all stages of a flow and write the files of its targets, without a commit."""
    staging = next(iter(places.values())).inside(f"_staging-{uuid.uuid4().hex}")
    jobs = _StageJobs(spark, dict(sources), places, staging, settings)
    try:
        return jobs.run(divide_into_stages(graph))
    finally:
        with passing(LOG, "vacuum removes what is left", OSError):
            staging.remove()


class _StageJobs:
    """The stages of one run, with the files that they have written so far."""

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
        self._statistics: dict[str, ActivityStatistics] = {}

    def run(self, all_stages: tuple[Stage, ...]) -> WrittenFiles:
        for level in sorted({stage.level for stage in all_stages}):
            now = [stage for stage in all_stages if stage.level == level]
            with ThreadPoolExecutor(len(now)) as side_by_side:
                for reported in side_by_side.map(self._run_stage, now):
                    self._record(reported)
        files = {name: tuple(self._files.get(name, ())) for name in self._places}
        return WrittenFiles(files, self._statistics)

    def _run_stage(self, stage: Stage) -> pa.Table:
        places = {name: self._place(name).root for name in (*stage.targets, *stage.passed)}
        held = {str(i.feed): self._held_files(i) for i in stage.inputs if i.hand is Exchange.HELD}
        task = StageTask(stage, places, held, self._settings)
        shuffled = stage.shuffled_inputs
        if not shuffled:
            return pa.Table.from_batches(task(()))
        table = self._read_by_tasks(shuffled)
        if table is None:
            rows = self._rows_together(stage, shuffled)
        else:
            task = replace(task, portions=table.portions())
            rows = table.numbers(self._spark, task.portions)
        with one_sentence():
            reported = rows.mapInArrow(task, _REPORT).toArrow()
        # Spark may start no task if there are no rows, but an aggregate of no rows gives a row.
        return reported if reported.num_rows else pa.Table.from_batches(task(()))

    def _read_by_tasks(self, shuffled: tuple[StageInput, ...]) -> TableSource | None:
        """The table that tasks can read by themselves, if it is their only input; else None."""
        if len(shuffled) > 1 or shuffled[0].hand is not Exchange.AS_THEY_ARE:
            return None
        source = self._source(shuffled[0])
        return source if isinstance(source, TableSource) and source.is_plain else None

    def _source(self, intake: StageInput) -> "DataFrame | TableSource | None":
        return self._sources.get(intake.feed.name) if intake.feed.port is None else None

    def _rows_together(self, stage: Stage, shuffled: tuple[StageInput, ...]) -> "DataFrame":
        by_key = any(intake.hand is Exchange.BY_KEY for intake in shuffled)
        if len(shuffled) == 1:
            (intake,) = shuffled
            rows = self._rows(intake)
            keys = [sf.col(quoted(name)) for name in intake.keys]
            if stage.alone:
                return rows.repartition(1)
            return rows.repartition(*keys) if by_key else rows
        tagged = [self._rows_of_input(port, shuffled) for port in range(len(shuffled))]
        union = tagged[0]
        for rows in tagged[1:]:
            union = union.unionByName(rows)
        if stage.alone:
            union = union.repartition(1)
        elif by_key:
            union = union.repartition(sf.col(KEY))
        return union.drop(KEY)

    def _rows_of_input(self, port: int, shuffled: tuple[StageInput, ...]) -> "DataFrame":
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
        return read_parquet(self._spark, *self._files_of(intake.feed), schema)

    def _files_of(self, feed: StageFeed) -> tuple[Storage, list[str]]:
        return self._place(str(feed)), [add.path for add in self._files.get(str(feed), ())]

    def _held_files(self, intake: StageInput) -> tuple[str, ...]:
        source = self._source(intake)
        if isinstance(source, TableSource) and source.is_plain:
            return source.files
        if source is not None:
            rows = self._rows(intake).toArrow()
            place = self._staging.inside(f"held-{uuid.uuid4().hex}")
            return (f"{place.root}/{write_arrow(place, rows).path}",)
        place, paths = self._files_of(intake.feed)
        return tuple(f"{place.root}/{path}" for path in paths)

    def _place(self, name: str) -> Storage:
        return self._places.get(name) or self._staging.inside(name.replace("/", "_"))

    def _record(self, reported: pa.Table) -> None:
        for row in reported.to_pylist():
            report = json.loads(row["told"])
            if row["kind"] == "files":
                self._files.setdefault(row["name"], []).extend(AddAction(**add) for add in report)
            else:
                self._statistics.setdefault(row["name"], ActivityStatistics()).add(
                    ActivityStatistics(**report)
                )


def _struct(intake: StageInput) -> StructType:
    return spark_schema(intake.schema)


def _hashable(rows: "DataFrame", name: str) -> "Column":
    """A key for hashing. All whole numbers become BIGINT, because joins compare them as BIGINT."""
    column = sf.col(quoted(name))
    kind = rows.schema[name].dataType.typeName()
    return column.cast("bigint") if kind in ("byte", "short", "integer", "long") else column
