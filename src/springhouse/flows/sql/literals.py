"""Which value and which type does a number in a SQL text have?

The rules are Spark's: 1 is an INT, 3000000000 a BIGINT, 1.50 a DECIMAL(3,2), and 1e3 a DOUBLE. A
sign is a part of the number, so -128Y is a TINYINT, and -0.0D differs from 0.0D. A number outside
the range of its type is an error. It does not become infinity.
"""

import re
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from springhouse.flows.flow_graph import FlowError
from springhouse.flows.sql.types import BIGINT, DOUBLE, FLOAT, INT, SMALLINT, TINYINT

_NUMBER = re.compile(
    r"(-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:E[+-]?[0-9]+)?)(BD|[LSYDF])?", re.IGNORECASE
)
_SUFFIXES = {"L": BIGINT, "S": SMALLINT, "Y": TINYINT, "D": DOUBLE, "F": FLOAT}
_LARGEST = {DOUBLE: Decimal("1.7976931348623157E308"), FLOAT: Decimal("3.4028234663852886E38")}
_SMALLER_THAN_ANY = Decimal("1E-400")
_MOST_EXPONENT = 100_000


class NumberLiteral(NamedTuple):
    """A number and its type."""

    value: object
    type: pa.DataType


def number(text: str) -> NumberLiteral:
    """The number that a text spells, with its sign.

    >>> number("-1.50"), number("1e3").type
    (NumberLiteral(value=Decimal('-1.50'), type=Decimal128Type(decimal128(3, 2))), DataType(double))
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise FlowError(f"{text} is not a number")
    digits, suffix = match.group(1), (match.group(2) or "").upper()
    has_exponent = "e" in digits.lower()
    is_whole = digits.lstrip("+-").isdigit()
    if suffix in ("L", "S", "Y") and not is_whole:
        raise FlowError(f"{text} is not a number")
    value = Decimal(digits)
    if abs(value.adjusted()) > _MOST_EXPONENT:
        raise FlowError(f"{text} is too large or too small a number")
    if suffix in ("D", "F") or (has_exponent and not suffix):
        return _fraction(text, value, _SUFFIXES.get(suffix, DOUBLE))
    if is_whole and suffix != "BD":
        return _whole(text, value, _SUFFIXES.get(suffix))
    return _decimal(text, value)


def _whole(text: str, value: Decimal, wanted: pa.DataType | None) -> NumberLiteral:
    for kind in (INT, BIGINT) if wanted is None else (wanted,):
        limit = 2 ** (kind.bit_width - 1)
        if -limit <= value < limit:
            return NumberLiteral(int(value), kind)
    if wanted is not None:
        raise FlowError(f"{text} is too large a number")
    return _decimal(text, value)


def _fraction(text: str, value: Decimal, kind: pa.DataType) -> NumberLiteral:
    if value.copy_abs() > _LARGEST[kind]:
        raise FlowError(f"{text} is too large a number")
    return NumberLiteral(float(value) if kind == DOUBLE else _nearest_float(value), kind)


def _nearest_float(value: Decimal) -> float:
    """The FLOAT nearest to the number. A conversion through DOUBLE would round it twice."""
    near = np.float32(float(value))
    if value.copy_abs() < _SMALLER_THAN_ANY:
        return float(near)
    exact = Fraction(value)
    beside = (near, *(np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf)))
    finite = [float(neighbour) for neighbour in beside if np.isfinite(neighbour)]
    # If two are equally near, take the first: it was rounded to the even one.
    return min(finite, key=lambda each: abs(Fraction(each) - exact))


def _decimal(text: str, value: Decimal) -> NumberLiteral:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "no digits spell NaN"
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale)
    if precision > 38:
        raise FlowError(f"{text} has more than 38 digits")
    return NumberLiteral(Decimal(f"{value:f}"), pa.decimal128(precision, scale))
