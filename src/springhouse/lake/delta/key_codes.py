"""Which rows of two tables have the same key?

Every key becomes one number, and equal keys get the same number in all tables. NULL is a key like
any other. Then arithmetic on arrays finds, counts and nets rows. This works in this process, for
tables that are small enough.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Codes = npt.NDArray[np.int64]


def codes_of(tables: Sequence[pa.Table], names: Sequence[Sequence[str]]) -> list[Codes]:
    """The code of every row, per table; `names` are the key columns of each table, in order."""
    sizes = [table.num_rows for table in tables]
    total = np.zeros(sum(sizes), dtype=np.int64)
    for place in range(len(names[0])):
        columns = [table[own[place]] for table, own in zip(tables, names, strict=True)]
        codes, count = _column_codes(columns)
        total = total * count + codes
        # Renumber the codes, so that the next multiplication does not overflow.
        total = np.unique(total, return_inverse=True)[1].astype(np.int64)
    cuts = np.cumsum(sizes)[:-1]
    return list(np.split(total, cuts))


def _column_codes(columns: Sequence[pa.ChunkedArray]) -> tuple[Codes, int]:
    kind = columns[0].type
    whole = pa.chunked_array([chunk for c in columns for chunk in c.cast(kind).chunks], type=kind)
    if pa.types.is_nested(kind):
        counted = whole.cast(_in_numbers(kind))
        whole = pa.chunked_array([pa.array([repr(value) for value in counted.to_pylist()])])
    encoded = whole.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes = pc.cast(encoded.indices, pa.int64()).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), max(len(encoded.dictionary), 1)


def _in_numbers(kind: pa.DataType) -> pa.DataType:
    """The type with numbers for dates and times: Python lacks years before 1 and after 9999."""
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_in_numbers(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_in_numbers(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_in_numbers(kind.key_type), _in_numbers(kind.item_type))
    return kind


def is_among(rows: Codes, keys: Codes) -> npt.NDArray[np.bool_]:
    """For each row, whether its key is one of `keys`."""
    return np.isin(rows, keys)


def net_rows(table: pa.Table, names: Sequence[str], weights: npt.NDArray[np.int64]) -> pa.Table:
    """Each distinct row once, with the sum of its weights, without rows whose sum is zero."""
    if not table.num_rows:
        return table.select(list(names)).append_column("weight", pa.array([], pa.int64()))
    (codes,) = codes_of([table], [list(names)])
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    sums = np.bincount(inverse, weights=weights.astype(np.float64)).astype(np.int64)
    kept = sums != 0
    chosen = table.select(list(names)).take(pa.array(first[kept]))
    return chosen.append_column("weight", pa.array(sums[kept], pa.int64()))


def repeat_rows(table: pa.Table, times: npt.NDArray[np.int64]) -> pa.Table:
    """The rows, each repeated as often as its number in `times` says."""
    return table.take(pa.array(np.repeat(np.arange(table.num_rows), times)))
