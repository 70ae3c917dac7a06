"""Which subflows can run at the same time? DeriveSISSets (000 section 5.2).

Invariant: stratum(s) = 0 if nothing feeds s, else 1 + max(stratum(t) for t that feed s). So there
is no path between two subflows of one stratum, and they may run at the same time, each under a
policy of its own, once the strata before are done.

The paper does not mention one case: merging can close a circle between two subflows, if a line goes
round a boundary and joins itself again. Such subflows can't be in different strata. `stratify`
merges them into one subflow first.
"""

from collections.abc import Mapping, Sequence

from springhouse.flows.flow_graph import FlowGraph
from springhouse.flows.subflow import Subflow, break_into_subflows, subflow_graph


def derive_sis_sets(feeding: Mapping[int, frozenset[int]]) -> tuple[tuple[int, ...], ...]:
    """DSISS: the subflows by stratum. `feeding` must have no circle."""
    waiting = dict(feeding)
    strata: list[tuple[int, ...]] = []
    while waiting:
        free = tuple(sorted(n for n, feeds in waiting.items() if not feeds & waiting.keys()))
        assert free, f"subflows feed each other: {waiting}"
        strata.append(free)
        for number in free:
            del waiting[number]
    return tuple(strata)


def stratify(graph: FlowGraph) -> tuple[tuple[Subflow, ...], tuple[tuple[int, ...], ...]]:
    """The subflows of a flow, and their strata. Subflows that wait for each other are merged.

    A diamond is an example, if one arm has a boundary and the other arm has none. The activities
    before and after the boundary pipeline along the other arm.
    """
    subflows = break_into_subflows(graph)
    feeding = subflow_graph(graph, subflows)
    groups = _strongly_connected(feeding)
    if any(len(group) > 1 for group in groups):
        place = {name: i for i, name in enumerate(graph.order)}
        merged = [
            tuple(sorted((n for i in group for n in subflows[i].nodes), key=place.__getitem__))
            for group in groups
        ]
        merged.sort(key=lambda names: place[names[0]])
        subflows = tuple(Subflow(i, names) for i, names in enumerate(merged))
        feeding = subflow_graph(graph, subflows)
    return subflows, derive_sis_sets(feeding)


def _strongly_connected(feeding: Mapping[int, frozenset[int]]) -> Sequence[frozenset[int]]:
    """The strongly connected parts: each has the subflows that can reach each other."""
    reach = {number: _reachable(number, feeding) for number in feeding}
    return list(
        dict.fromkeys(
            frozenset(m for m in feeding if m == n or (m in reach[n] and n in reach[m]))
            for n in feeding
        )
    )


def _reachable(start: int, feeding: Mapping[int, frozenset[int]]) -> frozenset[int]:
    reached: set[int] = set()
    todo = list(feeding[start])
    while todo:
        number = todo.pop()
        if number not in reached:
            reached.add(number)
            todo += feeding[number]
    return frozenset(reached)
