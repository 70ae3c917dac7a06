"""What does the text of a query say, in the algebra?

sqlglot parses Spark's SQL; what it finds is bound, and put in the order in which it acts. Here are
whole queries: CTEs, set operations, VALUES, and SELECT, whose clauses have a file each:

    FROM                     from_clause
    WHERE                    `Block.keep`
    GROUP BY, HAVING         group_by
    windows, QUALIFY         qualify
    SELECT, DISTINCT         here
    ORDER BY, LIMIT          order_by

Subqueries in expressions are bound where they stand and held under a placeholder (`block`); then
`subqueries` joins them to the rows. What can't be said in the algebra is `Refused`, with its line.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from springhouse.views.algebra import (
    Aggregate,
    Constant,
    Named,
    Node,
    Project,
    Scan,
    SetKind,
    SetOperation,
    TopK,
    UnionAll,
    column,
    conjuncts,
    renamed,
)
from springhouse.views.block import Block, Query
from springhouse.views.from_clause import bring_together, column_aliases, generated
from springhouse.views.functions import is_generator, prove_deterministic
from springhouse.views.group_by import gathered, on_nothing
from springhouse.views.order_by import is_limited, limited, ordering, unselected
from springhouse.views.qualify import qualified
from springhouse.views.refused import Refused
from springhouse.views.scope import Bound, Scope
from springhouse.views.subqueries import Subquery

Schemas = Mapping[str, Mapping[str, str]]
"""Of each input its columns, in order, with Spark's name for their types."""

_NO_EFFECT = {"sort", "distribute", "cluster", "hint"}
_UNDERSTOOD = _NO_EFFECT | {
    *("with_", "expressions", "from_", "joins", "laterals", "where", "group", "having"),
    *("windows", "qualify", "distinct", "order", "limit", "offset", "kind", "operation_modifiers"),
}


@dataclass(frozen=True)
class Parsed:
    """A query in the algebra, and what its columns are called outside."""

    root: Node
    names: tuple[str, ...]


def parse(text: str, inputs: Schemas) -> Parsed:
    """Read a query; `Refused` names what the algebra can't hold."""
    try:
        tree = sqlglot.parse_one(text, read="spark")
    except SqlglotError as error:
        raise Refused(f"the query is not understood: {str(error).splitlines()[0]}") from error
    prove_deterministic(tree)
    found = _Reader(inputs).query(tree, {}, None)
    if found.correlated:
        raise Refused("a column is not known", found.correlated[0])
    return Parsed(found.node, found.names)


class _Reader:
    """Reads one text. It knows all names that were given, so that no two columns share one."""

    def __init__(self, inputs: Schemas) -> None:
        self._inputs = {name.lower(): (name, schema) for name, schema in inputs.items()}
        self._taken: set[str] = set()

    def fresh(self, *wishes: str) -> str:
        """A column name that nobody has: the first wish that is free, or a numbered one."""
        for wish in wishes:
            if wish.lower() not in self._taken:
                self._taken.add(wish.lower())
                return wish
        number = 2
        while f"{wishes[-1]}_{number}".lower() in self._taken:
            number += 1
        return self.fresh(f"{wishes[-1]}_{number}")

    # Queries

    def query(self, tree: exp.Expr, ctes: Mapping[str, Query], outer: Scope | None) -> Query:
        """A query on its own, which may read the CTEs and reach out to the scope."""
        ctes = self._with(tree, ctes, outer)
        if isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Query):
            return self._ordered(self.query(tree.this, ctes, outer), tree)
        if isinstance(tree, exp.Select):
            return self._select(tree, ctes, outer)
        if isinstance(tree, exp.SetOperation):
            return self._ordered(self._set_operation(tree, ctes, outer), tree)
        if isinstance(tree, exp.Values):
            return self._values(tree)
        raise Refused(f"{type(tree).__name__.upper()} is not understood", tree)

    def table(self, tree: exp.Table, ctes: Mapping[str, Query]) -> Query:
        """A table of a query: a CTE, or an input of the view."""
        prefix = tree.alias or tree.name
        cte = ctes.get(tree.name.lower()) if not tree.db else None
        if cte is not None:
            columns = [self.fresh(each, f"{prefix}_{each}") for each in cte.names]
            return Query(renamed(cte.node, columns), cte.names)
        if tree.name.lower() not in self._inputs or tree.db:
            raise Refused(f"`{tree.sql(dialect='spark')}` is not one of the inputs", tree)
        name, schema = self._inputs[tree.name.lower()]
        columns = [self.fresh(each, f"{prefix}_{each}") for each in schema]
        return Query(Scan(name, tuple(columns), tuple(schema)), tuple(schema))

    def subquery(self, tree: exp.Expr, block: Block) -> Subquery:
        """A query inside an expression: it may reach out to the rows of the block."""
        if not isinstance(tree, exp.Select) or tree.args.get("distinct") or is_limited(tree):
            found = self.query(tree, block.ctes, block.scope)
            values = tuple(map(column, found.node.columns))
            single = isinstance(found.node, TopK) and found.node.limit <= 1
            return Subquery(found.node, values, found.correlated, at_most_one=single)
        ctes = self._with(tree, block.ctes, block.scope)
        inner, items = self._body(tree, ctes, block.scope)
        gathers_all = inner.keys == ()
        return Subquery(
            inner.node,
            tuple(value for _, value in items),
            tuple(inner.correlated),
            at_most_one=gathers_all,
            always_one=gathers_all and tree.args.get("having") is None,
            empty=tuple(on_nothing(inner, value) for _, value in items) if gathers_all else None,
        )

    def _with(
        self, tree: exp.Expr, ctes: Mapping[str, Query], outer: Scope | None
    ) -> Mapping[str, Query]:
        given = tree.args.get("with_")
        if given is None:
            return ctes
        if given.args.get("recursive"):
            raise Refused("WITH RECURSIVE can't be kept incrementally", given)
        known = dict(ctes)
        for cte in given.expressions:
            found = self.query(cte.this, known, outer)
            if found.correlated:
                raise Refused("a CTE reaches out of its query", cte)
            known[cte.alias.lower()] = Query(found.node, column_aliases(cte, found.names))
        return known

    def _set_operation(
        self, tree: exp.SetOperation, ctes: Mapping[str, Query], outer: Scope | None
    ) -> Query:
        if tree.args.get("by_name"):
            raise Refused("a set operation BY NAME is not understood", tree)
        left = self.query(tree.this, ctes, outer)
        right = self.query(tree.expression, ctes, outer)
        if left.correlated or right.correlated:
            raise Refused("a set operation reaches out of its subquery", tree)
        if len(left.names) != len(right.names):
            raise Refused("a set operation over different numbers of columns", tree)
        columns = [self.fresh(name) for name in left.names]
        first, second = renamed(left.node, columns), renamed(right.node, columns)
        node: Node
        if isinstance(tree, exp.Union):
            node = UnionAll((*_branches(first), *_branches(second)))
            node = node if tree.args.get("distinct") is False else _distinct(node)
        else:
            word = "INTERSECT" if isinstance(tree, exp.Intersect) else "EXCEPT"
            every = " ALL" if tree.args.get("distinct") is False else ""
            node = SetOperation(SetKind(word + every), first, second)
        return Query(node, left.names)

    def _values(self, tree: exp.Values) -> Query:
        rows = [
            tuple(each.expressions) if isinstance(each, exp.Tuple) else (each,)
            for each in tree.expressions
        ]
        names = column_aliases(tree, tuple(f"col{i + 1}" for i in range(len(rows[0]))))
        return Query(Constant(tuple(self.fresh(name) for name in names), tuple(rows)), names)

    def _ordered(self, query: Query, tree: exp.Expr) -> Query:
        """ORDER BY and LIMIT around a whole query; an order without a limit says nothing."""
        if not is_limited(tree):
            return query
        pairs = zip(query.names, query.node.columns, strict=True)
        block = Block(self, query.node, Scope([Bound("", tuple(pairs))]), {})
        outputs = list(zip(query.node.columns, map(column, query.node.columns), strict=True))
        order = ordering(block, tree, outputs, query.names)
        return Query(limited(block.node, order, tree), query.names, query.correlated)

    # SELECT

    def _select(self, tree: exp.Select, ctes: Mapping[str, Query], outer: Scope | None) -> Query:
        block, items = self._body(tree, ctes, outer)
        outputs = [(self.fresh(name), value) for name, value in items]
        names = tuple(name for name, _ in items)
        order = ordering(block, tree, outputs, names)
        extra = unselected(order, outputs, self.fresh)
        node: Node = Project(block.node, (*outputs, *extra))
        if tree.args.get("distinct") is not None:
            if tree.args["distinct"].args.get("on"):
                raise Refused("DISTINCT ON is not understood", tree)
            if extra:
                raise Refused("SELECT DISTINCT is ordered by what it does not select", tree)
            node = _distinct(node)
        if is_limited(tree):
            if block.correlated:
                raise Refused("LIMIT in a correlated subquery", tree)
            node = limited(node, order, tree)
        if extra:
            node = Project(node, tuple((name, column(name)) for name, _ in outputs))
        return Query(node, names, tuple(block.correlated))

    def _body(
        self, tree: exp.Select, ctes: Mapping[str, Query], outer: Scope | None
    ) -> tuple[Block, list[Named]]:
        """Everything up to the SELECT list, and the list itself, bound."""
        unknown = [key for key, value in tree.args.items() if value and key not in _UNDERSTOOD]
        if unknown:
            raise Refused(f"{unknown[0].strip('_').upper()} is not understood", tree)
        block = Block(self, Constant((), ((),)), Scope(outer=outer), ctes)
        bring_together(block, tree)
        block.windows = tree.args.get("windows") or ()
        if (where := tree.args.get("where")) is not None:
            block.keep(conjuncts(block.bind(where.this)))
        items = _items(block, tree)
        items = gathered(block, tree, items)
        items = qualified(block, tree, items)
        return block, [(name, block.attach(value)) for name, value in items]


def _items(block: Block, tree: exp.Select) -> list[Named]:
    """The SELECT list, bound to the rows of FROM."""
    items: list[Named] = []
    for each in tree.expressions:
        if isinstance(each, exp.Star):
            items += block.scope.star(each)
        elif isinstance(each, exp.Column) and isinstance(each.this, exp.Star):
            items += block.scope.star(each.this, each.table)
        elif is_generator(each.unalias()) or isinstance(each, exp.Aliases):
            items += generated(block, each)
        else:
            value = block.bind(each.unalias())
            name = each.alias or _plain_name(each)
            items.append((name, value))
            block.scope.given.setdefault(name.lower(), value)
    return items


def _plain_name(item: exp.Expr) -> str:
    """What Spark calls an item without an alias, as far as it is simple."""
    return (
        item.name if isinstance(item, exp.Column | exp.Dot) else item.sql(dialect="spark").lower()
    )


def _branches(node: Node) -> tuple[Node, ...]:
    return node.children if isinstance(node, UnionAll) else (node,)


def _distinct(node: Node) -> Node:
    return Aggregate(node, node.columns, ())
