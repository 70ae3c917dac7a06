"""Which conditions of a query can Arrow decide as Spark would?

Only the simplest: those that compare a column with literals of its own type, for whole numbers,
decimals, dates and text. A reader of rows for a query may drop the rows that fail such a condition.
Spark checks all conditions again, so a condition that this module does not understand only costs
time.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

_COMPARED: Mapping[type, Callable[[Any, Any], Any]] = {
    exp.EQ: lambda column, value: column == value,
    exp.NEQ: lambda column, value: column != value,
    exp.LT: lambda column, value: column < value,
    exp.LTE: lambda column, value: column <= value,
    exp.GT: lambda column, value: column > value,
    exp.GTE: lambda column, value: column >= value,
}
_TURNED: Mapping[type, type] = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}


def decidable(conditions: Sequence[exp.Expr], schema: pa.Schema) -> pc.Expression | None:
    """All conditions that Arrow can decide, as one; None if there are none."""
    found = [_condition(each.unnest(), schema) for each in conditions]
    whole: pc.Expression | None = None
    for each in found:
        if each is not None:
            whole = each if whole is None else whole & each
    return whole


def _condition(condition: exp.Expr, schema: pa.Schema) -> pc.Expression | None:
    match condition:
        case exp.In(this=exp.Column() as column) if _says_only(condition, "this", "expressions"):
            values = [_value(each, column, schema) for each in condition.expressions]
            known = [value.as_py() for value in values if value is not None]
            if len(known) < len(values):
                return None
            return pc.field(column.name).isin(pa.array(known, schema.field(column.name).type))
        case exp.Between(this=exp.Column() as column) if _says_only(
            condition, "this", "low", "high"
        ):
            low = _value(condition.args["low"], column, schema)
            high = _value(condition.args["high"], column, schema)
            if low is None or high is None:
                return None
            return (pc.field(column.name) >= low) & (pc.field(column.name) <= high)
        case exp.Like(this=exp.Column() as column, expression=exp.Literal() as pattern) if (
            _says_only(condition, "this", "expression")
        ):
            return _like(column, pattern, schema)
        case _:
            return _comparison(condition, schema)


def _says_only(expression: exp.Expr, *parts: str) -> bool:
    """Whether an expression has exactly these parts, and no NOT, ESCAPE or future part."""
    return {name for name, part in expression.args.items() if part} == {*parts}


def _comparison(condition: exp.Expr, schema: pa.Schema) -> pc.Expression | None:
    kind = type(condition)
    if kind not in _COMPARED or not _says_only(condition, "this", "expression"):
        return None
    left, right = condition.this.unnest(), condition.expression.unnest()
    if not isinstance(left, exp.Column):
        left, right, kind = right, left, _TURNED.get(kind, kind)
    if not isinstance(left, exp.Column):
        return None
    value = _value(right, left, schema)
    return None if value is None else _COMPARED[kind](pc.field(left.name), value)


def _like(column: exp.Column, pattern: exp.Literal, schema: pa.Schema) -> pc.Expression | None:
    """LIKE with plain text between its percent signs."""
    text = pattern.name
    known = column.name in schema.names and pa.types.is_string(schema.field(column.name).type)
    if not known or not pattern.is_string or any(sign in text for sign in "_\\"):
        return None
    return pc.match_like(pc.field(column.name), text)


def _value(literal: exp.Expr, column: exp.Column, schema: pa.Schema) -> pa.Scalar | None:
    """A literal as a value of the column's type; None if the conversion is not obvious."""
    if column.table or column.name not in schema.names:
        return None
    kind, literal = schema.field(column.name).type, literal.unnest()
    if pa.types.is_date(kind):
        return _day(literal)
    negative = isinstance(literal, exp.Neg)
    if negative:
        literal = literal.this
    if not isinstance(literal, exp.Literal):
        return None
    if literal.is_string:
        return pa.scalar(literal.name) if pa.types.is_string(kind) and not negative else None
    try:
        number = Decimal(literal.name) * (-1 if negative else 1)
        if pa.types.is_integer(kind) and number == int(number):
            return pa.scalar(int(number), kind)
        return pa.scalar(number, kind) if pa.types.is_decimal(kind) else None
    except (InvalidOperation, pa.ArrowInvalid, OverflowError):
        return None


def _day(literal: exp.Expr) -> pa.Scalar | None:
    """The day of DATE '2026-01-31', which sqlglot parses as a cast."""
    if not isinstance(literal, exp.Cast) or not _says_only(literal, "this", "to"):
        return None
    text = literal.this
    if not literal.to.is_type("date") or not isinstance(text, exp.Literal) or not text.is_string:
        return None
    try:
        day = date.fromisoformat(text.name)
    except ValueError:
        return None
    return pa.scalar(day, pa.date32()) if day.isoformat() == text.name else None
