"""How many rows travel together?

A row pack is an Arrow record batch. Small packs stay in the cache, large ones spare overhead. 002
(sections 4.1 and 5.2) chooses half of the L2 cache. Here every activity costs about a tenth of a
millisecond per pack in Python and in Arrow's calls, even for a pack of few rows. So a pack has at
least `LEAST_BYTES`, which makes this cost small (`bench/results/flow_defaults.md`, decision 0043).
"""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

LEAST_BYTES = 4 * 2**20
"""The size of a pack if half of the L2 cache is smaller, or the cache's size is unknown."""


def rows_per_pack(batch: pa.RecordBatch, pack_bytes: int) -> int:
    """The number of rows like these in a pack of about this size; at least one."""
    if batch.num_rows == 0:
        return 1
    return max(1, int(pack_bytes * batch.num_rows // max(1, batch.nbytes)))


def cut(batch: pa.RecordBatch, pack_bytes: int) -> Iterator[pa.RecordBatch]:
    """The batch in packs of about this size, without copying; no pack if it is empty.

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
    """Rows in packs of about this size: large batches are cut, small batches are joined.

    Joining matters behind a selective filter and before a file, because a pack of one row costs
    about as much as a pack of a thousand rows.
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
            yield from cut(concatenate(small), pack_bytes)
            small, gathered = [], 0
    if small:
        yield from cut(concatenate(small), pack_bytes)


def weigher_for(schema: pa.Schema) -> Callable[[pa.RecordBatch], int]:
    """A function that gives the bytes of a pack of this schema, without the bits for NULLs.

    `RecordBatch.nbytes` visits every buffer, which takes as long as computing a column of a small
    pack. If all columns have a fixed width, the number of rows is enough.

    >>> pack = pa.record_batch({"a": pa.array([1, 2, 3]), "b": pa.array(["x", "yy", "zzz"])})
    >>> weigher_for(pack.schema)(pack) == 3 * 8 + pack.column("b").nbytes
    True
    """
    widths = [_bits(field.type) for field in schema]
    bits = sum(width for width in widths if width is not None)
    others = [place for place, width in enumerate(widths) if width is None]

    def weigh(pack: pa.RecordBatch) -> int:
        size = pack.num_rows * bits // 8
        for place in others:
            size += pack.column(place).nbytes
        return int(size)

    return weigh


def with_schema(schema: pa.Schema, pack: pa.RecordBatch) -> pa.RecordBatch:
    """The pack with exactly this schema. Its own schema may differ in nullability and metadata.

    So inside a flow every pack has the schema of its edge, and later checks are not needed.
    """
    if pack.schema.equals(schema, check_metadata=True):
        return pack
    return pa.RecordBatch.from_arrays(pack.columns, schema=schema)


def _bits(kind: pa.DataType) -> int | None:
    """The width of a value in bits; None if the type alone does not fix it."""
    fixed = (pa.types.is_primitive, pa.types.is_decimal, pa.types.is_fixed_size_binary)
    return int(kind.bit_width) if any(test(kind) for test in fixed) else None


def concatenate(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """The same rows in one batch."""
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
