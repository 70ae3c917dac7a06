"""Groups and their sums: blocking, but it holds groups and not rows.

Every pack is aggregated at once, the partial results are merged when they have become many, and at
the end once more. That needs each function as a part (per pack), a merge, and a last step.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.expressions import Compiled, column
from springhouse.flows.graph import Output
from springhouse.flows.row_pack import cut

MERGE_ROWS = 100_000
"""Merge partial results when they have that many groups, and twice those of the last merge."""


class Measure(NamedTuple):
    """One aggregate: sum, count, min, max or avg of an expression (None: count(*))."""

    function: str
    expression: Compiled | None


_PARTS = {
    "sum": ("sum",),
    "count": ("count",),
    "min": ("min",),
    "max": ("max",),
    "avg": ("sum", "count"),
}
_MERGES = {"sum": "sum", "count": "sum", "min": "min", "max": "max"}


class Aggregate:
    """Groups of rows with the same keys. Without keys it is one group, also of no rows."""

    def __init__(
        self,
        schema: pa.Schema,
        keys: Sequence[str],
        measures: Mapping[str, Measure],
        pack_bytes: int,
    ) -> None:
        self._schema, self._keys, self._measures = schema, list(keys), measures
        self._pack_bytes = pack_bytes
        self._parts: list[pa.Table] = []
        self._rows = 0
        self._merged_rows = 0

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        part = self._part(pack)
        self._parts.append(part)
        self._rows += part.num_rows
        if self._rows > max(MERGE_ROWS, 2 * self._merged_rows) and len(self._parts) > 1:
            merged = self._merge()
            self._parts, self._rows = [merged], merged.num_rows
            self._merged_rows = merged.num_rows
        return ()

    def end(self, port: int) -> Iterable[Output]:
        return self._groups()

    def _part(self, pack: pa.RecordBatch) -> pa.Table:
        columns = {name: pack.column(name) for name in self._keys}
        wanted, names = [], []
        for name, measure in self._measures.items():
            given = f"__{name}"
            if measure.expression is None:
                columns[given] = pa.repeat(pa.scalar(1, pa.int64()), pack.num_rows)
            else:
                columns[given] = column(measure.expression(pack), pack.num_rows)
            for part in _PARTS[measure.function]:
                mode = pc.CountOptions(mode="only_valid") if part == "count" else None
                wanted.append((given, part, mode) if mode else (given, part))
                names.append(f"{name}.{part}")
        return _grouped(pa.table(columns), self._keys, wanted, names)

    def _merge(self) -> pa.Table:
        wanted, names = [], []
        for name, measure in self._measures.items():
            for part in _PARTS[measure.function]:
                names.append(f"{name}.{part}")
                wanted.append((names[-1], _MERGES[part]))
        return _grouped(pa.concat_tables(self._parts), self._keys, wanted, names)

    def _groups(self) -> Iterator[Output]:
        if not self._parts:
            if self._keys:
                return
            nothing = [
                pa.scalar(0 if m.function == "count" else None) for m in self._measures.values()
            ]
            arrays = [
                pa.array([value.as_py()], field.type)
                for value, field in zip(nothing, self._schema, strict=True)
            ]
            yield 0, pa.RecordBatch.from_arrays(arrays, schema=self._schema)
            return
        merged = self._merge()
        self._parts = []
        columns = [merged[name] for name in self._keys]
        for name, measure in self._measures.items():
            if measure.function == "avg":
                total = pc.cast(merged[f"{name}.sum"], pa.float64())
                count = pc.cast(merged[f"{name}.count"], pa.float64())
                columns.append(pc.divide(total, count))
            else:
                columns.append(merged[f"{name}.{measure.function}"])
        arrays = [c.cast(f.type) for c, f in zip(columns, self._schema, strict=True)]
        for batch in (
            pa.Table.from_arrays(arrays, schema=self._schema).combine_chunks().to_batches()
        ):
            for pack in cut(batch, self._pack_bytes):
                yield 0, pack


def measured_type(function: str, given: pa.DataType | None) -> pa.DataType:
    """The type of an aggregate, as in Spark: integers sum to BIGINT, averages are doubles."""
    if function == "count":
        return pa.int64()
    assert given is not None
    if function == "avg":
        return pa.float64()
    if function == "sum":
        if pa.types.is_integer(given):
            return pa.int64()
        if pa.types.is_decimal(given):
            return pa.decimal128(min(38, given.precision + 10), given.scale)
        return pa.float64()
    return given


def _grouped(
    rows: pa.Table, keys: list[str], wanted: Sequence[tuple[object, ...]], names: Sequence[str]
) -> pa.Table:
    made = rows.group_by(keys, use_threads=False).aggregate(list(wanted))
    ordered = [made[name] for name in keys]
    ordered += [made[f"{part[0]}_{part[1]}"] for part in wanted]
    return pa.Table.from_arrays(ordered, names=[*keys, *names])
