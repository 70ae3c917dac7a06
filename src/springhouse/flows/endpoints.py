"""How do rows come from a recordset, and how do they get into one?

A flow's graph only names its recordsets. What they are is given when it runs: a source is anything
that gives record batches, a target is a `PackSink`. A recordset between that nobody gave is kept in
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
"""Rows, or how to get them when it is time to read."""


class PackSink(Protocol):
    """Where a writer puts its packs."""

    def write(self, pack: pa.RecordBatch) -> None:
        """Take a pack."""

    def close(self) -> None:
        """Nothing more comes."""


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
    """A reader: gives the rows of its recordset when what writes it, if anything, is done."""

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
    """A writer: what it takes, from all that feed it, leaves the flow."""

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
    """A fresh operator for every node of an extended graph that runs."""
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
    """An error if the flow reads a source that was not given."""
    missing = [name for name in graph.sources if name not in sources and graph.outgoing[name]]
    if missing:
        raise FlowError(
            f"nothing was given to read as {', '.join(repr(name) for name in missing)}",
            hint=f"This flow reads {', '.join(graph.sources)}.",
        )


def _rows_written(sink: PackSink, name: str) -> Source:
    """The rows that were written to a recordset, for those who read it in the same flow."""
    if not isinstance(sink, Collected):
        raise FlowError(
            f'"{name}" is written and read in one flow, but its sink can\'t be read',
            hint="Take the rows from the activity that makes them.",
        )
    return lambda: iter(sink.packs)
