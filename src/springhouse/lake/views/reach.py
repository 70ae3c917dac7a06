"""Can a change reach the first rows of an order?

A view with ORDER BY … LIMIT stores its first rows. Most changed rows come far behind the last
stored row. Often the first sort column alone shows this, and then the stored rows stay as they are.
The deletion of a stored row counts as in reach, because a row is not behind itself.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.lake.views.lookups import values_for
from springhouse.views.delta.statement import Leading


def out_of_reach(
    leading: Leading, stored: pa.ChunkedArray, changed: Sequence[pa.ChunkedArray]
) -> bool:
    """Whether every changed value is certainly behind every stored value.

    Also False where only Spark knows the order: stored NULLs, NaN, nested values.
    """
    if not len(stored) or stored.null_count:
        return False
    values = _values(stored.type, changed)
    if values is None or _has_nan(stored) or _has_nan(values):
        return False
    if values.null_count and leading.nulls_first:
        return False
    values = values.drop_null()
    if not len(values):
        return True
    if leading.descending:
        return bool(pc.less(pc.max(values), pc.min(stored)).as_py())
    return bool(pc.greater(pc.min(values), pc.max(stored)).as_py())


def _values(kind: pa.DataType, changed: Sequence[pa.ChunkedArray]) -> pa.Array | None:
    if pa.types.is_floating(kind) and all(each.type == kind for each in changed):
        return pa.concat_arrays([pa.array([], kind), *(c for each in changed for c in each.chunks)])
    return values_for(kind, changed)


def _has_nan(values: pa.Array | pa.ChunkedArray) -> bool:
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())
