"""How are rows divided into packs, and packs joined?"""

from decimal import Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from springhouse.flows.row_pack import packs_of, weigher_for, with_schema


def batches(sizes: list[int]) -> list[pa.RecordBatch]:
    return [pa.record_batch({"a": pa.array(range(size), pa.int64())}) for size in sizes]


@given(st.lists(st.integers(0, 50)), st.integers(1, 300))
def test_packs_hold_all_rows_in_order_and_none_is_empty_or_too_large(
    sizes: list[int], pack_bytes: int
) -> None:
    given_rows = [row for size in sizes for row in range(size)]
    packs = list(packs_of(batches(sizes), pack_bytes))
    assert [row for pack in packs for row in pack.column(0).to_pylist()] == given_rows
    assert all(0 < pack.num_rows <= max(1, pack_bytes // 8) for pack in packs)


def test_small_batches_are_joined() -> None:
    assert [pack.num_rows for pack in packs_of(batches([1] * 20), 80)] == [10, 10]


def test_a_pack_has_as_many_bytes_as_arrow_says_but_for_the_bits_of_null() -> None:
    pack = pa.record_batch(
        {
            "whole": pa.array([1, 2, 3, 4, 5, 6, 7, 8]),
            "truth": pa.array([True, False] * 4),
            "price": pa.array([Decimal("1.25")] * 8, pa.decimal128(12, 2)),
            "mark": pa.array([b"abc"] * 8, pa.binary(3)),
            "text": pa.array(["", "a", "bb", "ccc", "dddd", "e", "f", "g"]),
            "list": pa.array([[1], [], [2, 3]] * 2 + [[], []]),
        }
    )
    weigh = weigher_for(pack.schema)
    assert weigh(pack) == pack.nbytes
    assert weigh(pack.slice(0, 0)) <= 8, "what is left are offsets"
    nulls = pa.record_batch({"a": pa.array([None, 1, 2, 3, 4, 5, 6, 7])})
    assert weigher_for(nulls.schema)(nulls) == nulls.nbytes - 1


def test_a_pack_comes_under_the_schema_that_was_declared() -> None:
    declared = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    pack = pa.record_batch({"a": [1, 2]})
    assert with_schema(declared, pack).schema.equals(declared)
    assert with_schema(declared, pack).column(0).to_pylist() == [1, 2]
    assert with_schema(pack.schema, pack) is pack
