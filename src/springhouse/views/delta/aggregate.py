"""How is a group kept up to date?

The rules split each aggregate into states that are easy to carry forward, and compute its value
from the states:

    count(x)      how many x are not NULL                                      added up
    sum(x)        the sum, and how many are not NULL: NULL when none is        added up
    avg(x)        the same two; for integers also the sum of |x|
    bool_and(x)   how many are false, how many are not NULL                    added up
    min(x)        the smallest; when it may have been deleted, the group is    the smaller one
                  recomputed from its rows

An increment is the amount that a change adds to a state. The (group key, increment) pairs are the
weak delta of 004 section 3.1. A group also stores its number of rows; at 0 the group disappears.
Sums of inexact numbers, DISTINCT and all other aggregates have no such states: a refresh recomputes
their touched groups.

A value is computed from states only if Spark's own function gives the same value, to the last
digit. Otherwise the group is `stale`, and a refresh recomputes it from its rows. The first build of
a view computes all groups from their rows. The cases where this matters:

    sum of decimals   `a + b` of DECIMAL(38, s) loses a digit of the fraction, of DECIMAL(37, s) it
                      does not: sums of 38 digits are stale, all others are added with this type
    avg of decimals   Spark divides once, and rounds to the type of the average. A division in SQL
                      rounds to its own type first, which has 34 - P more digits (P is the number of
                      digits of the sum). Both agree for less than 10^(34 - P) rows
    avg of integers   Spark adds doubles: exact while all sums stay below 2^53, which holds if the
                      sum of |x| does
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from springhouse.views.algebra.exact import MOST_DIGITS, ExactType
from springhouse.views.algebra.query_tree import Aggregate
from springhouse.views.delta.row_select import WEIGHT
from springhouse.views.sql.expressions import Expression, Named, column
from springhouse.views.sql.sql_tree import (
    FromClause,
    any_of_them,
    cast,
    coalesce,
    is_null,
    less,
    minus,
    more,
    named,
    number,
    plus,
    select,
    subquery,
    table,
    try_cast,
    when,
)

HIDDEN = "__springhouse_"
COUNT = f"{HIDDEN}count"
STORED, INCREMENTS = "stored", "increments"
"""The names of the stored groups and of the increments in a merge."""

_FITTING = MOST_DIGITS - 1
"""Two decimals of this many digits add up without loss."""
_PLENTY = 12
"""No group has 10 to this power rows."""
_EXACT_DOUBLE = 2**53


class Carry(Enum):
    """Which function of the values a state holds, and how it is carried forward."""

    SUM = "sum"  # the sum of integers, added up
    DECIMAL_SUM = "decimal_sum"  # the sum of decimals, added up as long as no digit is lost
    PRESENT = "present"  # how many are not NULL, added up
    MET = "count"  # how many are true, added up
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True)
class StateColumn:
    """A column that is carried forward: `carry` of the values of `of`.

    For a sum: the type `number` of its values, and the state `present` that counts them.
    """

    name: str
    carry: Carry
    of: Expression
    number: ExactType | None = None
    present: str = ""

    @property
    def type(self) -> ExactType | None:
        """The type of a sum."""
        return self.number.sum if self.number is not None else None

    @property
    def build(self) -> Expression:
        """The state of a group, from its rows."""
        return named(_BUILT_BY[self.carry](this=self.of), self.name)

    def increments(self, value: Expression) -> list[Expression]:
        """The increments that changed rows give the state; `value` is the name of `of` there."""
        weight, zero = column(WEIGHT), number(0)
        match self.carry:
            case Carry.DECIMAL_SUM:
                # The weight is +1 or -1. A multiplication by it would widen a decimal until it
                # loses digits.
                signed = when(more(weight, zero), value, exp.Neg(this=value))
                added = named(exp.Sum(this=signed), self.name)
                # If the count is not 0 and the sum is NULL, the sum overflowed.
                counted = named(exp.Count(this=value), self._changed)
                return [added, counted] if self._is_full else [added]
            case Carry.PRESENT:
                present = when(is_null(value), zero, weight)
                return [named(exp.Sum(this=present), self.name)]
            case Carry.MET:
                return [named(exp.Sum(this=when(value, weight, zero)), self.name)]
            case Carry.SUM | Carry.MIN | Carry.MAX:
                # Gains and losses separately, because the smallest integer has no negative.
                gathered = _BUILT_BY[self.carry]
                return [
                    named(gathered(this=when(more(weight, zero), value)), self.name),
                    named(gathered(this=when(less(weight, zero), value)), self.lost),
                ]

    @property
    def lost(self) -> str:
        """The column for deleted rows: their sum, or their smallest (largest) value."""
        return f"{self.name}_lost"

    @property
    def _changed(self) -> str:
        """The column that counts the changed values."""
        return f"{self.name}_changed"

    @property
    def _is_full(self) -> bool:
        """Whether the sum's type has all digits that Spark allows, with no room for an addition."""
        return self.type is not None and self.type.digits > _FITTING

    @property
    def merged(self) -> Expression:
        """The state after the change, from the stored one and the increment."""
        return named(self._after, self.name)

    @property
    def _stored(self) -> Expression:
        return column(self.name, STORED)

    @property
    def _new(self) -> Expression:
        return column(self.name, INCREMENTS)

    @property
    def _after(self) -> Expression:
        both = (self._stored, self._new)
        match self.carry:
            case Carry.MIN:
                return exp.Least(this=both[0], expressions=[both[1]], ignore_nulls=True)
            case Carry.MAX:
                return exp.Greatest(this=both[0], expressions=[both[1]], ignore_nulls=True)
            case Carry.SUM:
                return self._whole_sum
            case Carry.DECIMAL_SUM:
                # A plain 0 is an INT: a decimal beside it would need ten digits before the point.
                zero = cast(number(0), self.type)
                stored, new = (coalesce(each, zero) for each in both)
                if not self._is_full:
                    return cast(plus(stored, new), self.type)
                assert self.type is not None
                fitting = ExactType(_FITTING, self.type.fraction)
                return plus(try_cast(stored, fitting), try_cast(new, fitting))
            case _:
                stored, new = (coalesce(each, number(0)) for each in both)
                return plus(stored, new)

    @property
    def _whole_sum(self) -> Expression:
        terms = (self._stored, self._new, column(self.lost, INCREMENTS))
        stored, gained, lost = (coalesce(each, number(0)) for each in terms)
        if self.number is None or not self.number.is_long:
            return minus(plus(stored, gained), lost)
        # The intermediate sum may leave the range of a BIGINT, and the result be inside again.
        wide = cast(stored, "decimal(20, 0)")
        return cast(minus(plus(wide, gained), lost), "bigint")

    @property
    def stale(self) -> Expression | None:
        """When the increment is not enough to compute the state.

        Either the extreme value may have been deleted, or the digits of a sum do not suffice.
        """
        lost = column(self.lost, INCREMENTS)
        if self.carry is Carry.MIN:
            return exp.LTE(this=lost, expression=self._after)
        if self.carry is Carry.MAX:
            return exp.GTE(this=lost, expression=self._after)
        if not self._is_full:
            return None
        had_values = more(column(self.present, STORED), number(0))
        has_values = more(column(self._changed, INCREMENTS), number(0))
        return any_of_them(
            [
                is_null(self._after),
                exp.Paren(this=exp.And(this=is_null(self._stored), expression=had_values)),
                exp.Paren(this=exp.And(this=is_null(self._new), expression=has_values)),
            ]
        )


_BUILT_BY: dict[Carry, type[exp.Expression]] = {
    Carry.SUM: exp.Sum,
    Carry.DECIMAL_SUM: exp.Sum,
    Carry.PRESENT: exp.Count,
    Carry.MET: exp.CountIf,
    Carry.MIN: exp.Min,
    Carry.MAX: exp.Max,
}
"""The function that computes a state from rows."""


@dataclass(frozen=True)
class AggregateState:
    """The states of an aggregate node, and each of its measures as an expression over them."""

    states: tuple[StateColumn, ...]
    values: tuple[Named, ...]
    # Further conditions, over the states after a change, for computing a group from its rows.
    doubts: tuple[Expression, ...] = ()

    @property
    def types(self) -> dict[str, str]:
        """The types of the sums."""
        return {s.name: str(s.type) for s in self.states if s.type is not None}

    def increments(self, keys: Sequence[str], rows: str) -> tuple[list[Expression], FromClause]:
        """The increments of all states from changed rows, and the FROM clause for them.

        Each expression is computed once, under a name: Spark analyses long texts slowly.
        """
        computed = dict.fromkeys(s.of for s in self.states if not isinstance(s.of, exp.Column))
        names = {of: column(f"{HIDDEN}value_{place}") for place, of in enumerate(computed, 1)}
        items = [named(exp.Sum(this=column(WEIGHT)), COUNT)]
        for state in self.states:
            items += state.increments(names.get(state.of, state.of))
        if not names:
            return items, FromClause(table(rows))
        plain = [state.of for state in self.states if state.of not in names]
        values = [named(of, name.name) for of, name in names.items()]
        columns = dict.fromkeys([*map(column, keys), *plain, *values, column(WEIGHT)])
        valued = subquery(select(columns, FromClause(table(rows))), "valued")
        return items, FromClause(valued)


TypeOf = Callable[[Expression], ExactType | None]
"""Gives the type of an exact number."""


def decompose(node: Aggregate, type_of: TypeOf) -> AggregateState | None:
    """The states that carry the node forward; None if touched groups have to be recomputed."""
    found = _States(type_of)
    values = []
    for name, measure in node.measures:
        value = _value(measure, found)
        if value is None:
            return None
        values.append((name, value))
    return AggregateState(tuple(found.states), tuple(values), tuple(dict.fromkeys(found.doubts)))


class _States:
    """The states needed so far, and the conditions under which their values are in doubt."""

    def __init__(self, type_of: TypeOf) -> None:
        self.type_of = type_of
        self.states: list[StateColumn] = []
        self.doubts: list[Expression] = []

    def column(
        self, carry: Carry, of: Expression, number: ExactType | None = None, present: str = ""
    ) -> exp.Column:
        """The column of a state, created at the first request."""
        for known in self.states:
            if known.carry is carry and known.of == of:
                return column(known.name)
        name = f"{HIDDEN}{carry.value}_{len(self.states) + 1}"
        self.states.append(StateColumn(name, carry, of, number, present))
        return column(name)

    def present(self, of: Expression) -> exp.Column:
        return self.column(Carry.PRESENT, of)

    def sum(self, of: Expression) -> exp.Column | None:
        """The column of a sum; None if the sum can't be carried forward without loss."""
        number = self.type_of(of)
        if number is None or number.fraction > _FITTING:
            return None
        if number.whole:
            return self.column(Carry.SUM, of, number)
        return self.column(Carry.DECIMAL_SUM, of, number, self.present(of).name)

    def average(self, of: Expression) -> Expression | None:
        """An average over its states; None if its states can't give the same value as Spark."""
        kind = self.type_of(of)
        if kind is None:
            return None
        if kind.whole:
            return self._average_of_integers(of, kind)
        spare = 34 - kind.sum.digits
        if spare < _SPARE_DIGITS:
            return None
        total, present = self.sum(of), self.present(of)
        if spare < _PLENTY:
            self.doubts.append(exp.GTE(this=present, expression=number(10**spare)))
        assert total is not None
        return cast(exp.Div(this=total, expression=present), kind.average)

    def _average_of_integers(self, of: Expression, kind: ExactType) -> Expression:
        present = self.present(of)
        if not kind.is_long:
            total = self.column(Carry.SUM, of, kind)
            size = exp.Abs(this=exp.cast(of.copy(), "bigint", dialect="spark"))
            sizes = self.column(Carry.SUM, size, kind)
        else:
            # Spark averages these numbers even if their sum leaves the range of a BIGINT.
            wide = ExactType(kind.digits)
            value = exp.cast(of.copy(), str(wide), dialect="spark")
            total = self.column(Carry.DECIMAL_SUM, value, wide, present.name)
            sizes = self.column(Carry.DECIMAL_SUM, exp.Abs(this=value), wide, present.name)
        self.doubts.append(more(sizes, number(_EXACT_DOUBLE)))
        return exp.Div(this=cast(total, "double"), expression=present)


_SPARE_DIGITS = 6
"""With fewer spare digits, an average would be in doubt for most groups."""


def _value(measure: Expression, states: _States) -> Expression | None:
    """The value of one aggregate over its states; None if the aggregate has no states."""
    condition = None
    if isinstance(measure, exp.Filter):
        condition, measure = measure.expression.this, measure.this
    name, argument = _function(measure)
    if argument is None:
        return None
    if isinstance(measure, exp.Count) and isinstance(argument, exp.Star | exp.Literal):
        return column(COUNT) if condition is None else _counted(condition, states)
    if isinstance(measure, exp.CountIf):
        both = [each.copy() for each in (argument, condition) if each is not None]
        return _counted(exp.and_(*both), states)
    if condition is not None:
        argument = exp.Case().when(condition.copy(), argument.copy())
    if isinstance(measure, exp.Min | exp.Max):
        return states.column(Carry.MIN if isinstance(measure, exp.Min) else Carry.MAX, argument)
    return _unless_all_are_null(measure, name, argument, states)


def _function(measure: Expression) -> tuple[str, Expression | None]:
    """An aggregate's name (if sqlglot has no class for it) and its single argument."""
    name = measure.name.lower() if isinstance(measure, exp.Anonymous) else ""
    argument = measure.expressions[0] if name and measure.expressions else measure.this
    has_several = bool(measure.expressions) and not name
    if has_several or not isinstance(argument, Expression) or isinstance(argument, exp.Distinct):
        return name, None
    return name, argument


def _unless_all_are_null(
    measure: Expression, name: str, argument: Expression, states: _States
) -> Expression | None:
    """The value of an aggregate that ignores NULLs, and is NULL if all values are NULL."""
    value: Expression | None = None
    if isinstance(measure, exp.Count):
        return coalesce(states.present(argument), number(0))
    if isinstance(measure, exp.Sum):
        value = states.sum(argument)
    elif isinstance(measure, exp.Avg):
        value = states.average(argument)
    elif isinstance(measure, exp.LogicalAnd) or name == "every":
        false = _counted(exp.Not(this=exp.paren(argument.copy())), states)
        value = exp.EQ(this=false, expression=number(0))
    elif isinstance(measure, exp.LogicalOr) or name in ("any", "some"):
        value = more(_counted(argument, states), number(0))
    if value is None:
        return None
    return when(more(states.present(argument), number(0)), value)


def _counted(condition: Expression, states: _States) -> Expression:
    return coalesce(states.column(Carry.MET, condition), number(0))
