"""The change of an inner join.

For children R1 … Rn, where a prime marks a child after the change:

    Δ(R1 ⋈ … ⋈ Rn) = Σi  R1' ⋈ … ⋈ R(i-1)' ⋈ ΔRi ⋈ R(i+1) ⋈ … ⋈ Rn

The sum has one term per child that changed. It is exact, also for self-joins: a table joined with
itself is two children. Each term begins with the change, the small side, and follows the
equalities. So only few rows join the next child, and the executor reads only rows of this child
that can match them. A condition that divides waits until all ghosts are removed (`row_select`).
"""

from collections.abc import Sequence
from dataclasses import replace

from springhouse.views.algebra.equalities import Link
from springhouse.views.algebra.query_tree import InnerJoin, Node
from springhouse.views.delta.row_select import (
    WEIGHT,
    Near,
    RowSelect,
    Side,
    Touched,
    Writer,
    known_of,
    may_divide,
    restricted,
    united_rows,
    unless_ghost,
    without_ghosts,
)
from springhouse.views.sql.expressions import Expression, column, free_columns
from springhouse.views.sql.sql_tree import FromClause, every


def change(node: InnerJoin, needed: frozenset[str], writer: Writer) -> list[RowSelect]:
    used = needed.union(*map(free_columns, node.conditions))
    changing = [c for c in node.children if writer.change(c, used & set(c.columns))]
    if len(changing) < 2:
        return _terms(node, used, writer)
    if any(map(may_divide, node.conditions)):
        return _change_with_divisions(node, used, writer)
    still = [child for child in node.children if child not in changing]
    if still and _connected(changing, node.conditions):
        return [_change_at_once(node, changing, still, used, writer)]
    return [replace(term, has_ghosts=True) for term in _terms(node, used, writer)]


def _change_with_divisions(
    node: InnerJoin, used: frozenset[str], writer: Writer
) -> list[RowSelect]:
    """The change of a join with conditions that divide: only real rows reach these conditions."""
    dividing = [each for each in node.conditions if may_divide(each)]
    others = tuple(each for each in node.conditions if not may_divide(each))
    pairs = change(InnerJoin(node.children, others), used, writer)
    real = without_ghosts(pairs, sorted(used), dividing, writer.alias(node))
    return [real.kept([unless_ghost(each) for each in dividing])] if real is not None else []


def _change_at_once(
    node: InnerJoin, changing: list[Node], still: list[Node], used: frozenset[str], writer: Writer
) -> RowSelect:
    """The change of several children together, joined once with the unchanged children."""
    inner = {name for child in changing for name in child.columns}
    inside = tuple(each for each in node.conditions if free_columns(each) <= inner)
    across = tuple(each for each in node.conditions if not free_columns(each) <= inner)
    core = InnerJoin(tuple(changing), inside)
    terms = _terms(core, used & inner, writer)
    whole = united_rows(terms, sorted(used & inner), writer.alias(core))
    others = [(child, Side.AFTER) for child in still]
    return replace(_joined(whole, core, others, across, used, writer), has_ghosts=True)


def _connected(nodes: list[Node], conditions: tuple[Expression, ...]) -> bool:
    """Whether equalities connect all of the nodes."""
    known, waiting = list(nodes[0].columns), nodes[1:]
    while waiting:
        found = [n for n in waiting if Link.between(conditions, known, n.columns).pairs]
        if not found:
            return False
        known += found[0].columns
        waiting = [n for n in waiting if n is not found[0]]
    return True


def _terms(node: InnerJoin, used: frozenset[str], writer: Writer) -> list[RowSelect]:
    """One term per child that changes."""
    terms: list[RowSelect] = []
    for place, child in enumerate(node.children):
        for rows in writer.change(child, used & set(child.columns)):
            others = [
                (each, Side.AFTER if i < place else Side.BEFORE)
                for i, each in enumerate(node.children)
                if i != place
            ]
            terms.append(_joined(rows, child, others, node.conditions, used, writer))
    return terms


def snapshot(
    node: InnerJoin,
    side: Side,
    needed: frozenset[str],
    near: tuple[Near, ...],
    touched: Touched | None,
    writer: Writer,
) -> RowSelect:
    used = needed.union(*map(free_columns, node.conditions))
    first, inner = _first(node, touched, near)
    start = writer.snapshot(
        first, side, used & set(first.columns), _of(near, first), touched if inner else None
    )
    others = [(each, side) for each in node.children if each is not first]
    rows = _joined(start, first, others, node.conditions, used, writer, near)
    return restricted(rows, None if inner else touched)


def _first(node: InnerJoin, touched: Touched | None, near: tuple[Near, ...]) -> tuple[Node, bool]:
    """The child to begin with, and whether `touched` restricts this child alone."""
    if touched is not None:
        for child in node.children:
            if all(own in child.columns for own, _ in touched.pairs):
                return child, True
    for child in node.children:
        if _of(near, child):
            return child, False
    return node.children[0], False


def _of(near: Sequence[Near], node: Node) -> tuple[Near, ...]:
    known = known_of(each for each in near if each.column in node.columns)
    return tuple(Near(name, among) for name, answers in known.items() for among in answers)


def _joined(
    start: RowSelect,
    first: Node,
    others: list[tuple[Node, Side]],
    conditions: tuple[Expression, ...],
    used: frozenset[str],
    writer: Writer,
    near: tuple[Near, ...] = (),
) -> RowSelect:
    """The rows of `start` joined with the other children, along the equalities."""
    known = list(start.columns)
    close = [*near, *start.near]
    alias = writer.alias(first)
    if start.weight is not None:
        alias += "_change"
    source = FromClause(start.table(alias))
    waiting, pending = list(others), list(conditions)
    while waiting:
        child, side = waiting.pop(_next(waiting, pending, known))
        pairs = Link.between(pending, known, child.columns).pairs
        close += _across(close, pairs)
        rows = writer.snapshot(child, side, used & set(child.columns), _of(close, child))
        known += rows.columns
        close += rows.near
        close += [Near(h, among) for h, there in pairs for among in rows.origins(there)]
        ready = [each for each in pending if free_columns(each) <= set(known)]
        pending = [each for each in pending if not any(each is done for done in ready)]
        source = source.join(rows.table(writer.alias(child)), every(ready) if ready else None)
    columns = {name: column(name) for name in known}
    weight = column(WEIGHT) if start.weight is not None else None
    near_all = known_of(close)
    return RowSelect(source, columns, tuple(pending), weight, None, near_all, start.has_ghosts)


def _across(near: Sequence[Near], pairs: Sequence[tuple[str, str]]) -> list[Near]:
    """The hints about columns here, as hints about the equal columns there."""
    return [replace(n, column=there) for here, there in pairs for n in near if n.column == here]


def _next(waiting: list[tuple[Node, Side]], pending: list[Expression], known: list[str]) -> int:
    """The child to join next: if possible, one with an equality to a known column."""
    for place, (child, _) in enumerate(waiting):
        if Link.between(pending, known, child.columns).pairs:
            return place
    both = set(known)
    for place, (child, _) in enumerate(waiting):
        reach = both | set(child.columns)
        if any(free_columns(e) <= reach and free_columns(e) - both for e in pending):
            return place
    return 0
