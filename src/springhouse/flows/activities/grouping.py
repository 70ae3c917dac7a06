"""How are rows grouped and aggregated? The activity blocks, but it holds groups and not rows.

It gathers packs until a portion is worth grouping, and groups the portion into a partial result. It
merges the partial results when they have many groups, and once more at the end. So every function
has three steps: a part per portion, a merge, and a last step. If Spark's tasks share the work, only
partial results are shuffled: `PartialAggregate` makes them in each task, and a `GroupedAggregate`
with `given_parts` merges them behind the shuffle.

A sum that is too large for its type is an error, as in Spark. Arrow's own sum wraps around.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.flow_graph import Output
from springhouse.flows.row_expressions import CompiledExpression, column
from springhouse.flows.row_pack import concatenate, cut
from springhouse.flows.sql.numbers import mean_of
from springhouse.flows.sql.sort_order import restore_values, sortable_keys, with_one_zero

PORTION_ROWS = 16_384
"""Group this many rows at once, because grouping a few takes a quarter of a millisecond, too."""

MERGE_ROWS = 100_000
"""Merge partial results when they have more groups than this, and twice those of the last merge."""


class Measure(NamedTuple):
    """One aggregate: its function, the expression (None for `count(*)`), and its type `given`.

    The functions are sum, count, min, max and avg.
    """

    function: str
    expression: CompiledExpression | None
    given: pa.DataType | None = None


_PARTS = {
    "sum": ("sum",),
    "count": ("count",),
    "min": ("min",),
    "max": ("max",),
    "avg": ("sum", "count"),
}
_MERGES = {"sum": "sum", "count": "sum", "min": "min", "max": "max"}


class GroupedAggregate:
    """Aggregates the rows that have the same keys. Without keys all rows, even none, are one group.

    With `given_parts` the incoming rows are partial results already.
    """

    def __init__(
        self,
        schema: pa.Schema,
        keys: Sequence[str],
        measures: Mapping[str, Measure],
        pack_bytes: int,
        *,
        given_parts: bool = False,
    ) -> None:
        self._schema, self._keys, self._measures = schema, list(keys), measures
        self._mark = marker_of(keys)
        self._pack_bytes = pack_bytes
        self._given_parts = given_parts
        self._portion: list[pa.RecordBatch] = []
        self._portion_rows = 0
        self._parts: list[pa.Table] = []
        self._rows = 0
        self._merged_rows = 0

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        self._portion.append(pack)
        self._portion_rows += pack.num_rows
        if self._portion_rows >= PORTION_ROWS:
            self._group()
        return ()

    def _group(self) -> None:
        """Group the gathered rows into a partial result."""
        if not self._portion:
            return
        pack = concatenate(self._portion)
        self._portion, self._portion_rows = [], 0
        if self._given_parts:
            # Only the names, because a merged table does not keep which columns are never NULL.
            part = pa.Table.from_arrays(pack.columns, names=pack.schema.names)
        else:
            part = self._part(pack)
        self._parts.append(part)
        self._rows += part.num_rows
        if self._rows > max(MERGE_ROWS, 2 * self._merged_rows) and len(self._parts) > 1:
            merged = self._merge()
            self._parts, self._rows = [merged], merged.num_rows
            self._merged_rows = merged.num_rows

    def end(self, port: int) -> Iterable[Output]:
        return self._groups()

    def _part(self, pack: pa.RecordBatch) -> pa.Table:
        columns = {name: with_one_zero(pack.column(name)) for name in self._keys}
        wanted, names = [], []
        for name, measure in self._measures.items():
            input_name = f"{self._mark}{name}"
            if measure.expression is None:
                columns[input_name] = pa.repeat(pa.scalar(1, pa.int64()), pack.num_rows)
            else:
                columns[input_name] = column(measure.expression(pack), pack.num_rows)
            if measure.function == "avg" and pa.types.is_integer(columns[input_name].type):
                # As in Spark, an average of whole numbers is computed with doubles.
                columns[input_name] = columns[input_name].cast(pa.float64(), safe=False)
            for part in _PARTS[measure.function]:
                mode = pc.CountOptions(mode="only_valid") if part == "count" else None
                wanted.append((input_name, part, mode) if mode else (input_name, part))
                names.append(part_name(self._mark, name, part))
        return _group_by(pa.table(columns), self._keys, wanted, names)

    def _merge(self) -> pa.Table:
        wanted, names = [], []
        for name, measure in self._measures.items():
            for part in _PARTS[measure.function]:
                names.append(part_name(self._mark, name, part))
                wanted.append((names[-1], _MERGES[part]))
        parts = pa.concat_tables(self._parts)
        return _group_by(parts, self._keys, wanted, names, merging=True)

    def _groups(self) -> Iterator[Output]:
        self._group()
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
                kind = self._schema.field(name).type
                total, count = (part_name(self._mark, name, part) for part in _PARTS["avg"])
                columns.append(_mean(merged[total], merged[count], kind))
            else:
                columns.append(merged[part_name(self._mark, name, measure.function)])
        yield from self._packs(columns)

    def _packs(self, columns: Sequence[pa.ChunkedArray]) -> Iterator[Output]:
        arrays = [c.cast(f.type) for c, f in zip(columns, self._schema, strict=True)]
        for batch in (
            pa.Table.from_arrays(arrays, schema=self._schema).combine_chunks().to_batches()
        ):
            for pack in cut(batch, self._pack_bytes):
                yield 0, pack


class PartialAggregate(GroupedAggregate):
    """Gives the partial results of one task. Several of them may have the same keys."""

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        super().take(port, pack)
        # Merging saved little, so pass the groups on. The aggregate behind the shuffle merges them.
        return self._groups() if self._merged_rows > MERGE_ROWS else ()

    def _groups(self) -> Iterator[Output]:
        self._group()
        if self._parts:
            merged = self._merge()
            self._parts, self._rows, self._merged_rows = [], 0, 0
            yield from self._packs(merged.columns)


def marker_of(keys: Sequence[str]) -> str:
    """The prefix of columns that are not keys: it has more underscores than any key begins with."""
    most = max((len(key) - len(key.lstrip("_")) for key in keys), default=0)
    return "_" * max(2, most + 1)


def part_name(mark: str, measure: str, part: str) -> str:
    """The name of a column of partial results."""
    return f"{mark}{part}_{measure}"


def parts_schema(keys: Sequence[pa.Field], measures: Mapping[str, Measure]) -> pa.Schema:
    """The schema of partial results."""
    fields = list(keys)
    mark = marker_of([key.name for key in keys])
    for name, measure in measures.items():
        for part in _PARTS[measure.function]:
            input_type = measure.given
            if (
                measure.function == "avg"
                and input_type is not None
                and pa.types.is_integer(input_type)
            ):
                input_type = pa.float64()
            fields.append(pa.field(part_name(mark, name, part), measured_type(part, input_type)))
    return pa.schema(fields)


def measured_type(function: str, given: pa.DataType | None) -> pa.DataType:
    """The type of an aggregate, as in Spark: integers sum to BIGINT, averages are doubles."""
    if function == "count":
        return pa.int64()
    assert given is not None
    if function == "avg":
        if pa.types.is_decimal(given):
            return pa.decimal128(min(38, given.precision + 4), min(38, given.scale + 4))
        return pa.float64()
    if function == "sum":
        if pa.types.is_integer(given):
            return pa.int64()
        if pa.types.is_decimal(given):
            return pa.decimal128(min(38, given.precision + 10), given.scale)
        return pa.float64()
    return given


def _mean(totals: pa.ChunkedArray, counts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Totals divided by counts: doubles, or decimals rounded half up. No values give NULL."""
    if not pa.types.is_decimal(kind):
        return pc.divide(pc.cast(totals, pa.float64()), pc.cast(counts, pa.float64()))
    pairs = zip(totals.to_pylist(), counts.to_pylist(), strict=True)
    means = [None if total is None else mean_of(total, count, kind) for total, count in pairs]
    return pa.chunked_array([pa.array(means, kind)])


def _group_by(
    rows: pa.Table,
    keys: list[str],
    wanted: Sequence[tuple[object, ...]],
    names: Sequence[str],
    *,
    merging: bool = False,
) -> pa.Table:
    """The groups of the rows. With `merging` the rows are partial results and keep their types."""
    kinds = {}
    for part in wanted:
        if part[1] == "sum" and part[0] not in kinds:
            name = str(part[0])
            kind = rows.schema.field(name).type
            kinds[name] = kind if merging else measured_type("sum", kind)
            rows = _widen(rows, name)
    extremes = {str(part[0]): rows.schema.field(str(part[0])).type for part in _extremes(wanted)}
    for name in extremes:
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, name, sortable_keys(rows[name]))
    result = rows.group_by(keys, use_threads=False).aggregate(list(wanted))
    columns = [result[name] for name in keys]
    for part, name in zip(wanted, names, strict=True):
        values = result[f"{part[0]}_{part[1]}"]
        if part[1] == "sum":
            values = _narrow(values, kinds[str(part[0])], name)
        elif part[1] in ("min", "max"):
            values = restore_values(values, extremes[str(part[0])])
        columns.append(values)
    return pa.Table.from_arrays(columns, names=[*keys, *names])


def _extremes(wanted: Sequence[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
    """The parts that need sortable keys: Arrow's own min and max ignore NaN."""
    return (part for part in wanted if part[1] in ("min", "max"))


def _widen(rows: pa.Table, name: str) -> pa.Table:
    """The rows, with a wider type for the column if a sum of it could overflow. That is rare."""
    values = rows[name]
    kind = values.type
    if pa.types.is_integer(kind):
        limit, wider = 2**63 - 1, pa.decimal128(38, 0)
    elif pa.types.is_decimal128(kind):
        limit, wider = Decimal(10) ** (38 - kind.scale), pa.decimal256(76, kind.scale)
    else:
        return rows
    result = pc.min_max(values).as_py()
    largest = max(abs(result["min"] or 0), abs(result["max"] or 0))
    if largest * rows.num_rows < limit:
        return rows
    if kind == pa.uint64():
        values = values.cast(pa.decimal128(20, 0))
    elif pa.types.is_integer(kind):
        values = values.cast(pa.int64()).cast(pa.decimal128(19, 0))
    index = rows.schema.get_field_index(name)
    return rows.set_column(index, name, values.cast(wider))


def _narrow(values: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    """The sums in their own type; an error if a sum does not fit."""
    if values.type == kind:
        return values
    try:
        return values.cast(kind)
    except pa.ArrowInvalid as error:
        raise OverflowError(f"a sum is too large for its type, {kind} ({name})") from error
