"""What does CAST make of a value, and when does it fail?

As in Spark's ANSI mode: a value that the wanted type can't hold is an error, of TRY_CAST a NULL.
What is not here is refused when the flow is built. Among it: a FLOAT or DOUBLE as text, as its
digits depend on the version of Java, and a DECIMAL of more than 15 digits as DOUBLE, as the last
bit depends on how Spark happened to hold it.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import inf, isfinite, nan

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.sql.numbers import fitted, shortest, to_long
from springhouse.flows.sql.terms import (
    Kernel,
    NotInSpark,
    Term,
    Value,
    array_of,
    each,
    on_arrays,
    strict,
    typed,
)
from springhouse.flows.sql.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGERS,
    MOST_DIGITS,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    is_fraction,
    is_moment,
    spelled,
)

EXACT_DIGITS = 15
"""A DECIMAL of so many digits is a DOUBLE in one way only."""

_BLANK = "".join(map(chr, range(33)))
"""What Java's `trim` takes away."""

_BLANK_OR_CONTROL = _BLANK + "\x7f"
"""What Spark's own `trimAll` takes away."""

_WHOLE = re.compile(r"[+-]?[0-9]+\Z")
_FRACTION = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z")
_HEXADECIMAL = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[dDfF]?\Z"
)
_LEAST_EXPONENT = -(2**31) + 1
_TRUE, _FALSE = frozenset({"t", "true", "y", "yes", "1"}), frozenset({"f", "false", "n", "no", "0"})
_DATE = re.compile(r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?\Z", re.DOTALL)
_MOMENT = re.compile(
    r"([+-]?[0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?([^0-9.].*)?)?)?)?)?)?\Z",
    re.DOTALL,
)
_ZONE = re.compile(
    r"(?:Z|(?:UTC|GMT|UT)?(?:([+-])([0-9]{1,2})(?:(:?)([0-9]{1,2})(?:\3([0-9]{2}))?)?)?)\Z"
)
_MOST_APART = timedelta(hours=18)
_SPECIAL = re.compile(r"(?:epoch|now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_DAY = 86_400_000_000
_FAILURES = (pa.ArrowException, ArithmeticError, ValueError)


def cast(term: Term, kind: pa.DataType, *, tries: bool = False) -> Term:
    """The term as another type."""
    given = term.type
    if given == kind:
        return term
    if given == NULL:
        return typed(term, kind)
    if given == STRING and is_moment(kind):
        _prove_not_special(term, kind)
    found = _kernel(given, kind)
    if found is None:
        raise NotInSpark(
            f"a flow can't cast {spelled(given)} to {spelled(kind)}", hint=_way_round(given, kind)
        )
    kernel, fallible = found
    if tries and fallible:
        if (given, kind) in ((STRING, TIMESTAMP), (STRING, TIMESTAMP_NTZ)):
            raise NotInSpark(
                f"a flow can't TRY_CAST {spelled(given)} to {spelled(kind)}",
                hint="Not all spellings that Spark knows are known here. Use CAST.",
            )
        return strict(kind, _tried(kernel, kind), [term])
    return strict(kind, kernel, [term], fallible=fallible)


def _prove_not_special(term: Term, kind: pa.DataType) -> None:
    """Spark knows some words for moments, but only in the text of a query."""
    if not term.constant or term.fallible:
        return
    text = term.value()
    if text is not None and _SPECIAL.match(text.strip(_BLANK)):
        raise NotInSpark(
            f"a flow does not know the {spelled(kind)} '{text}'", hint="Write it in digits."
        )


def _way_round(given: pa.DataType, kind: pa.DataType) -> str:
    if is_fraction(given) and kind == STRING:
        return "Cast it to a DECIMAL first: its digits as DOUBLE depend on the version of Java."
    return "Use a Python function with `apply`."


def _tried(kernel: Kernel, kind: pa.DataType) -> Kernel:
    def attempt(values: pa.Array) -> pa.Array:
        try:
            return array_of(kernel(values), len(values))
        except _FAILURES:
            if len(values) == 1:
                return pa.nulls(1, kind)
            half = len(values) // 2
            return pa.concat_arrays([attempt(values[:half]), attempt(values[half:])])

    return on_arrays(attempt)


def _kernel(given: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool] | None:
    """What casts, and whether it can fail."""
    for group in (_to_text, _from_text, _between_numbers, _with_truth, _between_moments):
        found = group(given, kind)
        if found is not None:
            return found
    return None


def _safely(kind: pa.DataType) -> Kernel:
    return lambda value: pc.cast(value, kind)


# Numbers.


def _between_numbers(given: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool] | None:
    to_decimal, from_decimal = pa.types.is_decimal128(kind), pa.types.is_decimal128(given)
    if given in INTEGERS and kind in INTEGERS:
        return _safely(kind), given.bit_width > kind.bit_width
    if given in INTEGERS and is_fraction(kind):
        return _as_fraction(kind), False
    if is_fraction(given) and is_fraction(kind):
        return (lambda value: pc.cast(value, kind, safe=False)), False
    if is_fraction(given) and kind in INTEGERS:
        return on_arrays(lambda values: _whole(values, kind)), True
    if given in INTEGERS and to_decimal:
        return _whole_as_decimal(given, kind)
    if from_decimal and to_decimal:
        return _other_decimal(given, kind)
    if from_decimal and kind == DOUBLE and given.precision <= EXACT_DIGITS:
        return each(DOUBLE, float), False
    if from_decimal and kind in INTEGERS:
        return each(kind, int), True
    if is_fraction(given) and to_decimal:
        return each(kind, lambda value: _decimal_of(value, kind)), True
    return None


def _as_fraction(kind: pa.DataType) -> Kernel:
    def compute(values: pa.Array) -> pa.Array:
        numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
        made = numbers.astype(np.float32 if kind == FLOAT else np.float64)
        return pa.array(made, kind, mask=pc.is_null(values).to_numpy(zero_copy_only=False))

    return on_arrays(compute)


def _whole(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Fractions as whole numbers; an error for what does not fit. As Java, 2^63 is the largest."""
    numbers = pc.cast(values, DOUBLE)
    limit = 2.0 ** (kind.bit_width - 1)
    if kind == BIGINT:
        inside = pc.and_(pc.less_equal(numbers, limit), pc.greater_equal(numbers, -limit))
    else:
        inside = pc.and_(
            pc.less_equal(pc.floor(numbers), limit - 1), pc.greater_equal(pc.ceil(numbers), -limit)
        )
    if not pc.all(pc.fill_null(inside, True)).as_py():
        raise OverflowError(f"a number does not fit {spelled(kind)}")
    return to_long(numbers).cast(kind)


def _whole_as_decimal(given: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool]:
    digits = {8: 3, 16: 5, 32: 10, 64: 19}[given.bit_width]
    if kind.precision - kind.scale >= digits:
        between = pa.decimal128(digits, 0)
        return (lambda value: pc.cast(pc.cast(value, between), kind)), False
    return each(kind, lambda value: fitted(Decimal(value), kind)), True


def _other_decimal(given: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool]:
    wide_enough = kind.precision - kind.scale >= given.precision - given.scale
    if wide_enough and kind.scale >= given.scale:
        return _safely(kind), False
    return each(kind, lambda value: fitted(value, kind)), True


def _decimal_of(value: float, kind: pa.DataType) -> Decimal | None:
    # NaN and the infinities are NULL, and no error.
    if not isfinite(value):
        return None
    if abs(value) >= 10.0 ** (kind.precision - kind.scale + 1):
        raise OverflowError(f"{value} does not fit {spelled(kind)}")
    return fitted(shortest(value), kind)


# Truth values.


def _with_truth(given: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool] | None:
    if given == BOOLEAN and (kind in INTEGERS or is_fraction(kind)):
        return (lambda value: pc.cast(pc.cast(value, pa.int8()), kind)), False
    if given == BOOLEAN and pa.types.is_decimal128(kind):
        return each(kind, lambda value: fitted(Decimal(int(value)), kind)), True
    if kind == BOOLEAN and given in INTEGERS:
        return (lambda value: pc.not_equal(value, pa.scalar(0, given))), False
    if kind == BOOLEAN and is_fraction(given):
        return (lambda value: pc.not_equal(value, pa.scalar(0.0, given))), False
    if kind == BOOLEAN and pa.types.is_decimal128(given):
        return each(kind, bool), False
    return None


# Texts.


def _to_text(given: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool] | None:
    if kind != STRING:
        return None
    if given in INTEGERS:
        return _safely(STRING), False
    if given == BOOLEAN:
        return _safely(STRING), False
    if pa.types.is_decimal128(given):
        return each(STRING, lambda value: f"{value:f}"), False
    if given == DATE:
        return each(STRING, lambda value: f"{value:%Y-%m-%d}".zfill(10)), False
    if given in (TIMESTAMP, TIMESTAMP_NTZ):
        return each(STRING, _moment_text), False
    return None


def _moment_text(value: datetime) -> str:
    text = f"{value:%Y-%m-%d %H:%M:%S}".zfill(19)
    return f"{text}.{value.microsecond:06}".rstrip("0") if value.microsecond else text


def _from_text(given: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool] | None:
    if given == BINARY or given != STRING:
        return None
    readers: dict[pa.DataType, Callable[[str], object]] = {
        BOOLEAN: _read_truth,
        DOUBLE: _read_fraction,
        DATE: _read_date,
        TIMESTAMP: read_moment,
        TIMESTAMP_NTZ: _read_plain_moment,
    }
    if kind in INTEGERS:
        return each(kind, lambda text: _read_whole(text, kind)), True
    if pa.types.is_decimal128(kind):
        return each(kind, lambda text: _read_decimal(text, kind)), True
    if kind == BINARY:
        return _safely(BINARY), False
    return (each(kind, readers[kind]), True) if kind in readers else None


def _malformed(text: str, kind: pa.DataType) -> ValueError:
    return ValueError(f"'{text}' can't be cast to {spelled(kind)}")


def _read_whole(text: str, kind: pa.DataType) -> int:
    found = text.strip(_BLANK_OR_CONTROL)
    if not _WHOLE.match(found):
        raise _malformed(text, kind)
    value, limit = int(found), 2 ** (kind.bit_width - 1)
    if not -limit <= value < limit:
        raise _malformed(text, kind)
    return value


def _read_fraction(text: str) -> float:
    found = text.strip(_BLANK)
    # Java knows NaN with a sign, if it is spelled just so.
    word = found.lstrip("+-") if found in ("+NaN", "-NaN") else found.lower()
    if (value := _infinity_or_nan(word)) is not None:
        return value
    if (spelled_in_hex := _HEXADECIMAL.match(found)) is not None:
        try:
            return float.fromhex(spelled_in_hex.group(1))
        except OverflowError:
            return -inf if found[0] == "-" else inf
    if found[-1:] in ("d", "D", "f", "F"):
        found = found[:-1]
    if not _FRACTION.match(found):
        raise _malformed(text, DOUBLE)
    return float(found)


def _infinity_or_nan(word: str) -> float | None:
    if word in ("nan", "NaN"):
        return nan
    sign, rest = (word[0], word[1:]) if word[:1] in ("+", "-") else ("", word)
    if rest not in ("inf", "infinity"):
        return None
    return -inf if sign == "-" else inf


def _read_decimal(text: str, kind: pa.DataType) -> Decimal:
    found = text.strip(_BLANK)
    if not _DECIMAL.match(found):
        raise _malformed(text, kind)
    value = Decimal(found)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "no digits spell NaN"
    # Spark counts the digits of a zero, too.
    if exponent < _LEAST_EXPONENT or (exponent > 0 and len(digits) + exponent > MOST_DIGITS):
        raise _malformed(text, kind)
    return fitted(value, kind)


def _read_truth(text: str) -> bool:
    found = text.strip(_BLANK_OR_CONTROL).lower()
    if found not in _TRUE | _FALSE:
        raise _malformed(text, BOOLEAN)
    return found in _TRUE


def _read_date(text: str) -> date:
    found = _DATE.match(text.strip(_BLANK_OR_CONTROL))
    if found is None:
        raise _malformed(text, DATE)
    year, month, day = (int(part) if part else 1 for part in found.groups())
    return date(_known_year(year, text), month, day)


def _known_year(year: int, text: str) -> int:
    if not 1 <= year <= 9999:
        raise NotInSpark(f"a flow has no dates outside the years 1 to 9999: '{text}'")
    return year


def _read_plain_moment(text: str) -> datetime:
    return _moment(text, TIMESTAMP_NTZ).replace(tzinfo=None)


def read_moment(text: str) -> datetime:
    """A timestamp in the spellings that are known here, in UTC if it names no zone."""
    return _moment(text, TIMESTAMP)


def _moment(text: str, kind: pa.DataType) -> datetime:
    found = _MOMENT.match(text.strip(_BLANK_OR_CONTROL))
    if found is None:
        raise _malformed(text, kind)
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    moment = datetime(
        _known_year(int(year), text),
        int(month or 1),
        int(day or 1),
        int(hour or 0),
        int(minute or 0),
        int(second or 0),
        int((fraction or "").ljust(6, "0")[:6]),
        tzinfo=UTC,
    )
    # Without a zone in its type, a moment is what the clock on the wall says.
    apart = _apart(zone, text, kind) if zone else timedelta()
    return moment - apart if kind == TIMESTAMP else moment


def _apart(zone: str, text: str, kind: pa.DataType) -> timedelta:
    """How far a zone is from UTC."""
    found = _ZONE.match(zone.strip(_BLANK_OR_CONTROL))
    if found is None:
        raise NotInSpark(
            f"a flow does not know the time zone of '{text}'",
            hint="It knows Z, UTC, GMT and what is spelled as +01:00.",
        )
    sign, hours, colon, minutes, seconds = found.groups()
    if not sign:
        return timedelta()
    in_pairs = len(hours) == 2 and (colon or not minutes or len(minutes) == 2)
    if not (in_pairs or colon or not minutes) or (seconds and len(minutes) == 1):
        raise _malformed(text, kind)
    apart = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
    if apart > _MOST_APART or int(minutes or 0) > 59 or int(seconds or 0) > 59:
        raise _malformed(text, kind)
    return -apart if sign == "-" else apart


# Dates and timestamps.


def _between_moments(given: pa.DataType, kind: pa.DataType) -> tuple[Kernel, bool] | None:
    if not (is_moment(given) and is_moment(kind)):
        return None
    if given == DATE:
        return _by_number(lambda days: pc.multiply_checked(days, _DAY), DATE, kind), True
    if kind == DATE:
        return on_arrays(_days), False
    return _by_number(lambda micros: micros, given, kind), False


def _days(values: pa.Array) -> pa.Array:
    micros = values.cast(BIGINT)
    known = pc.is_valid(micros).to_numpy(zero_copy_only=False)
    numbers = pc.fill_null(micros, 0).to_numpy(zero_copy_only=False)
    return pa.array((numbers // _DAY).astype(np.int32), pa.int32(), mask=~known).cast(DATE)


def _by_number(function: Callable[[Value], Value], given: pa.DataType, kind: pa.DataType) -> Kernel:
    whole = pa.int32() if given == DATE else BIGINT

    def compute(value: pa.Array) -> pa.Array:
        return function(value.cast(whole).cast(BIGINT)).cast(kind)

    return on_arrays(compute)
