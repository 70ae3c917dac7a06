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

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from springhouse.views.algebra import Aggregate
from springhouse.views.expressions import Expression
from springhouse.views.rows import WEIGHT, quoted, sql

HIDDEN = "__springhouse_"
COUNT = f"{HIDDEN}count"


@dataclass(frozen=True)
class State:
    """A column that is carried forward. `merge` is `add`, `min` or `max`."""

    name: str
    merge: str
    of: Expression

    @property
    def build(self) -> str:
        """The state of a group, from its rows."""
        word = {"add": "SUM", "min": "MIN", "max": "MAX"}[self.merge]
        return f"{word}({sql(self.of)}) AS {quoted(self.name)}"

    @property
    def increments(self) -> list[str]:
        """What changed rows say about the state."""
        text = sql(self.of)
        if self.merge == "add":
            # The weight is +1 or -1; to multiply by it would widen a decimal until digits are lost.
            return [
                f"SUM(CASE WHEN {WEIGHT} > 0 THEN {text} ELSE -({text}) END) AS {quoted(self.name)}"
            ]
        word = self.merge.upper()
        return [
            f"{word}(CASE WHEN {WEIGHT} > 0 THEN {text} END) AS {quoted(self.name)}",
            f"{word}(CASE WHEN {WEIGHT} < 0 THEN {text} END) AS {quoted(self.lost)}",
        ]

    @property
    def lost(self) -> str:
        """The smallest (largest) value among the deleted rows."""
        return f"{self.name}_lost"

    @property
    def merged(self) -> str:
        """The state after the change, from the stored one and the increment."""
        name = quoted(self.name)
        if self.merge == "add":
            return f"COALESCE(stored.{name}, 0) + COALESCE(increments.{name}, 0) AS {name}"
        word = "LEAST" if self.merge == "min" else "GREATEST"
        return f"{word}(stored.{name}, increments.{name}) AS {name}"

    @property
    def stale(self) -> str | None:
        """When the increment is not enough: the value that would be the extreme one was deleted."""
        if self.merge == "add":
            return None
        stored, new = f"stored.{quoted(self.name)}", f"increments.{quoted(self.name)}"
        lost = f"increments.{quoted(self.lost)}"
        word, beyond = ("LEAST", "<=") if self.merge == "min" else ("GREATEST", ">=")
        return f"{lost} {beyond} {word}({stored}, {new})"


@dataclass(frozen=True)
class Kept:
    """The states of an aggregate node, and the value of each of its measures over them."""

    states: tuple[State, ...]
    values: tuple[tuple[str, str], ...]


def kept(node: Aggregate, is_exact: Callable[[Expression], bool]) -> Kept | None:
    """How to carry the node forward; None if its touched groups have to be recomputed."""
    states: list[State] = []

    def state(merge: str, of: Expression, word: str) -> str:
        for known in states:
            if known.merge == merge and known.of == of:
                return quoted(known.name)
        name = f"{HIDDEN}{word}_{len(states) + 1}"
        states.append(State(name, merge, of))
        return quoted(name)

    values = []
    for name, measure in node.measures:
        value = _value(measure, state, is_exact)
        if value is None:
            return None
        values.append((name, value))
    return Kept(tuple(states), tuple(values))


StateOf = Callable[[str, Expression, str], str]
"""Gives the column of a state, made if need be: how it is merged, of what, and a word for it."""


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
        return state("min" if isinstance(measure, exp.Min) else "max", argument, measure.key)
    if isinstance(measure, exp.Sum | exp.Avg) and not is_exact(argument):
        return None
    return _unless_all_are_null(measure, name, argument, state)


def _unless_all_are_null(
    measure: Expression, name: str, argument: Expression, state: StateOf
) -> str | None:
    """The value of an aggregate that passes NULLs over, and is NULL when there is nothing else."""
    present = _ones(exp.Not(this=exp.Is(this=exp.paren(argument.copy()), expression=exp.Null())))
    if isinstance(measure, exp.Count):
        return f"COALESCE({state('add', present, 'present')}, 0)"
    if isinstance(measure, exp.Sum):
        value = state("add", argument, "sum")
    elif isinstance(measure, exp.Avg):
        value = f"{state('add', argument, 'sum')} / {state('add', present, 'present')}"
    elif isinstance(measure, exp.LogicalAnd) or name == "every":
        value = f"{_counted(exp.Not(this=exp.paren(argument.copy())), state)} = 0"
    elif isinstance(measure, exp.LogicalOr) or name in ("any", "some"):
        value = f"{_counted(argument, state)} > 0"
    else:
        return None
    return f"CASE WHEN {state('add', present, 'present')} > 0 THEN {value} END"


def _counted(condition: Expression, state: StateOf) -> str:
    return f"COALESCE({state('add', _ones(condition), 'count')}, 0)"


def _ones(condition: Expression) -> Expression:
    """1 for each row that meets a condition, 0 for the others."""
    case = exp.Case().when(condition.copy(), exp.Literal.number(1))
    return case.else_(exp.Literal.number(0))
