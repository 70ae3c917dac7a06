"""Random flows with random queue sizes come to their end, and neither lose nor repeat rows."""

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patience import patience
from springhouse.flows.activities.router import Router
from springhouse.flows.activities.sort import Sort, by_name
from springhouse.flows.activities.union import Union
from springhouse.flows.endpoints import Collected
from springhouse.flows.flow_graph import Edge, FlowGraph, FlowNode, NodeKind, Output, recordset
from springhouse.flows.flow_settings import Settings
from springhouse.flows.policy_choice import PolicyName
from springhouse.flows.row_expressions import compile_expression
from springhouse.flows.run import Pool, request_of, run_here

SCHEMA = pa.schema({"a": pa.int64()})
ODD = compile_expression("a IN (1, 3, 5, 7, 9, 11, 13, 15, 17, 19)", SCHEMA, "route")


class Gate:
    """Holds the input of port 1 until port 0 has ended, then lets everything pass, like a join."""

    def __init__(self) -> None:
        self.open = False
        self.held: list[pa.RecordBatch] = []

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        if port == 1 and not self.open:
            self.held.append(pack)
            return ()
        return ((0, pack),)

    def end(self, port: int) -> Iterable[Output]:
        if port == 1:
            return ()
        self.open = True
        return ((0, pack) for pack in self.held)


class Twice:
    """Returns every pack twice, one copy after the other."""

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        return [(0, pack), (0, pack)]

    def end(self, port: int) -> Iterable[Output]:
        return ()


def activity(name: str, kind: str) -> FlowNode:
    one, two = (SCHEMA,), (SCHEMA, SCHEMA)
    match kind:
        case "route":
            return FlowNode(
                name, NodeKind.ACTIVITY, one, two, lambda size: Router([ODD]), router=True
            )
        case "sort":
            keys = [by_name("a")]
            return FlowNode(
                name,
                NodeKind.ACTIVITY,
                one,
                one,
                lambda size: Sort(SCHEMA, keys, size),
                blocking=frozenset({0}),
                memory_intensive=True,
            )
        case "union":
            return FlowNode(name, NodeKind.ACTIVITY, two, one, lambda size: Union(SCHEMA))
        case "gate":
            return FlowNode(
                name,
                NodeKind.ACTIVITY,
                two,
                one,
                lambda size: Gate(),
                blocking=frozenset({0}),
                waits={1: 0},
            )
        case _:
            return FlowNode(name, NodeKind.ACTIVITY, one, one, lambda size: Twice())


@st.composite
def graphs(draw: st.DrawFn) -> FlowGraph:
    """Sources, then activities that any earlier node feeds, then targets for all open ports."""
    nodes = {name: recordset(name, SCHEMA) for name in ("in0", "in1")}
    ports = [("in0", 0), ("in1", 0)]
    edges: list[Edge] = []
    doublings = 0
    for number in range(draw(st.integers(1, 9))):
        kind = draw(st.sampled_from(["route", "sort", "union", "gate", "twice"]))
        doublings += kind == "twice"
        if doublings > 3:
            kind = "union"
        node = activity(f"{kind} {number}", kind)
        nodes[node.name] = node
        for port in range(len(node.inputs)):
            producer, leaves = draw(st.sampled_from(ports[-5:]))
            edges.append(Edge(producer, leaves, node.name, port))
        ports += [(node.name, port) for port in range(len(node.outputs))]
    for number, (producer, leaves) in enumerate(ports[2:]):
        target = f"out{number % 3}" if draw(st.booleans()) else f"own{number}"
        nodes.setdefault(target, recordset(target, SCHEMA))
        edges.append(Edge(producer, leaves, target, 0))
    return FlowGraph(nodes, tuple(edges))


def numbers(rows: Iterable[pa.RecordBatch]) -> Counter[int]:
    return Counter(value for pack in rows for value in pack.column(0).to_pylist())


def plainly(graph: FlowGraph, sources: dict[str, pa.Table]) -> dict[str, Counter[int]]:
    """The same flow without an engine: every node takes all its input at once."""
    left: dict[tuple[str, int], list[pa.RecordBatch]] = {}
    rested: dict[str, Counter[int]] = {}
    for name in graph.order:
        node = graph.nodes[name]
        entering = sorted(graph.incoming[name], key=lambda edge: edge.enters)
        if node.kind is NodeKind.RECORDSET:
            batches = sources[name].to_batches() if name in sources else []
            for edge in entering:
                batches += left.get((edge.producer, edge.leaves), [])
            left[name, 0] = batches
            rested[name] = numbers(batches)
            continue
        assert node.make is not None
        operator = node.make(1000)
        for edge in entering:
            for pack in left.get((edge.producer, edge.leaves), []):
                for port, made in operator.take(edge.enters, pack):
                    left.setdefault((name, port), []).append(made)
            for port, made in operator.end(edge.enters):
                left.setdefault((name, port), []).append(made)
    return rested


def source(first: int, rows: int) -> pa.Table:
    return pa.table({"a": pa.array([(first + i) % 20 for i in range(rows)], pa.int64())})


@settings(max_examples=100)
@given(
    graph=graphs(),
    rows=st.tuples(st.integers(0, 30), st.integers(0, 30)),
    queue_packs=st.integers(1, 4),
    policy=st.sampled_from(list(PolicyName)),
    pack_bytes=st.sampled_from([8, 40, 1000]),
)
def test_on_one_thread(
    graph: FlowGraph, rows: tuple[int, int], queue_packs: int, policy: PolicyName, pack_bytes: int
) -> None:
    sources = {"in0": source(0, rows[0]), "in1": source(7, rows[1])}
    sinks = {name: Collected(SCHEMA) for name in graph.targets}
    chosen = Settings(policy, 1, queue_packs, pack_bytes, slot_seconds=0.0001)
    request = request_of(graph, sources, sinks, chosen)
    run_here(request, chosen)
    plain = plainly(graph, sources)
    assert {name: numbers(sink.packs) for name, sink in sinks.items()} == {
        name: plain[name] for name in graph.targets
    }
    assert request.monitor.packs == 0
    assert request.monitor.size == 0


@pytest.mark.parametrize("policy", list(PolicyName), ids=lambda policy: policy.value)
def test_on_three_threads(policy: PolicyName) -> None:
    chosen = Settings(policy, 3, 1, 40, slot_seconds=0.0001)
    with Pool(chosen) as pool:

        @settings(max_examples=15)
        @given(graph=graphs(), queue_packs=st.integers(1, 3))
        def finishes(graph: FlowGraph, queue_packs: int) -> None:
            sources = {"in0": source(0, 25), "in1": source(7, 13)}
            sinks = {name: Collected(SCHEMA) for name in graph.targets}
            tight = Settings(policy, 3, queue_packs, 40, slot_seconds=0.0001)
            pool.submit(request_of(graph, sources, sinks, tight)).wait(patience(60))
            plain = plainly(graph, sources)
            found = {name: numbers(sink.packs) for name, sink in sinks.items()}
            assert found == {name: plain[name] for name in graph.targets}

        finishes()


def test_a_diamond_whose_arm_waits_for_the_other() -> None:
    """One source feeds both sides of a gate: a queue for one pack alone would block for ever."""
    gate = activity("gate", "gate")
    nodes = {"in0": recordset("in0", SCHEMA), "gate": gate, "out": recordset("out", SCHEMA)}
    edges = (Edge("in0", 0, "gate", 0), Edge("in0", 0, "gate", 1), Edge("gate", 0, "out", 0))
    graph = FlowGraph(nodes, edges)
    for policy in PolicyName:
        sink = Collected(SCHEMA)
        chosen = Settings(policy, 1, 1, 8)
        run_here(request_of(graph, {"in0": source(0, 50)}, {"out": sink}, chosen), chosen)
        assert sink.table().num_rows == 100, policy
