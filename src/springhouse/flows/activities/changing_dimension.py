"""Slowly changing dimensions: which row of a key was valid at which time?

Port 0 takes the present dimension. Port 1 takes the changes, which have a column that orders them.
Type 1 keeps the newest row of each key. Type 2 keeps every row that differs from the row before it.
Such a row is valid from its own moment until the moment of the next row (NULL: still valid). Both
inputs block: the result is the whole new dimension.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.activities.sort import by_name, in_order
from springhouse.flows.flow_graph import Output
from springhouse.flows.row_pack import cut
from springhouse.flows.sql.sort_order import sortable_keys

VALID_FROM, VALID_TO = "valid_from", "valid_to"
DIMENSION, CHANGES = 0, 1


class ChangingDimensionSpec(NamedTuple):
    """The schema of the changes, their keys, the column that orders them, and the type (1 or 2)."""

    schema: pa.Schema
    keys: tuple[str, ...]
    sequence: str
    type: int

    @property
    def dimension(self) -> pa.Schema:
        """The dimension's schema. Type 2 has two moments instead of the column for the order."""
        if self.type == 1:
            return self.schema
        moment = self.schema.field(self.sequence).type
        remaining = [field for field in self.schema if field.name != self.sequence]
        return pa.schema([*remaining, (VALID_FROM, moment), (VALID_TO, moment)])


class ChangingDimension:
    """Applies the changes to the dimension."""

    def __init__(self, spec: ChangingDimensionSpec, pack_bytes: int) -> None:
        self._spec, self._pack_bytes = spec, pack_bytes
        self._held: tuple[list[pa.RecordBatch], list[pa.RecordBatch]] = ([], [])
        self._open = 2

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        self._held[port].append(pack)
        return ()

    def end(self, port: int) -> Iterable[Output]:
        self._open -= 1
        return self._new() if self._open == 0 else ()

    def _new(self) -> Iterator[Output]:
        spec = self._spec
        before = pa.Table.from_batches(self._held[DIMENSION], spec.dimension)
        changes = pa.Table.from_batches(self._held[CHANGES], spec.schema)
        self._held = ([], [])
        result = (
            newest(before, changes, spec) if spec.type == 1 else versions(before, changes, spec)
        )
        for batch in result.combine_chunks().to_batches():
            for pack in cut(batch, self._pack_bytes):
                yield 0, pack


def newest(before: pa.Table, changes: pa.Table, spec: ChangingDimensionSpec) -> pa.Table:
    """Type 1: the last row of each key."""
    rows = _in_order_of(pa.concat_tables([before, changes]), spec.keys, spec.sequence)
    return rows.filter(pc.invert(_same_as_next(rows, spec.keys)))


def versions(before: pa.Table, changes: pa.Table, spec: ChangingDimensionSpec) -> pa.Table:
    """Type 2: every row that differs from the row before it, with the end of its validity."""
    dated = changes.rename_columns(
        [VALID_FROM if name == spec.sequence else name for name in changes.schema.names]
    )
    plain = [name for name in spec.dimension.names if name != VALID_TO]
    rows = pa.concat_tables([before.select(plain), dated.select(plain)])
    rows = _in_order_of(rows, spec.keys, VALID_FROM)
    # Of several changes at one moment the last one counts.
    rows = rows.filter(pc.invert(_same_as_next(rows, (*spec.keys, VALID_FROM))))
    values = [name for name in plain if name != VALID_FROM]
    same = _same_as_next(rows, values)
    repeats = pa.concat_arrays([pa.array([False]), same[:-1]]) if len(same) else same
    rows = rows.filter(pc.invert(repeats))
    followed = _same_as_next(rows, spec.keys)
    moments = rows[VALID_FROM].combine_chunks()
    after = pa.concat_arrays([moments[1:], pa.nulls(min(1, len(moments)), moments.type)])
    until = pc.if_else(followed, after, pa.scalar(None, moments.type))
    return rows.append_column(VALID_TO, until).select(spec.dimension.names).cast(spec.dimension)


def _in_order_of(rows: pa.Table, keys: Sequence[str], sequence: str) -> pa.Table:
    return in_order(rows, [by_name(name) for name in (*keys, sequence)])


def _same_as_next(rows: pa.Table, names: Sequence[str]) -> pa.Array:
    """Whether the next row has the same values in these columns. NULL is the same as NULL."""
    count = rows.num_rows
    same = pa.repeat(pa.scalar(True), max(0, count - 1))
    for name in names:
        values = sortable_keys(rows[name].combine_chunks())
        one, other = values[:-1], values[1:]
        both_null = pc.and_(pc.is_null(one), pc.is_null(other))
        same = pc.and_(same, pc.or_(pc.fill_null(pc.equal(one, other), False), both_null))
    return pa.concat_arrays([same, pa.array([False] * min(1, count), pa.bool_())])
