"""How are conditions and values of a query expressed?

Expressions are sqlglot's, with plain unqualified columns: every column has one name in the whole
query, so a name is enough. Expressions are shared and never changed; copy one before changing it.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from sqlglot import exp

Expression = exp.Expr
Named = tuple[str, Expression]
"""A computed column: its name and its expression."""


def column(name: str, relation: str = "") -> exp.Column:
    """A column by name, quoted so that any name is safe; with a `relation`, a column of it."""
    if relation:
        return exp.Column(this=identifier(name), table=identifier(relation))
    return exp.Column(this=identifier(name))


def identifier(name: str) -> exp.Identifier:
    """A name as it has to be written in SQL."""
    return exp.Identifier(this=name, quoted=not _is_plain(name))


@lru_cache(maxsize=10_000)
def _is_plain(name: str) -> bool:
    return name.isascii() and name.isidentifier() and name.upper() not in _RESERVED


# Words that Spark or DuckDB does not accept as a name. To quote a name is always correct.
_RESERVED = frozenset(
    "ALL AND ANTI ANY AS ASC AT BETWEEN BOTH BY CASE CAST CHECK COLLATE COLUMN CONSTRAINT CREATE "  # noqa: SIM905
    "CROSS CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DEFAULT DESC DISTINCT DO ELSE END EXCEPT "
    "EXISTS FALSE FETCH FILTER FOR FOREIGN FROM FULL GRANT GROUP GROUPING HAVING IF IN INNER "
    "INTERSECT INTERVAL INTO IS JOIN LATERAL LEADING LEFT LIKE LIMIT MINUS NATURAL NOT NULL OF "
    "OFFSET ON ONLY OR ORDER OUTER OVER OVERLAPS PIVOT PRIMARY QUALIFY REFERENCES RIGHT SELECT "
    "SEMI SET SOME TABLE THEN TIME TO TRAILING TRUE UNION UNIQUE UNKNOWN UNPIVOT USER USING VALUES "
    "WHEN WHERE WINDOW WITH WITHIN".split()
)


def free_columns(expression: Expression) -> frozenset[str]:
    """The columns that an expression mentions."""
    return frozenset(each.name for each in expression.find_all(exp.Column))


def replaced(expression: Expression, by: Mapping[str, Expression]) -> Expression:
    """The expression with some of its columns replaced."""

    def swap(each: Expression) -> Expression:
        if isinstance(each, exp.Column) and each.name in by:
            return _guarded(by[each.name].copy(), each)
        return each

    return expression.copy().transform(swap, copy=False)


def _guarded(new: Expression, old: Expression) -> Expression:
    """The replacement of a column, in brackets where it needs them: `a + b` inside `x * …`."""
    whole = exp.Column | exp.Literal | exp.Func | exp.Paren | exp.Null | exp.Boolean | exp.Cast
    if old.parent is None or isinstance(new, whole):
        return new
    return exp.Paren(this=new)


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The conditions that AND joins, each on its own.

    A condition in every branch of an OR is one of them too: `(a AND b) OR (a AND c)` is
    `a AND (b OR c)`, and `a` may be the equality that makes a join cheap.
    """
    expression = _without_not(expression.unnest())
    if isinstance(expression, exp.And):
        return (*conjuncts(expression.left), *conjuncts(expression.right))
    if isinstance(expression, exp.Or):
        branches = [conjuncts(branch) for branch in _branches(expression)]
        shared = [each for each in branches[0] if all(each in other for other in branches[1:])]
        if shared:
            rest = [[each for each in branch if each not in shared] for branch in branches]
            if any(not branch for branch in rest):
                return tuple(shared)
            return (*shared, any_of(every_of(branch) for branch in rest))
    return (expression,)


def _without_not(condition: Expression) -> Expression:
    """The condition with NOT moved inside AND and OR; this is correct for unknown values too."""
    if not isinstance(condition, exp.Not):
        return condition
    inner = condition.this.unnest()
    if isinstance(inner, exp.Not):
        return _without_not(inner.this.unnest())
    if isinstance(inner, exp.And | exp.Or):
        sides = [exp.Not(this=exp.paren(each.copy())) for each in (inner.left, inner.right)]
        return every_of(sides) if isinstance(inner, exp.Or) else any_of(sides)
    return condition


def _branches(expression: Expression) -> list[Expression]:
    expression = _without_not(expression.unnest())
    if isinstance(expression, exp.Or):
        return [*_branches(expression.left), *_branches(expression.right)]
    return [expression]


def every_of(conditions: Iterable[Expression]) -> Expression:
    """All of them, as one condition."""
    return exp.and_(*(each.copy() for each in conditions))


def any_of(conditions: Iterable[Expression]) -> Expression:
    """At least one of them, as one condition."""
    return exp.or_(*(each.copy() for each in conditions))
