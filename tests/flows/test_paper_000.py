"""000, Scheduling strategies for efficient ETL execution: its sections, on its own examples."""

import pyarrow as pa
import pytest
from archetypes import ARCHETYPES, SCHEMAS

from springhouse.flows.flow_graph import (
    Edge,
    FlowGraph,
    FlowNode,
    NodeKind,
    add_readers_and_writers,
    recordset,
)
from springhouse.flows.item import Item
from springhouse.flows.pack_queue import PackQueue
from springhouse.flows.policies.minimum_cost import MinimumCost
from springhouse.flows.policies.minimum_memory import SLOT_SECONDS, MinimumMemory
from springhouse.flows.policies.round_robin import RoundRobin
from springhouse.flows.policy_choice import PolicyName, execute_siss
from springhouse.flows.request import FlowTask, Request, TaskUrgency
from springhouse.flows.stratum import derive_sis_sets, stratify
from springhouse.flows.subflow import break_into_subflows

# Strata from the sources to the targets; " + " joins the nodes of one subflow.
STRATA = {
    "butterfly": [
        ["partsupp", "supplier"],
        [
            "read partsupp + not_null_partsupp + total_cost + write dw_partsupp",
            "read supplier + not_null_supplier + phone_format + write dw_supplier",
        ],
        ["join", "dw_partsupp", "dw_supplier"],
        ["write join_table", "aggregate_1", "aggregate_3"],
        ["join_table", "write view_1", "aggregate_2", "write view_3", "aggregate_4"],
        ["view_1", "write view_2", "view_3", "write view_4"],
        ["view_2", "view_4"],
    ],
    "line": [
        ["lineitem"],
        ["read lineitem + where + compute + where 2"],
        ["aggregate"],
        ["write supplier_revenue"],
        ["supplier_revenue"],
    ],
    "wishbone": [
        ["partsupp", "supplier"],
        ["read partsupp + where + compute", "read supplier + where 2 + select"],
        ["join"],
        ["where 3 + write costs"],
        ["costs"],
    ],
    "primary flow": [
        ["lineitem", "part_keys", "supplier_keys"],
        [
            (
                "read lineitem + read part_keys + read supplier_keys + where + lookup + lookup 2"
                " + where 2 + select + write facts"
            )
        ],
        ["facts"],
    ],
    "tree": [
        ["partsupp", "supplier", "lineitem"],
        ["read partsupp", "read supplier", "read lineitem"],
        ["join"],
        ["join 2"],
        ["aggregate"],
        ["write nations"],
        ["nations"],
    ],
    "fork": [
        ["lineitem"],
        ["read lineitem + compute"],
        ["route"],
        ["aggregate", "aggregate 2", "sort", "aggregate 3"],
        [
            "write small_by_part",
            "write medium_by_supplier",
            "write large_lines",
            "write large_total",
        ],
        ["small_by_part", "medium_by_supplier", "large_lines", "large_total"],
    ],
}


@pytest.mark.parametrize("name", STRATA)
def test_sections_5_1_and_5_2_subflows_and_strata(name: str) -> None:
    graph = add_readers_and_writers(ARCHETYPES[name].flow.graph(SCHEMAS))
    subflows, strata = stratify(graph)
    told = [sorted(" + ".join(subflows[n].nodes) for n in numbers) for numbers in strata]
    assert told == [sorted(stratum) for stratum in STRATA[name]]


def test_section_5_1_subflows_cover_the_flow_and_share_nothing() -> None:
    for archetype in ARCHETYPES.values():
        graph = add_readers_and_writers(archetype.flow.graph(SCHEMAS))
        names = [name for subflow in break_into_subflows(graph) for name in subflow.nodes]
        assert sorted(names) == sorted(graph.nodes)


def test_section_5_2_a_stratum_is_one_more_than_the_highest_that_feeds_it() -> None:
    feeding = {0: frozenset[int](), 1: frozenset({0}), 2: frozenset({0, 1}), 3: frozenset({0})}
    assert derive_sis_sets(feeding) == ((0,), (1, 3), (2,))


def test_a_line_around_a_boundary_makes_both_sides_one_subflow() -> None:
    schema = pa.schema({"a": pa.int64()})

    def activity(name: str, inputs: int, *, blocks: bool = False) -> FlowNode:
        blocking = frozenset(range(inputs)) if blocks else frozenset[int]()
        return FlowNode(name, NodeKind.ACTIVITY, (schema,) * inputs, (schema,), blocking=blocking)

    nodes = [
        recordset("in", schema),
        activity("first", 1),
        activity("sort", 1, blocks=True),
        activity("union", 2),
        recordset("out", schema),
    ]
    edges = (
        Edge("in", 0, "first", 0),
        Edge("first", 0, "sort", 0),
        Edge("sort", 0, "union", 0),
        Edge("first", 0, "union", 1),
        Edge("union", 0, "out", 0),
    )
    graph = FlowGraph({node.name: node for node in nodes}, edges)
    subflows, strata = stratify(graph)
    assert [subflow.nodes for subflow in subflows] == [
        ("in",),
        ("first", "sort", "union"),
        ("out",),
    ]
    assert strata == ((0,), (1,), (2,))


def test_section_5_3_the_core_of_the_butterfly_runs_under_minimum_memory() -> None:
    plan = execute_siss(add_readers_and_writers(ARCHETYPES["butterfly"].flow.graph(SCHEMAS)))
    careful = {
        name
        for subflow in plan.subflows
        if plan.policies.get(subflow.number) is PolicyName.MINIMUM_MEMORY
        for name in subflow.nodes
    }
    assert careful == {"join", "aggregate_1", "aggregate_2", "aggregate_3", "aggregate_4"}


def test_section_5_3_theta_is_how_many_memory_intensive_activities_are_still_light() -> None:
    graph = add_readers_and_writers(ARCHETYPES["primary flow"].flow.graph(SCHEMAS))
    assert set(execute_siss(graph, 1).policies.values()) == {PolicyName.MINIMUM_MEMORY}
    assert set(execute_siss(graph, 2).policies.values()) == {PolicyName.MINIMUM_COST}


SCHEMA = pa.schema({"a": pa.int64()})


class Nothing:
    def take(self, port: int, pack: pa.RecordBatch) -> tuple[()]:
        return ()

    def end(self, port: int) -> tuple[()]:
        return ()


def task(
    index: int, waiting: int, rows_in: int = 0, rows_out: int = 0, seconds: float = 0
) -> FlowTask:
    """An activity with these numbers of rows: in its queue, consumed so far, produced so far."""
    node = FlowNode(str(index), NodeKind.ACTIVITY, (SCHEMA,), (SCHEMA,))
    item = Item(index, node, Nothing())
    queue = PackQueue(None)
    queue.put(pa.record_batch({"a": pa.array([0] * waiting, pa.int64())}), waiting)
    item.inbox.append(queue)
    item.statistics.rows_in, item.statistics.rows_out, item.statistics.seconds = (
        rows_in,
        rows_out,
        seconds,
    )
    request = Request(FlowGraph({}, ()), {}, now=0, limit=1)  # type: ignore[arg-type]
    return FlowTask(request, item, TaskUrgency.DEFERRED, None)


def test_section_4_1_round_robin_takes_them_by_their_numbers_again_and_again() -> None:
    policy = RoundRobin()
    taken = []
    for round_ in range(2):
        for index in (2, 0, 1):
            policy.add(task(index, 1))
        for _ in range(3):
            turn = policy.next(0)
            assert turn is not None
            assert turn.slot_seconds is None, "until its input is exhausted"
            taken.append((round_, turn.task.item.index))
    assert taken == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert policy.next(0) is None


def test_section_4_2_minimum_cost_takes_the_longest_queue() -> None:
    policy = MinimumCost()
    for index, waiting in enumerate([30, 500, 499]):
        policy.add(task(index, waiting))
    turn = policy.next(0)
    assert turn is not None
    assert (turn.task.item.index, turn.slot_seconds) == (1, None)


def test_section_4_3_minimum_memory_takes_the_largest_benefit_for_one_time_slot() -> None:
    # MemB = (In - Out) / ExecTime * Queue: 900/1*10 = 9,000; 100/1*80 = 8,000; 0 frees nothing.
    filters, passes_most, passes_all = (
        task(0, 10, 1000, 100, 1),
        task(1, 80, 1000, 900, 1),
        task(2, 1000, 1000, 1000, 1),
    )
    assert [t.item.memory_benefit for t in (filters, passes_most, passes_all)] == [9000, 8000, 0]
    policy = MinimumMemory()
    for given in (passes_all, passes_most, filters):
        policy.add(given)
    turn = policy.next(0)
    assert turn is not None
    assert (turn.task, turn.slot_seconds) == (filters, SLOT_SECONDS)


def test_section_4_3_before_anything_was_measured_the_longest_queue_is_taken() -> None:
    policy = MinimumMemory()
    for index, waiting in enumerate([5, 7, 6]):
        policy.add(task(index, waiting))
    turn = policy.next(0)
    assert turn is not None
    assert turn.task.item.index == 1


def test_section_3_1_selectivity_and_consumption_rate() -> None:
    item = task(0, 1, rows_in=400, rows_out=100, seconds=2.0).item
    assert item.statistics.selectivity == 0.25
    assert item.statistics.consumption_rate == 150
