"""What is a SELECT while it is being read?

A `SelectBlock`: the rows so far, and the meaning of names over them. Each clause takes the block
and changes its rows. An expression enters a block by being bound: every name in it becomes the one
column that it means. Every subquery in it is read and held under a placeholder, until `subqueries`
joins it to the rows. `x IN (SELECT …)` is then `x IN (placeholder)`, so that a change of the whole
expression changes `x` too.

Queries nest, and only `parse_query` knows all kinds of queries. A clause that contains a query
passes it to the `ClauseReader`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from springhouse.views.algebra.query_tree import Node, Projection, filter_rows
from springhouse.views.read.functions import is_aggregate
from springhouse.views.read.not_compilable import NotCompilable, line_of
from springhouse.views.read.scope import Scope
from springhouse.views.read.subqueries import Held, Subquery, apply_condition, attached
from springhouse.views.sql.expressions import Expression, Named, column, free_columns

Resolve = Callable[[exp.Column], Expression]
"""The meaning of a name: each clause looks names up in an order of its own."""


@dataclass(frozen=True)
class Query:
    """A query after reading: its rows, its column names, its conditions on the outer query."""

    node: Node
    names: tuple[str, ...]
    correlated: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class SelectClauses:
    """The later clauses of a SELECT, bound to the rows that FROM and WHERE leave."""

    items: tuple[Named, ...]
    having: Expression | None = None
    qualify: Expression | None = None
    order: tuple[exp.Ordered, ...] = ()

    @property
    def values(self) -> list[Expression]:
        """The expressions of all clauses."""
        later = [each for each in (self.having, self.qualify) if each is not None]
        return [*(value for _, value in self.items), *later, *self.order]

    def mapped(self, change: Callable[[Expression], Expression]) -> "SelectClauses":
        """The same clauses, with `change` applied to every expression."""
        return SelectClauses(
            tuple((name, change(value)) for name, value in self.items),
            change(self.having) if self.having is not None else None,
            change(self.qualify) if self.qualify is not None else None,
            tuple(exp.Ordered(**{**each.args, "this": change(each.this)}) for each in self.order),
        )


class ClauseReader(Protocol):
    """The services that a clause may use."""

    def fresh(self, *wishes: str) -> str:
        """An unused column name: the first wish that is free, or a numbered one."""

    def query(self, tree: exp.Expr, ctes: Mapping[str, Query], outer: Scope | None) -> Query:
        """A separate query, which may read the CTEs and use columns of the outer scope."""

    def table(self, tree: exp.Table, ctes: Mapping[str, Query]) -> Query:
        """A table of a query: a CTE, or an input of the view."""

    def subquery(self, tree: exp.Expr, block: "SelectBlock") -> Subquery:
        """A query inside an expression, which may use columns of the block."""


@dataclass
class SelectBlock:
    """A SELECT while it is being read: the rows so far, and the subqueries still to be joined."""

    reader: ClauseReader
    node: Node
    scope: Scope
    ctes: Mapping[str, Query]
    held: dict[str, Held] = field(default_factory=dict)
    correlated: list[Expression] = field(default_factory=list)
    # After GROUP BY: expressions over the ungrouped rows, with the columns that now hold them.
    gathered: list[tuple[Expression, str]] = field(default_factory=list)
    keys: tuple[str, ...] | None = None
    # Columns that groups have only because the outer query selects by their values.
    tied: tuple[str, ...] = ()
    # The windows that the WINDOW clause names.
    windows: Sequence[exp.Window] = ()

    def bind(self, expression: Expression, resolve: Resolve | None = None) -> Expression:
        """The expression with every name resolved, and every subquery held under a placeholder."""
        meaning = resolve or self.scope.resolve

        def swap(each: Expression) -> Expression:
            if isinstance(each, exp.Column) and not isinstance(each.this, exp.Star):
                found = meaning(each)
                if (line := line_of(each)) is not None:
                    # A later refusal can then still name the line.
                    found.meta["line"] = line
                return found
            if isinstance(each, exp.Exists):
                return self._hold("exists", each.this, each)
            if isinstance(each, exp.In) and each.args.get("query") is not None:
                tested = self.bind(each.this, resolve)
                held = self._hold("in", each.args["query"].unnest(), each)
                return exp.In(this=tested, expressions=[held])
            if isinstance(each, exp.Subquery) and not isinstance(each.parent, exp.Any | exp.All):
                return self._hold("scalar", each.unnest(), each)
            if isinstance(each, exp.Window) and each.args.get("alias"):
                return self.bind(_with_named_window(each, self.windows), resolve)
            if isinstance(each, exp.Query):
                raise NotCompilable("ANY and ALL over a subquery are not understood", each)
            if isinstance(each, exp.Lateral | exp.Placeholder | exp.Parameter):
                raise NotCompilable(f"{type(each).__name__.upper()} is not understood", each)
            return each

        bound: Expression = expression.copy().transform(swap, copy=False)
        return bound

    def _hold(self, kind: str, tree: exp.Expr, at: exp.Expr) -> Expression:
        name = f"subquery {len(self.held) + 1}"
        query = self.reader.subquery(tree, self)
        self.held[name] = Held(kind, query, at, self.reader.fresh)
        return column(name)

    def holds(self, value: Expression) -> bool:
        """Whether a subquery of the value still waits to be joined to the rows."""
        return bool(free_columns(value) & self.held.keys())

    def validate_own(
        self,
        values: Sequence[Expression],
        clause: str,
        at: exp.Expr | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        """Refuse subqueries and columns of the outer query in a clause that allows neither."""
        own = set(self.node.columns if columns is None else columns)
        for value in values:
            if self.holds(value):
                raise NotCompilable(f"a subquery in {clause}", at or value)
            if free_columns(value) - own:
                raise NotCompilable(f"{clause} reaches out of its subquery", at or value)

    def keep(self, conditions: Sequence[Expression]) -> None:
        """Keep the rows that meet the conditions: conditions without subqueries act first."""
        plain = [c for c in conditions if not self.holds(c)]
        own = [c for c in plain if free_columns(c) <= set(self.node.columns)]
        self.correlated += [c for c in plain if not free_columns(c) <= set(self.node.columns)]
        self.node = filter_rows(self.node, own)
        self.keep_in_order([c for c in conditions if self.holds(c)])

    def keep_in_order(self, conditions: Sequence[Expression]) -> None:
        """Keep the rows that meet one condition after the other."""
        for condition in conditions:
            self.node = apply_condition(self.node, condition, self.held, self.correlated)

    def attach(self, value: Expression) -> Expression:
        """A value of the SELECT list, with its subqueries joined to the rows."""
        self.node, value = attached(self.node, value, self.held)
        return value

    def as_columns(self, values: Sequence[Expression]) -> list[str]:
        """The values as columns of the rows; a value that is no column yet is computed."""
        names: list[str] = []
        made: list[Named] = []
        for value in (each.unnest() for each in values):
            known = [name for name, other in made if other == value]
            if isinstance(value, exp.Column) and value.name in self.node.columns:
                names.append(value.name)
            elif known:
                names.append(known[0])
            else:
                names.append(self.reader.fresh(short_name(value)))
                made.append((names[-1], value))
        self.validate_own([value for _, value in made], "GROUP BY or PARTITION BY")
        if made:
            old = tuple((name, column(name)) for name in self.node.columns)
            self.node = Projection(self.node, (*old, *made))
        return names


def short_name(value: Expression) -> str:
    """A short name for a computed column: `sum_amount`, `count`, `year_placed_at`."""
    words = [value.sql_name().lower() if isinstance(value, exp.Func) else "value"]
    if isinstance(value, exp.Anonymous):
        words = [value.name.lower()]
    if is_aggregate(value) and not isinstance(value, exp.Func):
        return short_name(value.this)
    words += [each.name.lower() for each in value.find_all(exp.Column)][:1]
    return "_".join("".join(c if c.isalnum() else "_" for c in word) for word in words)


def _with_named_window(window: exp.Window, declared: Sequence[exp.Window]) -> exp.Window:
    """`OVER w` with the definition of `w` from the WINDOW clause put in."""
    name = window.args["alias"].name.lower()
    for given in declared:
        if given.this.name.lower() == name:
            whole = window.copy()
            whole.set("alias", None)
            for key in ("partition_by", "order", "spec"):
                if not whole.args.get(key) and given.args.get(key):
                    value = given.args[key]
                    copies = [v.copy() for v in value] if isinstance(value, list) else value.copy()
                    whole.set(key, copies)
            return whole
    raise NotCompilable(f"the window `{name}` is not declared", window)
