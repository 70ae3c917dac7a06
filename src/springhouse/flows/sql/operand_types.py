"""In which types does a function compute with its operands?

Each function here casts the operands to the types in which Spark computes with them. It returns
None if Spark, or a flow, does not compute with operands of these types.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa

from springhouse.flows.sql.casts import cast
from springhouse.flows.sql.terms import Term, constant_term, fold_constants, give_type
from springhouse.flows.sql.types import (
    BOOLEAN,
    DOUBLE,
    INTEGERS,
    NULL,
    STRING,
    TINYINT,
    common_type,
    compared_type,
    decimal_of,
    is_fraction,
    is_number,
    is_plain,
)

Terms: TypeAlias = Sequence[Term]
MakeTerm: TypeAlias = Callable[[Terms], Term | None]
"""Makes the term of a call from its arguments; None if it does not accept their types."""


def as_type(kind: pa.DataType, *parts: Term) -> list[Term]:
    return [fold_constants(cast(part, kind)) for part in parts]


def in_one_type(parts: Terms) -> tuple[pa.DataType, list[Term]] | None:
    """The parts, cast to the common type that holds them all."""
    kind: pa.DataType | None = NULL
    for part in parts:
        kind = common_type(kind, part.type) if kind is not None else None
    if kind is None or not (is_plain(kind) or all(part.type in (kind, NULL) for part in parts)):
        return None
    return kind, as_type(kind, *parts)


def fewest_digits(part: Term, beside: Term) -> Term:
    """Make a literal whole number beside a DECIMAL a DECIMAL with as many digits as it has."""
    if not (part.literal and part.type in INTEGERS and pa.types.is_decimal128(beside.type)):
        return part
    if part.type == TINYINT:  # Spark has no such rule for TINYINT
        return part
    value = Decimal(part.value())
    return replace(
        constant_term(value, pa.decimal128(len(value.as_tuple().digits), 0)), constant=True
    )


def number_pair(parts: Terms) -> list[Term] | None:
    """Two numbers for an operator, both of one type or both DECIMAL."""
    if len(parts) != 2:
        return None
    one, other = parts
    if one.type == NULL and is_number(other.type):
        one = give_type(one, other.type)
    if other.type == NULL and is_number(one.type):
        other = give_type(other, one.type)
    if not (is_number(one.type) and is_number(other.type)):
        return None
    one, other = fewest_digits(one, other), fewest_digits(other, one)
    if pa.types.is_decimal128(one.type) or pa.types.is_decimal128(other.type):
        if not (is_fraction(one.type) or is_fraction(other.type)):
            return [*as_type(decimal_of(one.type), one), *as_type(decimal_of(other.type), other)]
        return as_type(DOUBLE, one, other)
    kind = common_type(one.type, other.type)
    assert kind is not None
    return as_type(kind, one, other)


def as_conditions(parts: Terms) -> list[Term] | None:
    if all(part.type in (BOOLEAN, NULL) for part in parts):
        return [give_type(part, BOOLEAN) for part in parts]
    return None


def as_texts(parts: Terms) -> list[Term] | None:
    if all(part.type in (STRING, NULL) for part in parts):
        return [give_type(part, STRING) for part in parts]
    return None


def comparable_pair(parts: Terms) -> list[Term] | None:
    if len(parts) != 2:
        return None
    one, other = fewest_digits(parts[0], parts[1]), fewest_digits(parts[1], parts[0])
    kind = compared_type(one.type, other.type)
    return None if kind is None else as_type(kind, one, other)
