"""Which groups of a subquery does the query around it need? ("Magic sets")

    WHERE p_brand = 'Brand#23' AND l_quantity <
      (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)

As a table of its own, the subquery has an average for every part. Springhouse would store all
averages and keep them up to date, although the query needs only those of one brand. So a semi join
restricts the rows of the subquery before they are grouped:

    A(R) ⋈k=x S   =   A(R ⋉k=x N) ⋈k=x S      where every x of S is an x of N

N is an input of the outer query that a condition makes small. A group that the query does not need
joins no row of S, with or without the semi join. A group that the query needs keeps all its rows,
because the semi join tests only the key. The same holds for an outer join that keeps S.

Equality is transitive only among columns of one type: `'1' = 1` and `1 = '01'` are true, but
`'1' = '01'` is false.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from springhouse.views.algebra.equalities import Link
from springhouse.views.algebra.query_tree import (
    Aggregate,
    Filter,
    InnerJoin,
    Node,
    OuterJoin,
    Partner,
    Projection,
    Scan,
    SemiJoin,
    children,
    origin,
    semi_join,
    walk,
    with_children,
)
from springhouse.views.sql.expressions import Expression, column, conjuncts

Schemas = Mapping[str, Mapping[str, str]]

_NARROWS = (exp.EQ, exp.In, exp.Like)
"""Conditions that leave few rows as a rule; ranges and inequalities may leave nearly all."""


def apply_magic_sets(root: Node, schemas: Schemas) -> Node:
    """Restrict groups to the groups that the query around them may need."""
    readers = Counter(id(child) for node in walk(root) for child in children(node))
    made: dict[int, Node] = {}
    for node in walk(root):
        below = [made[id(child)] for child in children(node)]
        # A node with two readers stays one node: it is computed and stored once.
        for place, around, pairs in _asking(node):
            if not _is_shared(children(node)[place], readers):
                below[place] = _restricted(below[place], around, pairs, schemas)
        made[id(node)] = with_children(node, below)
    return made[id(root)]


def _is_shared(groups: Node, readers: Mapping[int, int]) -> bool:
    while readers[id(groups)] == 1 and isinstance(groups, Filter | Projection):
        groups = groups.child
    return readers[id(groups)] != 1


Pairs = Sequence[tuple[str, str]]
"""Equal columns: (column of the groups, column of the node that needs the groups)."""


def _asking(node: Node) -> Iterator[tuple[int, Node, Pairs]]:
    """The children of a join that may be groups, with the node that needs them and the pairs."""
    match node:
        case InnerJoin():
            sides = [(i, other) for i in range(len(node.children)) for other in node.children]
        case OuterJoin():
            sides = [(1, node.left)]
        case _:
            return
    for place, other in sides:
        asked = children(node)[place]
        pairs = Link.between(node.conditions, asked.columns, other.columns).pairs
        if pairs and other is not asked:
            # In an inner join, a further child may reduce the rows that need groups.
            yield place, (other if isinstance(node, OuterJoin) else node), pairs


def _restricted(groups: Node, around: Node, pairs: Pairs, schemas: Schemas) -> Node:
    """The groups, without groups that the query can't need."""
    match groups:
        case Filter():
            return replace(groups, child=_restricted(groups.child, around, pairs, schemas))
        case Projection():
            own = dict(groups.outputs)
            known = [
                (value.name, other)
                for name, other in pairs
                if isinstance(value := own[name], exp.Column)
            ]
            child = _restricted(groups.child, around, known, schemas)
            return replace(groups, child=child)
        case Aggregate():
            rows = groups.child
            for key, other in pairs:
                if key in groups.keys:
                    rows = _met_by_asking(rows, key, around, other, schemas)
            return replace(groups, child=rows) if rows is not groups.child else groups
        case _:
            return groups


def _met_by_asking(rows: Node, key: str, around: Node, name: str, schemas: Schemas) -> Node:
    """Only the rows of the groups that a small input needs."""
    narrow = _narrow(around, name, schemas)
    if narrow is None:
        return rows
    asking, asked = narrow
    taken = {each for node in walk(rows) for each in node.columns}
    if taken & set(asking.columns) or _type_of(rows, key, schemas) != _type_of(
        asking, asked, schemas
    ):
        return rows
    found = f"asked_{key}"
    if isinstance(rows, SemiJoin) and any(each.found == found for each in rows.partners):
        return rows
    partner = Partner(asking, (exp.EQ(this=column(key), expression=column(asked)),), found)
    return semi_join(rows, [partner], column(found))


def _narrow(
    node: Node, name: str, schemas: Schemas, seen: frozenset[str] = frozenset()
) -> tuple[Node, str] | None:
    """A filtered input, with its column that includes all values of the column `name`."""
    seen |= {name}
    match node:
        case Filter() if isinstance(node.child, Scan):
            return (node, name) if any(map(_is_narrow, node.conditions)) else None
        case Filter():
            return _narrow(node.child, name, schemas, seen)
        case Projection():
            value = dict(node.outputs)[name]
            known = isinstance(value, exp.Column)
            return _narrow(node.child, value.name, schemas, seen) if known else None
        case OuterJoin():
            return _narrow(node.left, name, schemas, seen) if name in node.left.columns else None
        case SemiJoin():
            partners = [(p.rows, p.conditions) for p in _found_partners(node)]
            return _narrow_among(node.left, name, partners, schemas, seen)
        case InnerJoin():
            home = next(each for each in node.children if name in each.columns)
            others = [(each, node.conditions) for each in node.children if each is not home]
            return _narrow_among(home, name, others, schemas, seen)
        case _:
            return None


def _narrow_among(
    home: Node,
    name: str,
    others: Sequence[tuple[Node, Sequence[Expression]]],
    schemas: Schemas,
    seen: frozenset[str],
) -> tuple[Node, str] | None:
    """The same, searched in the node that has the column and in others with equal columns."""
    found = _narrow(home, name, schemas, seen)
    for other, conditions in others:
        for here, there in _equal(conditions, home, other, schemas):
            if found is None and here == name and there not in seen:
                found = _narrow(other, there, schemas, seen)
    return found


def _found_partners(node: SemiJoin) -> list[Partner]:
    """The partners that every row of the semi join must have."""
    asked = {each.name for each in conjuncts(node.condition) if isinstance(each, exp.Column)}
    return [p for p in node.partners if p.found in asked and not p.or_else]


def _equal(conditions: Sequence[Expression], here: Node, there: Node, schemas: Schemas) -> Pairs:
    """The columns of two nodes that are equal and have the same type."""
    pairs = Link.between(conditions, here.columns, there.columns).pairs
    return [
        (own, other)
        for own, other in pairs
        if (kind := _type_of(here, own, schemas)) is not None
        and kind == _type_of(there, other, schemas)
    ]


def _is_narrow(condition: Expression) -> bool:
    """Whether a condition compares a column with constants, so that few rows are left."""
    if not isinstance(condition, _NARROWS):
        return False
    sides = [condition.this, condition.expression, *condition.expressions]
    return sum(isinstance(each, exp.Column) for each in sides if each is not None) == 1


def _type_of(node: Node, name: str, schemas: Schemas) -> str | None:
    """The type of a column that comes unchanged from an input; None for other columns."""
    found = origin(node, name)
    while found is not None and isinstance(found[0], Aggregate):
        gathered, key = found
        assert isinstance(gathered, Aggregate)
        found = origin(gathered.child, key) if key in gathered.keys else None
    if found is None:
        return None
    scan, source = found
    assert isinstance(scan, Scan)
    return schemas[scan.input][source].lower()
