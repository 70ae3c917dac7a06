"""What does the text of a query say, in the algebra?

sqlglot parses Spark's SQL. The reader binds the clauses and puts them in the order in which they
act. This file reads whole queries: CTEs, set operations, VALUES and SELECT. The clauses of a SELECT
have a file each:

    FROM                     from_clause
    WHERE                    `SelectBlock.keep`
    GROUP BY, HAVING         group_by
    windows, QUALIFY         qualify
    SELECT, DISTINCT         this file
    ORDER BY, LIMIT          order_by

The reader binds a subquery where it stands and holds it under a placeholder (`block`); then
`subqueries` joins it to the rows. A construct that the algebra can't express raises
`NotCompilable`, with its line. At the end `well_formed` checks the tree, and refuses everything
that the clauses overlook.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from springhouse.views.algebra.query_tree import (
    Aggregate,
    Constant,
    Node,
    Projection,
    Scan,
    SetKind,
    SetOperation,
    TopK,
    UnionAll,
    rename_columns,
)
from springhouse.views.read.block import Query, SelectBlock, SelectClauses
from springhouse.views.read.from_clause import bring_together, column_aliases, generated
from springhouse.views.read.functions import is_generator, validate_deterministic, validate_plain
from springhouse.views.read.group_by import (
    bind_having,
    gathered,
    is_met_by_nothing,
    on_nothing,
    read_keys,
    validate_ungrouped,
)
from springhouse.views.read.not_compilable import NotCompilable
from springhouse.views.read.order_by import bind_order, is_limited, limited, ordered_outputs
from springhouse.views.read.qualify import bind_qualify, qualified
from springhouse.views.read.scope import Bound, Scope
from springhouse.views.read.subqueries import Subquery
from springhouse.views.read.well_formed import validate_well_formed
from springhouse.views.sql.expressions import Expression, Named, column, conjuncts, free_columns

Schemas = Mapping[str, Mapping[str, str]]
"""The columns of each input, in order, with Spark's names for their types."""

_NO_EFFECT = {"sort", "distribute", "cluster", "hint"}
_UNDERSTOOD = _NO_EFFECT | {
    *("with_", "expressions", "from_", "joins", "laterals", "where", "group", "having"),
    *("windows", "qualify", "distinct", "order", "limit", "offset", "kind", "operation_modifiers"),
}


@dataclass(frozen=True)
class ParsedQuery:
    """A query in the algebra, and the names of its columns outside."""

    root: Node
    names: tuple[str, ...]


def parse(text: str, inputs: Schemas) -> ParsedQuery:
    """Read a query; `NotCompilable` names a construct that the algebra can't express."""
    try:
        tree = sqlglot.parse_one(text, read="spark")
    except SqlglotError as error:
        raise NotCompilable(f"the query is not understood: {str(error).splitlines()[0]}") from error
    validate_deterministic(tree)
    found = _QueryReader(inputs).query(tree, {}, None)
    if found.correlated:
        raise NotCompilable("a column is not known", found.correlated[0])
    validate_well_formed(found.node)
    return ParsedQuery(found.node, found.names)


class _QueryReader:
    """Reads one text. It knows all names in use, so that no two columns share one."""

    def __init__(self, inputs: Schemas) -> None:
        self._inputs = {name.lower(): (name, schema) for name, schema in inputs.items()}
        self._taken: set[str] = set()

    def fresh(self, *wishes: str) -> str:
        """An unused column name: the first wish that is free, or a numbered one."""
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
        """A separate query, which may read the CTEs and use columns of the outer scope."""
        ctes = self._with(tree, ctes, outer)
        if isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Query):
            return self._ordered(self.query(tree.this, ctes, outer), tree)
        if isinstance(tree, exp.Select):
            return self._select(tree, ctes, outer)
        if isinstance(tree, exp.SetOperation):
            return self._ordered(self._set_operation(tree, ctes, outer), tree)
        if isinstance(tree, exp.Values):
            return self._values(tree)
        raise NotCompilable(f"{type(tree).__name__.upper()} is not understood", tree)

    def table(self, tree: exp.Table, ctes: Mapping[str, Query]) -> Query:
        """A table of a query: a CTE, or an input of the view."""
        prefix = tree.alias or tree.name
        cte = ctes.get(tree.name.lower()) if not tree.db else None
        if cte is not None:
            columns = [self.fresh(each, f"{prefix}_{each}") for each in cte.names]
            return Query(rename_columns(cte.node, columns), cte.names)
        if tree.name.lower() not in self._inputs or tree.db:
            raise NotCompilable(f"`{tree.sql(dialect='spark')}` is not one of the inputs", tree)
        name, schema = self._inputs[tree.name.lower()]
        columns = [self.fresh(each, f"{prefix}_{each}") for each in schema]
        return Query(Scan(name, tuple(columns), tuple(schema)), tuple(schema))

    def subquery(self, tree: exp.Expr, block: SelectBlock) -> Subquery:
        """A query inside an expression, which may use columns of the block."""
        if not isinstance(tree, exp.Select) or tree.args.get("distinct") or is_limited(tree):
            found = self.query(tree, block.ctes, block.scope)
            if found.correlated:
                raise NotCompilable("DISTINCT in a correlated subquery", tree)
            columns = tuple(map(column, found.node.columns))
            return Subquery(found.node, columns, (), at_most_one=_is_one_row(found.node))
        ctes = self._with(tree, block.ctes, block.scope)
        inner, asked = self._body(tree, ctes, block.scope)
        values = tuple(inner.attach(value) for _, value in asked.items)
        correlated = tuple(inner.correlated)
        if inner.keys != ():
            return Subquery(inner.node, values, correlated)
        # Without keys, all rows are one group, which exists even without rows. A correlated
        # subquery has one group per value of the outer row instead, and no group without rows.
        always = asked.having is None and asked.qualify is None
        if inner.tied and asked.having is not None and is_met_by_nothing(inner, asked.having):
            raise NotCompilable(
                "HAVING in a correlated subquery, which may leave a row of no rows", tree
            )
        empty = _values_of_nothing(inner, values, tree) if inner.tied and always else None
        return Subquery(inner.node, values, correlated, True, always, empty)

    def _with(
        self, tree: exp.Expr, ctes: Mapping[str, Query], outer: Scope | None
    ) -> Mapping[str, Query]:
        given = tree.args.get("with_")
        if given is None:
            return ctes
        if given.args.get("recursive"):
            raise NotCompilable("WITH RECURSIVE can't be kept incrementally", given)
        known = dict(ctes)
        for cte in given.expressions:
            found = self.query(cte.this, known, outer)
            if found.correlated:
                raise NotCompilable("a CTE reaches out of its query", cte)
            known[cte.alias.lower()] = Query(found.node, column_aliases(cte, found.names))
        return known

    def _set_operation(
        self, tree: exp.SetOperation, ctes: Mapping[str, Query], outer: Scope | None
    ) -> Query:
        if tree.args.get("by_name"):
            raise NotCompilable("a set operation BY NAME is not understood", tree)
        left = self.query(tree.this, ctes, outer)
        right = self.query(tree.expression, ctes, outer)
        if left.correlated or right.correlated:
            raise NotCompilable("a set operation reaches out of its subquery", tree)
        if len(left.names) != len(right.names):
            raise NotCompilable("a set operation over different numbers of columns", tree)
        columns = [self.fresh(name) for name in left.names]
        first, second = rename_columns(left.node, columns), rename_columns(right.node, columns)
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
        if any(len(row) != len(rows[0]) for row in rows):
            raise NotCompilable("rows of VALUES have different numbers of columns", tree)
        for value in (value for row in rows for value in row):
            validate_plain(value, "VALUES", tree)
            if value.find(exp.Column, exp.Query) is not None:
                raise NotCompilable("VALUES holds more than constants", value)
        names = column_aliases(tree, tuple(f"col{i + 1}" for i in range(len(rows[0]))))
        return Query(Constant(tuple(self.fresh(name) for name in names), tuple(rows)), names)

    def _ordered(self, query: Query, tree: exp.Expr) -> Query:
        """ORDER BY and LIMIT around a whole query; an order without a limit has no effect."""
        if not is_limited(tree):
            return query
        if query.correlated:
            raise NotCompilable("LIMIT in a correlated subquery", tree)
        pairs = tuple(zip(query.names, query.node.columns, strict=True))
        block = SelectBlock(self, query.node, Scope([Bound("", pairs)]), {})
        order = bind_order(block, tree, [(name, column(unique)) for name, unique in pairs])
        for each in order:
            validate_plain(each, "ORDER BY of a whole query", tree)
        block.validate_own(order, "ORDER BY of a whole query", tree)
        return Query(limited(query.node, order, tree), query.names)

    # SELECT

    def _select(self, tree: exp.Select, ctes: Mapping[str, Query], outer: Scope | None) -> Query:
        block, asked = self._body(tree, ctes, outer)
        names = tuple(name for name, _ in asked.items)
        outputs = [(self.fresh(name), value) for name, value in asked.items]
        order, extra = ordered_outputs(asked.order, outputs, self.fresh)
        shown = [(name, block.attach(value)) for name, value in (*outputs, *extra)]
        block.validate_own([value for _, value in shown], "the SELECT list", tree)
        node: Node = Projection(block.node, tuple(shown))
        if tree.args.get("distinct") is not None:
            if tree.args["distinct"].args.get("on"):
                raise NotCompilable("DISTINCT ON is not understood", tree)
            if extra:
                raise NotCompilable("SELECT DISTINCT is ordered by what it does not select", tree)
            node = _distinct(node)
        if is_limited(tree):
            if block.correlated:
                raise NotCompilable("LIMIT in a correlated subquery", tree)
            node = limited(node, order, tree)
        if extra:
            node = Projection(node, tuple((name, column(name)) for name, _ in outputs))
        return Query(node, names, tuple(block.correlated))

    def _body(
        self, tree: exp.Select, ctes: Mapping[str, Query], outer: Scope | None
    ) -> tuple[SelectBlock, SelectClauses]:
        """The rows of a SELECT and its later clauses; the order only if there is a limit."""
        unknown = [key for key, value in tree.args.items() if value and key not in _UNDERSTOOD]
        if unknown:
            raise NotCompilable(f"{unknown[0].strip('_').upper()} is not understood", tree)
        block = SelectBlock(self, Constant((), ((),)), Scope(outer=outer), ctes)
        bring_together(block, tree)
        block.windows = tree.args.get("windows") or ()
        if (where := tree.args.get("where")) is not None:
            condition = block.bind(where.this)
            validate_plain(condition, "WHERE", where)
            block.keep(conjuncts(condition))
        items = _items(block, tree)
        keys = read_keys(block, tree, items)
        having, qualify = bind_having(block, tree, items), bind_qualify(block, tree)
        asked = SelectClauses(tuple(items), having, qualify, bind_order(block, tree, items))
        gathers = keys is not None or any(value.find(exp.Window) for value in asked.values)
        if gathers and any(map(_generates, tree.expressions)):
            raise NotCompilable(
                "a generator in a SELECT list with aggregates or window functions", tree
            )
        if keys is None:
            validate_ungrouped(asked)
        else:
            asked = gathered(block, keys, asked)
        return block, qualified(block, asked)


def _items(block: SelectBlock, tree: exp.Select) -> list[Named]:
    """The SELECT list, bound to the rows of FROM."""
    if sum(map(_generates, tree.expressions)) > 1:
        raise NotCompilable("two generators in one SELECT list", tree)
    items: list[Named] = []
    for each in tree.expressions:
        if isinstance(each, exp.Star):
            items += block.scope.star(each)
        elif isinstance(each, exp.Column) and isinstance(each.this, exp.Star):
            items += block.scope.star(each.this, each.table)
        elif _generates(each):
            items += generated(block, each)
        else:
            value = block.bind(each.unalias())
            name = each.alias or _plain_name(each)
            items.append((name, value))
            block.scope.given.setdefault(name.lower(), value)
    return items


def _generates(item: exp.Expr) -> bool:
    return is_generator(item.unalias()) or isinstance(item, exp.Aliases)


def _plain_name(item: exp.Expr) -> str:
    """Spark's name for an item without an alias, in the simple cases."""
    return (
        item.name if isinstance(item, exp.Column | exp.Dot) else item.sql(dialect="spark").lower()
    )


def _values_of_nothing(
    inner: SelectBlock, values: Sequence[Expression], tree: exp.Expr
) -> tuple[Expression, ...]:
    """The values of an aggregate subquery that finds no rows."""
    empty = tuple(on_nothing(inner, value) for value in values)
    if any(free_columns(value) & set(inner.node.columns) for value in empty):
        raise NotCompilable("a subquery beside an aggregate of a correlated subquery", tree)
    return empty


def _is_one_row(node: Node) -> bool:
    """Whether a limit leaves at most one row."""
    while isinstance(node, Projection):
        node = node.child
    return isinstance(node, TopK) and node.limit <= 1


def _branches(node: Node) -> tuple[Node, ...]:
    return node.children if isinstance(node, UnionAll) else (node,)


def _distinct(node: Node) -> Node:
    return Aggregate(node, node.columns, ())
