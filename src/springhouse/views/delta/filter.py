"""The change of a filter, a projection, a generator: each row on its own.

These are linear: the change of the result is the operator applied to the change of its rows,

    Δ σ(R) = σ(ΔR)      Δ π(R) = π(ΔR)

A snapshot is the operator over a snapshot. The rules store nothing and read nothing else.
"""

from dataclasses import replace

from sqlglot import exp

from springhouse.views.algebra.query_tree import Filter, Generate, Projection
from springhouse.views.delta.row_select import (
    WEIGHT,
    Near,
    RowSelect,
    Side,
    Touched,
    Writer,
    restricted,
    unless_ghost,
    without_ghosts,
)
from springhouse.views.sql.expressions import column, free_columns
from springhouse.views.sql.sql_tree import FromClause


def change_of_filter(node: Filter, needed: frozenset[str], writer: Writer) -> list[RowSelect]:
    used = needed.union(*map(free_columns, node.conditions))
    changed = writer.change(node.child, used, node.conditions)
    real = without_ghosts(changed, sorted(used), node.conditions, writer.alias(node.child))
    if real is not None:
        return [real.kept([unless_ghost(each) for each in node.conditions])]
    return [rows.kept(node.conditions) for rows in changed]


def filtered(
    node: Filter,
    side: Side,
    needed: frozenset[str],
    near: tuple[Near, ...],
    touched: Touched | None,
    writer: Writer,
) -> RowSelect:
    used = needed.union(*map(free_columns, node.conditions))
    rows = writer.snapshot(node.child, side, used, near, touched, node.conditions)
    return rows.kept(node.conditions)


def change_of_project(node: Projection, needed: frozenset[str], writer: Writer) -> list[RowSelect]:
    outputs = [(name, value) for name, value in node.outputs if name in needed]
    used = frozenset().union(*(free_columns(value) for _, value in outputs))
    changed = writer.change(node.child, used)
    values = [value for _, value in outputs]
    real = without_ghosts(changed, sorted(used), values, writer.alias(node.child))
    if real is not None:
        return [real.as_columns((name, unless_ghost(value)) for name, value in outputs)]
    return [rows.as_columns(outputs) for rows in changed]


def projected(
    node: Projection,
    side: Side,
    needed: frozenset[str],
    near: tuple[Near, ...],
    touched: Touched | None,
    writer: Writer,
) -> RowSelect:
    outputs = [(name, value) for name, value in node.outputs if name in needed]
    used = frozenset().union(*(free_columns(value) for _, value in outputs))
    passed = {n: v.name for n, v in node.outputs if isinstance(v, exp.Column)}
    inner = touched.renamed(passed) if touched is not None else None
    closer = tuple(replace(n, column=passed[n.column]) for n in near if n.column in passed)
    below = used | {own for own, _ in inner.pairs} if inner is not None else used
    rows = writer.snapshot(node.child, side, below, closer, inner).as_columns(outputs)
    if touched is not None and inner is None:
        return restricted(rows, touched)
    return rows


def change_of_generate(node: Generate, needed: frozenset[str], writer: Writer) -> list[RowSelect]:
    used = (needed & set(node.child.columns)) | free_columns(node.generator)
    return [_generated(node, rows, writer) for rows in writer.change(node.child, used)]


def generated(
    node: Generate,
    side: Side,
    needed: frozenset[str],
    near: tuple[Near, ...],
    touched: Touched | None,
    writer: Writer,
) -> RowSelect:
    own = set(node.child.columns)
    used = (needed & own) | free_columns(node.generator)
    inner = touched if touched and all(name in own for name, _ in touched.pairs) else None
    closer = tuple(n for n in near if n.column in own)
    rows = _generated(node, writer.snapshot(node.child, side, used, closer, inner), writer)
    return restricted(rows, touched) if inner is None else rows


def _generated(node: Generate, rows: RowSelect, writer: Writer) -> RowSelect:
    """LATERAL VIEW over the rows."""
    source = FromClause(rows.table(writer.alias(node.child)))
    source = source.lateral_view(node.generator, "made", node.made, outer=node.outer)
    columns = {name: column(name) for name in (*rows.columns, *node.made)}
    weight = None if rows.weight is None else column(WEIGHT)
    return RowSelect(source, columns, (), weight, has_ghosts=rows.has_ghosts)
