"""How are rows of two streams joined by their keys?

One input is held in memory, and the rows of the other input are probed against it. A lookup
pipelines: it gathers probed rows until a hash table is worth building, joins them, and passes them
on. An operator must accept any pack at any time, so the join also holds probed rows that come
before the held input has ended. `FlowNode.waits` keeps such packs in their queue as long as
possible. A merge join blocks on both inputs, like the sort-merge join of 000, so it is a boundary
of subflows.

Arrow joins only keys and row numbers, and then the rows are taken by number. Arrow can't join lists
or structs, and would copy wide rows twice.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.flow_graph import Output
from springhouse.flows.row_pack import cut
from springhouse.flows.sql.sort_order import sortable_keys

PORTION_ROWS = 65_536
HELD, PROBED = 0, 1


class JoinSpec(NamedTuple):
    """The key columns of both sides, and the columns that the result takes from the held side.

    With `outer`, probed rows without a match stay and get NULLs.
    """

    probed_schema: pa.Schema
    held_schema: pa.Schema
    probed_keys: tuple[str, ...]
    held_keys: tuple[str, ...]
    taken: tuple[tuple[str, str], ...]
    outer: bool

    @property
    def schema(self) -> pa.Schema:
        """The probed columns, then the columns from the held side under their new names."""
        fields = list(self.probed_schema)
        fields += [self.held_schema.field(name).with_name(new) for name, new in self.taken]
        return pa.schema(fields)


class Join:
    """Equi-join; `blocking` waits for both inputs."""

    def __init__(self, spec: JoinSpec, pack_bytes: int, *, blocking: bool) -> None:
        self._spec, self._pack_bytes, self._blocking = spec, pack_bytes, blocking
        self._holding: list[pa.RecordBatch] = []
        self._held: pa.Table | None = None
        self._keys: pa.Table | None = None
        self._portion: list[pa.RecordBatch] = []
        self._rows = 0
        self._probed_ended = False

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        if port == HELD:
            self._holding.append(pack)
            return ()
        self._portion.append(pack)
        self._rows += pack.num_rows
        if self._held is None or self._blocking or self._rows < self._least_rows():
            return ()
        return self._probe()

    def end(self, port: int) -> Iterable[Output]:
        if port == HELD:
            self._held = pa.Table.from_batches(self._holding, self._spec.held_schema)
            self._held = self._held.combine_chunks()
            self._keys = _keys(self._held, self._spec.held_keys, "held")
            self._holding = []
        else:
            self._probed_ended = True
        return self._probe() if self._probed_ended and self._held is not None else ()

    def _least_rows(self) -> int:
        assert self._held is not None
        return max(PORTION_ROWS, int(self._held.num_rows) // 2)

    def _probe(self) -> Iterator[Output]:
        assert self._held is not None
        assert self._keys is not None
        probed = pa.Table.from_batches(self._portion, self._spec.probed_schema).combine_chunks()
        self._portion, self._rows = [], 0
        if not probed.num_rows:
            return
        found = _keys(probed, self._spec.probed_keys, "probed").join(
            self._keys,
            keys=[f"k{i}" for i in range(len(self._spec.probed_keys))],
            join_type="left outer" if self._spec.outer else "inner",
            use_threads=False,
        )
        left = probed.take(found["probed"])
        columns = left.columns
        for name, _ in self._spec.taken:
            columns.append(self._held[name].take(found["held"]))
        result = pa.Table.from_arrays(columns, schema=self._spec.schema).combine_chunks()
        for batch in result.to_batches():
            for pack in cut(batch, self._pack_bytes):
                yield 0, pack


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type in which two key columns are compared; None if they can't be compared."""
    if one == other:
        # Arrow can't join by columns of these types.
        return None if pa.types.is_nested(one) or pa.types.is_null(one) else one
    if pa.types.is_integer(one) and pa.types.is_integer(other):
        return pa.int64()
    return None


def _keys(rows: pa.Table, names: Sequence[str], number: str) -> pa.Table:
    keys = [_comparable(rows[name]) for name in names]
    # Eighteen times as fast as an array from `range`, which makes a Python object of every number.
    counted = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))
    numbers = pc.subtract(counted, 1)
    named = [f"k{i}" for i in range(len(names))]
    return pa.Table.from_arrays([*keys, numbers], names=[*named, number])


def _comparable(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return (
        pc.cast(values, pa.int64()) if pa.types.is_integer(values.type) else sortable_keys(values)
    )
