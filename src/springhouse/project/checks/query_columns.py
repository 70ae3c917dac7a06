"""Which columns do the rows of a query have, and which columns does it name that do not exist?

sqlglot divides a query into scopes. A scope sees the columns of what it reads, and an inner scope
sees those of the scopes around it. Some names stay unknown: those of a table whose schema only its
files show, and whatever an UNNEST, a PIVOT or a LATERAL makes. A name that something unknown could
explain is no error, so each error is certain, and some wrong names are not found.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope, walk_in_scope

from springhouse.errors import DeclarationError
from springhouse.project.declarations.declaration import Reference, SqlQuery
from springhouse.project.declarations.names import Names
from springhouse.project.sql.references import ReferencedQuery, parse_query
from springhouse.project.sql.sql_text import SqlText

Columns = tuple[str, ...] | None
"""The names of columns, in order; None if they are not known."""

NO_COLUMNS = frozenset(
    {"current_date", "current_time", "current_timestamp", "current_user", "user", "session_user"}
    | {"current_catalog", "current_database", "current_schema", "current_timezone", "localtime"}
    | {"localtimestamp", "now", "_metadata", "grouping__id", "spark_grouping_id", "default"}
    | {"year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute", "second"}
    | {"millisecond", "microsecond", "years", "months", "days", "hours", "minutes", "seconds"}
)
"""Words that sqlglot takes for columns, and Spark for functions or units of time."""

MAKES_NAMES = (exp.Lateral, exp.Pivot, exp.Unnest, exp.MatchRecognize, exp.UDTF, exp.TableFromRows)
"""Nodes whose columns no declaration shows."""


@dataclass(frozen=True)
class UnknownColumn:
    """A column that a query names and its inputs do not have."""

    name: str
    start: int
    candidates: tuple[str, ...]


class QueryColumns:
    """The columns of one query, scope by scope; `of_reference` gives the columns of an input."""

    def __init__(
        self, query: SqlQuery, of_reference: Callable[[Reference], Columns], names: Names
    ) -> None:
        self.columns: Columns = None
        self.unknown: list[UnknownColumn] = []
        self.duplicate: str | None = None
        self._of_reference = of_reference
        place = query.place
        try:
            self._parsed: ReferencedQuery = parse_query(
                SqlText(query.text, place.file, place.line), names
            )
            scopes = traverse_scope(self._parsed.tree)
        except (SqlglotError, DeclarationError):
            return
        self._outputs: dict[int, Columns] = {}
        for scope in scopes:
            self._outputs[id(scope)] = self._output(scope)
        if scopes:
            self.columns = self._outputs[id(scopes[-1])]
            self.duplicate = _duplicate(scopes[-1])
        for scope in scopes:
            self.unknown += self._unresolved(scope)

    # The columns of a scope's rows

    def _output(self, scope: Scope) -> Columns:
        if scope.outer_columns:  # `AS t(a, b)`
            return tuple(scope.outer_columns)
        if isinstance(scope.expression, exp.SetOperation):
            left = scope.set_operation_scopes[:1]
            return self._outputs.get(id(left[0])) if left else None
        if not _is_plain(scope):
            return None
        sources = self._sources(scope)
        names: list[str] = []
        for projection in cast("exp.Select", scope.expression).selects:
            columns = _projected(projection, sources)
            if columns is None:
                return None
            names += columns
        return tuple(names)

    def _sources(self, scope: Scope) -> dict[str, Columns]:
        """The columns of what a scope reads into its rows, by alias."""
        chosen = scope.selected_sources.items()
        return dict(self._source(key, node, source) for key, (node, source) in chosen)

    def _tested(self, scope: Scope) -> dict[str, Columns]:
        """The columns that only choose among rows: those of `LEFT SEMI JOIN`, `LEFT ANTI JOIN`."""
        tested = {}
        for key in scope.semi_or_anti_join_tables:
            source = scope.sources.get(key)
            node = source if isinstance(source, exp.Table) else exp.Table()
            alias, columns = self._source(key, node, source)
            tested[alias] = columns
        return tested

    def _source(self, key: str, node: exp.Expr, source: object) -> tuple[str, Columns]:
        alias, columns = key.lower(), None
        if isinstance(source, exp.Table):
            reference = self._parsed.reference(source)
            if reference is not None:
                columns = self._of_reference(reference)
                alias = (node.alias or reference.name.rpartition(".")[2]).lower()
        else:
            columns = self._outputs.get(id(source))
        renamed = node.alias_column_names
        return alias, tuple(renamed) if renamed else columns

    # Columns that do not exist

    def _unresolved(self, scope: Scope) -> Iterator[UnknownColumn]:
        visible = self._visible(scope)
        if visible is None:
            return
        for node in walk_in_scope(scope.expression):
            if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
                missing = visible.missing(node)
                if missing is not None:
                    yield missing

    def _visible(self, scope: Scope) -> "_Visible | None":
        """What a column in a scope can mean; None if a scope around it is not understood."""
        sources: dict[str, Columns] = {}
        aliases: set[str] = set()
        around: Scope | None = scope
        while around is not None:
            if around is scope or not isinstance(around.expression, exp.SetOperation):
                if not _is_plain(around):
                    return None
                for alias, columns in {**self._tested(around), **self._sources(around)}.items():
                    sources.setdefault(alias, columns)
                aliases |= {alias.alias.lower() for alias in around.expression.find_all(exp.Alias)}
            around = around.parent
        return _Visible(sources, aliases)


@dataclass(frozen=True)
class _Visible:
    """The names that a column can refer to: sources with their columns, and aliases."""

    sources: Mapping[str, Columns]
    aliases: set[str]

    def missing(self, column: exp.Column) -> UnknownColumn | None:
        """The column, if nothing that it can mean exists."""
        first = column.parts[0]
        start = first.meta.get("start")
        if start is None or len(column.parts) > 2 or column.find_ancestor(exp.Hint):
            return None
        if _is_parameter(column, first.name.lower()):
            return None
        columns = self.sources.get(column.table.lower()) if column.table else None
        if columns is not None:
            return self._missing_in(columns, column, start)
        if any(known is None for known in self.sources.values()):
            return None
        wanted, names = first.name.lower(), self._names()
        if any(wanted in known for known in (names, self.aliases, NO_COLUMNS, self.sources)):
            return None
        everything = tuple(name for known in self.sources.values() for name in known or ())
        return UnknownColumn(first.name, start, everything)

    def _missing_in(
        self, columns: tuple[str, ...], column: exp.Column, start: int
    ) -> UnknownColumn | None:
        """The column `table.name`, if the table has no such column."""
        first = column.parts[0].name
        # A struct may have the name of a table: `a.b` is then its field.
        if column.name.lower() in map(str.lower, columns) or first.lower() in self._names():
            return None
        return UnknownColumn(f"{first}.{column.name}", start, columns)

    def _names(self) -> set[str]:
        return {name.lower() for columns in self.sources.values() for name in columns or ()}


def _is_plain(scope: Scope) -> bool:
    """Whether a scope is of a kind whose names are all understood."""
    nodes = walk_in_scope(scope.expression)
    return isinstance(scope.expression, exp.Select) and not any(
        isinstance(node, MAKES_NAMES) for node in nodes
    )


def _is_parameter(column: exp.Column, name: str) -> bool:
    """Whether a lambda around a column has a parameter of this name."""
    around = column.find_ancestor(exp.Lambda)
    while around is not None:
        if any(parameter.name.lower() == name for parameter in around.expressions):
            return True
        around = around.find_ancestor(exp.Lambda)
    return False


def _projected(projection: exp.Expr, sources: Mapping[str, Columns]) -> Columns:
    """The columns that one element of a SELECT list gives."""
    if not projection.is_star:
        name = projection.alias_or_name
        named = isinstance(projection, exp.Alias | exp.Column)
        return (name,) if named and name else None
    star = projection.this if isinstance(projection, exp.Column) else projection
    if not isinstance(star, exp.Star) or star.args.get("replace") or star.args.get("rename"):
        return None
    alias = projection.table.lower() if isinstance(projection, exp.Column) else None
    return _all_but(_excluded(star), [c for key, c in sources.items() if alias in (None, key)])


def _excluded(star: exp.Star) -> set[str]:
    """The columns that `* EXCEPT (a, b)` leaves out."""
    listed = [*(star.args.get("except_") or ()), *(star.args.get("except") or ())]
    return {column.name.lower() for column in listed}


def _all_but(excluded: set[str], sources: list[Columns]) -> Columns:
    names: list[str] = []
    for columns in sources:
        if columns is None:
            return None
        names += [name for name in columns if name.lower() not in excluded]
    return tuple(names) if sources else None


def _duplicate(scope: Scope) -> str | None:
    """A name that the text gives to two of the outermost columns."""
    while scope.set_operation_scopes:
        scope = scope.set_operation_scopes[0]
    if scope.outer_columns or not isinstance(scope.expression, exp.Select):
        return None
    seen: set[str] = set()
    for projection in scope.expression.selects:
        if isinstance(projection, exp.Alias | exp.Column) and not projection.is_star:
            name = projection.alias_or_name
            if name.lower() in seen:
                return name
            seen.add(name.lower())
    return None
