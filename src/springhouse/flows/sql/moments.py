"""What do the functions of dates and timestamps give? In UTC, as the whole of a flow."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.sql.terms import Term, Value, strict
from springhouse.flows.sql.types import BIGINT, DATE, INT

DAY_FIELDS: dict[str, Callable[[Value], Value]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "day": pc.day,
    "dayofmonth": pc.day,
    "dayofyear": pc.day_of_year,
    "dayofweek": lambda value: pc.day_of_week(value, count_from_zero=False, week_start=7),
    "weekday": pc.day_of_week,
}
TIME_FIELDS: dict[str, Callable[[Value], Value]] = {
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}


def part(function: Callable[[Value], Value], term: Term) -> Term:
    """A field of a date or a timestamp, as INT."""
    return strict(INT, lambda value: pc.cast(function(value), INT), [term])


def later(term: Term, days: Term, *, sign: int) -> Term:
    """date_add and date_sub."""
    kernel = pc.add_checked if sign > 0 else pc.subtract_checked

    def compute(value: Value, count: Value) -> Value:
        made = kernel(_number(value), pc.cast(count, BIGINT))
        return pc.cast(pc.cast(made, INT), DATE)

    return strict(DATE, compute, [term, days], fallible=True)


def between(end: Term, start: Term) -> Term:
    """datediff(end, start): days."""

    def compute(one: Value, other: Value) -> Value:
        return pc.cast(pc.subtract(_number(one), _number(other)), INT)

    return strict(INT, compute, [end, start], fallible=True)


def _number(value: Value) -> Value:
    return pc.cast(pc.cast(value, INT), BIGINT)


def is_date(kind: pa.DataType) -> bool:
    """Whether it is DATE."""
    return bool(kind == DATE)
