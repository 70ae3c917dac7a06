"""Which activities share a Spark task?

A flow runs inside Spark's tasks. Many tasks run in parallel, each with its own engine. An activity
that must see rows together (an aggregate, a sort, a join) gets them from a shuffle: the rows change
hands between tasks. So the activity begins a new stage:

    level(activity) = the highest of: level(producer), plus 1 where rows change hands
    a stage         = activities of one level that pass rows on to each other, or read one source

So stages of one level do not wait for each other and run at the same time. A router or several
targets begin no new stage: one pass serves them all (000 section 5.1 allows that).

Rows reach an input in one of four ways. Every task holds the whole table of a lookup. Rows that
belong together come by key. If there is no key, all rows come to one task. All other rows stay in
their task and do not change hands. An aggregate can be split into two halves. The first half works
before the rows change hands, so that only few rows do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

import pyarrow as pa

from springhouse.flows.flow_graph import (
    Edge,
    FlowGraph,
    FlowNode,
    NodeKind,
    add_readers_and_writers,
    recordset,
)

TASK = "this task's rows"
"""The reader of a stage: one port per input that is shuffled or stays where it is."""


class Exchange(Enum):
    """How rows come to a stage."""

    AS_THEY_ARE = "as they are"
    BY_KEY = "by key"
    ALL_TOGETHER = "all together"
    HELD = "held by every task"


@dataclass(frozen=True)
class StageFeed:
    """Rows from outside of a stage: from a recordset (no port), or from an earlier activity."""

    name: str
    port: int | None = None

    def __str__(self) -> str:
        return self.name if self.port is None else f"{self.name}.{self.port}"


@dataclass(frozen=True)
class StageInput:
    """An input of a stage: its feed, its columns, how the rows come, and by which keys."""

    feed: StageFeed
    schema: pa.Schema
    hand: Exchange
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stage:
    """Activities that share a task.

    An engine runs its `graph` in each task. The `inputs` that are not held are the ports of its
    reader, in this order. `passed` are the feeds that later stages read, by the name of their sink.
    """

    level: int
    inputs: tuple[StageInput, ...]
    graph: FlowGraph
    targets: tuple[str, ...]
    passed: Mapping[str, StageFeed]

    @property
    def shuffled_inputs(self) -> tuple[StageInput, ...]:
        """The inputs that come through the task's reader."""
        return tuple(i for i in self.inputs if i.hand is not Exchange.HELD)

    @property
    def alone(self) -> bool:
        """Whether one task must see all rows."""
        return any(intake.hand is Exchange.ALL_TOGETHER for intake in self.inputs)


def divide_into_stages(graph: FlowGraph) -> tuple[Stage, ...]:
    """The stages of a declared flow, by level."""
    whole = add_readers_and_writers(split_activities(graph))
    running = [
        n for n in whole.order if whole.nodes[n].kind in (NodeKind.ACTIVITY, NodeKind.WRITER)
    ]
    level: dict[str, int] = {}
    for name in running:
        arrivals = (_first_level(whole, level, edge) for edge in whole.incoming[name])
        level[name] = max(arrivals, default=0)
    groups = _groups(whole, running, level)
    needed = {
        _feed(whole, edge)
        for name in running
        for edge in whole.incoming[name]
        if groups.get(edge.producer) != groups[name]
        or exchange_of(whole.nodes[name], edge.enters)[2]
    }
    members: dict[str, list[str]] = {}
    for name in running:
        members.setdefault(groups[name], []).append(name)
    result = [_stage(whole, level[names[0]], names, needed) for names in members.values()]
    return tuple(sorted(result, key=lambda stage: stage.level))


def split_activities(graph: FlowGraph) -> FlowGraph:
    """The graph with two halves for each activity that can do one half before a shuffle."""
    nodes: dict[str, FlowNode] = {}
    first_of: dict[str, str] = {}
    for name, node in graph.nodes.items():
        if node.halves is None:
            nodes[name] = node
            continue
        first, between = f"{name} in each task", (node.halves.between,)
        first_of[name] = first
        nodes[first] = replace(
            node, name=first, outputs=between, make=node.halves.first, together={}, halves=None
        )
        nodes[name] = replace(node, inputs=between, make=node.halves.second, halves=None)
    edges = [e._replace(consumer=first_of.get(e.consumer, e.consumer)) for e in graph.edges]
    edges += [Edge(first, 0, name, 0) for name, first in first_of.items()]
    return FlowGraph(nodes, tuple(edges))


def exchange_of(node: FlowNode, port: int) -> tuple[Exchange, tuple[str, ...], bool]:
    """How rows come to an input, by which keys, and whether they change hands."""
    if port not in node.together:
        return Exchange.AS_THEY_ARE, (), False
    if len(node.together) < len(node.inputs):
        return Exchange.HELD, (), True
    keys = node.together[port]
    return (Exchange.BY_KEY if keys else Exchange.ALL_TOGETHER), keys, True


def _feed(graph: FlowGraph, edge: Edge) -> StageFeed:
    if graph.nodes[edge.producer].kind is NodeKind.READER:
        (name,) = graph.producers(edge.producer)
        return StageFeed(name)
    return StageFeed(edge.producer, edge.leaves)


def _first_level(graph: FlowGraph, level: Mapping[str, int], edge: Edge) -> int:
    """The first level at which an activity can have the rows of an edge."""
    if graph.nodes[edge.producer].kind is NodeKind.READER:
        (name,) = graph.producers(edge.producer)
        return max((level[writer] + 1 for writer in graph.producers(name)), default=0)
    changes_hands = exchange_of(graph.nodes[edge.consumer], edge.enters)[2]
    return level[edge.producer] + changes_hands


def _groups(graph: FlowGraph, running: list[str], level: Mapping[str, int]) -> dict[str, str]:
    """The activities that share a task: maps each name to the name of one of them."""
    parent = {name: name for name in running}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    first_reader: dict[tuple[str, int], str] = {}
    for name in running:
        for edge in graph.incoming[name]:
            if exchange_of(graph.nodes[name], edge.enters)[2]:
                continue
            neighbour = edge.producer
            if neighbour not in parent:
                # Activities that read one source unchanged read it together.
                neighbour = first_reader.setdefault((edge.producer, level[name]), name)
            if level[neighbour] == level[name]:
                parent[root(name)] = root(neighbour)
    return {name: root(name) for name in running}


def _stage(graph: FlowGraph, level: int, names: list[str], needed: set[StageFeed]) -> Stage:
    mine = set(names)
    nodes: dict[str, FlowNode] = {name: graph.nodes[name] for name in names}
    edges: list[Edge] = []
    inputs: dict[tuple[StageFeed, Exchange, tuple[str, ...]], StageInput] = {}
    entering: list[tuple[StageInput, Edge]] = []
    for name in names:
        for edge in graph.incoming[name]:
            hand, keys, changes_hands = exchange_of(graph.nodes[name], edge.enters)
            if edge.producer in mine and not changes_hands:
                edges.append(edge)
                continue
            schema = graph.nodes[edge.producer].outputs[edge.leaves]
            feed = _feed(graph, edge)
            intake = inputs.setdefault((feed, hand, keys), StageInput(feed, schema, hand, keys))
            entering.append((intake, edge))
    _add_readers(nodes, edges, entering, tuple(inputs.values()))
    passed: dict[str, StageFeed] = {}
    for feed in sorted((f for f in needed if f.name in mine), key=str):
        assert feed.port is not None
        schema = graph.nodes[feed.name].outputs[feed.port]
        _add_writer(nodes, edges, f"pass on {feed}", schema, Edge(feed.name, feed.port, "", 0))
        passed[str(feed)] = feed
        edges.append(Edge(f"pass on {feed}", 0, str(feed), 0))
        nodes[str(feed)] = recordset(str(feed), schema)
    targets = []
    for name in names:
        if graph.nodes[name].kind is NodeKind.WRITER:
            (target,) = graph.consumers(name)
            nodes[target] = graph.nodes[target]
            edges.append(Edge(name, 0, target, 0))
            targets.append(target)
    return Stage(
        level, tuple(inputs.values()), FlowGraph(nodes, tuple(edges)), tuple(targets), passed
    )


def _add_readers(
    nodes: dict[str, FlowNode],
    edges: list[Edge],
    entering: list[tuple[StageInput, Edge]],
    inputs: tuple[StageInput, ...],
) -> None:
    nothing = pa.schema([])
    ports = {i: n for n, i in enumerate(i for i in inputs if i.hand is not Exchange.HELD)}
    if ports:
        task_rows = f"rows of {TASK}"
        nodes[task_rows] = recordset(task_rows, nothing)
        outputs = tuple(intake.schema for intake in ports)
        nodes[TASK] = FlowNode(TASK, NodeKind.READER, (nothing,), outputs, verb="read")
        edges.append(Edge(task_rows, 0, TASK, 0))
    for intake, edge in entering:
        if intake.hand is not Exchange.HELD:
            edges.append(Edge(TASK, ports[intake], edge.consumer, edge.enters))
            continue
        held, reader = f"held {intake.feed}", f"read {intake.feed} in every task"
        if held not in nodes:
            nodes[held] = recordset(held, intake.schema)
            nodes[reader] = FlowNode(
                reader, NodeKind.READER, (intake.schema,), (intake.schema,), verb="read"
            )
            edges.append(Edge(held, 0, reader, 0))
        edges.append(Edge(reader, 0, edge.consumer, edge.enters))


def _add_writer(
    nodes: dict[str, FlowNode], edges: list[Edge], name: str, schema: pa.Schema, source: Edge
) -> None:
    nodes[name] = FlowNode(name, NodeKind.WRITER, (schema,), (schema,), verb="write")
    edges.append(Edge(source.producer, source.leaves, name, 0))
