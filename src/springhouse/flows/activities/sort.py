"""How are rows sorted? The activity blocks, because the last row may have to leave first."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.flow_graph import Output
from springhouse.flows.row_expressions import CompiledExpression, column
from springhouse.flows.row_pack import cut
from springhouse.flows.sql.sort_order import sortable_keys


class Key(NamedTuple):
    """One key of an order: its expression, its direction, and whether NULLs come first."""

    compute: CompiledExpression
    descending: bool = False
    nulls_first: bool = True


class Sort:
    """Holds all rows until the end, then gives them in order."""

    def __init__(self, schema: pa.Schema, keys: Sequence[Key], pack_bytes: int) -> None:
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


def in_order(rows: pa.Table, keys: Sequence[Key]) -> pa.Table:
    """The rows sorted as Spark sorts them; rows with equal keys stay in their order.

    Arrow puts the NULLs of all keys at the same end. So a key with NULLs gets an extra column
    before it, which says where the key is NULL.
    """
    (whole,) = rows.combine_chunks().to_batches() or [None]
    if whole is None:
        return rows
    columns: dict[str, pa.Array] = {}
    directions: list[tuple[str, str]] = []
    for number, key in enumerate(keys):
        values = sortable_keys(column(key.compute(whole), whole.num_rows))
        if values.null_count:
            columns[f"known {number}"] = values.is_valid()
            directions.append((f"known {number}", _direction(not key.nulls_first)))
        columns[f"key {number}"] = values
        directions.append((f"key {number}", _direction(key.descending)))
    if not columns:
        return rows
    return rows.take(pc.sort_indices(pa.table(columns), sort_keys=directions)).combine_chunks()


def _direction(descending: bool) -> str:
    return "descending" if descending else "ascending"


def by_name(name: str) -> Key:
    """The ascending order of a column, with NULLs first."""
    return Key(lambda pack: pack.column(name))
