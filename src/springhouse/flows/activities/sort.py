"""Rows in order: a blocking activity, as the first row out may be the last one in."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.graph import Output
from springhouse.flows.row_pack import cut

SortKeys = Sequence[tuple[str, str]]
"""Columns, each "ascending" or "descending"; NULLs are first in ascending order, as in Spark."""


class Sort:
    """Holds everything until the end, then gives it in order."""

    def __init__(self, schema: pa.Schema, keys: SortKeys, pack_bytes: int) -> None:
        self._schema, self._keys, self._pack_bytes = schema, list(keys), pack_bytes
        self._held: list[pa.RecordBatch] = []

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        self._held.append(pack)
        return ()

    def end(self, port: int) -> Iterable[Output]:
        return self._in_order()

    def _in_order(self) -> Iterator[Output]:
        rows = pa.Table.from_batches(self._held, self._schema)
        self._held = []
        for batch in in_order(rows, self._keys).to_batches():
            for pack in cut(batch, self._pack_bytes):
                yield 0, pack


def in_order(rows: pa.Table, keys: SortKeys) -> pa.Table:
    """The rows sorted as Spark does: stable enough for equals, NULLs first unless descending.

    Arrow puts all NULLs of all keys at one end, so each key that may be NULL gets a column before
    it that says so.
    """
    named: list[tuple[str, str]] = []
    marked = rows
    for number, (name, direction) in enumerate(keys):
        if rows[name].null_count:
            flag = f"__null_{number}"
            marked = marked.append_column(flag, rows[name].is_valid())
            named.append((flag, direction))
        named.append((name, direction))
    return rows.take(pc.sort_indices(marked, sort_keys=named)).combine_chunks()
