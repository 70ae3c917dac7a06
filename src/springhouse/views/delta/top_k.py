"""The change of ORDER BY … LIMIT inside a query: the first rows after, minus the first rows before.

Inside a query there is no stored result to compare with, so the rule computes both from snapshots.
At the top of a view, the rows are stored, and `compile` keeps them up to date: see `Top` there.
"""

from sqlglot import exp

from springhouse.views.algebra.query_tree import TopK
from springhouse.views.delta.row_select import (
    Near,
    RowSelect,
    Side,
    Touched,
    Writer,
    restricted,
    weighted,
)
from springhouse.views.sql.expressions import column, free_columns
from springhouse.views.sql.sql_tree import FromClause, number, subquery


def change(node: TopK, needed: frozenset[str], writer: Writer) -> list[RowSelect]:
    if not writer.change(node.child, frozenset(node.child.columns)):
        return []
    return [
        weighted(snapshot(node, side, needed, (), None, writer), weight)
        for side, weight in ((Side.AFTER, 1), (Side.BEFORE, -1))
    ]


def snapshot(
    node: TopK,
    side: Side,
    needed: frozenset[str],
    near: tuple[Near, ...],
    touched: Touched | None,
    writer: Writer,
) -> RowSelect:
    del near  # Which rows come first depends on all of them.
    used = needed.union(*map(free_columns, node.order)) or frozenset(node.columns[:1])
    rows = writer.snapshot(node.child, side, used)
    return restricted(limited(node, rows, writer), touched)


def limited(node: TopK, rows: RowSelect, writer: Writer) -> RowSelect:
    """The first of these rows."""
    named = rows.named(writer.alias(node.child))
    body = named.select()
    if node.order:
        body.set("order", exp.Order(expressions=list(node.order)))
    body.set("limit", exp.Limit(expression=number(node.limit)))
    if node.offset:
        body.set("offset", exp.Offset(expression=number(node.offset)))
    source = FromClause(subquery(body, writer.alias(node)))
    return RowSelect(source, {name: column(name) for name in named.columns})
