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
    (SELECT max(y) + o …)           the same; an expression with outer columns is computed above
                                    the join

The rule for NOT IN is exact: `x NOT IN (y…)` is true iff `x = y` is true or unknown for no y, and
`x = y` is unknown iff one of the two is NULL.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from springhouse.views.algebra.query_tree import (
    Node,
    Partner,
    Projection,
    UnionAll,
    filter_rows,
    join_all,
    outer_join,
    semi_join,
)
from springhouse.views.read.not_compilable import NotCompilable
from springhouse.views.sql.expressions import (
    Expression,
    Named,
    column,
    every_of,
    free_columns,
    replaced,
)

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_KEEPS_NULL = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren, exp.Cast, *_COMPARISONS)


@dataclass(frozen=True)
class Subquery:
    """A query inside an expression: its rows with all their columns, and the values it selects.

    `correlated` are its conditions on columns of the outer query. `empty` are the values that it
    selects if these conditions leave no row of its node and the query still has a row.
    """

    node: Node
    values: tuple[Expression, ...]
    correlated: tuple[Expression, ...]
    at_most_one: bool = False
    always_one: bool = False
    empty: tuple[Expression, ...] | None = None


@dataclass(frozen=True)
class Held:
    """A subquery that waits under a placeholder: `exists`, `in` or `scalar`.

    `fresh` gives an unused column name. `value` is the value after the subquery was joined.
    """

    kind: str
    query: Subquery
    at: exp.Expr
    fresh: Callable[[str], str]
    value: Expression | None = None


def apply_condition(
    node: Node, condition: Expression, held: dict[str, Held], correlated: list[Expression]
) -> Node:
    """The rows that meet a condition, which may contain subqueries."""
    inside = [held[name] for name in free_columns(condition) if name in held]
    if inside and all(each.kind != "scalar" for each in inside):
        return _semi_join(node, condition, held)
    if inside:
        rejects_null = isinstance(condition, _COMPARISONS)
        node, condition = attached(node, condition, held, rejects_null=rejects_null)
    if free_columns(condition) <= set(node.columns):
        return filter_rows(node, [condition])
    correlated.append(condition)
    return node


def attached(
    node: Node, value: Expression, held: dict[str, Held], *, rejects_null: bool = False
) -> tuple[Node, Expression]:
    """The rows joined with the subqueries of a value, and the value over those rows."""
    for name in dict.fromkeys(c.name for c in value.find_all(exp.Column) if c.name in held):
        found = held[name]
        result = found.value
        # An alias may repeat a subquery. A second join would duplicate its columns.
        if result is None or not free_columns(result) <= set(node.columns):
            if found.kind == "scalar":
                places = [c for c in value.find_all(exp.Column) if c.name == name]
                inner = rejects_null and all(_keeps_null(each, value) for each in places)
                node, result = _scalar(node, found, inner=inner)
            else:
                node, result = _marked(node, found)
            held[name] = replace(found, value=result)
        value = replaced(value, {name: result})
    return node, value


def _semi_join(node: Node, condition: Expression, held: Mapping[str, Held]) -> Node:
    """The rows whose partners satisfy the condition."""
    if free_columns(condition) - held.keys() - set(node.columns):
        raise NotCompilable("a subquery that reaches out over two levels", condition)
    partners: list[Partner] = []

    def swap(each: Expression) -> Expression:
        place = each.expressions[0] if isinstance(each, exp.In) and each.expressions else each
        if not isinstance(place, exp.Column) or place.name not in held:
            return each
        found = held[place.name]
        _validate_reachable(node, found)
        mark = found.fresh("found")
        partners.append(_exists(found, mark) if place is each else _is_in(found, each, held, mark))
        return column(mark)

    met_by: Expression = condition.copy().transform(swap, copy=False)
    return semi_join(node, partners, met_by)


def _exists(held: Held, mark: str) -> Partner:
    """The rows of the subquery; any of them is a partner."""
    if held.query.empty is not None:
        raise NotCompilable("EXISTS over an aggregate, which always has a row", held.at)
    return Partner(held.query.node, held.query.correlated, mark)


def _is_in(held: Held, test: Expression, others: Mapping[str, Held], mark: str) -> Partner:
    """The rows of the subquery, and the condition that one of them equals the tested value."""
    query = held.query
    negated = _is_negated(test)
    if negated is None or free_columns(test.this) & others.keys():
        raise NotCompilable("IN (SELECT …) inside an expression", held.at)
    # NULL equals nothing, so for IN a row of NULLs is the same as no row. For NOT IN it is not.
    nulls_only = all(isinstance(each.unnest(), exp.Null) for each in query.empty or ())
    if query.empty is not None and (negated or not nulls_only):
        raise NotCompilable("IN over an aggregate, which always has a row", held.at)
    equal = _equalities(held, test.this)
    if not negated:
        return Partner(query.node, (*query.correlated, *equal), mark)
    if len(equal) != 1:
        raise NotCompilable("NOT IN over several columns", held.at)
    sides = [side for side in (equal[0].expression, equal[0].this) if free_columns(side)]
    nulls: list[Expression] = [exp.Is(this=s.copy(), expression=exp.Null()) for s in sides]
    if query.correlated:
        nulls = [every_of([*query.correlated, each]) for each in nulls]
    return Partner(query.node, (*query.correlated, *equal), mark, tuple(nulls))


def _is_negated(test: Expression) -> bool | None:
    """Whether a test stands behind a NOT; None if it stands inside anything else but AND and OR.

    IN may be unknown. Unknown counts as false only if no further operator negates it.
    """
    around: list[Expression] = []
    each = test
    while each.parent is not None:
        each = each.parent
        around += [] if isinstance(each, exp.Paren) else [each]
    negated = bool(around) and isinstance(around[0], exp.Not)
    connected = all(isinstance(each, exp.And | exp.Or) for each in around[negated:])
    return negated if connected else None


def _equalities(held: Held, tested: Expression) -> list[Expression]:
    tested = tested.unnest()
    values = tested.expressions if isinstance(tested, exp.Tuple) else [tested]
    if len(values) != len(held.query.values):
        raise NotCompilable("IN compares different numbers of columns", held.at)
    return [
        exp.EQ(this=left.copy(), expression=right.copy())
        for left, right in zip(values, held.query.values, strict=True)
    ]


def _marked(node: Node, held: Held) -> tuple[Node, Expression]:
    """The rows in two halves, with and without a partner, and a column that names the half."""
    if held.kind == "in":
        raise NotCompilable("IN (SELECT …) inside an expression", held.at)
    _validate_reachable(node, held)
    found, mark = held.fresh("found"), held.fresh("found")
    own: tuple[Named, ...] = tuple((name, column(name)) for name in node.columns)
    halves = []
    for anti in (False, True):
        half = semi_join(node, [_exists(held, found)], column(found), anti=anti)
        halves.append(Projection(half, (*own, (mark, exp.false() if anti else exp.true()))))
    return UnionAll(tuple(halves)), column(mark)


def _scalar(node: Node, held: Held, *, inner: bool) -> tuple[Node, Expression]:
    """The rows joined with the one value of a subquery."""
    query = held.query
    if len(query.values) != 1 or not query.at_most_one:
        raise NotCompilable("a scalar subquery that may give several rows", held.at)
    _validate_reachable(node, held)
    name, present = held.fresh("scalar"), held.fresh("present")
    value = query.values[0]
    reaches_out = not free_columns(value) <= set(query.node.columns)
    tied = (*query.correlated, value) if reaches_out else query.correlated
    needed = frozenset().union(*map(free_columns, tied))
    outputs: list[Named] = [(key, column(key)) for key in query.node.columns if key in needed]
    if not reaches_out:
        outputs.append((name, value))
        value = column(name)
    if query.always_one and not query.correlated:
        return join_all([node, Projection(query.node, tuple(outputs))], ()), value
    missing = query.empty[0] if query.empty is not None else exp.Null()
    null_alike = _is_null(missing) and not reaches_out
    if inner and null_alike:
        return join_all([node, Projection(query.node, tuple(outputs))], query.correlated), value
    right = Projection(query.node, (*outputs, (present, exp.true())))
    outer = outer_join(node, right, query.correlated)
    if null_alike:
        return outer, value
    case = exp.Case().when(column(present), value.copy()).else_(missing.copy())
    return outer, exp.Paren(this=case)


def _is_null(value: Expression) -> bool:
    """Whether a value is certainly NULL, such as `0.2 * NULL`."""
    value = value.unnest()
    inside = value.iter_expressions() if isinstance(value, _KEEPS_NULL) else ()
    return isinstance(value, exp.Null) or any(map(_is_null, inside))


def _keeps_null(placeholder: Expression, value: Expression) -> bool:
    """Whether NULL in the place of the placeholder makes the whole value NULL."""
    above = placeholder
    while above is not value:
        assert above.parent is not None
        above = above.parent
        if not isinstance(above, _KEEPS_NULL):
            return False
    return True


def _validate_reachable(node: Node, held: Held) -> None:
    known = {*node.columns, *held.query.node.columns}
    selected = held.query.values if held.kind != "exists" else ()
    needed = frozenset().union(*map(free_columns, (*held.query.correlated, *selected)))
    if needed - known:
        raise NotCompilable(
            "a subquery that reaches out over two levels, or over a grouping", held.at
        )
