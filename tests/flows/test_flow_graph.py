"""Errors in a graph are reported in the words of its author."""

import pyarrow as pa
import pytest

from springhouse.flows.flow_graph import (
    Edge,
    FlowError,
    FlowGraph,
    FlowNode,
    NodeKind,
    add_readers_and_writers,
    recordset,
)

A = pa.schema({"a": pa.int64()})
B = pa.schema({"b": pa.string()})


def graph(nodes: list[FlowNode], *edges: Edge) -> FlowGraph:
    return FlowGraph({node.name: node for node in nodes}, edges)


def activity(name: str, inputs: int = 1, schema: pa.Schema = A) -> FlowNode:
    return FlowNode(name, NodeKind.ACTIVITY, (schema,) * inputs, (schema,))


def test_rows_of_other_columns() -> None:
    with pytest.raises(FlowError, match='"f" can\'t take the rows of "in": column "b" is missing'):
        graph([recordset("in", A), activity("f", schema=B)], Edge("in", 0, "f", 0))


def test_a_circle() -> None:
    nodes = [activity("f"), activity("g")]
    with pytest.raises(FlowError, match='the flow has a cycle: "f", "g"'):
        graph(nodes, Edge("f", 0, "g", 0), Edge("g", 0, "f", 0))


def test_an_input_that_nothing_feeds() -> None:
    nodes = [recordset("in", A), activity("f", inputs=2)]
    with pytest.raises(FlowError, match='nothing feeds input 1 of "f"'):
        graph(nodes, Edge("in", 0, "f", 0))


def test_an_input_that_is_fed_twice() -> None:
    nodes = [recordset("one", A), recordset("two", A), activity("f")]
    with pytest.raises(FlowError, match="Put a union before it"):
        graph(nodes, Edge("one", 0, "f", 0), Edge("two", 0, "f", 0))


def test_names_and_ports_that_are_not_there() -> None:
    nodes = [recordset("in", A), activity("f")]
    with pytest.raises(FlowError, match='this flow has no "g"'):
        graph(nodes, Edge("in", 0, "g", 0))
    with pytest.raises(FlowError, match='"in" has no output 3'):
        graph(nodes, Edge("in", 3, "f", 0))
    with pytest.raises(FlowError, match='"f" has no input 1'):
        graph(nodes, Edge("in", 0, "f", 1))


def test_producers_consumers_sources_and_targets() -> None:
    nodes = [recordset("in", A), activity("f"), activity("g"), recordset("out", A)]
    found = graph(
        nodes,
        Edge("in", 0, "f", 0),
        Edge("in", 0, "g", 0),
        Edge("f", 0, "out", 0),
        Edge("g", 0, "out", 0),
    )
    assert found.consumers("in") == ("f", "g")
    assert found.producers("out") == ("f", "g")
    assert (found.sources, found.targets) == (("in",), ("out",))
    whole = add_readers_and_writers(found)
    assert whole.producers("f") == whole.producers("g") == ("read in",), "it is read once"
    assert whole.producers("write out") == ("f", "g"), "and written by one"
