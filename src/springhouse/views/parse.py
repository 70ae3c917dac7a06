"""What does the text of a query say, in the algebra?

sqlglot parses Spark's SQL; this module binds names, expands stars and CTEs, and puts the clauses of
a SELECT in the order in which they act:

    FROM, WHERE, GROUP BY, aggregates, HAVING, windows, QUALIFY, SELECT, DISTINCT, ORDER BY, LIMIT

Subqueries in expressions are bound where they stand and held under a placeholder; `subqueries` then
joins them to the rows. What can't be said in the algebra is `Refused`, with its line.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from springhouse.views import grouping_sets
from springhouse.views.algebra import (
    Aggregate,
    Constant,
    Expression,
    Generate,
    Named,
    Node,
    Partner,
    Project,
    Scan,
    SetKind,
    SetOperation,
    TopK,
    UnionAll,
    Window,
    column,
    conjuncts,
    filtered,
    free_columns,
    joined,
    met,
    outer_joined,
    renamed,
    replaced,
)
from springhouse.views.functions import is_aggregate, is_generator, prove_deterministic
from springhouse.views.refused import Refused
from springhouse.views.scope import Bound, Scope
from springhouse.views.subqueries import Held, Subquery, apply_condition, attached

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


@dataclass(frozen=True)
class _Query:
    """A query that was read: its rows, what its columns are called, what reaches outside."""

    node: Node
    names: tuple[str, ...]
    correlated: tuple[Expression, ...] = ()


@dataclass
class _Block:
    """A SELECT while it is being read: the rows so far, and what is still to be joined to them."""

    node: Node
    scope: Scope
    ctes: Mapping[str, _Query]
    held: dict[str, Held] = field(default_factory=dict)
    correlated: list[Expression] = field(default_factory=list)
    # After GROUP BY: what an expression over the ungrouped rows is now called.
    gathered: list[tuple[Expression, str]] = field(default_factory=list)
    keys: tuple[str, ...] | None = None
    # The windows that the WINDOW clause names.
    windows: Sequence[exp.Window] = ()


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

    def query(self, tree: exp.Expr, ctes: Mapping[str, _Query], outer: Scope | None) -> _Query:
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

    def _with(
        self, tree: exp.Expr, ctes: Mapping[str, _Query], outer: Scope | None
    ) -> Mapping[str, _Query]:
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
            known[cte.alias.lower()] = _Query(found.node, _aliases(cte, found.names))
        return known

    def _set_operation(
        self, tree: exp.SetOperation, ctes: Mapping[str, _Query], outer: Scope | None
    ) -> _Query:
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
        return _Query(node, left.names)

    def _values(self, tree: exp.Values) -> _Query:
        rows = [
            tuple(each.expressions) if isinstance(each, exp.Tuple) else (each,)
            for each in tree.expressions
        ]
        names = _aliases(tree, tuple(f"col{i + 1}" for i in range(len(rows[0]))))
        return _Query(Constant(tuple(self.fresh(name) for name in names), tuple(rows)), names)

    def _ordered(self, query: _Query, tree: exp.Expr) -> _Query:
        """ORDER BY and LIMIT around a whole query; an order without a limit says nothing."""
        if tree.args.get("limit") is None and tree.args.get("offset") is None:
            return query
        pairs = zip(query.names, query.node.columns, strict=True)
        block = _Block(query.node, Scope([Bound("", tuple(pairs))]), {})
        outputs = list(zip(query.node.columns, map(column, query.node.columns), strict=True))
        order = self._order(block, tree, outputs, query.names)
        return _Query(self._limited(block.node, order, tree), query.names, query.correlated)

    # SELECT

    def _select(self, tree: exp.Select, ctes: Mapping[str, _Query], outer: Scope | None) -> _Query:
        block, items = self._body(tree, ctes, outer)
        outputs = [(self.fresh(name), value) for name, value in items]
        names = tuple(name for name, _ in items)
        order = self._order(block, tree, outputs, names)
        extra = self._order_columns(order, outputs)
        node: Node = Project(block.node, (*outputs, *extra))
        if tree.args.get("distinct") is not None:
            if tree.args["distinct"].args.get("on"):
                raise Refused("DISTINCT ON is not understood", tree)
            if extra:
                raise Refused("SELECT DISTINCT is ordered by what it does not select", tree)
            node = _distinct(node)
        if tree.args.get("limit") is not None or tree.args.get("offset") is not None:
            if block.correlated:
                raise Refused("LIMIT in a correlated subquery", tree)
            node = self._limited(node, order, tree)
        if extra:
            node = Project(node, tuple((name, column(name)) for name, _ in outputs))
        return _Query(node, names, tuple(block.correlated))

    def _body(
        self, tree: exp.Select, ctes: Mapping[str, _Query], outer: Scope | None
    ) -> tuple[_Block, list[Named]]:
        """Everything up to the SELECT list, and the list itself, bound."""
        unknown = [key for key, value in tree.args.items() if value and key not in _UNDERSTOOD]
        if unknown:
            raise Refused(f"{unknown[0].strip('_').upper()} is not understood", tree)
        block = self._from(tree, _Block(Constant((), ((),)), Scope(outer=outer), ctes))
        block.windows = tree.args.get("windows") or ()
        if (where := tree.args.get("where")) is not None:
            self._filter(block, where.this)
        items = self._items(tree, block)
        having, group = tree.args.get("having"), tree.args.get("group")
        qualify = tree.args.get("qualify")
        later = [having.this] if having is not None else []
        later += [each.this for each in (tree.args.get("order") or exp.Order()).expressions]
        if group is not None or any(map(_gathers, [*(v for _, v in items), *later])):
            self._group(block, group, items, having)
            items = [(name, self._regathered(block, value)) for name, value in items]
        elif having is not None:
            raise Refused("HAVING without GROUP BY or an aggregate", having)
        bound_qualify = None
        if qualify is not None:
            given = {name.lower(): value for name, value in items}
            block.scope.given |= given
            bound_qualify = self._after_groups(block, qualify.this)
        extra = [bound_qualify] if bound_qualify is not None else []
        values = self._windows(block, [*(value for _, value in items), *extra])
        items = [(name, value) for (name, _), value in zip(items, values, strict=False)]
        if bound_qualify is not None:
            for condition in conjuncts(values[-1]):
                block.node = apply_condition(block.node, condition, block.held, block.correlated)
        items = [(name, self._joined_to(block, value)) for name, value in items]
        return block, items

    def _items(self, tree: exp.Select, block: _Block) -> list[Named]:
        items: list[Named] = []
        for each in tree.expressions:
            if isinstance(each, exp.Star):
                items += block.scope.star(each)
            elif isinstance(each, exp.Column) and isinstance(each.this, exp.Star):
                items += block.scope.star(each.this, each.table)
            elif is_generator(each.unalias()) or isinstance(each, exp.Aliases):
                items += self._generated(each, block)
            else:
                value = self.bind(each.unalias(), block)
                name = each.alias or _plain_name(each)
                items.append((name, value))
                block.scope.given.setdefault(name.lower(), value)
        return items

    def bind(self, expression: Expression, block: _Block) -> Expression:
        """The expression with every name resolved, and every subquery held under a placeholder."""

        def swap(each: Expression) -> Expression:
            if isinstance(each, exp.Column) and not isinstance(each.this, exp.Star):
                return block.scope.resolve(each)
            if isinstance(each, exp.Exists):
                return self._hold(block, "exists", each.this, each)
            if isinstance(each, exp.In) and each.args.get("query") is not None:
                return self._hold(block, "in", each.args["query"].unnest(), each, each.this)
            if isinstance(each, exp.Subquery):
                return self._hold(block, "scalar", each.unnest(), each)
            if isinstance(each, exp.Window) and each.args.get("alias"):
                return self.bind(_with_named_window(each, block.windows), block)
            if isinstance(each, exp.Lateral | exp.Placeholder | exp.Parameter):
                raise Refused(f"{type(each).__name__.upper()} is not understood", each)
            return each

        bound: Expression = expression.copy().transform(swap, copy=False)
        return bound

    def _hold(
        self,
        block: _Block,
        kind: str,
        tree: exp.Expr,
        at: exp.Expr,
        tested: Expression | None = None,
    ) -> Expression:
        name = f"subquery {len(block.held) + 1}"
        value = self.bind(tested, block) if tested is not None else None
        block.held[name] = Held(kind, self._subquery(tree, block), value, at, self.fresh)
        return column(name)

    def _subquery(self, tree: exp.Expr, block: _Block) -> Subquery:
        """A query inside an expression: it may reach out to the rows of this block."""
        ctes = self._with(tree, block.ctes, block.scope)
        plain = isinstance(tree, exp.Select) and not any(
            tree.args.get(key) for key in ("distinct", "limit", "offset")
        )
        if not plain:
            found = self.query(tree, block.ctes, block.scope)
            values = tuple(map(column, found.node.columns))
            single = isinstance(found.node, TopK) and found.node.limit <= 1
            return Subquery(found.node, values, found.correlated, at_most_one=single)
        assert isinstance(tree, exp.Select)
        inner, items = self._body(tree, ctes, block.scope)
        gathers_all = inner.keys == ()
        empty = tuple(self._on_nothing(inner, value) for _, value in items)
        return Subquery(
            inner.node,
            tuple(value for _, value in items),
            tuple(inner.correlated),
            at_most_one=gathers_all,
            always_one=gathers_all and tree.args.get("having") is None,
            empty=empty if gathers_all else None,
        )

    def _on_nothing(self, block: _Block, value: Expression) -> Expression:
        """What an item of the SELECT list is when its aggregates have gathered no row at all."""
        nothing: dict[str, Expression] = {}
        for gathered, name in block.gathered:
            counts = isinstance(gathered, exp.Count | exp.CountIf)
            nothing[name] = exp.Literal.number(0) if counts else exp.Null()
        return replaced(value, nothing)

    # FROM and WHERE

    def _from(self, tree: exp.Select, block: _Block) -> _Block:
        source = tree.args.get("from_")
        if source is None:
            return block
        block.node = self._relation(source.this, block)
        for join in tree.args.get("joins") or ():
            self._join(block, join)
        for lateral in tree.args.get("laterals") or ():
            self._lateral_view(block, lateral)
        return block

    def _relation(self, tree: exp.Expr, block: _Block) -> Node:
        """One thing in FROM: its rows; the scope learns its columns."""
        if tree.args.get("pivots"):
            raise Refused("PIVOT can't be kept incrementally", tree)
        if isinstance(tree, exp.Table) and not isinstance(tree.this, exp.Func):
            found = self._table(tree, block)
        elif isinstance(tree, exp.Subquery | exp.Values):
            outer = block.scope.outer
            found = self.query(tree, block.ctes, outer)
        else:
            raise Refused(f"`{tree.sql(dialect='spark')}` in FROM is not understood", tree)
        block.correlated += found.correlated
        names = _aliases(tree, found.names)
        alias = tree.alias or (tree.name if isinstance(tree, exp.Table) else "")
        pairs = tuple(zip(names, found.node.columns, strict=True))
        block.scope.relations.append(Bound(alias, pairs))
        for join in tree.args.get("joins") or ():
            raise Refused("a join in parentheses is not understood", join)
        return found.node

    def _table(self, tree: exp.Table, block: _Block) -> _Query:
        cte = block.ctes.get(tree.name.lower()) if not tree.db else None
        if cte is not None:
            prefix = tree.alias or tree.name
            columns = [self.fresh(n, f"{prefix}_{n}") for n in cte.names]
            return _Query(renamed(cte.node, columns), cte.names)
        if tree.name.lower() not in self._inputs or tree.db:
            raise Refused(f"`{tree.sql(dialect='spark')}` is not one of the inputs", tree)
        name, schema = self._inputs[tree.name.lower()]
        prefix = tree.alias or tree.name
        columns = [self.fresh(each, f"{prefix}_{each}") for each in schema]
        return _Query(Scan(name, tuple(columns), tuple(schema)), tuple(schema))

    def _join(self, block: _Block, join: exp.Join) -> None:
        if isinstance(join.this, exp.Lateral):
            if isinstance(join.this.this, exp.Subquery):
                raise Refused("a LATERAL subquery can't be kept incrementally", join)
            self._lateral_view(block, join.this)
            return
        side, kind = join.side.upper(), join.kind.upper()
        left = block.node
        seen = len(block.scope.relations)
        right = self._relation(join.this, block)
        conditions = self._using(block, join, seen, side)
        if (on := join.args.get("on")) is not None:
            conditions += conjuncts(self.bind(on, block))
        if kind in ("SEMI", "ANTI"):
            del block.scope.relations[seen:]
            mark = self.fresh("found")
            partner = Partner(right, tuple(conditions), mark)
            block.node = met(left, [partner], column(mark), anti=kind == "ANTI")
        elif side:
            if block.held and any(free_columns(c) & block.held.keys() for c in conditions):
                raise Refused("a subquery in the ON of an outer join", join)
            block.node = _outer_join(side, left, right, conditions, self.fresh)
        else:
            block.node = joined([left, right], ())
            self._keep(block, conditions)

    def _using(self, block: _Block, join: exp.Join, seen: int, side: str) -> list[Expression]:
        """The equalities of USING and NATURAL; their columns become one."""
        right = block.scope.relations[seen:]
        names = [each.name for each in join.args.get("using") or ()]
        if join.method.upper() == "NATURAL":
            before = {n.lower() for r in block.scope.relations[:seen] for n, _ in r.columns}
            names = [n for r in right for n, _ in r.columns if n.lower() in before]
        conditions: list[Expression] = []
        for name in names:
            first = Scope(block.scope.relations[:seen], merged=block.scope.merged)
            mine, other = first.resolve(exp.column(name)), Scope(right).resolve(exp.column(name))
            conditions.append(exp.EQ(this=mine.copy(), expression=other.copy()))
            if join.kind.upper() in ("SEMI", "ANTI"):
                continue
            value = other if side == "RIGHT" else mine
            if side == "FULL":
                value = exp.Coalesce(this=mine.copy(), expressions=[other.copy()])
            block.scope.merged[name.lower()] = value
        return conditions

    def _lateral_view(self, block: _Block, lateral: exp.Lateral) -> None:
        alias = lateral.args.get("alias")
        names = [each.name for each in alias.args.get("columns") or ()] if alias else []
        generator = self.bind(lateral.this, block)
        names = names or _generated_names(generator)
        made = tuple(self.fresh(name) for name in names)
        outer = bool(lateral.args.get("outer"))
        block.node = Generate(block.node, generator, made, outer)
        pairs = tuple(zip(names, made, strict=True))
        block.scope.relations.append(Bound(alias.name if alias else "", pairs))

    def _generated(self, item: exp.Expr, block: _Block) -> list[Named]:
        """A generator in the SELECT list: one row for each row that it makes."""
        generator = self.bind(
            item.unalias() if not isinstance(item, exp.Aliases) else item.this, block
        )
        given = [each.name for each in item.expressions] if isinstance(item, exp.Aliases) else []
        names = given or ([item.alias] if item.alias else _generated_names(generator))
        made = tuple(self.fresh(name) for name in names)
        # Spark wants at most one generator in a SELECT list, so the order can't matter.
        block.node = Generate(block.node, generator, made, False)
        return [(name, column(unique)) for name, unique in zip(names, made, strict=True)]

    def _filter(self, block: _Block, condition: Expression) -> None:
        self._keep(block, list(conjuncts(self.bind(condition, block))))

    def _keep(self, block: _Block, conditions: Sequence[Expression]) -> None:
        """Keep the rows that meet the conditions: first those without subqueries."""
        plain = [c for c in conditions if not free_columns(c) & block.held.keys()]
        own = [c for c in plain if free_columns(c) <= set(block.node.columns)]
        block.correlated += [c for c in plain if not free_columns(c) <= set(block.node.columns)]
        block.node = filtered(block.node, own)
        for condition in conditions:
            if free_columns(condition) & block.held.keys():
                block.node = apply_condition(block.node, condition, block.held, block.correlated)

    # GROUP BY, HAVING, windows

    def _group(
        self,
        block: _Block,
        group: exp.Group | None,
        items: Sequence[Named],
        having: exp.Having | None,
    ) -> None:
        """Gather the rows: afterwards the block has one row per group."""
        block.scope.given.clear()
        sets = grouping_sets.read(group, lambda e: self._key(e, block, items), items, _gathers)
        keys = self._as_columns(block, sets.keys)
        level = None
        if sets.is_plain:
            block.gathered += list(zip(sets.keys, keys, strict=True))
        else:
            block.node, made, level = grouping_sets.expanded(block.node, sets, keys, self.fresh)
            block.gathered += list(zip(sets.keys, made, strict=True))
            keys = [*made, level]
        # What a correlated subquery compares with the outer rows has to outlive the grouping.
        block.correlated, reaching = _split_correlation(block)
        block.keys = tuple(keys)
        keys = [*keys, *self._as_columns(block, [inner for inner, _ in reaching])]
        added = list(dict.fromkeys(keys))
        for (_, rest), name in zip(reaching, keys[len(keys) - len(reaching) :], strict=True):
            block.correlated.append(exp.EQ(this=column(name), expression=rest))
        measures: list[Named] = []
        wanted = [value for _, value in items]
        if having is not None:
            wanted.append(self.bind(having.this, block))
        for value in wanted:
            self._collect(block, value, sets, level, measures)
        block.node = Aggregate(block.node, tuple(added), tuple(measures))
        if having is not None:
            for condition in conjuncts(self._regathered(block, wanted[-1])):
                block.node = apply_condition(block.node, condition, block.held, block.correlated)

    def _collect(
        self,
        block: _Block,
        value: Expression,
        sets: grouping_sets.Sets,
        level: str | None,
        measures: list[Named],
    ) -> None:
        """Find the aggregates in an expression, and give each a column."""
        for each in _aggregates(value):
            if any(each == known for known, _ in block.gathered):
                continue
            if isinstance(each, exp.Grouping | exp.GroupingId):
                continue
            if free_columns(each) - set(block.node.columns):
                raise Refused("an aggregate of a subquery over columns of the query around it")
            name = self.fresh(_measure_name(each))
            measures.append((name, each))
            block.gathered.append((each, name))
        for each in value.find_all(exp.Grouping, exp.GroupingId):
            if level is None:
                raise Refused("`grouping` without GROUPING SETS, ROLLUP or CUBE", each)
            block.gathered.append((each, grouping_sets.level_text(each, sets, level)))

    def _key(self, key: Expression, block: _Block, items: Sequence[Named]) -> Expression:
        """A key of GROUP BY: a place in the SELECT list, an alias of it, or an expression."""
        if isinstance(key, exp.Literal) and not key.is_string:
            return items[int(key.name) - 1][1]
        if isinstance(key, exp.Column) and not key.table:
            try:
                return self.bind(key, block)
            except Refused:
                named = [value for name, value in items if name.lower() == key.name.lower()]
                if named:
                    return named[0]
                raise
        return self.bind(key, block)

    def _as_columns(self, block: _Block, values: Sequence[Expression]) -> list[str]:
        """The values as columns of the block's rows, computed where they are not."""
        names: list[str] = []
        made: list[Named] = []
        for value in values:
            value = value.unnest()
            known = [name for name, other in made if other == value]
            if isinstance(value, exp.Column) and value.name in block.node.columns:
                names.append(value.name)
            elif known:
                names.append(known[0])
            else:
                names.append(self.fresh(_measure_name(value)))
                made.append((names[-1], value))
        if made:
            values = [value for _, value in made]
            if any(free_columns(v) & block.held.keys() for v in values):
                raise Refused("a subquery in GROUP BY or PARTITION BY")
            old = tuple((name, column(name)) for name in block.node.columns)
            block.node = Project(block.node, (*old, *made))
        return names

    def _regathered(self, block: _Block, value: Expression) -> Expression:
        """An expression over the ungrouped rows, as one over the groups."""
        known = block.gathered

        def swap(each: Expression) -> Expression:
            for gathered, name in known:
                if each == gathered:
                    return column(name) if " " not in name else grouping_sets.as_value(name)
            return each

        return value.copy().transform(swap, copy=False)

    def _after_groups(self, block: _Block, value: Expression) -> Expression:
        bound = self.bind(value, block)
        return self._regathered(block, bound) if block.keys is not None else bound

    def _windows(self, block: _Block, values: Sequence[Expression]) -> list[Expression]:
        """The values with every window function in a column of its own."""
        found = [w for value in values for w in value.find_all(exp.Window)]
        if not found:
            return list(values)
        columns: list[tuple[Expression, str]] = []
        by_partition: dict[tuple[str, ...], list[Named]] = {}
        for each in found:
            if any(each == known for known, _ in columns):
                continue
            partition = self._as_columns(block, each.args.get("partition_by") or [])
            spread = each.copy()
            spread.set("partition_by", [column(name) for name in partition])
            name = self.fresh(_measure_name(each.this))
            by_partition.setdefault(tuple(dict.fromkeys(partition)), []).append((name, spread))
            columns.append((each.copy(), name))
        for keys, functions in by_partition.items():
            needed = frozenset().union(*(free_columns(f) for _, f in functions))
            if needed & block.held.keys():
                raise Refused("a subquery in a window function")
            block.node = Window(block.node, keys, tuple(functions))

        def swap(each: Expression) -> Expression:
            return next((column(name) for known, name in columns if each == known), each)

        return [value.copy().transform(swap, copy=False) for value in values]

    def _joined_to(self, block: _Block, value: Expression) -> Expression:
        """A value of the SELECT list with its scalar subqueries joined to the rows."""
        block.node, value = attached(block.node, value, block.held, block.correlated)
        return value

    # ORDER BY, LIMIT

    def _order(
        self,
        block: _Block,
        tree: exp.Expr,
        outputs: Sequence[Named],
        names: Sequence[str],
    ) -> list[exp.Ordered]:
        """The order, over the names of the outputs where it names them; only a limit needs it."""
        order = tree.args.get("order")
        if order is None or (tree.args.get("limit") is None and tree.args.get("offset") is None):
            return []
        shown = {name.lower(): unique for name, (unique, _) in zip(names, outputs, strict=True)}
        found = []
        for each in order.expressions:
            value = each.this
            if isinstance(value, exp.Literal) and not value.is_string:
                bound: Expression = column(outputs[int(value.name) - 1][0])
            elif isinstance(value, exp.Column) and not value.table and value.name.lower() in shown:
                bound = column(shown[value.name.lower()])
            else:
                block.scope.given = {}
                bound = self._after_groups(block, value)
                if free_columns(bound) & block.held.keys() or bound.find(exp.Window):
                    raise Refused("ORDER BY a subquery or a window function", each)
                bound = next((column(n) for n, v in outputs if v == bound), bound)
            copy = each.copy()
            copy.set("this", bound)
            found.append(copy)
        return found

    def _order_columns(self, order: list[exp.Ordered], outputs: Sequence[Named]) -> list[Named]:
        """What the rows are ordered by and not selected, as columns of their own."""
        selected = {name for name, _ in outputs}
        extra: list[Named] = []
        for each in order:
            value = each.this
            if isinstance(value, exp.Column) and value.name in selected:
                continue
            name = self.fresh("order_key")
            extra.append((name, value.copy()))
            each.set("this", column(name))
        return extra

    def _limited(self, node: Node, order: list[exp.Ordered], tree: exp.Expr) -> Node:
        limit, offset = tree.args.get("limit"), tree.args.get("offset")
        if limit is None:
            raise Refused("OFFSET without LIMIT", tree)
        if not order:
            raise Refused("LIMIT without ORDER BY gives other rows each time", tree)
        counts = [_count(limit), _count(offset) if offset is not None else 0]
        return TopK(node, tuple(order), *counts)


# Pieces of trees


def _aliases(tree: exp.Expr, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the columns after `AS t(a, b)`, if it gives any."""
    alias = tree.args.get("alias")
    given = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    if not given:
        return names
    if len(given) != len(names):
        raise Refused("an alias names another number of columns than there are", tree)
    return tuple(each.name for each in given)


def _branches(node: Node) -> tuple[Node, ...]:
    return node.children if isinstance(node, UnionAll) else (node,)


def _distinct(node: Node) -> Node:
    return Aggregate(node, node.columns, ())


def _outer_join(
    side: str,
    left: Node,
    right: Node,
    conditions: Sequence[Expression],
    fresh: Callable[[str], str],
) -> Node:
    """Outer joins in one good form: a condition on the side that is not kept moves there."""
    if side == "RIGHT":
        swapped = _outer_join("LEFT", right, left, conditions, fresh)
        names = (*left.columns, *right.columns)
        return Project(swapped, tuple((name, column(name)) for name in names))
    if side == "FULL":
        whole = outer_joined(left, right, conditions)
        mark = fresh("found")
        alone = met(right, [Partner(left, tuple(conditions), mark)], column(mark), anti=True)
        nulls = tuple((name, exp.Null()) for name in left.columns)
        own = tuple((name, column(name)) for name in right.columns)
        return UnionAll((whole, Project(alone, (*nulls, *own))))
    inside = [c for c in conditions if free_columns(c) and free_columns(c) <= set(right.columns)]
    across = tuple(c for c in conditions if not any(c is each for each in inside))
    return outer_joined(left, filtered(right, inside), across)


def _aggregates(value: Expression) -> list[Expression]:
    """The outermost aggregates in an expression that no window takes as its own."""
    found: list[Expression] = []

    def visit(each: Expression) -> None:
        if isinstance(each, exp.Window):
            # `sum(sum(x)) OVER (…)`: the inner one gathers, the outer one is the window's.
            for part in (each.this, each.args.get("order"), *(each.args.get("partition_by") or ())):
                for inner in part.iter_expressions() if part is each.this else [part]:
                    if inner is not None:
                        visit(inner)
            return
        if is_aggregate(each):
            found.append(each)
            return
        for inner in each.iter_expressions():
            visit(inner)

    visit(value)
    return found


def _gathers(value: Expression) -> bool:
    return bool(_aggregates(value))


def _split_correlation(
    block: _Block,
) -> tuple[list[Expression], list[tuple[Expression, Expression]]]:
    """Correlated equalities as (value of these rows, value of the outer rows)."""
    own = set(block.node.columns)
    pairs: list[tuple[Expression, Expression]] = []
    for condition in block.correlated:
        sides = (condition.this, condition.expression) if isinstance(condition, exp.EQ) else ()
        inner = [s for s in sides if free_columns(s) and free_columns(s) <= own]
        outer = [s for s in sides if not free_columns(s) & own]
        if len(inner) != 1 or len(outer) != 1:
            raise Refused(
                "a subquery that aggregates is tied to the query around it by something other "
                "than an equality",
                condition,
            )
        pairs.append((inner[0], outer[0]))
    return [], pairs


def _with_named_window(window: exp.Window, declared: Sequence[exp.Window]) -> exp.Window:
    """`OVER w` with what the WINDOW clause says about `w` put in."""
    name = window.args["alias"].name.lower()
    for given in declared:
        if given.this.name.lower() == name:
            whole = window.copy()
            whole.set("alias", None)
            for key in ("partition_by", "order", "spec"):
                if not whole.args.get(key) and given.args.get(key):
                    value = given.args[key]
                    copies = [v.copy() for v in value] if isinstance(value, list) else value.copy()
                    whole.set(key, copies)
            return whole
    raise Refused(f"the window `{name}` is not declared", window)


def _plain_name(item: exp.Expr) -> str:
    """What Spark calls an item without an alias, as far as it is simple."""
    return (
        item.name if isinstance(item, exp.Column | exp.Dot) else item.sql(dialect="spark").lower()
    )


def _measure_name(value: Expression) -> str:
    """A short name for a computed column: `sum_amount`, `count`, `year_placed_at`."""
    words = [value.sql_name().lower() if isinstance(value, exp.Func) else "value"]
    if isinstance(value, exp.Anonymous):
        words = [value.name.lower()]
    if is_aggregate(value) and not isinstance(value, exp.Func):
        return _measure_name(value.this)
    words += [each.name.lower() for each in value.find_all(exp.Column)][:1]
    return "_".join("".join(c if c.isalnum() else "_" for c in word) for word in words)


def _generated_names(generator: Expression) -> list[str]:
    if isinstance(generator, exp.Posexplode):
        return ["pos", "col"]
    if isinstance(generator, exp.Explode):
        return ["col"]
    raise Refused("a generator without names for its columns", generator)


def _count(clause: exp.Expr) -> int:
    value = clause.expression
    if isinstance(value, exp.Literal) and not value.is_string:
        return int(value.name)
    raise Refused("LIMIT and OFFSET have to be numbers", clause)
