"""What do the functions of dates and timestamps compute? The time zone is always UTC."""

from collections.abc import Callable

import pyarrow.compute as pc

from springhouse.flows.sql.terms import Term, Value, strict_term
from springhouse.flows.sql.types import DATE, INT

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
    return strict_term(INT, lambda value: pc.cast(function(value), INT), [term])


def later(term: Term, days: Term, *, sign: int) -> Term:
    """date_add and date_sub. As in Spark, too many days wrap around."""
    kernel = pc.add if sign > 0 else pc.subtract

    def compute(value: Value, count: Value) -> Value:
        return pc.cast(kernel(pc.cast(value, INT), count), DATE)

    return strict_term(DATE, compute, [term, days])


def between(end: Term, start: Term) -> Term:
    """datediff(end, start), in days."""

    def compute(one: Value, other: Value) -> Value:
        return pc.subtract(pc.cast(one, INT), pc.cast(other, INT))

    return strict_term(INT, compute, [end, start])
