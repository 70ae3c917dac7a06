"""Groups and their sums: DuckDB is the judge, and partial results are merged on the way."""

from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springhouse.flows.activities import grouping
from springhouse.flows.declare import Draft, flow
from springhouse.flows.flow_graph import FlowError, FlowGraph, NodeKind
from springhouse.flows.stages import split_activities

VALUES = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 3)),
        st.one_of(st.none(), st.integers(-8, 8)),
    ),
    max_size=30,
)
MEASURES = {
    "total": "sum(v)",
    "counted": "count(v)",
    "rows": "count(*)",
    "low": "min(v)",
    "high": "max(v)",
    "mean": "avg(v)",
}
SELECTED = ", ".join(f"{sql} AS {name}" for name, sql in MEASURES.items())


@flow
def grouped(flow: Draft) -> None:
    values = flow.read("t", "k INT, v BIGINT")
    values.aggregate("k", **MEASURES).write("by key")
    values.aggregate(**MEASURES).write("all")


@settings(max_examples=50)
@given(values=VALUES, pack_bytes=st.sampled_from([16, 100, 10_000]))
def test_groups(values: list[tuple[int | None, int | None]], pack_bytes: int) -> None:
    t = pa.table(
        {
            "k": pa.array([k for k, _ in values], pa.int32()),
            "v": pa.array([v for _, v in values], pa.int64()),
        }
    )
    made = grouped.run({"t": t}, pack_bytes=pack_bytes)
    with duckdb.connect() as database:
        database.register("t", t)
        by_key = database.sql(f"SELECT k, {SELECTED} FROM t GROUP BY k").fetchall()
        everything = database.sql(f"SELECT {SELECTED} FROM t").fetchall()
    found = [tuple(row.values()) for row in made["by key"].to_pylist()]
    assert sorted(found, key=repr) == sorted(by_key, key=repr)
    assert [tuple(row.values()) for row in made["all"].to_pylist()] == everything


def test_many_groups_are_merged_before_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "PORTION_ROWS", 1)
    monkeypatch.setattr(grouping, "MERGE_ROWS", 10)
    t = pa.table({"k": pa.array([i % 40 for i in range(400)], pa.int32()), "v": list(range(400))})
    made = grouped.run({"t": t}, pack_bytes=200)
    totals = {row["k"]: row["total"] for row in made["by key"].to_pylist()}
    assert totals == {k: sum(range(k, 400, 40)) for k in range(40)}


def in_two(graph: FlowGraph, rows: pa.Table, tasks: int) -> pa.Table:
    """The one aggregate of a flow, split over tasks: partial results of some rows, then a merge."""
    whole = split_activities(graph)
    (name,) = (node.name for node in graph.of_kind(NodeKind.ACTIVITY))
    first, second = whole.nodes[f"{name} in each task"], whole.nodes[name]
    assert first.make is not None
    assert second.make is not None
    gathered = second.make(1000)
    for task in range(tasks):
        half = first.make(200)
        mine = rows.take(pa.array(range(task, rows.num_rows, tasks), pa.int64()))
        passed = [out for batch in mine.to_batches(max_chunksize=7) for out in half.take(0, batch)]
        for _, pack in [*passed, *half.end(0)]:
            assert pack.schema == second.inputs[0]
            assert not list(gathered.take(0, pack))
    return pa.Table.from_batches([pack for _, pack in gathered.end(0)], second.outputs[0])


@settings(max_examples=30, deadline=None)
@given(values=VALUES, keys=st.sampled_from(["k", ()]), tasks=st.integers(1, 3))
def test_partial_results_merge_to_the_same_groups(
    values: list[tuple[int | None, int | None]], keys: str | tuple[()], tasks: int
) -> None:
    t = pa.table(
        {
            "k": pa.array([k for k, _ in values], pa.int32()),
            "v": pa.array([v for _, v in values], pa.int64()),
            "d": pa.array([v for _, v in values], pa.int64()).cast(pa.decimal128(19, 0)),
        }
    )

    @flow
    def once(flow: Draft) -> None:
        read = flow.read("t", "k INT, v BIGINT, d DECIMAL(19, 0)")
        read.aggregate(keys, **MEASURES, exact="sum(d)", middle="avg(d)").write("groups")

    whole = once.run({"t": t})["groups"]
    found = in_two(once.graph(), t, tasks)
    assert sorted(found.to_pylist(), key=repr) == sorted(whole.to_pylist(), key=repr)


def test_too_many_groups_are_passed_on_and_not_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "PORTION_ROWS", 1)
    monkeypatch.setattr(grouping, "MERGE_ROWS", 10)
    schema = pa.schema([pa.field("k", pa.int32(), nullable=False), pa.field("v", pa.int64())])
    t = pa.table({"k": list(range(200)), "v": list(range(200))}, schema=schema)

    @flow
    def once(flow: Draft) -> None:
        flow.read("t", schema).aggregate("k", total="sum(v)").write("groups")

    whole = split_activities(once.graph())
    make = whole.nodes["aggregate in each task"].make
    assert make is not None
    half = make(1000)
    passed = [sum(p.num_rows for _, p in half.take(0, b)) for b in t.to_batches(max_chunksize=7)]
    assert sum(passed) > 150
    assert in_two(once.graph(), t, 2).num_rows == 200


LARGE = 2**62


@pytest.mark.parametrize(
    ("numbers", "fits"),
    [
        ([LARGE, LARGE - 1, 5, -5], True),
        ([LARGE, LARGE], False),
        ([-LARGE, -LARGE], True),
        ([-LARGE, -LARGE, -1], False),
    ],
)
def test_a_sum_that_does_not_fit_is_an_error_that_names_its_activity(
    numbers: list[int], fits: bool
) -> None:
    @flow
    def summed(flow: Draft) -> None:
        read = flow.read("t", "v BIGINT")
        read.aggregate(total="sum(v)", mean="avg(v)", name="all of it").write("totals")

    t = pa.table({"v": pa.array(numbers, pa.int64())})
    # The limit is exceeded in one pack, or only when two packs are merged.
    for pack_bytes in (10_000, 8):
        if fits:
            (row,) = summed.run({"t": t}, pack_bytes=pack_bytes)["totals"].to_pylist()
            assert row == {
                "total": sum(numbers),
                "mean": pytest.approx(sum(numbers) / len(numbers)),
            }
        else:
            with pytest.raises(
                FlowError, match='activity "all of it" failed: OverflowError: a sum'
            ):
                summed.run({"t": t}, pack_bytes=pack_bytes)


def test_a_sum_of_decimals_that_does_not_fit_is_an_error_too() -> None:
    @flow
    def summed(flow: Draft) -> None:
        flow.read("t", "d DECIMAL(38, 0)").aggregate(total="sum(d)").write("totals")

    nines = Decimal("9" * 38)
    kind = pa.decimal128(38, 0)
    t = pa.table({"d": pa.array([nines, Decimal("-" + "9" * 38), Decimal(7)], kind)})
    assert summed.run({"t": t})["totals"].to_pylist() == [{"total": Decimal(7)}]
    with pytest.raises(FlowError, match="OverflowError: a sum is too large"):
        summed.run({"t": pa.table({"d": pa.array([nines, nines], kind)})})
