"""The check behind the binder: it refuses terms that the binder overlooked, before any SQL."""

import pytest
from sqlglot import parse_one

from springhouse.views.algebra.query_tree import (
    Aggregate,
    Constant,
    Filter,
    Generate,
    InnerJoin,
    Node,
    OuterJoin,
    Partner,
    Projection,
    Scan,
    SemiJoin,
    TopK,
    UnionAll,
    Window,
)
from springhouse.views.read.not_compilable import NotCompilable
from springhouse.views.read.well_formed import validate_well_formed
from springhouse.views.sql.expressions import Expression, column

T = Scan("t", ("k", "a"), ("k", "a"))
R = Scan("r", ("j", "b"), ("j", "b"))


def value(text: str) -> Expression:
    found: Expression = parse_one(text, read="spark")
    return found


def order(text: str) -> TopK:
    tree = parse_one(f"SELECT 1 FROM t ORDER BY {text}", read="spark")
    return TopK(T, tuple(tree.args["order"].expressions), 1)


def semi(condition: str, found: str = "found", or_else: str = "TRUE") -> SemiJoin:
    partner = Partner(R, (value(condition),), "found", (value(or_else),))
    return SemiJoin(T, (partner,), value(found))


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (Filter(T, (value("a > z"),)), "a condition speaks of `z`"),
        (Filter(T, (column("subquery 1"),)), "a condition speaks of `subquery 1`"),
        (Projection(T, (("x", value("a + z")),)), "the SELECT list speaks of `z`"),
        (Generate(T, value("explode(z)"), ("x",), False), "a generator speaks of `z`"),
        (InnerJoin((T, R), (value("k = z"),)), "the ON of a join speaks of `z`"),
        (OuterJoin(T, R, (value("k = z"),)), "the ON of a join speaks of `z`"),
        (semi("k = z"), "a subquery speaks of `z`"),
        (semi("k = j", or_else="z"), "a subquery speaks of `z`"),
        (semi("k = j", found="found AND b = 1"), "a condition speaks of `b`"),
        (Aggregate(T, ("z",), ()), "GROUP BY speaks of `z`"),
        (Aggregate(T, ("k",), (("s", value("sum(z)")),)), "an aggregate speaks of `z`"),
        (Window(T, ("z",), ()), "PARTITION BY speaks of `z`"),
        (
            Window(T, ("k",), (("n", value("rank() OVER (PARTITION BY k ORDER BY z)")),)),
            "a window function speaks of `z`",
        ),
        (order("z"), "ORDER BY speaks of `z`"),
        (Constant(("x",), ((value("z"),),)), "VALUES speaks of `z`"),
        # Below the top as well.
        (Projection(Filter(T, (value("z"),)), ()), "a condition speaks of `z`"),
        # Expressions in a place where no engine computes them.
        (Filter(T, (value("sum(a) > 1"),)), "an aggregate in a condition"),
        (
            Projection(T, (("n", value("rank() OVER (ORDER BY a)")),)),
            "a window function in the SELEC",
        ),
        (Projection(T, (("x", value("explode(a)")),)), "a generator in the SELECT list"),
        (Aggregate(T, (), (("s", value("sum(max(a))")),)), "an aggregate in an aggregate"),
        (
            Window(T, (), (("n", value("rank() OVER (ORDER BY sum(a))")),)),
            "an aggregate in a window function",
        ),
        (Filter(T, (value("a > (SELECT 1)"),)), "a query inside a condition is not understood"),
        # Shapes.
        (InnerJoin((T, T), ()), "two columns are called `k`"),
        (UnionAll((T, R)), "a set operation over rows of different shapes"),
        (Constant(("x", "y"), ((value("1"),),)), "rows of VALUES have different numbers"),
    ],
)
def test_what_can_not_be_written_as_sql_is_refused(node: Node, reason: str) -> None:
    with pytest.raises(NotCompilable) as found:
        validate_well_formed(node)
    assert found.value.reason.startswith(reason)


@pytest.mark.parametrize(
    "node",
    [
        Filter(InnerJoin((T, R), (value("k = j"),)), (value("a > b"),)),
        semi("k = j AND a > b", found="NOT found AND a = 1"),
        Aggregate(T, ("k",), (("s", value("sum(a) FILTER (WHERE k > 1)")),)),
        Window(T, ("k",), (("n", value("lag(a) IGNORE NULLS OVER (PARTITION BY k ORDER BY a)")),)),
        Generate(T, value("explode(array(k, a))"), ("x",), False),
        Projection(T, (("x", value("transform(array(k), y -> y + a)")),)),
        order("a + k DESC"),
    ],
)
def test_what_can_be_is_not(node: Node) -> None:
    validate_well_formed(node)
    # The same node is refused as soon as it mentions an unknown column.
    with pytest.raises(NotCompilable):
        validate_well_formed(Filter(node, (value("nobody = 1"),)))
