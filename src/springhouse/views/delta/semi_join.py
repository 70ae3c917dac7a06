"""The change of semi joins and anti joins (EXISTS, IN, NOT EXISTS, NOT IN, joined by AND and OR).

    Δ(L ⋉ R) = ΔL ⋉ R'  +  (C ⋉ R') - (C ⋉ R)      where C = L ⋉ ΔR

A row of L can gain or lose partners only if a changed row of R is a partner of it: C are these
rows of L. The statement computes both halves, and rows in both cancel. The same holds with ▷ for
anti joins, and for any condition on several R1 … Rn. These change one after the other: in the term
of Ri, the ones before Ri are as after the change, and the ones behind Ri as before it.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from springhouse.views.algebra.equalities import Link
from springhouse.views.algebra.query_tree import Node, Partner, SemiJoin
from springhouse.views.delta.row_select import (
    Near,
    RowSelect,
    Side,
    Touched,
    Writer,
    exists,
    known_of,
    meeting,
    touched_keys,
    touched_name,
    weighted,
)
from springhouse.views.sql.expressions import (
    Expression,
    any_of,
    column,
    conjuncts,
    every_of,
    free_columns,
    replaced,
)
from springhouse.views.sql.sql_tree import FromClause, any_of_them, table


def change(node: SemiJoin, needed: frozenset[str], writer: Writer) -> list[RowSelect]:
    here = needed | _used(node)
    after = [Side.AFTER] * len(node.partners)
    parts = [_kept(node, rows, after, (), writer) for rows in writer.change(node.left, here)]
    for place, partner in enumerate(node.partners):
        there = _asked(partner) or frozenset(partner.rows.columns[:1])
        changed = writer.change(partner.rows, there)
        if not changed:
            continue
        candidates, near = with_changed_partners(node.left, partner, changed, here, writer)
        for side, weight in ((Side.AFTER, 1), (Side.BEFORE, -1)):
            behind = [Side.BEFORE] * (len(node.partners) - place - 1)
            sides = [*after[:place], side, *behind]
            parts.append(weighted(_kept(node, candidates, sides, near, writer), weight))
    return parts


def snapshot(
    node: SemiJoin,
    side: Side,
    needed: frozenset[str],
    near: tuple[Near, ...],
    touched: Touched | None,
    writer: Writer,
) -> RowSelect:
    rows = writer.snapshot(node.left, side, needed | _used(node), near, touched)
    return _kept(node, rows, [side] * len(node.partners), near, writer)


def _used(node: SemiJoin) -> frozenset[str]:
    """The columns of the left side that conditions mention."""
    conditions = [node.condition]
    for partner in node.partners:
        conditions += [*partner.conditions, *partner.or_else]
    return frozenset().union(*map(free_columns, conditions)) & frozenset(node.left.columns)


def _asked(partner: Partner) -> frozenset[str]:
    """The columns of a partner that conditions mention."""
    conditions = (*partner.conditions, *partner.or_else)
    return frozenset().union(*map(free_columns, conditions)) & frozenset(partner.rows.columns)


def _kept(
    node: SemiJoin, rows: RowSelect, sides: Sequence[Side], near: tuple[Near, ...], writer: Writer
) -> RowSelect:
    """The rows that meet the condition, with each partner on one side of its change."""
    named = rows.named(writer.alias(node.left))
    close = (*near, *rows.near)
    found: dict[str, Expression] = {}
    known = list(named.near)
    for partner, side in zip(node.partners, sides, strict=True):
        found[partner.found], others = _found(partner, node.left, side, close, writer)
        if _has_to_be_found(partner, node.condition):
            known += across(partner.conditions, partner.rows, node.left, others.near)
    met = meeting(named, replaced(node.condition, found), writer.alias(node.left))
    return replace(met, known=known_of(known))


def _has_to_be_found(partner: Partner, condition: Expression) -> bool:
    """Whether every row that meets the condition has this partner through its `conditions`."""
    asked = [each.name for each in conjuncts(condition) if isinstance(each, exp.Column)]
    return partner.found in asked and not partner.or_else


def _found(
    partner: Partner, left: Node, side: Side, near: tuple[Near, ...], writer: Writer
) -> tuple[Expression, RowSelect]:
    """The condition that a row finds a partner, and the rows that may be its partners."""
    alias, used = writer.alias(partner.rows), _asked(partner)
    close = across(partner.conditions, left, partner.rows, near)
    rows = writer.snapshot(partner.rows, side, used, close)
    found = exists(rows, partner.conditions, alias)
    if partner.or_else:
        # The hints do not hold for partners that meet one of the other conditions.
        all_rows = writer.snapshot(partner.rows, side, used)
        others = [exists(all_rows, [other], alias) for other in partner.or_else]
        found = exp.Paren(this=any_of_them([found, *others]))
    return found, rows


def across(
    conditions: Sequence[Expression], here: Node, there: Node, near: Sequence[Near]
) -> tuple[Near, ...]:
    """The hints about one side of equalities, as hints about the other side."""
    pairs = Link.between(conditions, here.columns, there.columns).pairs
    known = known_of(near)
    return tuple(Near(other, among) for own, other in pairs for among in known.get(own, ()))


def with_changed_partners(
    left: Node,
    partner: Partner,
    changed: Sequence[RowSelect],
    needed: frozenset[str],
    writer: Writer,
) -> tuple[RowSelect, tuple[Near, ...]]:
    """C: the rows of the left side, before the change, that have a changed partner.

    The second value are the hints about their keys.
    """
    link = Link.between(partner.conditions, left.columns, partner.rows.columns)
    columns = sorted(set(partner.rows.columns).intersection(*(rows.columns for rows in changed)))
    whole = touched_keys(changed, columns, writer)
    assert whole is not None
    conditions = partner.conditions
    if partner.or_else:
        conditions = (any_of([every_of(conditions), *partner.or_else]),)
    touched: Touched | None = None
    near: tuple[Near, ...] = ()
    if link.pairs and not partner.or_else:
        near = across(partner.conditions, partner.rows, left, whole.near)
        pairs = tuple((here, touched_name(there)) for here, there in link.pairs)
        touched = Touched(whole.relation, pairs, near)
    rows = writer.snapshot(left, Side.BEFORE, needed, near, touched)
    if link.others or touched is None:
        columns_there = {name: column(touched_name(name)) for name in columns}
        partners = RowSelect(FromClause(table(whole.relation)), columns_there)
        met = exists(partners, conditions, "changed")
        rows = meeting(rows.named(writer.alias(left)), met, writer.alias(left))
    return rows, near
