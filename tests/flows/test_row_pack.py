"""How are rows cut and joined to packs?"""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from springhouse.flows.row_pack import packs_of


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
