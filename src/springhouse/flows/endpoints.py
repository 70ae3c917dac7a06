"""How does a flow read rows from a recordset, and write rows to one?

A flow's graph only names its recordsets. The caller who runs the flow supplies them: a source is
anything that gives record batches, and a target is a `PackSink`. A target without a sink is kept in
memory.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol, TypeAlias

import pyarrow as pa

from springhouse.flows.flow_graph import (
    FlowError,
    FlowGraph,
    FlowOperator,
    NodeKind,
    Output,
    schema_difference,
)
from springhouse.flows.row_pack import packs_of, with_schema

Rows: TypeAlias = pa.Table | Iterable[pa.RecordBatch]
Source: TypeAlias = Rows | Callable[[], Rows]
"""Rows, or a function that gives them when the reader begins."""


class PackSink(Protocol):
    """A place to which a writer writes its packs."""

    def write(self, pack: pa.RecordBatch) -> None:
        """Write one pack."""

    def close(self) -> None:
        """End the writing: no more packs come."""


class Collected:
    """A recordset in memory."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.packs: list[pa.RecordBatch] = []

    def write(self, pack: pa.RecordBatch) -> None:
        self.packs.append(pack)

    def close(self) -> None:
        pass

    def table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(self.packs, self.schema)


class Read:
    """A reader: gives the rows of its recordset. A writer of the recordset must end before."""

    def __init__(self, name: str, schema: pa.Schema, source: "Source", pack_bytes: int) -> None:
        self._name, self._schema, self._source = name, schema, source
        self._pack_bytes = pack_bytes

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        raise AssertionError("a reader takes no packs, only the message that it may begin")

    def end(self, port: int) -> Iterable[Output]:
        return self._rows()

    def _rows(self) -> Iterator[Output]:
        rows = self._source() if callable(self._source) else self._source
        seen: pa.Schema | None = None
        for pack in packs_of(rows, self._pack_bytes):
            if pack.schema != seen:
                seen = pack.schema
                difference = schema_difference(seen, self._schema)
                if difference:
                    raise FlowError(
                        f'"{self._name}" has other rows than were declared: {difference}'
                    )
            yield 0, with_schema(self._schema, pack)


class Write:
    """A writer: passes the packs from all its inputs to its sink."""

    def __init__(self, sink: PackSink, feeding: int) -> None:
        self._sink = sink
        self._feeding = feeding

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        self._sink.write(pack)
        return ()

    def end(self, port: int) -> Iterable[Output]:
        self._feeding -= 1
        if self._feeding == 0:
            self._sink.close()
        return ()


def operators(
    graph: FlowGraph, sources: Mapping[str, Source], sinks: Mapping[str, PackSink], pack_bytes: int
) -> dict[str, FlowOperator]:
    """A new operator for every node that runs. The graph has its readers and writers already."""
    _validate_sources(graph, sources)
    between = {
        name: Collected(graph.nodes[name].inputs[0]) for name in graph.targets if name not in sinks
    }
    result: dict[str, FlowOperator] = {}
    for node in graph.nodes.values():
        if node.kind is NodeKind.READER:
            (name,) = graph.producers(node.name)
            remaining = between.get(name) or sinks.get(name)
            source = sources[name] if remaining is None else _rows_written(remaining, name)
            result[node.name] = Read(name, node.outputs[0], source, pack_bytes)
        elif node.kind is NodeKind.WRITER:
            (name,) = graph.consumers(node.name)
            sink = sinks[name] if name in sinks else between[name]
            result[node.name] = Write(sink, len(node.inputs))
        elif node.kind is NodeKind.ACTIVITY:
            assert node.make is not None, f"{node.name} does nothing"
            result[node.name] = node.make(pack_bytes)
    return result


def _validate_sources(graph: FlowGraph, sources: Mapping[str, Source]) -> None:
    """Raise an error if the caller did not supply a source that the flow reads."""
    missing = [name for name in graph.sources if name not in sources and graph.outgoing[name]]
    if missing:
        raise FlowError(
            f"nothing was given to read as {', '.join(repr(name) for name in missing)}",
            hint=f"This flow reads {', '.join(graph.sources)}.",
        )


def _rows_written(sink: PackSink, name: str) -> Source:
    """The rows that this flow wrote to a recordset and reads again."""
    if not isinstance(sink, Collected):
        raise FlowError(
            f'"{name}" is written and read in one flow, but its sink can\'t be read',
            hint="Take the rows from the activity that makes them.",
        )
    return lambda: iter(sink.packs)
