"""Groups and their sums: DuckDB is the judge, partial results are merged on the way."""

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springhouse.flows.activities import aggregate
from springhouse.flows.declare import Draft, flow

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
    monkeypatch.setattr(aggregate, "MERGE_ROWS", 10)
    t = pa.table({"k": pa.array([i % 40 for i in range(400)], pa.int32()), "v": list(range(400))})
    made = grouped.run({"t": t}, pack_bytes=200)
    totals = {row["k"]: row["total"] for row in made["by key"].to_pylist()}
    assert totals == {k: sum(range(k, 400, 40)) for k in range(40)}
