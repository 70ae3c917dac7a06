"""Activities that look at one pack at a time: filters, projections, computed columns, functions.

They hold nothing, so they pipeline. A Python function may call a model or a library, and may raise:
then its flow fails, or the rows of the pack go to quarantine with the reason, by option. What it
returns must have the promised columns.
"""

import json
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from springhouse.flows.expressions import Compiled, Value, column
from springhouse.flows.graph import FlowError, Output, schema_difference

PackFunction = Callable[[pa.RecordBatch], pa.RecordBatch | pa.Table]

QUARANTINE = pa.schema(
    {"reason": pa.string(), "record": pa.string(), "origin": pa.string()},
)
"""Why rows were set aside, each row as JSON, and the activity that could not take it."""


class Each:
    """A function from pack to pack that never fails by itself."""

    def __init__(self, function: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        self._function = function

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        made = self._function(pack)
        return ((0, made),) if made.num_rows else ()

    def end(self, port: int) -> Iterable[Output]:
        return ()


def kept(condition: Compiled) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """A filter: only rows for which the condition is true."""

    def keep(pack: pa.RecordBatch) -> pa.RecordBatch:
        return pack.filter(column(condition(pack), pack.num_rows))

    return keep


def projected(
    schema: pa.Schema, columns: Sequence[Compiled]
) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """A projection: one column for each expression."""

    def project(pack: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            _typed(column(compute(pack), pack.num_rows), field.type)
            for field, compute in zip(schema, columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    return project


def _typed(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    return values if values.type == wanted else values.cast(wanted)


class Function:
    """A Python function on packs: a black box. Port 1 is the quarantine, if there is one."""

    def __init__(
        self, name: str, function: PackFunction, schema: pa.Schema, *, quarantine: bool
    ) -> None:
        self._name, self._function, self._schema = name, function, schema
        self._quarantine = quarantine

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        try:
            made = self._function(pack)
        except Exception as failure:
            if not self._quarantine:
                raise
            reason = f"{type(failure).__name__}: {failure}"
            return ((1, set_aside(pack, reason, self._name)),)
        return [(0, batch) for batch in self._checked(made) if batch.num_rows]

    def end(self, port: int) -> Iterable[Output]:
        return ()

    def _checked(self, made: object) -> list[pa.RecordBatch]:
        if not isinstance(made, pa.RecordBatch | pa.Table):
            raise FlowError(
                f'activity "{self._name}" returned {type(made).__name__}, not rows',
                hint="Return a pyarrow RecordBatch or Table.",
            )
        difference = schema_difference(made.schema, self._schema)
        if difference:
            raise FlowError(
                f'activity "{self._name}" returned other columns than it promised: {difference}',
                hint="Promise what it returns: apply(function, schema='name TYPE, …').",
            )
        return made.to_batches() if isinstance(made, pa.Table) else [made]


def set_aside(pack: pa.RecordBatch, reason: str | Value, origin: str) -> pa.RecordBatch:
    """The rows of a pack as quarantine rows."""
    records = [json.dumps(row, default=str) for row in pack.to_pylist()]
    count = pack.num_rows
    reasons = pa.array([reason] * count) if isinstance(reason, str) else column(reason, count)
    arrays = [reasons, pa.array(records, pa.string()), pa.array([origin] * count)]
    return pa.RecordBatch.from_arrays(arrays, schema=QUARANTINE)
