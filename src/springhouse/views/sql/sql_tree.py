"""How is a piece of SQL built?

Statements are sqlglot trees. These functions build the pieces that many rules need, so that a rule
reads almost like the SQL that it stands for. The functions do not copy: statements share their
pieces, and no code changes a piece. Code that writes the text of a tree copies the tree first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

from sqlglot import exp

from springhouse.views.sql.expressions import Expression, identifier


@dataclass(frozen=True)
class FromClause:
    """The content of FROM: a table or a subquery, and the relations joined to it.

    >>> orders, items = (table(name) for name in ("orders", "items"))
    >>> on = exp.EQ(this=exp.column("id"), expression=exp.column("order_id"))
    >>> select([exp.column("id")], FromClause(orders).join(items, on)).sql(dialect="spark")
    'SELECT id FROM orders JOIN items ON id = order_id'
    """

    relation: Expression
    joins: tuple[exp.Join, ...] = ()
    laterals: tuple[exp.Lateral, ...] = ()

    def join(self, other: Expression, on: Expression | None, side: str = "") -> "FromClause":
        """The same with one more relation; without a condition, a cross join."""
        kind = exp.Join(this=other, on=on) if on is not None else exp.Join(this=other, kind="CROSS")
        if side:
            kind.set("side", side)
        return FromClause(self.relation, (*self.joins, kind), self.laterals)

    def lateral_view(
        self, generator: Expression, alias: str, names: Sequence[str], *, outer: bool = False
    ) -> "FromClause":
        """The same with a LATERAL VIEW."""
        columns = [identifier(name) for name in names]
        made = exp.TableAlias(this=identifier(alias), columns=columns)
        view = exp.Lateral(this=generator, view=True, outer=outer, alias=made)
        return FromClause(self.relation, self.joins, (*self.laterals, view))


def select(
    items: Iterable[Expression],
    source: FromClause | None = None,
    where: Sequence[Expression] = (),
    group: Sequence[Expression] = (),
) -> exp.Select:
    """A SELECT. Without items, it has one column that no query reads."""
    parts: dict[str, object] = {"expressions": list(items) or [named(number(1), "one")]}
    if source is not None:
        parts["from_"] = exp.From(this=source.relation)
        parts["joins"] = list(source.joins)
        parts["laterals"] = list(source.laterals)
    if where:
        parts["where"] = exp.Where(this=every(where))
    if group:
        parts["group"] = exp.Group(expressions=list(group))
    return exp.Select(**parts)


def table(name: str, alias: str = "") -> exp.Table:
    """A relation by its name."""
    if not alias:
        return exp.Table(this=identifier(name))
    return exp.Table(this=identifier(name), alias=exp.TableAlias(this=identifier(alias)))


def subquery(query: Expression, alias: str) -> exp.Subquery:
    """A query as a relation."""
    return exp.Subquery(this=query, alias=exp.TableAlias(this=identifier(alias)))


def union_of(queries: Iterable[Expression]) -> Expression:
    """The rows of all queries."""
    return reduce(
        lambda left, right: exp.Union(this=left, expression=right, distinct=False), queries
    )


def named(value: Expression, name: str) -> Expression:
    """A value as an item of a SELECT; a column that has the name already stays as it is."""
    if isinstance(value, exp.Column) and not value.table and value.name == name:
        return value
    return exp.Alias(this=value, alias=identifier(name))


def number(value: int) -> Expression:
    """A whole number."""
    literal = exp.Literal.number(abs(value))
    return literal if value >= 0 else exp.Neg(this=literal)


def cast(value: Expression, kind: object) -> Expression:
    """A value as another type of Spark's."""
    return exp.Cast(this=value, to=_data_type(str(kind)))


def try_cast(value: Expression, kind: object) -> Expression:
    """A value as another type; NULL where it does not fit."""
    return exp.TryCast(this=value, to=_data_type(str(kind)), safe=True)


@lru_cache(maxsize=1_000)
def _data_type(kind: str) -> Expression:
    return exp.DataType.build(kind, dialect="spark")


def coalesce(value: Expression, instead: Expression) -> Expression:
    """A value, or `instead` where the value is NULL."""
    return exp.Coalesce(this=value, expressions=[instead])


def when(
    condition: Expression, value: Expression, otherwise: Expression | None = None
) -> Expression:
    """A value where a condition is true; elsewhere `otherwise`, or NULL."""
    return exp.Case(ifs=[exp.If(this=condition, true=value)], default=otherwise)


def is_null(value: Expression) -> Expression:
    """The condition that a value is NULL."""
    return exp.Is(this=value, expression=exp.Null())


def same(left: Expression, right: Expression) -> Expression:
    """The condition that two values are equal, or both NULL."""
    return exp.NullSafeEQ(this=left, expression=right)


def more(left: Expression, right: Expression) -> Expression:
    """The condition that one value is greater than another."""
    return exp.GT(this=left, expression=right)


def less(left: Expression, right: Expression) -> Expression:
    """The condition that one value is less than another."""
    return exp.LT(this=left, expression=right)


def plus(left: Expression, right: Expression) -> Expression:
    """The sum of two values."""
    return exp.Add(this=left, expression=right)


def minus(left: Expression, right: Expression) -> Expression:
    """The difference of two values."""
    return exp.Sub(this=left, expression=right)


def every(conditions: Iterable[Expression]) -> Expression:
    """All conditions as one; TRUE if there are none."""
    guarded = [exp.Paren(this=c) if isinstance(c, exp.Or) else c for c in conditions]
    if not guarded:
        return exp.Boolean(this=True)
    return reduce(lambda left, right: exp.And(this=left, expression=right), guarded)


def any_of_them(conditions: Iterable[Expression]) -> Expression:
    """At least one of the conditions; FALSE if there are none."""
    found = list(conditions)
    if not found:
        return exp.Boolean(this=False)
    return reduce(lambda left, right: exp.Or(this=left, expression=right), found)


def operand(value: Expression) -> Expression:
    """A value in the form that can stand beside an operator, in brackets if needed."""
    whole = isinstance(value, exp.Column | exp.Literal | exp.Paren)
    return value if whole else exp.Paren(this=value)


def copies_of(count: Expression) -> Expression:
    """A generator that repeats a row `count` times."""
    numbers = exp.GenerateSeries(start=number(1), end=cast(count, "int"))
    return exp.Explode(this=numbers)


def over(value: Expression, *partition: Expression) -> Expression:
    """An aggregate over the rows of the same partition."""
    return exp.Window(this=value, partition_by=list(partition))
