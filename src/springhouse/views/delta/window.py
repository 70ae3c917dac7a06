"""The change of window functions: recompute the partitions that a change touches.

    Δ W(R) = W(R' ⋉ T) - W(R ⋉ T)      where T are the partition keys of the rows of ΔR

A function over a partition may change for all rows of the partition. Rows of other partitions can't
change. Rows with unchanged results cancel.
"""

from springhouse.views.algebra.query_tree import Window
from springhouse.views.delta.row_select import (
    Near,
    RowSelect,
    Side,
    Touched,
    Writer,
    restricted,
    touched_keys,
    weighted,
)
from springhouse.views.sql.expressions import column, free_columns
from springhouse.views.sql.sql_tree import FromClause, named, select, subquery


def change(node: Window, needed: frozenset[str], writer: Writer) -> list[RowSelect]:
    used = _used(node, needed)
    changed = writer.change(node.child, used | set(node.partition))
    if not changed:
        return []
    touched = touched_keys(changed, node.partition, writer)
    near = touched.near if touched is not None else ()
    parts = []
    for side, weight in ((Side.AFTER, 1), (Side.BEFORE, -1)):
        rows = writer.snapshot(node.child, side, used, near, touched)
        parts.append(weighted(_over(node, rows, needed, writer), weight))
    return parts


def snapshot(
    node: Window,
    side: Side,
    needed: frozenset[str],
    near: tuple[Near, ...],
    touched: Touched | None,
    writer: Writer,
) -> RowSelect:
    used = _used(node, needed)
    inner = touched if touched and all(own in node.partition for own, _ in touched.pairs) else None
    close = tuple(n for n in near if n.column in node.partition)
    rows = _over(node, writer.snapshot(node.child, side, used, close, inner), needed, writer)
    return restricted(rows, touched) if inner is None else rows


def _used(node: Window, needed: frozenset[str]) -> frozenset[str]:
    functions = [value for name, value in node.functions if name in needed]
    own = needed & set(node.child.columns)
    return own.union(node.partition, *map(free_columns, functions))


def _over(node: Window, rows: RowSelect, needed: frozenset[str], writer: Writer) -> RowSelect:
    functions = [(name, value) for name, value in node.functions if name in needed]
    inner = rows.named(writer.alias(node.child))
    items = [*map(column, inner.columns), *(named(value, name) for name, value in functions)]
    body = select(items, FromClause(inner.table(writer.alias(node.child))))
    names = (*inner.columns, *(name for name, _ in functions))
    source = FromClause(subquery(body, writer.alias(node)))
    return RowSelect(source, {name: column(name) for name in names})
