"""Which kernel casts a value to another type, and when does it fail?

As in Spark's ANSI mode, a value that the target type can't hold is an error, and TRY_CAST gives
NULL for it. Casts that this module does not list are refused when the flow is built. Two examples
are a cast of FLOAT or DOUBLE to text, because its digits depend on the version of Java, and a cast
of a DECIMAL with more than 15 digits to DOUBLE, because its last bit depends on how Spark stored
the value. `text_values` casts from texts.
"""

import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from math import isfinite

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.sql.numbers import fit_decimal, shortest_digits, to_long
from springhouse.flows.sql.terms import (
    Kernel,
    NotInSpark,
    Term,
    Value,
    array_of,
    give_type,
    on_arrays,
    per_row,
    strict_term,
)
from springhouse.flows.sql.text_values import (
    JAVA_BLANKS,
    read_date,
    read_decimal,
    read_fraction,
    read_moment,
    read_moment_without_zone,
    read_truth,
    read_whole,
)
from springhouse.flows.sql.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGERS,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    is_fraction,
    is_moment,
    type_name,
)

EXACT_DIGITS = 15
"""A DECIMAL with at most this many digits always becomes the same DOUBLE."""


_SPECIAL = re.compile(r"(?:epoch|now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_DAY = 86_400_000_000
_FAILURES = (pa.ArrowException, ArithmeticError, ValueError)


def cast(term: Term, kind: pa.DataType, *, tries: bool = False) -> Term:
    """The term, cast to another type."""
    source_type = term.type
    if source_type == kind:
        return term
    if source_type == NULL:
        return give_type(term, kind)
    if source_type == STRING and is_moment(kind):
        _prove_not_special(term, kind)
    chosen = _kernel_for(source_type, kind)
    if chosen is None:
        raise NotInSpark(
            f"a flow can't cast {type_name(source_type)} to {type_name(kind)}",
            hint=_way_round(source_type, kind),
        )
    kernel, fallible = chosen
    if tries and fallible:
        if (source_type, kind) in ((STRING, TIMESTAMP), (STRING, TIMESTAMP_NTZ)):
            raise NotInSpark(
                f"a flow can't TRY_CAST {type_name(source_type)} to {type_name(kind)}",
                hint="Not all spellings that Spark knows are known here. Use CAST.",
            )
        return strict_term(kind, _try_kernel(kernel, kind), [term])
    return strict_term(kind, kernel, [term], fallible=fallible)


def _prove_not_special(term: Term, kind: pa.DataType) -> None:
    """Refuse words like `today`: Spark reads them as moments, but only in the text of a query."""
    if not term.constant or term.fallible:
        return
    text = term.value()
    if text is not None and _SPECIAL.match(text.strip(JAVA_BLANKS)):
        raise NotInSpark(
            f"a flow does not know the {type_name(kind)} '{text}'", hint="Write it in digits."
        )


def _way_round(source_type: pa.DataType, kind: pa.DataType) -> str:
    if is_fraction(source_type) and kind == STRING:
        return "Cast it to a DECIMAL first: its digits as DOUBLE depend on the version of Java."
    return "Use a Python function with `apply`."


def _try_kernel(kernel: Kernel, kind: pa.DataType) -> Kernel:
    def attempt(values: pa.Array) -> pa.Array:
        try:
            return array_of(kernel(values), len(values))
        except _FAILURES:
            if len(values) == 1:
                return pa.nulls(1, kind)
            half = len(values) // 2
            return pa.concat_arrays([attempt(values[:half]), attempt(values[half:])])

    return on_arrays(attempt)


def _kernel_for(source_type: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool] | None:
    """The kernel that casts, and whether it can fail; None if there is no such cast."""
    for group in (_to_text, _from_text, _between_numbers, _with_truth, _between_moments):
        kernel = group(source_type, kind)
        if kernel is not None:
            return kernel
    return None


def _safe_cast(kind: pa.DataType) -> Kernel:
    return lambda value: pc.cast(value, kind)


# Numbers.


def _between_numbers(source_type: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool] | None:
    if source_type in INTEGERS:
        return _from_whole(source_type, kind)
    if is_fraction(source_type):
        return _from_fraction(kind)
    return _from_decimal(source_type, kind) if pa.types.is_decimal128(source_type) else None


def _from_whole(source_type: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool] | None:
    if kind in INTEGERS:
        return _safe_cast(kind), source_type.bit_width > kind.bit_width
    if is_fraction(kind):
        return _as_fraction(kind), False
    return _whole_as_decimal(source_type, kind) if pa.types.is_decimal128(kind) else None


def _from_fraction(kind: pa.DataType) -> tuple[Kernel, bool] | None:
    if is_fraction(kind):
        return (lambda value: pc.cast(value, kind, safe=False)), False
    if kind in INTEGERS:
        return on_arrays(lambda values: _whole(values, kind)), True
    if pa.types.is_decimal128(kind):
        return per_row(kind, lambda value: _decimal_of(value, kind)), True
    return None


def _from_decimal(source_type: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool] | None:
    if pa.types.is_decimal128(kind):
        return _other_decimal(source_type, kind)
    if kind == DOUBLE and source_type.precision <= EXACT_DIGITS:
        return per_row(DOUBLE, float), False
    return (per_row(kind, int), True) if kind in INTEGERS else None


def _as_fraction(kind: pa.DataType) -> Kernel:
    def compute(values: pa.Array) -> pa.Array:
        numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
        result = numbers.astype(np.float32 if kind == FLOAT else np.float64)
        return pa.array(result, kind, mask=pc.is_null(values).to_numpy(zero_copy_only=False))

    return on_arrays(compute)


def _whole(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Fractions as whole numbers; an error if one does not fit.

    As in Java, a BIGINT accepts 2^63 and makes it its largest value.
    """
    numbers = pc.cast(values, DOUBLE)
    limit = 2.0 ** (kind.bit_width - 1)
    if kind == BIGINT:
        inside = pc.and_(pc.less_equal(numbers, limit), pc.greater_equal(numbers, -limit))
    else:
        inside = pc.and_(
            pc.less_equal(pc.floor(numbers), limit - 1), pc.greater_equal(pc.ceil(numbers), -limit)
        )
    if not pc.all(pc.fill_null(inside, True)).as_py():
        raise OverflowError(f"a number does not fit {type_name(kind)}")
    return to_long(numbers).cast(kind)


def _whole_as_decimal(source_type: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool]:
    digits = {8: 3, 16: 5, 32: 10, 64: 19}[source_type.bit_width]
    if kind.precision - kind.scale >= digits:
        between = pa.decimal128(digits, 0)
        return (lambda value: pc.cast(pc.cast(value, between), kind)), False
    return per_row(kind, lambda value: fit_decimal(Decimal(value), kind)), True


def _other_decimal(source_type: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool]:
    wide_enough = kind.precision - kind.scale >= source_type.precision - source_type.scale
    if wide_enough and kind.scale >= source_type.scale:
        return _safe_cast(kind), False
    return per_row(kind, lambda value: fit_decimal(value, kind)), True


def _decimal_of(value: float, kind: pa.DataType) -> Decimal | None:
    # As in Spark, NaN and the infinities become NULL and raise no error.
    if not isfinite(value):
        return None
    if abs(value) >= 10.0 ** (kind.precision - kind.scale + 1):
        raise OverflowError(f"{value} does not fit {type_name(kind)}")
    return fit_decimal(shortest_digits(value), kind)


# Truth values.


def _with_truth(source_type: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool] | None:
    if source_type == BOOLEAN and (kind in INTEGERS or is_fraction(kind)):
        return (lambda value: pc.cast(pc.cast(value, pa.int8()), kind)), False
    if source_type == BOOLEAN and pa.types.is_decimal128(kind):
        return per_row(kind, lambda value: fit_decimal(Decimal(int(value)), kind)), True
    if kind == BOOLEAN and source_type in INTEGERS:
        return (lambda value: pc.not_equal(value, pa.scalar(0, source_type))), False
    if kind == BOOLEAN and is_fraction(source_type):
        return (lambda value: pc.not_equal(value, pa.scalar(0.0, source_type))), False
    if kind == BOOLEAN and pa.types.is_decimal128(source_type):
        return per_row(kind, bool), False
    return None


# Texts.


def _to_text(source_type: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool] | None:
    if kind != STRING:
        return None
    if source_type in INTEGERS:
        return _safe_cast(STRING), False
    if source_type == BOOLEAN:
        return _safe_cast(STRING), False
    if pa.types.is_decimal128(source_type):
        return per_row(STRING, lambda value: f"{value:f}"), False
    if source_type == DATE:
        return per_row(STRING, lambda value: f"{value:%Y-%m-%d}".zfill(10)), False
    if source_type in (TIMESTAMP, TIMESTAMP_NTZ):
        return per_row(STRING, _moment_text), False
    return None


def _moment_text(value: datetime) -> str:
    text = f"{value:%Y-%m-%d %H:%M:%S}".zfill(19)
    return f"{text}.{value.microsecond:06}".rstrip("0") if value.microsecond else text


def _from_text(source_type: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool] | None:
    if source_type == BINARY or source_type != STRING:
        return None
    readers: dict[pa.DataType, Callable[[str], object]] = {
        BOOLEAN: read_truth,
        DOUBLE: read_fraction,
        DATE: read_date,
        TIMESTAMP: read_moment,
        TIMESTAMP_NTZ: read_moment_without_zone,
    }
    if kind in INTEGERS:
        return per_row(kind, lambda text: read_whole(text, kind)), True
    if pa.types.is_decimal128(kind):
        return per_row(kind, lambda text: read_decimal(text, kind)), True
    if kind == BINARY:
        return _safe_cast(BINARY), False
    return (per_row(kind, readers[kind]), True) if kind in readers else None


# Dates and timestamps.


def _between_moments(source_type: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool] | None:
    if not (is_moment(source_type) and is_moment(kind)):
        return None
    if source_type == DATE:
        return _by_number(lambda days: pc.multiply_checked(days, _DAY), DATE, kind), True
    if kind == DATE:
        return on_arrays(_days), False
    return _by_number(lambda micros: micros, source_type, kind), False


def _days(values: pa.Array) -> pa.Array:
    micros = values.cast(BIGINT)
    known = pc.is_valid(micros).to_numpy(zero_copy_only=False)
    numbers = pc.fill_null(micros, 0).to_numpy(zero_copy_only=False)
    return pa.array((numbers // _DAY).astype(np.int32), pa.int32(), mask=~known).cast(DATE)


def _by_number(
    function: Callable[[Value], Value], source_type: pa.DataType, kind: pa.DataType
) -> Kernel:
    whole = pa.int32() if source_type == DATE else BIGINT

    def compute(value: pa.Array) -> pa.Array:
        return function(value.cast(whole).cast(BIGINT)).cast(kind)

    return on_arrays(compute)
