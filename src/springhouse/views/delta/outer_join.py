"""The change of a left outer join. (A right join becomes a left join; a full join adds R ▷ L.)

    Δ(L ⟕ R) = ΔL ⟕ R'  +  L ⋈ ΔR  +  (C ▷ R') - (C ▷ R)      where C = L ⋉ ΔR

The last two terms have NULLs for the columns of R: they are the rows of L that lost their last
partner, minus the rows that found their first. If equalities alone decide which rows are partners,
these two terms read the distinct keys of R instead of R: a hidden table that shows directly which
rows have no partner.
"""

from dataclasses import replace

from sqlglot import exp

from springhouse.views.algebra.query_tree import OuterJoin, Partner
from springhouse.views.delta.row_select import (
    WEIGHT,
    Near,
    RowSelect,
    Side,
    Touched,
    Writer,
    exists,
    known_of,
    meeting,
    restricted,
    united_rows,
    weighted,
)
from springhouse.views.delta.semi_join import across, with_changed_partners
from springhouse.views.sql.expressions import column, free_columns
from springhouse.views.sql.sql_tree import FromClause, every


def change(node: OuterJoin, needed: frozenset[str], writer: Writer) -> list[RowSelect]:
    here, there = _used(node, needed)
    parts = [
        _outer(node, rows, Side.AFTER, there, (), writer) for rows in writer.change(node.left, here)
    ]
    changed = writer.change(node.right, there)
    if not changed:
        return parts
    turned = [_pairs(node, rows, here, writer) for rows in changed]
    partner = Partner(node.partner_keys or node.right, node.conditions, "")
    if node.partner_keys is not None:
        changed = writer.change(node.partner_keys, frozenset(node.partner_keys.columns))
    candidates, near = with_changed_partners(node.left, partner, changed, here, writer)
    close = across(node.conditions, node.left, partner.rows, near)
    asked = there & frozenset(partner.rows.columns)
    for side, weight in ((Side.AFTER, 1), (Side.BEFORE, -1)):
        right = writer.snapshot(partner.rows, side, asked, close)
        alone = exists(right, node.conditions, writer.alias(partner.rows), negated=True)
        lonely = meeting(candidates, alone, writer.alias(node.left))
        nulls = {name: exp.Null() for name in sorted(there)}
        turned.append(weighted(replace(lonely, columns={**lonely.columns, **nulls}), weight))
    # These terms are one union, so that the NULLs get the types of the columns of R.
    terms = [*parts, united_rows(turned, sorted(here | there), writer.alias(node))]
    return [replace(term, has_ghosts=bool(parts) or term.has_ghosts) for term in terms]


def snapshot(
    node: OuterJoin,
    side: Side,
    needed: frozenset[str],
    near: tuple[Near, ...],
    touched: Touched | None,
    writer: Writer,
) -> RowSelect:
    here, there = _used(node, needed)
    own = set(node.left.columns)
    inner = touched if touched and all(name in own for name, _ in touched.pairs) else None
    close = tuple(n for n in near if n.column in own)
    rows = writer.snapshot(node.left, side, here, close, inner)
    whole = _outer(node, rows, side, there, close, writer)
    return restricted(whole, touched) if inner is None else whole


def _used(node: OuterJoin, needed: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    used = needed.union(*map(free_columns, node.conditions))
    here, there = frozenset(node.left.columns), frozenset(node.right.columns)
    return used & here, used & there or frozenset(node.right.columns[:1])


def _outer(
    node: OuterJoin,
    rows: RowSelect,
    side: Side,
    there: frozenset[str],
    near: tuple[Near, ...],
    writer: Writer,
) -> RowSelect:
    """The rows with their partners, or with NULLs."""
    close = across(node.conditions, node.left, node.right, (*near, *rows.near))
    right = writer.snapshot(node.right, side, there, close)
    source = FromClause(rows.table(writer.alias(node.left)))
    partners = right.table(writer.alias(node.right))
    source = source.join(partners, every(node.conditions), side="LEFT")
    columns = {name: column(name) for name in (*rows.columns, *right.columns)}
    weight = column(WEIGHT) if rows.weight is not None else None
    # There are no hints about columns of the partners: a NULL occurs in no other relation.
    return RowSelect(source, columns, (), weight, None, known_of(rows.near), rows.has_ghosts)


def _pairs(node: OuterJoin, changed: RowSelect, here: frozenset[str], writer: Writer) -> RowSelect:
    """L ⋈ ΔR: the pairs that changed rows of the right side add and remove."""
    close = across(node.conditions, node.right, node.left, changed.near)
    left = writer.snapshot(node.left, Side.BEFORE, here, close)
    source = FromClause(changed.table(f"{writer.alias(node.right)}_change"))
    source = source.join(left.table(writer.alias(node.left)), every(node.conditions))
    columns = {name: column(name) for name in (*left.columns, *changed.columns)}
    known = known_of((*left.near, *changed.near))
    return RowSelect(source, columns, (), column(WEIGHT), None, known, changed.has_ghosts)
