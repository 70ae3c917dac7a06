"""Which node feeds which? Activities and recordsets, as a graph without cycles (000 section 3.1).

An activity turns row packs into row packs. A recordset is a place that stores rows: a source, a
target, or a staging point between them. Recordsets are not scheduled. `add_readers_and_writers`
puts a reader behind every recordset that is read, and a writer before every recordset that is
written (000 section 5.1).

Rows leave a node by numbered ports and enter by numbered ports. Several edges may leave one port:
each consumer gets every row. Exactly one edge enters a port of an activity.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NamedTuple, Protocol

import pyarrow as pa

from springhouse.errors import SpringhouseError

Output = tuple[int, pa.RecordBatch]
"""The port by which a row pack leaves, and the pack."""


class FlowError(SpringhouseError):
    """A flow can't run as it was declared, or an activity of it failed."""


class FlowOperator(Protocol):
    """The work of one node. Invariant: it accepts a pack on any port at any time."""

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        """Take a pack. Gives the packs that leave because of it."""

    def end(self, port: int) -> Iterable[Output]:
        """End a port after its last pack. Gives the packs that leave because of it."""


class NodeKind(Enum):
    """The kinds of nodes."""

    RECORDSET = "recordset"
    READER = "reader"
    ACTIVITY = "activity"
    WRITER = "writer"


@dataclass(frozen=True)
class SplitActivity:
    """An activity in two halves: one before the shuffle, one behind it.

    The rows between the halves have the columns `between`, the keys of the shuffle among them.
    """

    between: pa.Schema
    first: Callable[[int], FlowOperator]
    second: Callable[[int], FlowOperator]


@dataclass(frozen=True)
class FlowNode:
    """One node of a flow.

    `inputs` and `outputs` are the schemas of its ports. `make` makes a new operator, given the
    bytes of a row pack. `blocking` are the input ports whose rows lead to no output before the port
    has ended. `waits` maps a port to another port that should end first (the probed side of a join
    to the held side). This order saves memory, but results do not depend on it. `memory_intensive`
    is true if the node holds many rows; EIS counts such nodes. `together` says which rows of an
    input one operator must see: rows with equal values in these columns, or all rows (no columns).
    `halves` splits an activity that can do most of its work before the shuffle.
    """

    name: str
    kind: NodeKind
    inputs: tuple[pa.Schema, ...] = ()
    outputs: tuple[pa.Schema, ...] = ()
    make: Callable[[int], FlowOperator] | None = None
    blocking: frozenset[int] = frozenset()
    router: bool = False
    memory_intensive: bool = False
    together: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    waits: Mapping[int, int] = field(default_factory=dict)
    halves: SplitActivity | None = None
    verb: str = ""

    @property
    def is_boundary(self) -> bool:
        """Whether it separates two subflows (000 section 5.1)."""
        all_block = bool(self.inputs) and len(self.blocking) == len(self.inputs)
        return self.kind is NodeKind.RECORDSET or self.router or all_block


class Edge(NamedTuple):
    """Rows that leave `producer` by `leaves` enter `consumer` by `enters`."""

    producer: str
    leaves: int
    consumer: str
    enters: int


def recordset(name: str, schema: pa.Schema) -> FlowNode:
    """A node for a place that stores rows."""
    return FlowNode(name, NodeKind.RECORDSET, (schema,), (schema,), verb="recordset")


@dataclass(frozen=True)
class FlowGraph:
    """Nodes and edges. All names exist, all ports fit, and no cycle is possible."""

    nodes: Mapping[str, FlowNode]
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        for edge in self.edges:
            _check_edge(self.nodes, edge)
        entered: dict[tuple[str, int], str] = {}
        for edge in self.edges:
            before = entered.setdefault((edge.consumer, edge.enters), edge.producer)
            many = self.nodes[edge.consumer].kind is NodeKind.RECORDSET
            if before != edge.producer and not many:
                raise FlowError(
                    f'input {edge.enters} of "{edge.consumer}" is fed by "{before}" '
                    f'and by "{edge.producer}"',
                    hint="Put a union before it.",
                )
        for node in self.nodes.values():
            if node.kind is NodeKind.ACTIVITY:
                _check_fed(node, entered)
        if len(self.order) < len(self.nodes):
            cycle = ", ".join(f'"{name}"' for name in self.nodes if name not in set(self.order))
            raise FlowError(f"the flow has a cycle: {cycle}")

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The nodes, producers before consumers. A cycle and the nodes behind it are left out."""
        missing = {name: len(self.incoming[name]) for name in self.nodes}
        ready = [name for name, count in missing.items() if count == 0]
        done: list[str] = []
        while ready:
            name = ready.pop(0)
            done.append(name)
            for edge in self.outgoing[name]:
                missing[edge.consumer] -= 1
                if missing[edge.consumer] == 0:
                    ready.append(edge.consumer)
        return tuple(done)

    @cached_property
    def incoming(self) -> Mapping[str, tuple[Edge, ...]]:
        """The edges into each node."""
        return {n: tuple(e for e in self.edges if e.consumer == n) for n in self.nodes}

    @cached_property
    def outgoing(self) -> Mapping[str, tuple[Edge, ...]]:
        """The edges out of each node."""
        return {n: tuple(e for e in self.edges if e.producer == n) for n in self.nodes}

    def producers(self, name: str) -> tuple[str, ...]:
        """The nodes that feed this one, each once."""
        return tuple(dict.fromkeys(edge.producer for edge in self.incoming[name]))

    def consumers(self, name: str) -> tuple[str, ...]:
        """The nodes that this one feeds, each once."""
        return tuple(dict.fromkeys(edge.consumer for edge in self.outgoing[name]))

    def of_kind(self, kind: NodeKind) -> Iterator[FlowNode]:
        """The nodes of a kind, producers before consumers."""
        return (self.nodes[name] for name in self.order if self.nodes[name].kind is kind)

    @property
    def sources(self) -> tuple[str, ...]:
        """The recordsets that nothing in this flow writes."""
        return tuple(n.name for n in self.of_kind(NodeKind.RECORDSET) if not self.incoming[n.name])

    @property
    def targets(self) -> tuple[str, ...]:
        """The recordsets that this flow writes."""
        return tuple(n.name for n in self.of_kind(NodeKind.RECORDSET) if self.incoming[n.name])


def add_readers_and_writers(graph: FlowGraph) -> FlowGraph:
    """The graph with a reader for every recordset that is read and a writer for every written one.

    The paper has one reader or writer per edge. Here one reader reads a recordset once for all
    consumers, and one writer writes a recordset on one thread.
    """
    nodes, edges = dict(graph.nodes), []
    readers: dict[str, str] = {}
    writers: dict[str, str] = {}
    for name, node in graph.nodes.items():
        if node.kind is not NodeKind.RECORDSET:
            continue
        if graph.outgoing[name]:
            readers[name] = reader = _unused_name(nodes, f"read {name}")
            nodes[reader] = FlowNode(
                reader, NodeKind.READER, node.outputs, node.outputs, verb="read"
            )
            edges.append(Edge(name, 0, reader, 0))
        if graph.incoming[name]:
            writers[name] = writer = _unused_name(nodes, f"write {name}")
            inputs = node.inputs * len(graph.incoming[name])
            nodes[writer] = FlowNode(writer, NodeKind.WRITER, inputs, node.outputs, verb="write")
            edges.append(Edge(writer, 0, name, 0))
    ports: Counter[str] = Counter()
    for edge in graph.edges:
        producer, leaves = edge.producer, edge.leaves
        consumer, enters = edge.consumer, edge.enters
        if producer in readers:
            producer, leaves = readers[producer], 0
        if consumer in writers:
            consumer, enters = writers[consumer], ports[edge.consumer]
            ports[edge.consumer] += 1
        edges.append(Edge(producer, leaves, consumer, enters))
    return FlowGraph(nodes, tuple(edges))


def _unused_name(taken: Mapping[str, FlowNode], name: str) -> str:
    number, fresh = 2, name
    while fresh in taken:
        fresh, number = f"{name} ({number})", number + 1
    return fresh


def _check_edge(nodes: Mapping[str, FlowNode], edge: Edge) -> None:
    for name in (edge.producer, edge.consumer):
        if name not in nodes:
            known = ", ".join(f'"{n}"' for n in nodes)
            raise FlowError(f'this flow has no "{name}"', hint=f"It has {known}.")
    producer, consumer = nodes[edge.producer], nodes[edge.consumer]
    if not 0 <= edge.leaves < len(producer.outputs):
        raise FlowError(f'"{producer.name}" has no output {edge.leaves}')
    if not 0 <= edge.enters < len(consumer.inputs):
        raise FlowError(f'"{consumer.name}" has no input {edge.enters}')
    actual, wanted = producer.outputs[edge.leaves], consumer.inputs[edge.enters]
    difference = schema_difference(actual, wanted)
    if difference:
        raise FlowError(
            f'"{consumer.name}" can\'t take the rows of "{producer.name}": {difference}'
        )


def _check_fed(node: FlowNode, entered: Mapping[tuple[str, int], str]) -> None:
    for port in range(len(node.inputs)):
        if (node.name, port) not in entered:
            raise FlowError(
                f'nothing feeds input {port} of "{node.name}"',
                hint="Connect it, or remove the activity.",
            )


def schema_difference(input_schema: pa.Schema, wanted: pa.Schema) -> str:
    """The differences between two schemas, column by column; empty if they are equal.

    >>> one = pa.schema({"a": pa.int64(), "b": pa.string()})
    >>> schema_difference(one, pa.schema({"a": pa.int32(), "c": pa.string()}))
    'column "a" is int64, not int32; column "c" is missing; column "b" is not expected'
    """
    differences: list[str] = []
    for column in wanted:
        index = input_schema.get_field_index(column.name)
        if index < 0:
            differences.append(f'column "{column.name}" is missing')
        elif input_schema.field(index).type != column.type:
            differences.append(
                f'column "{column.name}" is {input_schema.field(index).type}, not {column.type}'
            )
    differences += [
        f'column "{n}" is not expected' for n in input_schema.names if n not in wanted.names
    ]
    if not differences and input_schema.names != wanted.names:
        differences.append(
            f"columns come as {', '.join(input_schema.names)}, not {', '.join(wanted.names)}"
        )
    return "; ".join(differences)
