"""Rows with the same key: DuckDB is the judge."""

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springhouse.flows.declare import Draft, flow

KEYS = st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=12)


@flow
def joins(flow: Draft) -> None:
    left = flow.read("l", "k BIGINT, x BIGINT")
    right = flow.read("r", "j INT, y BIGINT")
    on = {"k": "j"}
    left.lookup(right, on=on, take="y").write("looked up")
    left.lookup(right, on=on, take="y", required=True).write("found")
    left.join(right, on=on).write("joined")
    left.join(right, on=on, outer=True).write("outer")


QUERIES = {
    "looked up": "SELECT k, x, y FROM l LEFT JOIN r ON k = j",
    "found": "SELECT k, x, y FROM l JOIN r ON k = j",
    "joined": "SELECT k, x, y FROM l JOIN r ON k = j",
    "outer": "SELECT k, x, y FROM l LEFT JOIN r ON k = j",
}


@settings(max_examples=40)
@given(left=KEYS, right=KEYS, queue_packs=st.integers(1, 3))
def test_joins_and_lookups(
    left: list[int | None], right: list[int | None], queue_packs: int
) -> None:
    l = pa.table({"k": pa.array(left, pa.int64()), "x": pa.array(range(len(left)), pa.int64())})  # noqa: E741  as in the queries
    r = pa.table({"j": pa.array(right, pa.int32()), "y": pa.array(range(len(right)), pa.int64())})
    made = joins.run({"l": l, "r": r}, pack_bytes=32, queue_packs=queue_packs)
    with duckdb.connect() as database:
        database.register("l", l)
        database.register("r", r)
        for name, sql in QUERIES.items():
            wanted = sorted(database.sql(sql).fetchall(), key=repr)
            assert (
                sorted((tuple(row.values()) for row in made[name].to_pylist()), key=repr) == wanted
            )


@pytest.mark.parametrize("verb", ["lookup", "join"])
def test_columns_that_arrow_can_not_join_come_along(verb: str) -> None:
    nested = pa.table({"k": [1, 2], "tags": [["a"], ["b", "c"]]})

    @flow
    def tagged(flow: Draft) -> None:
        rows = flow.read("rows", "k BIGINT")
        tags = flow.read("tags")
        with_tags = (
            rows.lookup(tags, on="k", take="tags") if verb == "lookup" else rows.join(tags, on="k")
        )
        with_tags.write("out")

    made = tagged.run({"rows": pa.table({"k": [2]}), "tags": nested})
    assert made["out"].to_pylist() == [{"k": 2, "tags": ["b", "c"]}]
