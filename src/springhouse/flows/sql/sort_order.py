"""In which order are values, and which values are equal?

Arrow's sorts, groups and joins compare a FLOAT or DOUBLE by its bits, or put NaN last in any order.
SQL has one zero, and one NaN, which is larger than all numbers. So before a sort, a group or a
join, these values are replaced by whole numbers in the same order.
"""

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.sql.terms import array_of
from springhouse.flows.sql.types import BOOLEAN, DOUBLE, FLOAT, is_fraction

_Bits: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.int64]]"
_SIGN = np.int64(63)
_ALL_BUT_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)


def with_one_zero(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The values with 0.0 for -0.0 and only one NaN. Other values stay unchanged."""
    if not is_fraction(values.type):
        return values
    whole = array_of(values, 0)
    known = pc.is_valid(whole).to_numpy(zero_copy_only=False)
    numbers = pc.fill_null(whole, 0.0).to_numpy(zero_copy_only=False)
    numbers = np.where(np.isnan(numbers), np.nan, numbers + 0.0).astype(numbers.dtype)
    return pa.array(numbers, values.type, mask=~known)


def sortable_keys(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Keys that Arrow sorts in SQL's order. Two keys are equal if SQL's values are equal."""
    if values.type == BOOLEAN:
        return pc.cast(values, pa.int8())
    if not is_fraction(values.type):
        return values
    whole = array_of(with_one_zero(values), 0)
    known = pc.is_valid(whole).to_numpy(zero_copy_only=False)
    numbers = pc.fill_null(pc.cast(whole, DOUBLE), 0.0).to_numpy(zero_copy_only=False)
    return pa.array(_turn_bits(numbers.view(np.int64)), pa.int64(), mask=~known)


def restore_values(
    keys: pa.Array | pa.ChunkedArray, kind: pa.DataType
) -> pa.Array | pa.ChunkedArray:
    """The values of this type from which `sortable_keys` made the keys."""
    if kind == BOOLEAN:
        return pc.cast(keys, BOOLEAN)
    if kind not in (FLOAT, DOUBLE):
        return keys
    whole = array_of(keys, 0)
    known = pc.is_valid(whole).to_numpy(zero_copy_only=False)
    bits = _turn_bits(pc.fill_null(whole, 0).to_numpy(zero_copy_only=False))
    return pc.cast(pa.array(bits.view(np.float64), DOUBLE, mask=~known), kind, safe=False)


def _turn_bits(bits: _Bits) -> _Bits:
    """Invert all bits but the sign of negative numbers. Doing it twice restores the bits."""
    return bits ^ ((bits >> _SIGN) & _ALL_BUT_SIGN)
