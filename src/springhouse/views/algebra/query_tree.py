"""What is a query made of?

A small algebra over bags of rows. It is easy to compose because of one rule:

    every column has one name in the whole query

So no operator needs aliases or qualifiers, and a join never has two columns of one name. If an
operator mentions a column that none of its children has, the column belongs to an outer query.
Nodes are compared by identity: the same subtree in two places is one node, computed and stored
once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

from sqlglot import exp

from springhouse.views.sql.expressions import Expression, Named, column, every_of, free_columns


@dataclass(frozen=True, eq=False)
class Scan:
    """An input of the view, at some version. `sources` are its column names in the input."""

    input: str
    columns: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Constant:
    """Rows that the query itself contains (VALUES). They never change."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, eq=False)
class Filter:
    """The rows for which all conditions are true."""

    child: "Node"
    conditions: tuple[Expression, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns


@dataclass(frozen=True, eq=False)
class Projection:
    """Each row, with these columns computed from it."""

    child: "Node"
    outputs: tuple[Named, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.outputs)


@dataclass(frozen=True, eq=False)
class Generate:
    """Each row, once per row that the generator makes of it (LATERAL VIEW explode(…))."""

    child: "Node"
    generator: Expression
    made: tuple[str, ...]
    outer: bool

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.child.columns, *self.made)


@dataclass(frozen=True, eq=False)
class InnerJoin:
    """All combinations of rows, one of each child, for which all conditions are true."""

    children: tuple["Node", ...]
    conditions: tuple[Expression, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for child in self.children for name in child.columns)


@dataclass(frozen=True, eq=False)
class OuterJoin:
    """A left outer join: a row of `left` without a partner appears once, with NULLs.

    `partner_keys` are the distinct keys of `right`, if keys alone decide which rows are partners.
    """

    left: "Node"
    right: "Node"
    conditions: tuple[Expression, ...]
    partner_keys: "Aggregate | None" = None

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.left.columns, *self.right.columns)


@dataclass(frozen=True, eq=False)
class Partner:
    """Rows among which a row of a semi join looks for one that meets all conditions.

    `found` is the name for "such a row exists" in the condition of the semi join. `or_else` are
    further conditions: a row that meets one of them is a partner too. NOT IN needs them, because a
    NULL on either side counts as a partner.
    """

    rows: "Node"
    conditions: tuple[Expression, ...]
    found: str
    or_else: tuple[Expression, ...] = ()


@dataclass(frozen=True, eq=False)
class SemiJoin:
    """The rows of `left` whose partners meet a condition.

    EXISTS is `found`, NOT EXISTS is `NOT found`, and AND and OR combine several partners.
    """

    left: "Node"
    partners: tuple[Partner, ...]
    condition: Expression

    @property
    def columns(self) -> tuple[str, ...]:
        return self.left.columns


@dataclass(frozen=True, eq=False)
class UnionAll:
    """The rows of all children, which have the same columns."""

    children: tuple["Node", ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.children[0].columns


class SetKind(Enum):
    """INTERSECT and EXCEPT, with and without ALL. (UNION is a Distinct of a UnionAll.)"""

    INTERSECT = "INTERSECT"
    INTERSECT_ALL = "INTERSECT ALL"
    EXCEPT = "EXCEPT"
    EXCEPT_ALL = "EXCEPT ALL"


@dataclass(frozen=True, eq=False)
class SetOperation:
    """Rows selected by their numbers in `left` and in `right`, which have the same columns."""

    kind: SetKind
    left: "Node"
    right: "Node"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.left.columns


@dataclass(frozen=True, eq=False)
class Aggregate:
    """One row per group. Without keys all rows are one group, which exists even without rows.

    An aggregate without measures is DISTINCT.
    """

    child: "Node"
    keys: tuple[str, ...]
    measures: tuple[Named, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.keys, *(name for name, _ in self.measures))


@dataclass(frozen=True, eq=False)
class Window:
    """Each row, with functions over the rows of its partition."""

    child: "Node"
    partition: tuple[str, ...]
    functions: tuple[Named, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.child.columns, *(name for name, _ in self.functions))


@dataclass(frozen=True, eq=False)
class TopK:
    """The first rows in an order: `limit` of them after `offset`."""

    child: "Node"
    order: tuple[exp.Ordered, ...]
    limit: int
    offset: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns


Node = (
    Scan
    | Constant
    | Filter
    | Projection
    | Generate
    | InnerJoin
    | OuterJoin
    | SemiJoin
    | UnionAll
    | SetOperation
    | Aggregate
    | Window
    | TopK
)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes that a node reads, in order."""
    match node:
        case Scan() | Constant():
            return ()
        case InnerJoin() | UnionAll():
            return node.children
        case OuterJoin():
            keys = (node.partner_keys,) if node.partner_keys is not None else ()
            return (node.left, node.right, *keys)
        case SetOperation():
            return (node.left, node.right)
        case SemiJoin():
            return (node.left, *(partner.rows for partner in node.partners))
        case _:
            return (node.child,)


def with_children(node: Node, new: Sequence[Node]) -> Node:
    """The node over new children, in the order of `children`."""
    if all(old is each for old, each in zip(children(node), new, strict=True)):
        return node
    match node:
        case Scan() | Constant():
            return node
        case InnerJoin() | UnionAll():
            return replace(node, children=tuple(new))
        case OuterJoin():
            keys = new[2] if node.partner_keys is not None else None
            assert keys is None or isinstance(keys, Aggregate)
            return replace(node, left=new[0], right=new[1], partner_keys=keys)
        case SetOperation():
            return replace(node, left=new[0], right=new[1])
        case SemiJoin():
            partners = (
                replace(partner, rows=rows)
                for partner, rows in zip(node.partners, new[1:], strict=True)
            )
            return replace(node, left=new[0], partners=tuple(partners))
        case _:
            return replace(node, child=new[0])


def walk(node: Node) -> Iterator[Node]:
    """Every node once, after the nodes that it reads."""
    seen: set[int] = set()

    def visit(each: Node) -> Iterator[Node]:
        if id(each) in seen:
            return
        seen.add(id(each))
        for child in children(each):
            yield from visit(child)
        yield each

    yield from visit(node)


@lru_cache(maxsize=10_000)
def inputs(node: Node) -> frozenset[str]:
    """The inputs that a change of this node can come from."""
    if isinstance(node, Scan):
        return frozenset({node.input})
    return frozenset().union(*map(inputs, children(node)))


# Nodes in a normal form


def filter_rows(child: Node, conditions: Sequence[Expression]) -> Node:
    """The child with the conditions applied, as close to the scans as possible."""
    if not conditions:
        return child
    if isinstance(child, Filter):
        return Filter(child.child, (*child.conditions, *conditions))
    if isinstance(child, InnerJoin):
        return join_all(child.children, (*child.conditions, *conditions))
    return Filter(child, tuple(conditions))


def join_all(nodes: Sequence[Node], conditions: Sequence[Expression]) -> Node:
    """An inner join: nested joins become one, and a condition on one child moves to that child."""
    flat: list[Node] = []
    pending: list[Expression] = list(conditions)
    for node in nodes:
        # The conditions of a filter above a nested join become conditions of the whole join.
        while isinstance(node, Filter) and isinstance(node.child, InnerJoin):
            pending += node.conditions
            node = node.child
        if isinstance(node, InnerJoin):
            flat += node.children
            pending += node.conditions
        else:
            flat.append(node)
    own: list[list[Expression]] = [[] for _ in flat]
    across: list[Expression] = []
    for condition in pending:
        needed = free_columns(condition)
        home = [i for i, each in enumerate(flat) if needed and needed <= set(each.columns)]
        (own[home[0]] if home else across).append(condition)
    placed = tuple(filter_rows(each, more) for each, more in zip(flat, own, strict=True))
    if len(placed) == 1:
        return filter_rows(placed[0], across) if across else placed[0]
    return InnerJoin(placed, tuple(across))


def keys_of(rows: Node, conditions: Sequence[Expression]) -> "Aggregate | None":
    """The distinct keys of possible partners; None if keys alone do not decide.

    To find that a row has no partner is expensive from the rows, and cheap from a table of keys.
    """
    own = set(rows.columns)
    keys: list[str] = []
    for each in conditions:
        sides = (each.this, each.expression) if isinstance(each, exp.EQ) else ()
        mine = [s for s in sides if isinstance(s, exp.Column) and s.name in own]
        others = [s for s in sides if not free_columns(s) & own]
        if len(mine) != 1 or len(others) != 1:
            return None
        keys.append(mine[0].name)
    names = tuple(dict.fromkeys(keys))
    if not names or _is_keyed_by(rows, names):
        return None
    return Aggregate(Projection(rows, tuple((name, column(name)) for name in names)), names, ())


def _is_keyed_by(rows: Node, names: Sequence[str]) -> bool:
    """Whether the rows are groups, and these columns are their keys."""
    while isinstance(rows, Filter | Projection):
        if isinstance(rows, Projection):
            outputs = dict(rows.outputs)
            names = [value.name for name in names if isinstance(value := outputs[name], exp.Column)]
        rows = rows.child
    return isinstance(rows, Aggregate) and set(rows.keys) <= set(names)


def outer_join(left: Node, right: Node, conditions: Sequence[Expression]) -> OuterJoin:
    """A left outer join."""
    return OuterJoin(left, right, tuple(conditions), keys_of(right, conditions))


def _looked_up(partner: Partner, condition: Expression) -> Partner:
    """The partner with its distinct keys for its rows, if the condition tests its absence."""
    absent = any(
        isinstance(each.this.unnest(), exp.Column) and each.this.unnest().name == partner.found
        for each in condition.find_all(exp.Not)
    )
    keys = keys_of(partner.rows, partner.conditions) if absent and not partner.or_else else None
    return partner if keys is None else replace(partner, rows=keys)


def semi_join(
    left: Node, partners: Sequence[Partner], condition: Expression, *, anti: bool = False
) -> SemiJoin:
    """A semi join; two semi joins, one right above the other, become one with both conditions."""
    whole = exp.Not(this=condition) if anti else condition
    partners = [_looked_up(partner, whole) for partner in partners]
    if isinstance(left, SemiJoin):
        return SemiJoin(left.left, (*left.partners, *partners), every_of([left.condition, whole]))
    return SemiJoin(left, tuple(partners), whole)


def rename_columns(node: Node, names: Sequence[str]) -> Node:
    """The node with its columns called `names`."""
    if tuple(names) == node.columns:
        return node
    return Projection(
        node, tuple((new, column(old)) for new, old in zip(names, node.columns, strict=True))
    )


def origin(node: Node, name: str) -> tuple[Scan | Aggregate, str] | None:
    """The scan or aggregate that a column comes from unchanged, with its name there, or None."""
    match node:
        case Scan():
            return node, node.sources[node.columns.index(name)]
        case Aggregate():
            return node, name
        case Projection():
            value = dict(node.outputs)[name]
            return origin(node.child, value.name) if isinstance(value, exp.Column) else None
        case Filter() | Generate() | Window() | TopK():
            return origin(node.child, name) if name in node.child.columns else None
        case SemiJoin():
            return origin(node.left, name)
        case OuterJoin():
            return origin(node.left, name) if name in node.left.columns else None
        case InnerJoin():
            return next(
                (origin(each, name) for each in node.children if name in each.columns), None
            )
        case _:
            return None
