"""Which operators and functions of numbers does a flow have, and which types do they accept?"""

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.sql import numbers
from springhouse.flows.sql.moment_functions import add_days
from springhouse.flows.sql.operand_types import MakeTerm, Terms, as_type, number_pair
from springhouse.flows.sql.terms import Term, strict_term
from springhouse.flows.sql.types import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGERS,
    NULL,
    is_fraction,
    is_number,
)


def _calculation(sign: str) -> MakeTerm:
    def make(parts: Terms) -> Term | None:
        if len(parts) == 2 and sign in "+-" and parts[0].type == DATE and parts[1].type != NULL:
            return add_days(parts, sign=1 if sign == "+" else -1)
        pair = number_pair(parts)
        if pair is None:
            return None
        if pa.types.is_decimal128(pair[0].type):
            return numbers.calculate_decimals(sign, *pair)
        return numbers.calculate(sign, *pair)

    return make


def _division(parts: Terms) -> Term | None:
    pair = number_pair(parts)
    if pair is None:
        return None
    if pa.types.is_decimal128(pair[0].type):
        return numbers.calculate_decimals("/", *pair)
    return numbers.divide(*as_type(DOUBLE, *pair))


def _modulo(parts: Terms) -> Term | None:
    pair = number_pair(parts)
    if pair is None:
        return None
    if pa.types.is_decimal128(pair[0].type):
        return numbers.calculate_decimals("%", *pair)
    return numbers.remainder(*pair)


def _whole_division(parts: Terms) -> Term | None:
    pair = number_pair(parts)
    if pair is None or pair[0].type not in INTEGERS:
        return None
    return numbers.quotient(*as_type(BIGINT, *pair))


def _bits(sign: str) -> MakeTerm:
    def make(parts: Terms) -> Term | None:
        pair = number_pair(parts)
        if pair is None or pair[0].type not in INTEGERS:
            return None
        return numbers.bits(sign, *pair)

    return make


def _of_one_number(make: Callable[[Term], Term], *, whole: bool = False) -> MakeTerm:
    def checked(parts: Terms) -> Term | None:
        if len(parts) != 1 or not is_number(parts[0].type):
            return None
        return make(parts[0]) if not whole or parts[0].type in INTEGERS else None

    return checked


def _sign_changing(make: Callable[[Term], Term]) -> MakeTerm:
    """Refuses a DECIMAL with more digits than 34: Spark rounds it when it changes the sign."""

    def checked(parts: Terms) -> Term | None:
        if parts and pa.types.is_decimal128(parts[0].type) and parts[0].type.precision > 34:
            return None
        return _of_one_number(make)(parts)

    return checked


def _invert_bits(term: Term) -> Term:
    return strict_term(term.type, pc.bit_wise_not, [term])


def _of_doubles(make: Callable[[Term], Term]) -> Callable[[Term], Term]:
    return lambda term: make(*as_type(DOUBLE, term))


def _rounding(*, even: bool) -> MakeTerm:
    def make(parts: Terms) -> Term | None:
        # FLOAT is refused: Spark rounds it differently with and without generated code.
        if not 1 <= len(parts) <= 2 or not is_number(parts[0].type) or parts[0].type == FLOAT:
            return None
        if len(parts) == 1:
            return numbers.round_to(parts[0], 0, even=even)
        places = parts[1]
        if not places.constant or places.type not in INTEGERS[:3] or places.fallible:
            return None
        digits = places.value()
        if digits is None or not -400 <= digits <= 400:
            return None
        return numbers.round_to(parts[0], digits, even=even)

    return make


def _is_nan(parts: Terms) -> Term | None:
    if len(parts) != 1 or not is_fraction(parts[0].type):
        return None
    return numbers.is_not_a_number(parts[0])


NUMBER_FUNCTIONS: Mapping[str, MakeTerm] = {
    "+": _calculation("+"),
    "-": _calculation("-"),
    "*": _calculation("*"),
    "/": _division,
    "%": _modulo,
    "mod": _modulo,
    "div": _whole_division,
    "&": _bits("&"),
    "|": _bits("|"),
    "^": _bits("^"),
    "~": _of_one_number(_invert_bits, whole=True),
    "negative": _sign_changing(numbers.negate_number),
    "positive": _of_one_number(lambda term: term),
    "abs": _sign_changing(numbers.absolute_value),
    "sqrt": _of_one_number(_of_doubles(numbers.square_root)),
    "sign": _of_one_number(_of_doubles(numbers.sign_of)),
    "signum": _of_one_number(_of_doubles(numbers.sign_of)),
    "floor": _of_one_number(lambda term: numbers.floor_or_ceiling(term, up=False)),
    "ceil": _of_one_number(lambda term: numbers.floor_or_ceiling(term, up=True)),
    "ceiling": _of_one_number(lambda term: numbers.floor_or_ceiling(term, up=True)),
    "round": _rounding(even=False),
    "bround": _rounding(even=True),
    "isnan": _is_nan,
}
