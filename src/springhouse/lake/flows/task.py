"""What does one Spark task do for a flow?

Spark gives the task the rows of its partition as Arrow batches, or the task reads them itself. The
task runs the activities of one stage over these rows with its own engine. It writes files: the rows
of every target, and the rows that later stages need. It returns no rows to Spark but a short
report: the names of the files, and the statistics of each activity.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.endpoints import PackSink, Read, Source, operators
from springhouse.flows.flow_graph import FlowOperator, NodeKind, Output
from springhouse.flows.flow_settings import Settings
from springhouse.flows.row_pack import packs_of
from springhouse.flows.run import make_request, run_here
from springhouse.flows.stages import TASK, Exchange, Stage
from springhouse.flows.topology import read_topology
from springhouse.lake.flows.parquet_sink import ParquetSink
from springhouse.lake.flows.portions import Portion, rows_in, rows_of_portion

REPORT = pa.schema({"kind": pa.string(), "name": pa.string(), "told": pa.string()})
"""A task's report: the files of each target and feed, and the statistics of each activity."""

INPUT, KEY = "__springhouse_input", "__springhouse_key"


@dataclass(frozen=True)
class StageTask:
    """A stage with the folders of its sinks (`places`) and the files of its `held` tables.

    With `portions` Spark gives the task no rows but the numbers of portions, which the task reads.
    """

    stage: Stage
    places: Mapping[str, str]
    held: Mapping[str, tuple[str, ...]]
    settings: Settings
    portions: tuple[Portion, ...] = ()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sinks = {
            name: ParquetSink(root, _files_written(self.stage, name))
            for name, root in self.places.items()
        }
        pack_bytes = self.settings.pack_bytes or read_topology().pack_bytes
        result = self._operators(batches, dict(sinks), pack_bytes)
        request = make_request(self.stage.graph, result, self.settings)
        try:
            measured = run_here(request, self.settings)
        except BaseException:
            for sink in sinks.values():
                sink.abandon()
            raise
        report = [
            ("files", name, json.dumps(sink.adds)) for name, sink in sinks.items() if sink.adds
        ]
        report += [("did", n, json.dumps(asdict(did))) for n, did in measured.activities.items()]
        columns = [pa.array(column, pa.string()) for column in zip(*report, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=REPORT)

    def _operators(
        self, batches: Iterable[pa.RecordBatch], sinks: dict[str, PackSink], pack_bytes: int
    ) -> dict[str, FlowOperator]:
        sources: dict[str, Source] = {f"rows of {TASK}": ()}
        for intake in self.stage.inputs:
            if intake.hand is Exchange.HELD:
                name = f"held {intake.feed}"
                sources[name] = _FilesOf(self.held[str(intake.feed)], intake.schema)
        result = operators(self.stage.graph, sources, sinks, pack_bytes)
        schemas = [intake.schema for intake in self.stage.shuffled_inputs]
        if schemas:
            if self.portions:
                batches = rows_in(self.portions, batches, schemas[0])
            result[TASK] = _TaskRows(batches, schemas, pack_bytes)
        return result


def _files_written(stage: Stage, name: str) -> pa.Schema:
    node = stage.graph.nodes[name]
    assert node.kind is NodeKind.RECORDSET
    return node.inputs[0]


class _TaskRows(Read):
    """The reader of a stage. With several inputs, a mark on each row names its input."""

    def __init__(
        self, batches: Iterable[pa.RecordBatch], schemas: list[pa.Schema], pack_bytes: int
    ) -> None:
        super().__init__(TASK, schemas[0], (), pack_bytes)
        self._batches, self._schemas, self._size = batches, schemas, pack_bytes

    def end(self, port: int) -> Iterable[Output]:
        if len(self._schemas) == 1:
            fitting = (cast_to_schema(batch, self._schemas[0]) for batch in self._batches)
            return ((0, pack) for pack in packs_of(fitting, self._size))
        return self._parted()

    def _parted(self) -> Iterator[Output]:
        for batch in self._batches:
            marks = batch.column(batch.schema.get_field_index(INPUT))
            for port, schema in enumerate(self._schemas):
                rows = batch.column(batch.schema.get_field_index(f"in{port}"))
                mine = rows.filter(pc.equal(marks, port))
                if len(mine):
                    whole = pa.RecordBatch.from_struct_array(mine)
                    for pack in packs_of([cast_to_schema(whole, schema)], self._size):
                        yield port, pack


def cast_to_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same rows with exactly this schema.

    Spark's schema may name another time zone, and may differ in which columns can be NULL.
    """
    if batch.schema.equals(schema):
        return batch
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class _FilesOf:
    """The rows of Parquet files. Each task reads them when its reader begins."""

    def __init__(self, files: tuple[str, ...], schema: pa.Schema) -> None:
        self._files, self._schema = files, schema

    def __call__(self) -> Iterator[pa.RecordBatch]:
        for file in self._files:
            yield from rows_of_portion(Portion(file), self._schema)
