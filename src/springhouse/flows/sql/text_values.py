"""Which value does a text have when it is cast to another type?

As in Spark's ANSI mode, blanks around a value are ignored, and a text that is no value of the type
is an error. A flow refuses a spelling whose value depends on the version of Spark or Java.
"""

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import inf, nan

import pyarrow as pa

from springhouse.flows.sql.numbers import fit_decimal
from springhouse.flows.sql.terms import NotInSpark
from springhouse.flows.sql.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    MOST_DIGITS,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    type_name,
)

JAVA_BLANKS = "".join(map(chr, range(33)))
"""The characters that Java's `trim` removes."""
_SPARK_BLANKS = JAVA_BLANKS + "\x7f"
"""The characters that Spark's own `trimAll` removes."""
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
_LARGEST_OFFSET = timedelta(hours=18)


def _malformed(text: str, kind: pa.DataType) -> ValueError:
    return ValueError(f"'{text}' can't be cast to {type_name(kind)}")


def read_whole(text: str, kind: pa.DataType) -> int:
    spelling = text.strip(_SPARK_BLANKS)
    if not _WHOLE.match(spelling):
        raise _malformed(text, kind)
    value, limit = int(spelling), 2 ** (kind.bit_width - 1)
    if not -limit <= value < limit:
        raise _malformed(text, kind)
    return value


def read_fraction(text: str) -> float:
    spelling = text.strip(JAVA_BLANKS)
    # Java accepts a sign before NaN, but only in this spelling.
    word = spelling.lstrip("+-") if spelling in ("+NaN", "-NaN") else spelling.lower()
    if (value := _infinity_or_nan(word)) is not None:
        return value
    if (spelled_in_hex := _HEXADECIMAL.match(spelling)) is not None:
        try:
            return float.fromhex(spelled_in_hex.group(1))
        except OverflowError:
            return -inf if spelling[0] == "-" else inf
    if spelling[-1:] in ("d", "D", "f", "F"):
        spelling = spelling[:-1]
    if not _FRACTION.match(spelling):
        raise _malformed(text, DOUBLE)
    return float(spelling)


def _infinity_or_nan(word: str) -> float | None:
    if word in ("nan", "NaN"):
        return nan
    sign, rest = (word[0], word[1:]) if word[:1] in ("+", "-") else ("", word)
    if rest not in ("inf", "infinity"):
        return None
    return -inf if sign == "-" else inf


def read_decimal(text: str, kind: pa.DataType) -> Decimal:
    spelling = text.strip(JAVA_BLANKS)
    if not _DECIMAL.match(spelling):
        raise _malformed(text, kind)
    value = Decimal(spelling)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "no digits spell NaN"
    # Spark counts the digits of a zero, too.
    if exponent < _LEAST_EXPONENT or (exponent > 0 and len(digits) + exponent > MOST_DIGITS):
        raise _malformed(text, kind)
    return fit_decimal(value, kind)


def read_truth(text: str) -> bool:
    spelling = text.strip(_SPARK_BLANKS).lower()
    if spelling not in _TRUE | _FALSE:
        raise _malformed(text, BOOLEAN)
    return spelling in _TRUE


def read_date(text: str) -> date:
    match = _DATE.match(text.strip(_SPARK_BLANKS))
    if match is None:
        raise _malformed(text, DATE)
    year, month, day = (int(part) if part else 1 for part in match.groups())
    return date(_proven_year(year, text), month, day)


def _proven_year(year: int, text: str) -> int:
    if not 1 <= year <= 9999:
        raise NotInSpark(f"a flow has no dates outside the years 1 to 9999: '{text}'")
    return year


def read_moment_without_zone(text: str) -> datetime:
    return _read_clock(text, TIMESTAMP_NTZ).replace(tzinfo=None)


def read_moment(text: str) -> datetime:
    """The timestamp that the text spells. Without a time zone it is in UTC."""
    return _read_clock(text, TIMESTAMP)


def _read_clock(text: str, kind: pa.DataType) -> datetime:
    match = _MOMENT.match(text.strip(_SPARK_BLANKS))
    if match is None:
        raise _malformed(text, kind)
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    moment = datetime(
        _proven_year(int(year), text),
        int(month or 1),
        int(day or 1),
        int(hour or 0),
        int(minute or 0),
        int(second or 0),
        int((fraction or "").ljust(6, "0")[:6]),
        tzinfo=UTC,
    )
    # A TIMESTAMP_NTZ ignores the zone: its value is the time as it is written.
    apart = _offset_of(zone, text, kind) if zone else timedelta()
    return moment - apart if kind == TIMESTAMP else moment


def _offset_of(zone: str, text: str, kind: pa.DataType) -> timedelta:
    """The offset of a time zone from UTC."""
    match = _ZONE.match(zone.strip(_SPARK_BLANKS))
    if match is None:
        raise NotInSpark(
            f"a flow does not know the time zone of '{text}'",
            hint="It knows Z, UTC, GMT and what is spelled as +01:00.",
        )
    sign, hours, colon, minutes, seconds = match.groups()
    if not sign:
        return timedelta()
    if not _is_well_spelled(hours, colon, minutes, seconds):
        raise _malformed(text, kind)
    apart = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
    if max(int(minutes or 0), int(seconds or 0)) > 59 or apart > _LARGEST_OFFSET:
        raise _malformed(text, kind)
    return -apart if sign == "-" else apart


def _is_well_spelled(hours: str, colon: str, minutes: str, seconds: str) -> bool:
    """Whether Spark reads an offset with these parts: `+1`, `+01:00` and `+0100`, not `+100`."""
    if seconds and len(minutes) == 1:
        return False
    return bool(colon or not minutes or (len(hours) == 2 and len(minutes) == 2))
