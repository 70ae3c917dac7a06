"""What does a rule write, and what may it request?

`RowSelect` is a SELECT under construction: a FROM clause, an expression for each column, and
conditions. A filter or a projection changes only these, so a chain of them stays one SELECT. The
rows of a change have a weight, +1 or -1. The rows of a snapshot have none.

A rule requests from the `Writer` the change of a child, or a snapshot of the child before or after
the change. The answer is a `RowSelect`. Three hints make the request cheap:

    near      the rule needs only rows whose column has a value that occurs in some column of
              another relation; the executor may skip files that hold no such value
    touched   the rule needs only rows that agree with a row of a given relation: a semi join,
              pushed down towards the scans
    where     the rule needs only rows that meet these conditions, and checks them again itself

Ghosts: a term of a join's change may pair rows that never existed together, such as a new row of
one side with an old row of the other. Another term cancels the pair, but a division by its values
may divide by 0. So a division is computed only for rows whose weights do not cancel out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Protocol

from sqlglot import exp

from springhouse.views.algebra.query_tree import Node
from springhouse.views.sql.expressions import Expression, column, replaced
from springhouse.views.sql.sql_tree import (
    FromClause,
    named,
    number,
    operand,
    over,
    same,
    select,
    subquery,
    table,
    union_of,
    when,
)

WEIGHT = "__springhouse_weight"
_NET = "__springhouse_net"


class Side(Enum):
    """Which state of an input: before the change, or after it."""

    BEFORE = "before"
    AFTER = "after"


Origins = tuple[tuple[str, str], ...]
"""Columns that together hold all values of a column, as (relation, column)."""


Known = Mapping[str, tuple[Origins, ...]]


@dataclass(frozen=True)
class Near:
    """A hint: only rows matter whose `column` has a value that occurs in one of `among`."""

    column: str
    among: Origins


@dataclass(frozen=True)
class Touched:
    """A semi join: only rows matter that agree with a row of `relation`.

    A pair is a column of the rows, and the column of the relation that equals it.
    """

    relation: str
    pairs: tuple[tuple[str, str], ...]
    near: tuple[Near, ...] = ()

    def renamed(self, names: Mapping[str, str]) -> "Touched | None":
        """The same, for rows with renamed columns; None if one of the columns is gone."""
        if any(own not in names for own, _ in self.pairs):
            return None
        pairs = tuple((names[own], other) for own, other in self.pairs)
        near = tuple(replace(n, column=names[n.column]) for n in self.near if n.column in names)
        return Touched(self.relation, pairs, near)


@dataclass(frozen=True)
class RowSelect:
    """A SELECT under construction. `base` is the relation `source`, if the source is just one.

    Otherwise `known` gives the origins of the source's columns, as far as they are known: the first
    answer is from the change itself, the last answer from the relation that was joined last.
    `has_ghosts` says that some of the rows never existed and cancel each other out.
    """

    source: FromClause
    columns: Mapping[str, Expression]
    where: tuple[Expression, ...] = ()
    weight: Expression | None = None
    base: str | None = None
    known: Known = field(default_factory=dict)
    has_ghosts: bool = False

    def kept(self, conditions: Sequence[Expression]) -> "RowSelect":
        """Only the rows that meet these conditions over the columns."""
        more = tuple(replaced(each, self.columns) for each in conditions)
        return replace(self, where=(*self.where, *more))

    def as_columns(self, outputs: Iterable[tuple[str, Expression]]) -> "RowSelect":
        """The rows with new columns, computed from the present ones."""
        return replace(
            self, columns={name: replaced(value, self.columns) for name, value in outputs}
        )

    def only(self, names: Iterable[str]) -> "RowSelect":
        """The rows with some of their columns."""
        wanted = set(names)
        return replace(self, columns={n: v for n, v in self.columns.items() if n in wanted})

    def origins(self, name: str) -> tuple[Origins, ...]:
        """Where the values of a column occur unchanged; each answer is correct by itself."""
        value = self.columns.get(name)
        if not isinstance(value, exp.Column):
            return ()
        if self.base is not None:
            return (((self.base, value.name),),)
        return self.known.get(value.name, ())

    @property
    def near(self) -> tuple[Near, ...]:
        """The hints about the values of the columns."""
        return tuple(Near(name, among) for name in self.columns for among in self.origins(name))

    def select(self, names: Sequence[str] | None = None, weight: int | None = None) -> exp.Select:
        """The SELECT; `weight` overrides that of the rows."""
        chosen = list(self.columns) if names is None else list(names)
        items = [named(self.columns[name], name) for name in chosen]
        if weight is not None:
            items.append(named(number(weight), WEIGHT))
        elif self.weight is not None:
            items.append(named(self.weight, WEIGHT))
        return select(items, self.source, self.where)

    def table(self, alias: str) -> exp.Subquery:
        """The rows as a table in FROM, with the same column names."""
        return subquery(self.select(), alias)

    def named(self, alias: str = "q") -> "RowSelect":
        """The same rows, over a table in which every column has its own name."""
        if not self.where and self.base is None and self.own_names:
            return self
        weight = column(WEIGHT) if self.weight is not None else None
        columns = {n: column(n) for n in self.columns}
        near = known_of(self.near)
        source = FromClause(self.table(alias))
        return RowSelect(source, columns, (), weight, None, near, self.has_ghosts)

    @property
    def own_names(self) -> bool:
        """Whether every column has the same name in the source."""
        return all(isinstance(v, exp.Column) and v.name == n for n, v in self.columns.items())


class Writer(Protocol):
    """The requests that a rule may make."""

    def change(
        self, node: Node, needed: frozenset[str], where: tuple[Expression, ...] = ()
    ) -> list[RowSelect]:
        """The change of a node, as parts to be united; no parts if the node does not change."""

    def snapshot(
        self,
        node: Node,
        side: Side,
        needed: frozenset[str],
        near: tuple[Near, ...] = (),
        touched: Touched | None = None,
        where: tuple[Expression, ...] = (),
    ) -> RowSelect:
        """The rows of a node on one side of the change; rows that fail `where` may be left out."""

    def define(self, name: str, query: Expression) -> str:
        """Put a query in the WITH clause; the name of the query there."""

    def alias(self, node: Node) -> str:
        """A readable name for the rows of a node."""


def united(parts: Sequence[RowSelect], names: Sequence[str]) -> Expression:
    """The rows of all parts, as one query."""
    return union_of(part.select(names) for part in parts)


def united_rows(parts: Sequence[RowSelect], names: Sequence[str], alias: str) -> RowSelect:
    """The rows of all parts as one relation, in which each column has one type."""
    source = FromClause(subquery(united(parts, names), alias))
    weight = column(WEIGHT) if parts[0].weight is not None else None
    known = known_of(near_to(parts, names))
    ghosts = any(part.has_ghosts for part in parts)
    return RowSelect(
        source, {name: column(name) for name in names}, (), weight, None, known, ghosts
    )


def without_ghosts(
    parts: Sequence[RowSelect], names: Sequence[str], values: Iterable[Expression], alias: str
) -> RowSelect | None:
    """The parts of a change without ghosts; None if no part has ghosts, or no value may divide.

    The caller has to wrap the values in `unless_ghost`.
    """
    if not names or not any(p.has_ghosts for p in parts) or not any(map(may_divide, values)):
        return None
    whole = united_rows(parts, names, alias)
    net = named(over(exp.Sum(this=column(WEIGHT)), *map(column, names)), _NET)
    source = FromClause(subquery(select([exp.Star(), net], whole.source), alias))
    return replace(whole, source=source, where=(_is_real(),), has_ghosts=False)


def unless_ghost(value: Expression) -> Expression:
    """A value over rows `without_ghosts`, written so that Spark can't compute it too early.

    A filter alone does not help: Spark pushes a condition that divides below the filter.
    """
    if not may_divide(value):
        return value
    return when(_is_real(), value)


def _is_real() -> Expression:
    return exp.NEQ(this=column(_NET), expression=number(0))


def may_divide(value: Expression) -> bool:
    """Whether a value divides by something that may be 0."""
    return any(
        not (isinstance(each.expression, exp.Literal) and each.expression.name.strip("0."))
        for each in value.find_all(exp.Div, exp.IntDiv, exp.Mod)
    )


def known_of(near: Iterable[Near]) -> Known:
    """The origins of each column; if a column has many, the first and the last."""
    found: dict[str, list[Origins]] = {}
    for each in near:
        answers = found.setdefault(each.column, [])
        if each.among not in answers:
            answers[1:] = [each.among]
    return {name: tuple(answers) for name, answers in found.items()}


def exists(
    rows: RowSelect, conditions: Sequence[Expression], alias: str, *, negated: bool = False
) -> Expression:
    """The condition that some row of `rows` meets the conditions (with `negated`, none).

    The outer rows must be `named`: names are unique in the whole query, so no inner column can then
    hide an outer column.
    """
    direct = not rows.where and not rows.base and rows.own_names
    source = rows.source if direct else FromClause(rows.table(alias))
    found = exp.Exists(this=select([number(1)], source, conditions))
    return exp.Not(this=found) if negated else found


def restricted(rows: RowSelect, touched: Touched | None) -> RowSelect:
    """Only the rows that agree with a row of the touched relation."""
    if touched is None:
        return rows
    equal = [
        same(column(other, touched.relation), operand(rows.columns[own]))
        for own, other in touched.pairs
    ]
    found = exp.Exists(this=select([number(1)], FromClause(table(touched.relation)), equal))
    return replace(rows, where=(*rows.where, found))


def touched_name(name: str) -> str:
    """The name of a column in a touched relation; no input has a column of this name."""
    return f"touched_{name}"


def weighted(rows: RowSelect, weight: int) -> RowSelect:
    """The rows as a change: all inserted (+1) or all deleted (-1)."""
    return replace(rows, weight=number(1 if weight > 0 else -1))


def meeting(rows: RowSelect, condition: Expression, alias: str) -> RowSelect:
    """The rows that meet a condition with `exists` in it."""
    named = rows.named(alias)
    return replace(named, where=(*named.where, condition))


def touched_keys(
    changed: Sequence[RowSelect], keys: Sequence[str], writer: Writer
) -> Touched | None:
    """The keys of the changed rows as a relation; None if all rows are one group."""
    if not keys:
        return None
    names = [touched_name(key) for key in keys]
    parts = [replace(_called(rows, keys), weight=None) for rows in changed]
    # The relation only answers whether a row exists, so duplicates are harmless.
    relation = writer.define("touched", united(parts, names))
    return Touched(relation, tuple(zip(keys, names, strict=True)), near_to(changed, keys))


def near_to(changed: Sequence[RowSelect], keys: Iterable[str]) -> tuple[Near, ...]:
    """The hints about the values of keys in the changed rows, for all parts together."""
    found: list[Near] = []
    for key in keys:
        answers = [rows.origins(key) for rows in changed]
        if all(answers):
            first = Near(key, _together(each[0] for each in answers))
            last = Near(key, _together(each[-1] for each in answers))
            found += [first, last] if first != last else [first]
    return tuple(found)


def _together(origins: Iterable[Origins]) -> Origins:
    return tuple(dict.fromkeys(one for each in origins for one in each))


def _called(rows: RowSelect, keys: Sequence[str]) -> RowSelect:
    return replace(rows, columns={touched_name(key): rows.columns[key] for key in keys})
