"""The change of a semi join and of an anti join (EXISTS, IN, NOT EXISTS, NOT IN).

    Δ(L ⋉ R) = ΔL ⋉ R'  +  (C ⋉ R') - (C ⋉ R)      where C = L ⋉ ΔR

A row of L can only gain or lose its partners if a changed row of R is one: C are those rows. Both
halves are computed and what is in both cancels. The same with ▷ for anti joins.
"""

from collections.abc import Sequence

from springhouse.views.algebra import Node, OuterJoin, SemiJoin, column, free_columns
from springhouse.views.rows import (
    Link,
    Near,
    Rows,
    Side,
    Touched,
    Writer,
    exists,
    met,
    near_to,
    touched_keys,
    touched_name,
    weighted,
)


def change(node: SemiJoin, needed: frozenset[str], writer: Writer) -> list[Rows]:
    here, there = needed | _used(node, node.left), _used(node, node.right)
    parts = [
        _met(node, rows, Side.AFTER, partners_near(node, rows), writer)
        for rows in writer.change(node.left, here)
    ]
    changed = writer.change(node.right, there or frozenset(node.right.columns[:1]))
    if changed:
        candidates, near = with_changed_partners(node, changed, here, writer)
        for side, weight in ((Side.AFTER, 1), (Side.BEFORE, -1)):
            parts.append(weighted(_met(node, candidates, side, near, writer), weight))
    return parts


def snapshot(
    node: SemiJoin,
    side: Side,
    needed: frozenset[str],
    near: tuple[Near, ...],
    touched: Touched | None,
    writer: Writer,
) -> Rows:
    rows = writer.snapshot(node.left, side, needed | _used(node, node.left), near, touched)
    pairs = Link.between(node.conditions, node.left.columns, node.right.columns).pairs
    across = tuple(Near(o, n.relation, n.source) for n in near for m, o in pairs if m == n.column)
    return _met(node, rows, side, across, writer)


def _used(node: SemiJoin, child: Node) -> frozenset[str]:
    return frozenset().union(*map(free_columns, node.conditions)) & frozenset(child.columns)


def _met(node: SemiJoin, rows: Rows, side: Side, near: tuple[Near, ...], writer: Writer) -> Rows:
    """The rows that have a partner in a snapshot of the right side (for an anti join: none)."""
    right = writer.snapshot(node.right, side, _used(node, node.right), near)
    found = exists(right, node.conditions, writer.alias(node.right), negated=node.anti)
    return met(rows, found, writer.alias(node.left))


def partners_near(node: SemiJoin | OuterJoin, rows: Rows) -> tuple[Near, ...]:
    """What changed rows of the left side tell about the keys of their partners."""
    link = Link.between(node.conditions, node.left.columns, node.right.columns)
    found = {n.column: n for n in near_to([rows], [here for here, _ in link.pairs])}
    return tuple(
        Near(there, found[here].relation, found[here].source)
        for here, there in link.pairs
        if here in found
    )


def with_changed_partners(
    node: SemiJoin | OuterJoin, changed: Sequence[Rows], needed: frozenset[str], writer: Writer
) -> tuple[Rows, tuple[Near, ...]]:
    """C: the rows of the left side, before the change, that a changed row of the right side meets.

    With it comes what is known about the keys of all their partners.
    """
    link = Link.between(node.conditions, node.left.columns, node.right.columns)
    columns = sorted(changed[0].columns)
    whole = touched_keys(changed, columns, writer)
    assert whole is not None
    pairs = tuple((here, touched_name(there)) for here, there in link.pairs)
    known = {n.column: n for n in whole.near}
    near = tuple(
        Near(here, known[there].relation, known[there].source)
        for here, there in link.pairs
        if there in known
    )
    touched = Touched(whole.relation, pairs, near) if pairs else None
    rows = writer.snapshot(node.left, Side.BEFORE, needed, near, touched)
    if link.others or touched is None:
        partners = Rows(whole.relation, {name: column(touched_name(name)) for name in columns})
        rows = met(rows, exists(partners, node.conditions, "changed"), writer.alias(node.left))
    tied = {there for _, there in link.pairs}
    return rows, tuple(n for n in whole.near if n.column in tied)
