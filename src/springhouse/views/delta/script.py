"""How is one statement written?

A rule takes a node and writes a `RowSelect`. A `Script` is the `Writer` from which the rule
requests the selects of its children. The script knows which inputs change, finds the rule for each
child, remembers earlier answers, and collects the WITH clause and the relations that the statement
reads.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace

from sqlglot import exp

from springhouse.views.algebra.query_tree import (
    Aggregate,
    Constant,
    Filter,
    Generate,
    InnerJoin,
    Node,
    OuterJoin,
    Projection,
    Scan,
    SemiJoin,
    SetKind,
    SetOperation,
    TopK,
    UnionAll,
    Window,
    children,
    inputs,
)
from springhouse.views.delta import (
    filter,  # noqa: A004  the operator's name
    inner_join,
    outer_join,
    semi_join,
    set_operation,
    top_k,
    union_all,
    window,
)
from springhouse.views.delta.row_select import WEIGHT, Near, RowSelect, Side, Touched, restricted
from springhouse.views.delta.statement import RelationKind, RelationRead, Statement
from springhouse.views.sql.expressions import Expression, column, identifier, replaced
from springhouse.views.sql.sql_tree import FromClause, named, select, subquery, table, union_of


class Script:
    """One statement while it is being written: its WITH clause, and the relations that it reads."""

    def __init__(self, hidden: Mapping[Aggregate, str], changed: frozenset[str]) -> None:
        self._hidden = hidden
        self._changed = changed
        self._reads: dict[str, RelationRead] = {}
        self._columns: dict[str, frozenset[str]] = {}
        self._names: dict[Hashable, str] = {}
        self._defined: dict[str, Expression] = {}
        self._aliases: dict[Node, str] = {}
        self._taken: set[str] = set()
        # Rules repeat the same requests many times.
        self._changes: dict[Hashable, list[RowSelect]] = {}
        self._snapshots: dict[Hashable, RowSelect] = {}

    # The parts of a statement

    def statement(self, body: Expression) -> Statement:
        """The statement that ends with this query."""
        query = body
        if self._defined:
            tables = [
                exp.CTE(this=each, alias=exp.TableAlias(this=identifier(name)))
                for name, each in self._defined.items()
            ]
            # A new root, because the body may also be a part of another statement.
            query = type(body)(**body.args, with_=exp.With(expressions=tables))
        return Statement(query, tuple(self._reads.values()), dict(self._columns))

    def define(self, name: str, query: Expression) -> str:
        for known, other in self._defined.items():
            if other == query:
                return known
        name = unused(name, self._taken)
        self._defined[name] = query
        return name

    def read(
        self,
        kind: RelationKind,
        of: str,
        word: str,
        columns: Iterable[str],
        near: tuple[Near, ...] = (),
        where: tuple[Expression, ...] = (),
    ) -> str:
        """The name of a relation in the statement, after adding these columns to those it needs."""
        near = tuple(sorted(set(near), key=lambda n: (n.column, n.among)))
        wanted = (kind, of, near, where)
        if wanted not in self._names:
            name = self._names[wanted] = unused(word, self._taken)
            self._reads[name] = RelationRead(name, *wanted)
            self._columns[name] = frozenset()
        name = self._names[wanted]
        self._columns[name] = self._columns[name].union(columns)
        return name

    def alias(self, node: Node) -> str:
        if node not in self._aliases:
            self._aliases[node] = unused(_word(node, self._hidden), self._taken)
        return self._aliases[node]

    # The answers to the requests of rules

    def change(
        self, node: Node, needed: frozenset[str], where: tuple[Expression, ...] = ()
    ) -> list[RowSelect]:
        if not inputs(node) & self._changed:
            return []
        asked = (node, needed, where)
        if asked not in self._changes:
            self._changes[asked] = self._change(*asked)
        return self._changes[asked]

    def _change(
        self, node: Node, needed: frozenset[str], where: tuple[Expression, ...]
    ) -> list[RowSelect]:
        match node:
            case Scan():
                word, only = f"{node.input}_change", _over_sources(node, where)
                columns = _sources(node, needed)
                relation = self.read(
                    RelationKind.CHANGE, node.input, word, [*columns, WEIGHT], where=only
                )
                return [_scanned(node, relation, needed, column(WEIGHT))]
            case Aggregate():
                name = self._hidden[node]
                known = {each: column(each) for each in node.columns if each in needed}
                relation = self.read(
                    RelationKind.CHANGE, name, f"{name}_change", [*known, WEIGHT], where=where
                )
                return [RowSelect(FromClause(table(relation)), known, (), column(WEIGHT), relation)]
            case Constant():
                return []
            case _:
                return _RULES[type(node)][0](node, needed, self)

    def snapshot(
        self,
        node: Node,
        side: Side,
        needed: frozenset[str],
        near: tuple[Near, ...] = (),
        touched: Touched | None = None,
        where: tuple[Expression, ...] = (),
    ) -> RowSelect:
        if touched is not None:
            needed = needed.union(own for own, _ in touched.pairs)
        if not inputs(node) & self._changed:
            # An unchanged node has only one state. With one name, the statement reads it once.
            side = Side.AFTER
        asked = (node, side, needed, near, touched, where)
        if asked not in self._snapshots:
            self._snapshots[asked] = self._snapshot(*asked)
        return self._snapshots[asked]

    def _snapshot(
        self,
        node: Node,
        side: Side,
        needed: frozenset[str],
        near: tuple[Near, ...],
        touched: Touched | None,
        where: tuple[Expression, ...],
    ) -> RowSelect:
        match node:
            case Scan():
                kind = RelationKind.AFTER if side is Side.AFTER else RelationKind.BEFORE
                by = dict(zip(node.columns, node.sources, strict=True))
                close = tuple(replace(n, column=by[n.column]) for n in near)
                word, only = f"{node.input}_{side.value}", _over_sources(node, where)
                columns = _sources(node, needed)
                relation = self.read(kind, node.input, word, columns, close, only)
                return restricted(_scanned(node, relation, needed, None), touched)
            case Aggregate():
                kind = RelationKind.AFTER if side is Side.AFTER else RelationKind.BEFORE
                name = self._hidden[node]
                close = tuple(n for n in near if n.column in node.keys)
                known = {each: column(each) for each in node.columns if each in needed}
                relation = self.read(kind, name, f"{name}_{side.value}", known, close, where)
                rows = RowSelect(FromClause(table(relation)), known, base=relation)
                return restricted(rows, touched)
            case Constant():
                return restricted(_constants(node, self.alias(node)), touched)
            case _:
                return _RULES[type(node)][1](node, side, needed, near, touched, self)


# For each operator: the rule for its change, and the rule for its snapshots.
_RULES: Mapping[type, tuple[Callable[..., list[RowSelect]], Callable[..., RowSelect]]] = {
    Filter: (filter.change_of_filter, filter.filtered),
    Projection: (filter.change_of_project, filter.projected),
    Generate: (filter.change_of_generate, filter.generated),
    InnerJoin: (inner_join.change, inner_join.snapshot),
    OuterJoin: (outer_join.change, outer_join.snapshot),
    SemiJoin: (semi_join.change, semi_join.snapshot),
    UnionAll: (union_all.change, union_all.snapshot),
    SetOperation: (set_operation.change, set_operation.snapshot),
    Window: (window.change, window.snapshot),
    TopK: (top_k.change, top_k.snapshot),
}


def _scanned(
    node: Scan, relation: str, needed: frozenset[str], weight: Expression | None
) -> RowSelect:
    columns = {
        name: column(source)
        for name, source in zip(node.columns, node.sources, strict=True)
        if name in needed
    }
    return RowSelect(FromClause(table(relation)), columns, (), weight, relation)


def _sources(node: Scan, needed: frozenset[str]) -> list[str]:
    """The names of the needed columns in the input."""
    pairs = zip(node.columns, node.sources, strict=True)
    return [source for name, source in pairs if name in needed]


def _over_sources(node: Scan, conditions: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Conditions over the columns of the input itself."""
    by = {n: column(source) for n, source in zip(node.columns, node.sources, strict=True)}
    return tuple(replaced(each, by) for each in conditions)


def _constants(node: Constant, alias: str) -> RowSelect:
    if not node.columns:
        return RowSelect(FromClause(subquery(select([]), alias)), {})
    rows = union_of(select(map(named, row, node.columns)) for row in node.rows)
    return RowSelect(
        FromClause(subquery(rows, alias)), {name: column(name) for name in node.columns}
    )


def table_name(node: Aggregate) -> str:
    """The name of a hidden table, made from its rows and its keys."""
    word = _word(node.child, {})
    keys = "_".join(node.keys[:2]) if node.keys else "total"
    what = f"{word}_by_{keys}" if node.keys else f"{word}_total"
    return f"distinct_{word}" if not node.measures and len(node.keys) > 2 else what


def _word(node: Node, hidden: Mapping[Aggregate, str]) -> str:
    match node:
        case Scan():
            return node.input
        case Aggregate():
            return hidden.get(node) or table_name(node)
        case Constant():
            return "constants"
        case UnionAll():
            return "united"
        case SetOperation():
            both = node.kind in (SetKind.INTERSECT, SetKind.INTERSECT_ALL)
            return "in_both" if both else "in_one_only"
        case InnerJoin():
            return "_".join(dict.fromkeys(_word(each, hidden) for each in node.children[:2]))
        case _:
            return _word(children(node)[0], hidden)


def unused(name: str, taken: set[str]) -> str:
    plain = "".join(c if c.isalnum() or c == "_" else "_" for c in name.lower()) or "rows"
    if plain[0].isdigit() or identifier(plain).quoted:
        plain = f"{plain}_rows" if not plain[0].isdigit() else f"_{plain}"
    found, number = plain, 2
    while found in taken:
        found, number = f"{plain}_{number}", number + 1
    taken.add(found)
    return found
