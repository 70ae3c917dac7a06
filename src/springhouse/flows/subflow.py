"""Which activities pass rows on without a recordset between? BreakIntoSubflows (000 section 5.1).

A subflow is a connected part of the flow. In it, rows move from the first activity to the last with
no storage between. Each boundary (a recordset, a router, or an activity whose inputs all block) is
a subflow of its own. Between boundaries, every connected part of the flow is one subflow.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from springhouse.flows.flow_graph import FlowGraph, NodeKind


@dataclass(frozen=True)
class Subflow:
    """Nodes that pipeline, in the order of the flow; its number is its place in the list."""

    number: int
    nodes: tuple[str, ...]


def can_merge(graph: FlowGraph, one: str, other: str) -> bool:
    """Whether two adjacent nodes may be in the same subflow: neither is a boundary."""
    return not (graph.nodes[one].is_boundary or graph.nodes[other].is_boundary)


def break_into_subflows(graph: FlowGraph) -> tuple[Subflow, ...]:
    """BIS: each node is a subflow at first. Then subflows merge along every edge that allows it.

    One pass with union-find visits the edges in the order of the flow. By the paper's property one
    pass is enough.
    """
    parent = {name: name for name in graph.nodes}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for name in graph.order:
        for consumer in graph.consumers(name):
            if can_merge(graph, name, consumer):
                parent[root(consumer)] = root(name)
    members: dict[str, list[str]] = {}
    for name in graph.order:
        members.setdefault(root(name), []).append(name)
    return tuple(Subflow(i, tuple(names)) for i, names in enumerate(members.values()))


def subflow_of(subflows: tuple[Subflow, ...]) -> Mapping[str, int]:
    """The number of the subflow that each node is in."""
    return {name: subflow.number for subflow in subflows for name in subflow.nodes}


def subflow_graph(graph: FlowGraph, subflows: tuple[Subflow, ...]) -> Mapping[int, frozenset[int]]:
    """The subflow graph: for each subflow, those that feed it."""
    of = subflow_of(subflows)
    feeding: dict[int, set[int]] = {subflow.number: set() for subflow in subflows}
    for edge in graph.edges:
        if of[edge.producer] != of[edge.consumer]:
            feeding[of[edge.consumer]].add(of[edge.producer])
    return {number: frozenset(feeds) for number, feeds in feeding.items()}


def is_scheduled(graph: FlowGraph, subflow: Subflow) -> bool:
    """Whether it has a node that runs. Recordsets are not scheduled."""
    return any(graph.nodes[name].kind is not NodeKind.RECORDSET for name in subflow.nodes)
