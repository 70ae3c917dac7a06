"""How is a group kept up to date?

Each aggregate is broken into states that are easy to carry forward, and a value computed from them:

    count(x)      how many x are not NULL                                      added up
    sum(x)        the sum, and how many are not NULL: NULL when none is        added up
    avg(x)        the same two
    bool_and(x)   how many are false, how many are not NULL                    added up
    min(x)        the smallest; when it may have been deleted, the group is    the smaller one
                  recomputed from its rows

An increment is what a change adds to a state, (group key, increment) pairs: the weak delta of 004
section 3.1. A group also has its number of rows; at 0 it is gone. Sums of inexact numbers, DISTINCT
and all other aggregates have no such states: their touched groups are recomputed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from springhouse.views.algebra import Aggregate
from springhouse.views.expressions import Expression
from springhouse.views.rows import WEIGHT, quoted, sql

HIDDEN = "__springhouse_"
COUNT = f"{HIDDEN}count"


class Carry(Enum):
    """What a state is of a value, and how it is carried forward."""

    SUM = "sum"  # the sum, added up
    PRESENT = "present"  # how many are not NULL, added up
    MET = "count"  # how many are true, added up
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True)
class State:
    """A column that is carried forward: `carry` of the values of `of`."""

    name: str
    carry: Carry
    of: Expression

    @property
    def is_added(self) -> bool:
        return self.carry not in (Carry.MIN, Carry.MAX)

    @property
    def build(self) -> str:
        """The state of a group, from its rows."""
        words = {Carry.PRESENT: "COUNT", Carry.MET: "COUNT_IF"}
        word = words.get(self.carry, self.carry.value.upper())
        return f"{word}({sql(self.of)}) AS {quoted(self.name)}"

    def increments(self, value: str) -> list[str]:
        """What changed rows say about the state; `value` is what `of` is called there."""
        name = quoted(self.name)
        match self.carry:
            case Carry.SUM:
                # The weight is +1 or -1; to multiply by it would widen a decimal until digits are
                # lost.
                return [f"SUM(CASE WHEN {WEIGHT} > 0 THEN {value} ELSE -{value} END) AS {name}"]
            case Carry.PRESENT:
                return [f"SUM(CASE WHEN {value} IS NULL THEN 0 ELSE {WEIGHT} END) AS {name}"]
            case Carry.MET:
                return [f"SUM(CASE WHEN {value} THEN {WEIGHT} ELSE 0 END) AS {name}"]
            case Carry.MIN | Carry.MAX:
                word = self.carry.value.upper()
                return [
                    f"{word}(CASE WHEN {WEIGHT} > 0 THEN {value} END) AS {name}",
                    f"{word}(CASE WHEN {WEIGHT} < 0 THEN {value} END) AS {quoted(self.lost)}",
                ]

    @property
    def lost(self) -> str:
        """The smallest (largest) value among the deleted rows."""
        return f"{self.name}_lost"

    @property
    def merged(self) -> str:
        """The state after the change, from the stored one and the increment."""
        name = quoted(self.name)
        if self.is_added:
            return f"COALESCE(stored.{name}, 0) + COALESCE(increments.{name}, 0) AS {name}"
        word = "LEAST" if self.carry is Carry.MIN else "GREATEST"
        return f"{word}(stored.{name}, increments.{name}) AS {name}"

    @property
    def stale(self) -> str | None:
        """When the increment is not enough: the value that would be the extreme one was deleted."""
        if self.is_added:
            return None
        stored, new = f"stored.{quoted(self.name)}", f"increments.{quoted(self.name)}"
        lost = f"increments.{quoted(self.lost)}"
        word, beyond = ("LEAST", "<=") if self.carry is Carry.MIN else ("GREATEST", ">=")
        return f"{lost} {beyond} {word}({stored}, {new})"


@dataclass(frozen=True)
class Kept:
    """The states of an aggregate node, and the value of each of its measures over them."""

    states: tuple[State, ...]
    values: tuple[tuple[str, str], ...]

    def increments(self, keys: Sequence[str], rows: str) -> tuple[list[str], str]:
        """What changed rows add to each state, and the FROM clause that it is asked of.

        What is computed is computed once, and named: Spark thinks long about long texts.
        """
        computed = dict.fromkeys(s.of for s in self.states if not isinstance(s.of, exp.Column))
        names = {of: f"{HIDDEN}value_{place}" for place, of in enumerate(computed, 1)}
        items = [f"SUM({WEIGHT}) AS {COUNT}"]
        for state in self.states:
            items += state.increments(names.get(state.of) or sql(state.of))
        if not names:
            return items, rows
        plain = [sql(s.of) for s in self.states if s.of not in names]
        values = [f"{sql(of)} AS {name}" for of, name in names.items()]
        columns = dict.fromkeys([*map(quoted, keys), *plain, *values, WEIGHT])
        return items, f"(\n  SELECT {', '.join(columns)}\n  FROM {rows}\n) AS valued"


def kept(node: Aggregate, is_exact: Callable[[Expression], bool]) -> Kept | None:
    """How to carry the node forward; None if its touched groups have to be recomputed."""
    states: list[State] = []

    def state(carry: Carry, of: Expression) -> str:
        for known in states:
            if known.carry is carry and known.of == of:
                return quoted(known.name)
        name = f"{HIDDEN}{carry.value}_{len(states) + 1}"
        states.append(State(name, carry, of))
        return quoted(name)

    values = []
    for name, measure in node.measures:
        value = _value(measure, state, is_exact)
        if value is None:
            return None
        values.append((name, value))
    return Kept(tuple(states), tuple(values))


StateOf = Callable[[Carry, Expression], str]
"""Gives the column of a state, made if need be."""


def _value(
    measure: Expression, state: StateOf, is_exact: Callable[[Expression], bool]
) -> str | None:
    """The value of one aggregate over its states; None if it has none."""
    condition = None
    if isinstance(measure, exp.Filter):
        condition, measure = measure.expression.this, measure.this
    name = measure.name.lower() if isinstance(measure, exp.Anonymous) else ""
    argument = measure.expressions[0] if name and measure.expressions else measure.this
    several = bool(measure.expressions) and not name
    if several or not isinstance(argument, Expression) or isinstance(argument, exp.Distinct):
        return None
    if isinstance(measure, exp.Count) and isinstance(argument, exp.Star | exp.Literal):
        return COUNT if condition is None else _counted(condition, state)
    if isinstance(measure, exp.CountIf):
        both = [each.copy() for each in (argument, condition) if each is not None]
        return _counted(exp.and_(*both), state)
    if condition is not None:
        argument = exp.Case().when(condition.copy(), argument.copy())
    if isinstance(measure, exp.Min | exp.Max):
        return state(Carry.MIN if isinstance(measure, exp.Min) else Carry.MAX, argument)
    if isinstance(measure, exp.Sum | exp.Avg) and not is_exact(argument):
        return None
    return _unless_all_are_null(measure, name, argument, state)


def _unless_all_are_null(
    measure: Expression, name: str, argument: Expression, state: StateOf
) -> str | None:
    """The value of an aggregate that passes NULLs over, and is NULL when there is nothing else."""
    if isinstance(measure, exp.Count):
        return f"COALESCE({state(Carry.PRESENT, argument)}, 0)"
    if isinstance(measure, exp.Sum):
        value = state(Carry.SUM, argument)
    elif isinstance(measure, exp.Avg):
        value = f"{state(Carry.SUM, argument)} / {state(Carry.PRESENT, argument)}"
    elif isinstance(measure, exp.LogicalAnd) or name == "every":
        value = f"{_counted(exp.Not(this=exp.paren(argument.copy())), state)} = 0"
    elif isinstance(measure, exp.LogicalOr) or name in ("any", "some"):
        value = f"{_counted(argument, state)} > 0"
    else:
        return None
    return f"CASE WHEN {state(Carry.PRESENT, argument)} > 0 THEN {value} END"


def _counted(condition: Expression, state: StateOf) -> str:
    return f"COALESCE({state(Carry.MET, condition)}, 0)"
