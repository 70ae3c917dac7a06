"""What would a streaming query have to remember?

A flow appends what its query makes of the rows that are new. That is right only if each new row can
be dealt with alone: projections, filters, UNION ALL, and joins with tables. A query that has to
remember earlier rows (an aggregate, DISTINCT, a window, a join of two streams) would be wrong when
it saw only the new ones. Such a question is one for a materialized view, which is incremental too.
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
# Joins in which a row of the table on the left, or on the right, depends on all rows of the stream.
_KEEPS_LEFT = {"LEFT", "FULL", "SEMI", "ANTI"}
_KEEPS_RIGHT = {"RIGHT", "FULL"}


def stateful_part(query: SqlQuery, names: Names) -> str | None:
    """What in a streaming query needs memory, in the user's words; None if nothing does."""
    place = query.place
    parsed = parse_query(SqlText(query.text, place.file, place.line), names)
    return _Search(parsed).stateful(parsed.tree)


class _Search:
    """Looks for memory in every part of a query that has a stream below it."""

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
        for join in joins:
            keeps = _KEEPS_LEFT if join.this is streaming[0] else _KEEPS_RIGHT
            if {join.side, join.kind} & keeps:
                return f"a {join.side or join.kind} JOIN that keeps or drops rows of a table"
        for clause, what in _REMEMBERING.items():
            if select.args.get(clause) is not None:
                return what
        for expression in select.expressions:
            # An aggregate in a subquery is the subquery's own: it is looked at by itself.
            for node in expression.walk(prune=lambda n: isinstance(n, exp.Query)):
                if isinstance(node, exp.Window):
                    return "a window function"
                if isinstance(node, exp.AggFunc):
                    return f"the aggregate {node.sql_name().lower()}"
        return None

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
