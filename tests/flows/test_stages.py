"""Which activities share a Spark task? Scenarios that read aloud."""

import pytest
from archetypes import ARCHETYPES, SCHEMAS

from springhouse.flows.declare import Draft, flow
from springhouse.flows.flow_graph import NodeKind
from springhouse.flows.stages import Stage, divide_into_stages

# For each stage: its level, its inputs and how they arrive, and its activities.
TOLD = {
    "line": [
        "0: lineitem as they are -> where, compute, where 2, aggregate in each task",
        "1: aggregate in each task.0 by key l_suppkey -> aggregate, supplier_revenue",
    ],
    "wishbone": [
        "0: partsupp as they are -> where, compute",
        "0: supplier as they are -> where 2, select",
        "1: select.0 by key s_suppkey, compute.0 by key ps_suppkey -> join, where 3, costs",
    ],
    "primary flow": [
        (
            "0: lineitem as they are, part_keys held by every task, supplier_keys held by every"
            " task -> where, lookup, lookup 2, where 2, select, facts"
        ),
    ],
    "fork": [
        (
            "0: lineitem as they are -> compute, route, aggregate in each task,"
            " aggregate 2 in each task, aggregate 3 in each task"
        ),
        "1: route.2 all together -> sort, large_lines",
        "1: aggregate in each task.0 by key l_partkey -> aggregate, small_by_part",
        "1: aggregate 2 in each task.0 by key l_suppkey -> aggregate 2, medium_by_supplier",
        "1: aggregate 3 in each task.0 all together -> aggregate 3, large_total",
    ],
}


def told(stage: Stage) -> str:
    coming = ", ".join(
        f"{i.feed} {i.hand.value}{' ' if i.keys else ''}{', '.join(i.keys)}" for i in stage.inputs
    )
    doing = [n.name for n in stage.graph.nodes.values() if n.kind is NodeKind.ACTIVITY]
    return f"{stage.level}: {coming} -> {', '.join([*doing, *stage.targets])}"


@pytest.mark.parametrize("name", TOLD)
def test_archetypes(name: str) -> None:
    found = [told(stage) for stage in divide_into_stages(ARCHETYPES[name].flow.graph(SCHEMAS))]
    assert found == TOLD[name]


def test_a_router_with_many_targets_is_one_pass() -> None:
    @flow
    def parted(flow: Draft) -> None:
        for number, rows in enumerate(flow.read("n", "a BIGINT").route("a < 1", "a < 2", "a < 3")):
            rows.write(f"t{number}")

    assert [told(s) for s in divide_into_stages(parted.graph())] == [
        "0: n as they are -> route, t0, t1, t2, t3"
    ]


def test_targets_that_share_a_source_read_it_once() -> None:
    @flow
    def shared(flow: Draft) -> None:
        flow.read("n", "a BIGINT").where("a < 1").write("few")
        flow.read("n", "a BIGINT").where("a > 1").write("many")

    (only,) = divide_into_stages(shared.graph())
    assert told(only) == "0: n as they are -> where, where 2, few, many"


def test_what_is_looked_up_in_a_table_made_of_the_same_rows_waits_for_it() -> None:
    """A diamond: one arm makes a table in memory, and the other arm looks rows up there."""

    @flow
    def diamond(flow: Draft) -> None:
        rows = flow.read("n", "k BIGINT, a BIGINT").where("a > 0")
        totals = rows.aggregate("k", total="sum(a)")
        rows.lookup(totals, on="k", take="total").write("shares")

    assert [told(stage) for stage in divide_into_stages(diamond.graph())] == [
        "0: n as they are -> where, aggregate in each task",
        "1: aggregate in each task.0 by key k -> aggregate",
        "2: aggregate.0 held by every task, where.0 as they are -> lookup, shares",
    ]


def test_what_a_flow_wrote_is_read_from_its_target() -> None:
    @flow
    def staged(flow: Draft) -> None:
        flow.read("n", "a BIGINT").where("a > 0").write("between")
        flow.read("between").where("a > 1").write("out")

    assert [told(stage) for stage in divide_into_stages(staged.graph())] == [
        "0: n as they are -> where, between",
        "1: between as they are -> where 2, out",
    ]
