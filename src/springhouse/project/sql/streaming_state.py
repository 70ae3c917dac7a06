"""What would a streaming query have to remember?

A flow appends the result of its query over the new rows. That is right only if the query handles
each row alone: projections, filters, UNION ALL, and joins with tables. A query that has to remember
earlier rows (an aggregate, DISTINCT, a window, a join of two streams) gives a wrong result when it
sees only the new ones. A materialized view can answer such a query, and is incremental too.
"""

from sqlglot import exp

from springhouse.project.declarations.declaration import ReadMode, SqlQuery
from springhouse.project.declarations.names import Names
from springhouse.project.sql.references import ReferencedQuery, parse_query
from springhouse.project.sql.sql_text import SqlText

STREAMING = frozenset({ReadMode.STREAM, ReadMode.SOURCE, ReadMode.DELTA_STREAM})

_REMEMBERING = {
    "group": "GROUP BY",
    "distinct": "DISTINCT",
    "having": "HAVING",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "qualify": "QUALIFY",
}
# Joins that keep or drop a row of the table on the left (on the right) by all rows of the stream.
_KEEPS_LEFT = {"LEFT", "FULL", "SEMI", "ANTI"}
_KEEPS_RIGHT = {"RIGHT", "FULL"}


def stateful_part(query: SqlQuery, names: Names) -> str | None:
    """The part of a streaming query that needs earlier rows; None if no part does."""
    place = query.place
    parsed = parse_query(SqlText(query.text, place.file, place.line), names)
    return _StateSearch(parsed).stateful(parsed.tree)


class _StateSearch:
    """Searches each part of a query that reads a stream."""

    def __init__(self, parsed: ReferencedQuery) -> None:
        self._parsed = parsed
        self._ctes = {cte.alias.lower(): cte for cte in parsed.tree.find_all(exp.CTE)}

    def stateful(self, tree: exp.Expr) -> str | None:
        for select in tree.find_all(exp.Select):
            if problem := self._stateful_select(select):
                return problem
        for operation in tree.find_all(exp.SetOperation):
            if not self._streams_below(operation):
                continue
            if not isinstance(operation, exp.Union) or operation.args.get("distinct"):
                return f"{operation.key.upper()} without ALL"
        return None

    def _stateful_select(self, select: exp.Select) -> str | None:
        joins: list[exp.Join] = select.args.get("joins") or []
        from_ = select.args.get("from_")
        relations = [clause.this for clause in (from_, *joins) if clause is not None]
        streaming = [relation for relation in relations if self._streams_below(relation)]
        elsewhere = (*select.expressions, select.args.get("where"))
        if any(self._streams_below(part) for part in elsewhere):
            return "a stream in a subquery"
        if not streaming:
            return None
        if len(streaming) > 1:
            return "a join of two streams"
        return _stateful_join(joins, streaming[0]) or _stateful_clause(select)

    def _streams_below(self, node: exp.Expr | None, seen: frozenset[str] = frozenset()) -> bool:
        """Whether `node` reads a stream, itself or through common table expressions."""
        for table in node.find_all(exp.Table) if node is not None else ():
            reference = self._parsed.reference(table)
            if reference is not None:
                if reference.reading in STREAMING:
                    return True
                continue
            name = table.name.lower()
            cte = None if name in seen else self._ctes.get(name)
            if cte is not None and self._streams_below(cte.this, seen | {name}):
                return True
        return False


def _stateful_join(joins: list[exp.Join], stream: exp.Expr) -> str | None:
    """A join of the stream with a table in which a row depends on all rows of the stream."""
    for join in joins:
        keeps = _KEEPS_LEFT if join.this is stream else _KEEPS_RIGHT
        if {join.side, join.kind} & keeps:
            return f"a {join.side or join.kind} JOIN that keeps or drops rows of a table"
    return None


def _stateful_clause(select: exp.Select) -> str | None:
    """A clause or a function of a SELECT that needs more than one row."""
    for clause, words in _REMEMBERING.items():
        if select.args.get(clause) is not None:
            return words
    for expression in select.expressions:
        # An aggregate in a subquery belongs to the subquery, which is searched on its own.
        for node in expression.walk(prune=lambda n: isinstance(n, exp.Query)):
            if isinstance(node, exp.Window):
                return "a window function"
            if isinstance(node, exp.AggFunc):
                return f"the aggregate {node.sql_name().lower()}"
    return None
