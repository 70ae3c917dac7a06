"""How is a SQL value computed for each row, and for which rows is it computed?

A term has a type and computes an array, or one scalar for all rows. All SQL follows three rules:

    strict_term       a function is NULL if an argument is NULL, and the arguments behind that NULL
                      are not computed
    on_rows           an expression that does not apply to a row (another branch of CASE, the right
                      side of a decided AND) is not computed for that row, so it can't fail there
    fold_constants    a term without columns is computed once, when the flow is built; if that
                      fails, the flow fails at the first row that needs the term
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.flow_graph import FlowError

Value: TypeAlias = pa.Array | pa.Scalar
Compute: TypeAlias = Callable[[pa.RecordBatch], Value]
Kernel: TypeAlias = Callable[..., Value]


@dataclass(frozen=True)
class Term:
    """A typed value of each row.

    `fallible`: computing it can raise an error for some rows. `constant`: it needs no column.
    `literal`: it is written in the text as it is.
    """

    type: pa.DataType
    compute: Compute
    fallible: bool = False
    constant: bool = False
    literal: bool = False

    def value(self) -> Any:
        """The value of a constant, as a Python object."""
        assert self.constant, "only a constant has one value"
        return self.compute(_ONE_ROW).as_py()


_ONE_ROW = pa.RecordBatch.from_arrays([pa.nulls(1)], names=["nothing"])


class NotInSpark(FlowError):
    """A function, operator or combination of types that flows don't have."""


def constant_term(value: object, kind: pa.DataType) -> Term:
    """The same value for every row."""
    scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value, kind)
    return Term(kind, lambda pack: scalar, constant=True)


def fold_constants(term: Term) -> Term:
    """The term as a constant if it needs no column and computing it raises no error."""
    if not term.constant or term.literal:
        return term
    try:
        result = term.compute(_ONE_ROW)
    except (pa.ArrowException, ValueError, ArithmeticError):
        return term
    scalar = result if isinstance(result, pa.Scalar) else result[0]
    return Term(term.type, lambda pack: scalar, constant=True)


def strict_term(
    kind: pa.DataType,
    kernel: Kernel,
    parts: Sequence[Term],
    *,
    fallible: bool = False,
    all_parts: bool = False,
) -> Term:
    """A function of the parts. It is NULL where one of them is NULL.

    The parts are computed in their order. A part is computed only where the parts before it are not
    NULL, or with `all_parts` for all rows.
    """
    return Term(
        kind,
        _strict(kernel, parts, all_parts=all_parts),
        fallible=fallible or any(part.fallible for part in parts),
        constant=all(part.constant for part in parts),
    )


def _strict(kernel: Kernel, parts: Sequence[Term], *, all_parts: bool) -> Compute:
    if len(parts) == 1:
        only = parts[0].compute
        return lambda pack: kernel(only(pack))
    if all_parts or not any(part.fallible for part in parts[1:]):
        if len(parts) == 2:
            one, two = (part.compute for part in parts)
            return lambda pack: kernel(one(pack), two(pack))
        computes = [part.compute for part in parts]
        return lambda pack: kernel(*(compute(pack) for compute in computes))

    def compute(pack: pa.RecordBatch) -> Value:
        values = [parts[0].compute(pack)]
        for part in parts[1:]:
            if not part.fallible:
                values.append(part.compute(pack))
                continue
            there = pc.is_valid(values[0])
            for value in values[1:]:
                there = pc.and_(there, pc.is_valid(value))
            result = on_rows(pack, there, part.compute)
            values.append(pa.scalar(None, part.type) if result.type == pa.null() else result)
        return kernel(*values)

    return compute


def on_rows(pack: pa.RecordBatch, rows: Value, compute: Compute) -> Value:
    """The values for these rows only. All other rows get NULL."""
    if isinstance(rows, pa.Scalar):
        rows = pa.repeat(pa.scalar(bool(rows.as_py())), pack.num_rows)
    count = rows.true_count
    if count == pack.num_rows:
        return compute(pack)
    if count == 0:
        return pa.scalar(None)
    result = array_of(compute(pack.filter(rows)), count)
    places = pc.subtract(pc.cumulative_sum(rows.cast(pa.int64())), pa.scalar(1, pa.int64()))
    return result.take(pc.if_else(rows, places, pa.scalar(None, pa.int64())))


def array_of(value: Value | pa.ChunkedArray, rows: int) -> pa.Array:
    """A value as one array with a value for each row."""
    if isinstance(value, pa.Scalar):
        return pa.nulls(rows, value.type) if not value.is_valid else pa.repeat(value, rows)
    if isinstance(value, pa.ChunkedArray):
        return value.combine_chunks()
    return value


def on_arrays(kernel: Callable[..., pa.Array]) -> Kernel:
    """Make a kernel for arrays of the same length accept scalars, too."""

    def call(*values: Value) -> Value:
        lengths = [len(value) for value in values if not isinstance(value, pa.Scalar)]
        if not lengths:
            return kernel(*(array_of(value, 1) for value in values))[0]
        return kernel(*(array_of(value, lengths[0]) for value in values))

    return call


def per_row(kind: pa.DataType, function: Callable[..., object]) -> Kernel:
    """A kernel that calls a Python function for each row without NULLs."""

    def compute(*arrays: pa.Array) -> pa.Array:
        rows = zip(*(array.to_pylist() for array in arrays), strict=True)
        result = [None if None in row else function(*row) for row in rows]
        return pa.array(result, kind)

    return on_arrays(compute)


def give_type(term: Term, kind: pa.DataType) -> Term:
    """A term of exactly this type. A NULL without a type gets the type."""
    if term.type == kind:
        return term
    assert term.type == pa.null(), f"{term.type} is not {kind}"
    return replace(constant_term(None, kind), literal=term.literal)
