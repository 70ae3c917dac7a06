"""The change of a UNION ALL: the changes of its children, Δ(R + S) = ΔR + ΔS."""

from sqlglot import exp

from springhouse.views.algebra.query_tree import Node, Projection, UnionAll
from springhouse.views.delta.row_select import (
    Near,
    RowSelect,
    Side,
    Touched,
    Writer,
    united_rows,
    weighted,
)


def change(node: UnionAll, needed: frozenset[str], writer: Writer) -> list[RowSelect]:
    names = _names(node, needed)
    needed = frozenset(names)
    parts = [rows for child in node.children for rows in writer.change(child, needed)]
    untyped = any(_is_untyped(child, name) for child in node.children for name in names)
    if not parts or not untyped:
        return parts
    # A bare NULL has no type. In a union with the other children it gets their type.
    for child in node.children:
        nothing = writer.snapshot(child, Side.AFTER, needed).kept([exp.Boolean(this=False)])
        parts.append(weighted(nothing, 1))
    return [united_rows(parts, names, writer.alias(node))]


def snapshot(
    node: UnionAll,
    side: Side,
    needed: frozenset[str],
    near: tuple[Near, ...],
    touched: Touched | None,
    writer: Writer,
) -> RowSelect:
    names = _names(node, needed)
    parts = [
        writer.snapshot(child, side, frozenset(names), near, touched) for child in node.children
    ]
    return united_rows(parts, names, writer.alias(node))


def _names(node: UnionAll, needed: frozenset[str]) -> list[str]:
    return [name for name in node.columns if name in needed] or list(node.columns[:1])


def _is_untyped(node: Node, name: str) -> bool:
    """Whether a column is only a bare NULL, which has no type of its own."""
    if not isinstance(node, Projection):
        return False
    value = dict(node.outputs)[name].unnest()
    if isinstance(value, exp.Column):
        return _is_untyped(node.child, value.name)
    return isinstance(value, exp.Null)
