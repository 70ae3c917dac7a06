"""How many rows travel together?

A row pack is an Arrow record batch. Small packs stay in the cache, large ones spare overhead. 002
(sections 4.1 and 5.2) settles on half of the L2 cache. Here every activity costs about a tenth of a
millisecond per pack in Python and in Arrow's calls, however few rows it has, so a pack is never
smaller than what makes that small (`bench/results/flow_defaults.md`, decision 0043).
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

LEAST_BYTES = 4 * 2**20
"""The size of a pack where half of the L2 cache is less, or could not be found."""


def rows_per_pack(batch: pa.RecordBatch, pack_bytes: int) -> int:
    """How many rows of this kind make a pack of about that size; at least one."""
    if batch.num_rows == 0:
        return 1
    return max(1, int(pack_bytes * batch.num_rows // max(1, batch.nbytes)))


def cut(batch: pa.RecordBatch, pack_bytes: int) -> Iterator[pa.RecordBatch]:
    """The batch in packs of about that size, without copying; none if it is empty.

    >>> batch = pa.record_batch({"a": pa.array(range(10), pa.int64())})
    >>> [pack.num_rows for pack in cut(batch, 32)]
    [4, 4, 2]
    """
    rows = rows_per_pack(batch, pack_bytes)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def packs_of(
    rows: pa.Table | Iterable[pa.RecordBatch], pack_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Rows from anywhere, in packs of about that size: large ones are cut, small ones are joined.

    Joining matters behind a selective filter, and in front of a file: one pack costs about the
    same whether it has one row or a thousand.
    """
    batches = rows.to_batches() if isinstance(rows, pa.Table) else rows
    small: list[pa.RecordBatch] = []
    gathered = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        size = batch.nbytes
        if not small and size >= pack_bytes:
            yield from cut(batch, pack_bytes)
            continue
        small.append(batch)
        gathered += size
        if gathered >= pack_bytes:
            yield from cut(_one(small), pack_bytes)
            small, gathered = [], 0
    if small:
        yield from cut(_one(small), pack_bytes)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
