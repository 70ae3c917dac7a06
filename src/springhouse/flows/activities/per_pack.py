"""Which activities need only one pack at a time? Filters, projections, formulas and functions.

They hold no rows, so they pipeline. A Python function may call a model or a library. If it raises
an error, its flow fails, or an option sends the rows of the pack to quarantine with the reason. Its
result must have the promised columns.
"""

import json
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from springhouse.flows.flow_graph import FlowError, Output, schema_difference
from springhouse.flows.row_expressions import CompiledExpression, Value, column
from springhouse.flows.row_pack import with_schema

PackFunction = Callable[[pa.RecordBatch], pa.RecordBatch | pa.Table]

QUARANTINE = pa.schema(
    {"reason": pa.string(), "record": pa.string(), "origin": pa.string()},
)
"""The reason, the row as JSON, and the activity that could not process it."""


class PackActivity:
    """Applies a function to each pack. An error of the function fails the flow."""

    def __init__(self, function: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        self._function = function

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        result = self._function(pack)
        return ((0, result),) if result.num_rows else ()

    def end(self, port: int) -> Iterable[Output]:
        return ()


def filter_rows(condition: CompiledExpression) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """A filter: only rows for which the condition is true."""

    def keep(pack: pa.RecordBatch) -> pa.RecordBatch:
        holds = column(condition(pack), pack.num_rows)
        count = holds.true_count
        if count == pack.num_rows:
            return pack
        return pack.filter(holds) if count else pack.slice(0, 0)

    return keep


def project_columns(
    input_schema: pa.Schema, schema: pa.Schema, columns: Sequence[int | CompiledExpression]
) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """A projection from one schema to another. Each column is a place in the pack, or a formula.

    The unchanged columns are selected all at once. Selecting them one by one would cost more than
    computing a column.
    """
    stay = [choice for choice in columns if isinstance(choice, int)]
    computed = [
        (at, schema.field(at), choice)
        for at, choice in enumerate(columns)
        if not isinstance(choice, int)
    ]
    as_declared = not input_schema.metadata and all(
        input_schema.field(choice).equals(schema.field(at), check_metadata=True)
        for at, choice in enumerate(columns)
        if isinstance(choice, int)
    )

    def project(pack: pa.RecordBatch) -> pa.RecordBatch:
        result = pack.select(stay)
        for at, field, compute in computed:
            values = _cast_values(column(compute(pack), pack.num_rows), field.type)
            result = result.add_column(at, field, values)
        return result if as_declared else with_schema(schema, result)

    return project


def _cast_values(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    return values if values.type == wanted else values.cast(wanted)


class PythonActivity:
    """Applies a user's Python function to each pack. Port 1 is the quarantine, if it is on."""

    def __init__(
        self, name: str, function: PackFunction, schema: pa.Schema, *, quarantine: bool
    ) -> None:
        self._name, self._function, self._schema = name, function, schema
        self._quarantine = quarantine
        self._seen: pa.Schema | None = None

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        try:
            result = self._function(pack)
        except Exception as failure:
            if not self._quarantine:
                raise
            reason = f"{type(failure).__name__}: {failure}"
            return ((1, set_aside(pack, reason, self._name)),)
        return [(0, batch) for batch in self._check_result(result) if batch.num_rows]

    def end(self, port: int) -> Iterable[Output]:
        return ()

    def _check_result(self, made: object) -> list[pa.RecordBatch]:
        if not isinstance(made, pa.RecordBatch | pa.Table):
            raise FlowError(
                f'activity "{self._name}" returned {type(made).__name__}, not rows',
                hint="Return a pyarrow RecordBatch or Table.",
            )
        if made.schema != self._seen:
            difference = schema_difference(made.schema, self._schema)
            if difference:
                raise FlowError(
                    f'activity "{self._name}" returned other columns than it promised: '
                    f"{difference}",
                    hint="Promise what it returns: apply(function, schema='name TYPE, …').",
                )
            self._seen = made.schema
        batches = made.to_batches() if isinstance(made, pa.Table) else [made]
        return [with_schema(self._schema, batch) for batch in batches]


def set_aside(pack: pa.RecordBatch, reason: str | Value, origin: str) -> pa.RecordBatch:
    """The rows of a pack as quarantine rows."""
    records = [json.dumps(row, default=str) for row in pack.to_pylist()]
    count = pack.num_rows
    reasons = pa.array([reason] * count) if isinstance(reason, str) else column(reason, count)
    arrays = [reasons, pa.array(records, pa.string()), pa.array([origin] * count)]
    return pa.RecordBatch.from_arrays(arrays, schema=QUARANTINE)
