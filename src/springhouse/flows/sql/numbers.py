"""What do +, -, *, /, %, DIV, round and similar functions compute?

Whole numbers that overflow and divisions by zero are errors. A DECIMAL result is computed exactly
and rounded half up to the scale of its type; it is an error if it does not fit. A FLOAT or DOUBLE
is rounded as in Spark: from the shortest decimal digits that identify it.
"""

import decimal
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from math import isfinite

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.sql.terms import (
    Kernel,
    NotInSpark,
    Term,
    Value,
    constant_term,
    on_arrays,
    per_row,
    strict_term,
)
from springhouse.flows.sql.types import (
    BIGINT,
    DOUBLE,
    INTEGERS,
    MOST_DIGITS,
    is_fraction,
    limit_digits,
    type_name,
)

EXACT = decimal.Context(prec=200, rounding=ROUND_HALF_UP)
"""The context for decimals: no result of two decimals has more digits, except quotients."""

_CUT = decimal.Context(prec=MOST_DIGITS + 1, rounding=ROUND_DOWN)
"""The number of digits of a quotient that Spark considers."""

_QUOTIENT = Decimal(1).scaleb(-MOST_DIGITS - 1)
_KERNELS = {
    "+": (pc.add_checked, pc.add, EXACT.add),
    "-": (pc.subtract_checked, pc.subtract, EXACT.subtract),
    "*": (pc.multiply_checked, pc.multiply, EXACT.multiply),
}


def fit_decimal(value: Decimal, kind: pa.DataType, rounding: str = ROUND_HALF_UP) -> Decimal:
    """The decimal, rounded to the scale of a type; an error if it is too large for the type."""
    result = value.quantize(Decimal(1).scaleb(-kind.scale), rounding, EXACT)
    # abs() would round to the digits of the thread's context.
    if result.copy_abs() >= Decimal(1).scaleb(kind.precision - kind.scale):
        raise OverflowError(f"{value} does not fit {type_name(kind)}")
    return result


def calculate(sign: str, one: Term, other: Term) -> Term:
    """`+`, `-` or `*` of two terms of one type that is not DECIMAL."""
    checked, plain, _ = _KERNELS[sign]
    kernel = checked if one.type in INTEGERS else plain
    return strict_term(one.type, kernel, [one, other], fallible=one.type in INTEGERS)


def calculate_decimals(sign: str, one: Term, other: Term) -> Term:
    """`+`, `-`, `*`, `/` or `%` of two DECIMALs."""
    a, b = one.type, other.type
    whole_a, whole_b, scale = a.precision - a.scale, b.precision - b.scale, max(a.scale, b.scale)
    if sign in ("+", "-"):
        precision = max(whole_a, whole_b) + scale + 1
    elif sign == "*":
        precision, scale = a.precision + b.precision + 1, a.scale + b.scale
    elif sign == "/":
        scale = max(6, a.scale + b.precision + 1)
        precision = whole_a + b.scale + scale
    else:
        precision = min(whole_a, whole_b) + scale
    kind = limit_digits(precision, scale)
    if sign in ("+", "-", "*") and precision <= MOST_DIGITS:
        # Arrow has the same rules here, and no result is rounded or too large.
        return strict_term(kind, _KERNELS[sign][1], [one, other])
    exact: Callable[[Decimal, Decimal], Decimal]
    if sign in ("/", "%"):
        exact = _quotient if sign == "/" else _remainder
        kernel = per_row(kind, lambda x, y: fit_decimal(exact(x, y), kind))
        return _division(kind, kernel, one, other)
    exact = _KERNELS[sign][2]
    return strict_term(
        kind,
        per_row(kind, lambda x, y: fit_decimal(exact(x, y), kind)),
        [one, other],
        fallible=True,
    )


def _division(kind: pa.DataType, kernel: Kernel, one: Term, other: Term) -> Term:
    """A division. Computes the divisor first, and the dividend only where the divisor is known."""
    return strict_term(kind, lambda y, x: kernel(x, y), [other, one], fallible=True)


def _quotient(one: Decimal, other: Decimal) -> Decimal:
    if not other:
        raise ZeroDivisionError("division by zero")
    # Truncate here, because the result is rounded later.
    return EXACT.divide(one, other).quantize(_QUOTIENT, ROUND_DOWN, EXACT)


def mean_of(total: Decimal, count: int, kind: pa.DataType) -> Decimal:
    """The average of DECIMALs."""
    return fit_decimal(_quotient(total, Decimal(count)), kind)


def _remainder(one: Decimal, other: Decimal) -> Decimal:
    if not other:
        raise ZeroDivisionError("division by zero")
    times = EXACT.divide_int(one, other)
    if times != _CUT.plus(times):
        raise OverflowError(f"Spark can't divide {one} by {other}: the quotient has over 39 digits")
    return EXACT.remainder(one, other)


def divide(one: Term, other: Term) -> Term:
    """`/` of two DOUBLEs."""

    def kernel(a: Value, b: Value) -> Value:
        zero = pc.and_(pc.equal(b, pa.scalar(0.0)), pc.is_valid(a))
        if pc.any(zero).as_py() if not isinstance(zero, pa.Scalar) else zero.as_py():
            raise ZeroDivisionError("division by zero")
        return pc.divide(a, b)

    return _division(DOUBLE, kernel, one, other)


def remainder(one: Term, other: Term) -> Term:
    """`%` of two terms of one type that is not DECIMAL. The result has the sign of the first."""

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        valid = pc.and_(pc.is_valid(a), pc.is_valid(b))
        x, y = (
            pc.fill_null(v, pa.scalar(1, v.type)).to_numpy(zero_copy_only=False) for v in (a, b)
        )
        known = valid.to_numpy(zero_copy_only=False)
        if np.any((y == 0) & known):
            raise ZeroDivisionError("division by zero")
        y = np.where(y == 0, 1, y).astype(y.dtype)
        if one.type in INTEGERS:
            # The remainder by -1 is 0 as well as by 1, but it may trap for the smallest number.
            y = np.where(y == -1, 1, y).astype(y.dtype)
        with np.errstate(all="ignore"):
            return pa.array(np.fmod(x, y), one.type, mask=~known)

    return _division(one.type, on_arrays(kernel), one, other)


def quotient(one: Term, other: Term) -> Term:
    """DIV of two BIGINTs."""

    def kernel(a: pa.Array, b: pa.Array) -> pa.Array:
        # Arrow also divides the hidden values behind NULLs, which may be zero.
        one_there = pc.if_else(pc.is_valid(a), b, pa.scalar(1, BIGINT))
        return pc.divide_checked(a, pc.if_else(pc.is_valid(a), one_there, pa.scalar(1, BIGINT)))

    return _division(BIGINT, on_arrays(kernel), one, other)


def negate_number(term: Term) -> Term:
    """`-x`."""
    if pa.types.is_decimal128(term.type):
        return strict_term(term.type, pc.negate, [term])
    kernel = pc.negate_checked if term.type in INTEGERS else pc.negate
    return strict_term(term.type, kernel, [term], fallible=term.type in INTEGERS)


def absolute_value(term: Term) -> Term:
    """abs(x)."""
    kernel = pc.abs_checked if term.type in INTEGERS else pc.abs
    return strict_term(term.type, kernel, [term], fallible=term.type in INTEGERS)


def bits(sign: str, one: Term, other: Term) -> Term:
    """`&`, `|`, `^` of two terms of one type of whole numbers."""
    kernel = {"&": pc.bit_wise_and, "|": pc.bit_wise_or, "^": pc.bit_wise_xor}[sign]
    return strict_term(one.type, kernel, [one, other])


def round_to(term: Term, places: int, *, even: bool = False) -> Term:
    """round(x, places): rounds halves away from zero, or with `even` (bround) to the even digit."""
    mode = ROUND_HALF_EVEN if even else ROUND_HALF_UP
    kind = term.type
    if pa.types.is_decimal128(kind):
        return _round_decimal(term, places, mode)
    if kind in INTEGERS:
        if places >= 0:
            return term
        unit = Decimal(1).scaleb(-places)

        def whole(value: int) -> int:
            return int(Decimal(value).quantize(unit, mode, EXACT))

        return strict_term(kind, per_row(kind, whole), [term], fallible=True)

    def fraction(value: float) -> float:
        if not isfinite(value) or (places >= 0 and abs(value) >= _WHOLE_FROM):
            return value
        # Adding 0.0 turns -0.0 into 0.0, because Java's decimals have no -0.0.
        return float(shortest_digits(value).quantize(Decimal(1).scaleb(-places), mode, _WIDE)) + 0.0

    return strict_term(kind, per_row(kind, fraction), [term], fallible=places < 0)


_WIDE = decimal.Context(prec=1000, rounding=ROUND_HALF_UP)


_WHOLE_FROM = 2.0**53
"""From here on every DOUBLE is a whole number, but not every whole number is a DOUBLE."""


def shortest_digits(value: float) -> Decimal:
    """The DOUBLE in the fewest digits that identify it.

    Java prints the same digits for numbers smaller than 2^53. For larger numbers, older versions of
    Java print more digits, and Spark rounds the digits that Java prints.
    """
    if abs(value) >= _WHOLE_FROM:
        raise NotInSpark(
            f"the last digits of {value} as DOUBLE depend on the version of Java",
            hint="Cast it to BIGINT first, or use a Python function with `apply`.",
        )
    return Decimal(repr(value))


def _round_decimal(term: Term, places: int, mode: str) -> Term:
    source_type = term.type
    whole = source_type.precision - source_type.scale + 1
    if places < 0:
        kind = pa.decimal128(min(max(whole, -places + 1), MOST_DIGITS), 0)
    else:
        scale = min(source_type.scale, places)
        kind = pa.decimal128(min(whole + scale, MOST_DIGITS), scale)
    unit = Decimal(1).scaleb(-places)

    def function(value: Decimal) -> Decimal:
        cut = value.quantize(unit, mode, EXACT) if places < source_type.scale else value
        return fit_decimal(cut, kind)

    return strict_term(kind, per_row(kind, function), [term], fallible=True)


def floor_or_ceiling(term: Term, *, up: bool) -> Term:
    """ceil(x) or floor(x): gives a DECIMAL for a DECIMAL, and a BIGINT for other numbers."""
    kind = term.type
    if kind in INTEGERS:
        return strict_term(BIGINT, lambda value: pc.cast(value, BIGINT), [term])
    if pa.types.is_decimal128(kind):
        if kind.scale == 0:
            return term
        result = pa.decimal128(min(kind.precision - kind.scale + 1, MOST_DIGITS), 0)
        mode = ROUND_CEILING if up else ROUND_FLOOR
        function = per_row(result, lambda value: fit_decimal(value, result, mode))
        return strict_term(result, function, [term], fallible=True)
    kernel = pc.ceil if up else pc.floor

    def long(value: pa.Array) -> pa.Array:
        return to_long(kernel(pc.cast(value, DOUBLE)))

    return strict_term(BIGINT, on_arrays(long), [term])


def to_long(value: pa.Array) -> pa.Array:
    """Doubles as Java casts them to a long: fractions are cut off, NaN is 0, and limits apply."""
    known = pc.is_valid(value).to_numpy(zero_copy_only=False)
    numbers = pc.fill_null(value, 0.0).to_numpy(zero_copy_only=False)
    numbers = np.trunc(np.where(np.isnan(numbers), 0.0, numbers))
    largest, least = 2**63 - 1, -(2**63)
    inside = np.clip(numbers, -(2.0**63), np.nextafter(2.0**63, 0))
    result = inside.astype(np.int64)
    result = np.where(numbers >= 2.0**63, largest, np.where(numbers <= -(2.0**63), least, result))
    return pa.array(result, BIGINT, mask=~known)


def square_root(term: Term) -> Term:
    """sqrt(x): NaN for a negative number."""
    return strict_term(DOUBLE, pc.sqrt, [term])


def sign_of(term: Term) -> Term:
    """Signum of a DOUBLE."""
    return strict_term(DOUBLE, pc.multiply, [_unit(term), constant_term(1.0, DOUBLE)])


def _unit(term: Term) -> Term:
    def kernel(value: Value) -> Value:
        # Java's signum keeps NaN and -0.0.
        unit = pc.cast(pc.sign(value), DOUBLE)
        same = pc.or_(pc.is_nan(value), pc.equal(value, pa.scalar(0.0)))
        return pc.if_else(same, value, unit)

    return strict_term(DOUBLE, kernel, [term])


def is_not_a_number(term: Term) -> Term:
    """isnan(x): false for NULL."""
    assert is_fraction(term.type)
    return Term(
        pa.bool_(),
        lambda pack: pc.fill_null(pc.is_nan(term.compute(pack)), False),
        term.fallible,
        term.constant,
    )
