"""Production keys become numbers: known keys keep theirs, new keys get the next one."""

import pyarrow as pa
import pytest

from springhouse.flows.declare import Draft, flow


@flow
def numbered(flow: Draft) -> None:
    known = flow.read("known", "code STRING, key BIGINT")
    rows, new = flow.read("sales", "code STRING, n BIGINT").surrogate_key(
        known, on="code", key="key"
    )
    rows.write("facts")
    new.write("new_keys")


@pytest.mark.parametrize("queue_packs", [1, 100])
def test_known_new_repeated_and_missing_keys(queue_packs: int) -> None:
    known = pa.table({"code": ["a", "b"], "key": [7, 9]})
    codes = ["b", "x", "a", "y", "x", None]
    sales = pa.table({"code": pa.array(codes), "n": list(range(6))})
    given = {"known": known, "sales": sales}
    made = numbered.run(given, pack_bytes=16, queue_packs=queue_packs)
    keys = {(row["code"], row["n"]): row["key"] for row in made["facts"].to_pylist()}
    assert keys == {
        ("b", 0): 9,
        ("x", 1): 10,
        ("a", 2): 7,
        ("y", 3): 11,
        ("x", 4): 10,
        (None, 5): None,
    }
    assert made["new_keys"].to_pylist() == [{"code": "x", "key": 10}, {"code": "y", "key": 11}]


@pytest.mark.parametrize("pack_bytes", [16, 10_000])
@pytest.mark.parametrize("known", [True, False])
def test_all_nan_are_one_key_and_both_zeros_too(known: bool, pack_bytes: int) -> None:
    @flow
    def numbered_doubles(flow: Draft) -> None:
        rows, new = flow.read("rows").surrogate_key(flow.read("known"), on="k", key="id")
        rows.write("facts")
        new.write("new_keys")

    nan = float("nan")
    kinds = pa.schema({"k": pa.float64(), "id": pa.int32()})
    pairs = pa.table({"k": [nan, -0.0], "id": [1, 2]}, kinds).slice(0, 2 if known else 0)
    rows = pa.table({"k": pa.array([nan, 0.0, 1.5, -0.0, nan, None, 1.5], pa.float64())})
    made = numbered_doubles.run({"rows": rows, "known": pairs}, pack_bytes=pack_bytes)
    assert made["facts"]["id"].to_pylist() == [1, 2, 3, 2, 1, None, 3]
    assert made["new_keys"].schema == kinds
    assert made["new_keys"]["id"].to_pylist() == ([3] if known else [1, 2, 3])
