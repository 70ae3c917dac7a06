"""How does a query inside an expression become a join?

    EXISTS (q)                      semi join
    x IN (q)                        semi join on x = its column
    NOT EXISTS (q)                  anti join
    x NOT IN (q)                    anti join on x = y, or y IS NULL, or x IS NULL
    EXISTS or IN under AND and OR   one semi join with several partners and a condition on them
    EXISTS as a value               two halves: rows with a partner (true), rows without (false)
    (SELECT max(y) …)               a join with its one row
    (SELECT max(y) … WHERE k = o)   an outer join with one row per k; without a row of that k the
                                    value is what the SELECT list gives for no rows: 0 for a count

That is NOT IN exactly: `x NOT IN (y…)` is true iff for no y is `x = y` true or unknown, and `x = y`
is unknown iff one of the two is NULL.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from springhouse.views.algebra import (
    Expression,
    Named,
    Node,
    Partner,
    Project,
    UnionAll,
    column,
    every_of,
    filtered,
    free_columns,
    joined,
    met,
    outer_joined,
    replaced,
)
from springhouse.views.refused import Refused

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_KEEPS_NULL = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren, exp.Cast, *_COMPARISONS)


@dataclass(frozen=True)
class Subquery:
    """A query inside an expression: rows with all columns at hand, and what it selects from them.

    `correlated` are its conditions on columns of the query around it. `empty` is what it selects
    when it finds nothing, if it then has a row all the same.
    """

    node: Node
    values: tuple[Expression, ...]
    correlated: tuple[Expression, ...]
    at_most_one: bool = False
    always_one: bool = False
    empty: tuple[Expression, ...] | None = None


@dataclass(frozen=True)
class Held:
    """A subquery that waits under a placeholder: `exists`, `in` (with what is tested) or `scalar`.

    `fresh` gives a column name that nobody has.
    """

    kind: str
    query: Subquery
    tested: Expression | None
    at: exp.Expr
    fresh: Callable[[str], str]


def apply_condition(
    node: Node, condition: Expression, held: Mapping[str, Held], correlated: list[Expression]
) -> Node:
    """The rows that meet a condition in which subqueries may stand."""
    inside = [held[name] for name in free_columns(condition) if name in held]
    if inside and all(each.kind != "scalar" for each in inside):
        return _semi_join(node, condition, held)
    if inside:
        rejects_null = isinstance(condition, _COMPARISONS)
        node, condition = attached(node, condition, held, correlated, rejects_null=rejects_null)
    if free_columns(condition) <= set(node.columns):
        return filtered(node, [condition])
    correlated.append(condition)
    return node


def attached(
    node: Node,
    value: Expression,
    held: Mapping[str, Held],
    correlated: list[Expression],
    *,
    rejects_null: bool = False,
) -> tuple[Node, Expression]:
    """The rows joined with the subqueries of a value, and the value over those rows."""
    for each in [c for c in value.find_all(exp.Column) if c.name in held]:
        found = held[each.name]
        if found.kind == "scalar":
            inner = rejects_null and _keeps_null(each, value)
            node, result = _scalar(node, found, inner=inner)
        else:
            node, result = _marked(node, found)
        value = replaced(value, {each.name: result})
    return node, value


def _semi_join(node: Node, condition: Expression, held: Mapping[str, Held]) -> Node:
    """The rows that find partners as the condition wants."""
    known = free_columns(condition) - held.keys()
    if known - set(node.columns):
        raise Refused("a subquery that reaches out over two levels", condition)
    partners: list[Partner] = []
    marks: dict[str, Expression] = {}
    for each in [c for c in condition.find_all(exp.Column) if c.name in held]:
        found = held[each.name]
        _prove_reachable(node, found)
        mark = found.fresh("found")
        marks[each.name] = column(mark)
        partners.append(_partner(found, each, condition, mark))
    return met(node, partners, replaced(condition, marks))


def _partner(held: Held, placeholder: Expression, condition: Expression, mark: str) -> Partner:
    """The rows of the subquery, and what makes one of them a partner."""
    query = held.query
    if held.kind == "exists":
        if query.empty is not None and query.correlated:
            raise Refused("EXISTS over an aggregate, which always has a row", held.at)
        return Partner(query.node, query.correlated, mark)
    # IN may be unknown, which counts as false only as long as nothing else negates it.
    around, each = [], placeholder
    while each is not condition:
        assert each.parent is not None
        each = each.parent
        around += [] if isinstance(each, exp.Paren) else [each]
    negated = bool(around) and isinstance(around[0], exp.Not)
    if not all(isinstance(each, exp.And | exp.Or) for each in around[negated:]):
        raise Refused("IN (SELECT …) inside an expression", held.at)
    if not negated:
        return Partner(query.node, (*query.correlated, *_equalities(held)), mark)
    equal, *nulls = _not_in(held)
    if query.correlated:
        nulls = [every_of([*query.correlated, each]) for each in nulls]
    return Partner(query.node, (*query.correlated, equal), mark, tuple(nulls))


def _equalities(held: Held) -> list[Expression]:
    assert held.tested is not None
    tested = held.tested.unnest()
    values = tested.expressions if isinstance(tested, exp.Tuple) else [tested]
    if len(values) != len(held.query.values):
        raise Refused("IN compares different numbers of columns", held.at)
    return [
        exp.EQ(this=left.copy(), expression=right.copy())
        for left, right in zip(values, held.query.values, strict=True)
    ]


def _not_in(held: Held) -> list[Expression]:
    """The conditions under which a row of the subquery keeps NOT IN from being true."""
    equal = _equalities(held)
    if len(equal) != 1:
        raise Refused("NOT IN over several columns", held.at)
    mine, other = equal[0].this, equal[0].expression
    nulls = [side for side in (other, mine) if free_columns(side)]
    return [*equal, *(exp.Is(this=side.copy(), expression=exp.Null()) for side in nulls)]


def _marked(node: Node, held: Held) -> tuple[Node, Expression]:
    """The rows in two halves, with and without a partner, and a column that says which."""
    if held.kind == "in":
        raise Refused("IN (SELECT …) inside an expression", held.at)
    _prove_reachable(node, held)
    found, mark = held.fresh("found"), held.fresh("found")
    own: tuple[Named, ...] = tuple((name, column(name)) for name in node.columns)
    halves = []
    for anti in (False, True):
        partner = Partner(held.query.node, held.query.correlated, found)
        half = met(node, [partner], column(found), anti=anti)
        halves.append(Project(half, (*own, (mark, exp.false() if anti else exp.true()))))
    return UnionAll(tuple(halves)), column(mark)


def _scalar(node: Node, held: Held, *, inner: bool) -> tuple[Node, Expression]:
    """The rows joined with the one value of a subquery."""
    query = held.query
    if len(query.values) != 1 or not query.at_most_one or query.empty is None:
        raise Refused("a scalar subquery that may give several rows", held.at)
    _prove_reachable(node, held)
    name, present = held.fresh("scalar"), held.fresh("present")
    keys = {
        each for c in query.correlated for each in free_columns(c) if each in query.node.columns
    }
    passed: list[Named] = [(key, column(key)) for key in query.node.columns if key in keys]
    outputs = [*passed, (name, query.values[0])]
    missing = query.empty[0]
    if query.always_one and not query.correlated:
        return joined([node, Project(query.node, tuple(outputs))], ()), column(name)
    if inner and isinstance(missing.unnest(), exp.Null):
        right = Project(query.node, tuple(outputs))
        return joined([node, right], query.correlated), column(name)
    right = Project(query.node, (*outputs, (present, exp.true())))
    outer = outer_joined(node, right, query.correlated)
    if not query.always_one or isinstance(missing.unnest(), exp.Null):
        return outer, column(name)
    case = exp.Case().when(column(present), column(name)).else_(missing.copy())
    return outer, exp.Paren(this=case)


def _keeps_null(placeholder: Expression, value: Expression) -> bool:
    """Whether NULL in the place of the placeholder makes the whole value NULL."""
    above = placeholder
    while above is not value:
        assert above.parent is not None
        above = above.parent
        if not isinstance(above, _KEEPS_NULL):
            return False
    return True


def _prove_reachable(node: Node, held: Held) -> None:
    known = {*node.columns, *held.query.node.columns}
    tested = free_columns(held.tested) if held.tested is not None else frozenset()
    needed = tested.union(*(free_columns(c) for c in held.query.correlated))
    if needed - known:
        raise Refused("a subquery that reaches out over two levels, or over a grouping", held.at)
