"""Which columns does each table and view have, and does every query name columns that exist?

Declared schemas of sources, tables and views are followed through the queries, as far as they tell:
a table whose columns only its files tell has unknown columns, and so has whatever reads it with
`*`. Nothing is said about a name that something unknown could explain: what is told here is surely
wrong, and what is not told may still be.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope, walk_in_scope

from springhouse.errors import DeclarationError, SpringhouseError
from springhouse.project.declarations.declaration import (
    AppendFlow,
    CdcFlow,
    Expectation,
    Place,
    Project,
    Query,
    ReadMode,
    Reference,
    SinkCall,
    SqlQuery,
    Table,
    View,
)
from springhouse.project.declarations.names import Names, did_you_mean
from springhouse.project.options.built_in import columns_of_source
from springhouse.project.options.calls import parse_call
from springhouse.project.sql.references import ReferencedQuery, parse_query
from springhouse.project.sql.schema_text import column_names
from springhouse.project.sql.sql_text import SqlText

Columns = tuple[str, ...] | None
"""The names of columns, in order; None if they are not known."""

# Words that sqlglot takes for columns, and Spark for functions or units of time.
_WORDS = frozenset(
    {"current_date", "current_time", "current_timestamp", "current_user", "user", "session_user"}
    | {"current_catalog", "current_database", "current_schema", "current_timezone", "localtime"}
    | {"localtimestamp", "now", "_metadata", "grouping__id", "spark_grouping_id", "default"}
    | {"year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute", "second"}
    | {"millisecond", "microsecond", "years", "months", "days", "hours", "minutes", "seconds"}
)
# What makes names that a declaration does not show.
_MAKES_NAMES = (exp.Lateral, exp.Pivot, exp.Unnest, exp.MatchRecognize, exp.UDTF, exp.TableFromRows)


@dataclass(frozen=True)
class _UnknownColumn:
    """A column that a query names and its inputs do not have."""

    name: str
    start: int
    candidates: tuple[str, ...]


class KnownColumns:
    """The columns of a project's tables, views and sources."""

    def __init__(self, project: Project, names: Names) -> None:
        self._project = project
        self._names = names
        self._known: dict[str, Columns] = {}
        self._busy: set[str] = set()

    def of(self, name: str) -> Columns:
        """The columns of what a project calls by a name."""
        if name in self._busy:
            return None  # A circle, which is told elsewhere.
        if name not in self._known:
            self._busy.add(name)
            self._known[name] = self._declared(name)
            self._busy.discard(name)
        return self._known[name]

    def _declared(self, name: str) -> Columns:
        project = self._project
        if name in project.views:
            view = project.views[name]
            return _of_schema(view.schema) if view.schema else self.of_query(view.query)
        if name in project.temporary_views:
            return self.of_query(project.temporary_views[name].query)
        if name in project.tables:
            return self._of_table(project.tables[name])
        return None

    def _of_table(self, table: Table) -> Columns:
        """Those that are declared, and those that the flows bring."""
        found = list(_of_schema(table.schema) or ()) if table.schema else []
        for flow in self._project.flows_into(table.name):
            brought = None if isinstance(flow, CdcFlow) else self.of_query(flow.query)
            if brought is None:
                return None
            have = {name.lower() for name in found}
            found += [name for name in brought if name.lower() not in have]
        return tuple(found) or None

    def of_query(self, query: Query) -> Columns:
        """The columns of a query's rows."""
        return self._looked_at(query).columns if isinstance(query, SqlQuery) else None

    def unknown(self, query: SqlQuery) -> Iterator[_UnknownColumn]:
        """The columns that a query names and nobody has."""
        yield from self._looked_at(query).unknown

    def given_twice(self, query: SqlQuery) -> str | None:
        """A name that two columns of a query's rows surely have."""
        return self._looked_at(query).given_twice

    def place(self, query: SqlQuery, start: int) -> Place:
        """The line of a character of a query."""
        return SqlText(query.text, query.place.file, query.place.line).place(start)

    def _looked_at(self, query: SqlQuery) -> "_QueryColumns":
        return _QueryColumns(query, self, self._names)

    def of_reference(self, reference: Reference) -> Columns:
        """The columns of what a query reads."""
        if reference.reading in (ReadMode.TABLE, ReadMode.STREAM):
            return self.of(reference.name)
        if reference.reading is not ReadMode.SOURCE or reference.source is None:
            return None
        call = reference.source
        try:
            understood: Any = parse_call(
                "source", call, self._project.sources, self._project.folder
            )
        except SpringhouseError:
            return None  # It is told elsewhere.
        if call.plugin.lower() in self._project.sources:
            return None
        return columns_of_source(call.plugin.lower(), understood)


def _of_schema(text: str) -> Columns:
    try:
        return column_names(text)
    except SpringhouseError:
        return None


class _QueryColumns:
    """One query, scope by scope."""

    def __init__(self, query: SqlQuery, known: KnownColumns, names: Names) -> None:
        self.columns: Columns = None
        self.unknown: list[_UnknownColumn] = []
        self.given_twice: str | None = None
        self._known = known
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
            self.given_twice = _given_twice(scopes[-1])
        for scope in scopes:
            self.unknown += self._unresolved(scope)

    def _sources(self, scope: Scope) -> dict[str, Columns]:
        """What a scope reads, by alias, as far as its rows have the columns."""
        chosen = scope.selected_sources.items()
        return dict(self._source(key, node, source) for key, (node, source) in chosen)

    def _tested(self, scope: Scope) -> dict[str, Columns]:
        """What a scope reads only to choose among its rows: `LEFT SEMI JOIN`, `LEFT ANTI JOIN`."""
        found = {}
        for key in scope.semi_or_anti_join_tables:
            source = scope.sources.get(key)
            node = source if isinstance(source, exp.Table) else exp.Table()
            alias, columns = self._source(key, node, source)
            found[alias] = columns
        return found

    def _source(self, key: str, node: exp.Expr, source: object) -> tuple[str, Columns]:
        alias, columns = key.lower(), None
        if isinstance(source, exp.Table):
            reference = self._parsed.reference(source)
            if reference is not None:
                columns = self._known.of_reference(reference)
                alias = (node.alias or reference.name.rpartition(".")[2]).lower()
        else:
            columns = self._outputs.get(id(source))
        renamed = node.alias_column_names
        return alias, tuple(renamed) if renamed else columns

    def _plain(self, scope: Scope) -> bool:
        """Whether a scope is of a kind whose names are all understood."""
        nodes = walk_in_scope(scope.expression)
        return isinstance(scope.expression, exp.Select) and not any(
            isinstance(node, _MAKES_NAMES) for node in nodes
        )

    def _output(self, scope: Scope) -> Columns:
        if scope.outer_columns:  # `AS t(a, b)`
            return tuple(scope.outer_columns)
        if isinstance(scope.expression, exp.SetOperation):
            left = scope.set_operation_scopes[:1]
            return self._outputs.get(id(left[0])) if left else None
        if not self._plain(scope):
            return None
        sources = self._sources(scope)
        names: list[str] = []
        for projection in cast("exp.Select", scope.expression).selects:
            given = self._projected(projection, sources)
            if given is None:
                return None
            names += given
        return tuple(names)

    def _projected(self, projection: exp.Expr, sources: Mapping[str, Columns]) -> Columns:
        if not projection.is_star:
            name = projection.alias_or_name
            named = isinstance(projection, exp.Alias | exp.Column)
            return (name,) if named and name else None
        star = projection.this if isinstance(projection, exp.Column) else projection
        if not isinstance(star, exp.Star) or star.args.get("replace") or star.args.get("rename"):
            return None
        wanted = projection.table.lower() if isinstance(projection, exp.Column) else None
        chosen = [columns for alias, columns in sources.items() if wanted in (None, alias)]
        if not chosen or any(columns is None for columns in chosen):
            return None
        left_out = {each.name.lower() for each in star.args.get("except_") or ()}
        left_out |= {each.name.lower() for each in star.args.get("except") or ()}
        return tuple(n for columns in chosen for n in columns or () if n.lower() not in left_out)

    def _unresolved(self, scope: Scope) -> Iterator[_UnknownColumn]:
        visible: dict[str, Columns] = {}
        aliases: set[str] = set()
        at: Scope | None = scope
        while at is not None:
            if at is not scope and isinstance(at.expression, exp.SetOperation):
                at = at.parent
                continue
            if not self._plain(at):
                return
            for alias, columns in (*self._sources(at).items(), *self._tested(at).items()):
                visible.setdefault(alias, columns)
            aliases |= {each.alias.lower() for each in at.expression.find_all(exp.Alias)}
            at = at.parent
        for node in walk_in_scope(scope.expression):
            if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
                found = _missing(node, visible, aliases)
                if found is not None:
                    yield found


def _given_twice(scope: Scope) -> str | None:
    """A name that two of the outermost columns are given by the text itself."""
    while scope.set_operation_scopes:
        scope = scope.set_operation_scopes[0]
    if scope.outer_columns or not isinstance(scope.expression, exp.Select):
        return None
    have: set[str] = set()
    for projection in scope.expression.selects:
        if isinstance(projection, exp.Alias | exp.Column) and not projection.is_star:
            name = projection.alias_or_name
            if name.lower() in have:
                return name
            have.add(name.lower())
    return None


def _missing(
    column: exp.Column, visible: Mapping[str, Columns], aliases: set[str]
) -> _UnknownColumn | None:
    """The column, if nothing that it could mean is there."""
    first = column.parts[0]
    start = first.meta.get("start")
    if start is None or len(column.parts) > 2 or column.find_ancestor(exp.Hint):
        return None
    if any(
        first.name.lower() == parameter.name.lower()
        for around in _lambdas(column)
        for parameter in around.expressions
    ):
        return None
    name = column.name.lower()
    own = visible.get(column.table.lower()) if column.table else None
    if column.table and own is not None:
        there = {each.lower() for each in own}
        # A struct may have the name of a table: `a.b` is then its field.
        if name in there or first.name.lower() in _all_names(visible):
            return None
        return _UnknownColumn(f"{first.name}.{column.name}", start, own)
    if any(columns is None for columns in visible.values()):
        return None
    wanted = first.name.lower()
    names = _all_names(visible)
    if wanted in names or wanted in aliases or wanted in _WORDS or wanted in visible:
        return None
    everything = tuple(each for columns in visible.values() for each in columns or ())
    return _UnknownColumn(first.name, start, everything)


def _all_names(visible: Mapping[str, Columns]) -> set[str]:
    return {each.lower() for columns in visible.values() for each in columns or ()}


def _lambdas(node: exp.Expr) -> Iterator[exp.Lambda]:
    around = node.find_ancestor(exp.Lambda)
    while around is not None:
        yield around
        around = around.find_ancestor(exp.Lambda)


class ColumnCheck:
    """The errors of a project about columns."""

    def __init__(self, project: Project, names: Names) -> None:
        self._project = project
        self._known = KnownColumns(project, names)
        self._names = names

    @cached_property
    def _stored(self) -> list[Table | View]:
        return [*self._project.tables.values(), *self._project.views.values()]

    def errors(self, readers: Iterator[tuple[str, Query]]) -> Iterator[DeclarationError]:
        """Columns that are named and do not exist."""
        for reader, query in readers:
            if not isinstance(query, SqlQuery):
                continue
            for unknown in self._known.unknown(query):
                place = self._known.place(query, unknown.start)
                yield _no_column(reader, unknown.name, unknown.candidates, place)
        for whose, query in self._kept():
            name = self._known.given_twice(query)
            if name is not None:
                problem = f'{whose} has two columns named "{name}"'
                hint = f"Give one another name: … AS {name}_2"
                yield DeclarationError(problem, where=str(query.place), hint=hint)
        for declared in self._stored:
            columns = self._known.of(declared.name)
            if columns is not None:
                yield from self._of_stored(declared, columns)
        for flow in self._project.flows:
            if isinstance(flow, CdcFlow):
                yield from self._of_changes(flow)

    def _kept(self) -> Iterator[tuple[str, SqlQuery]]:
        """The queries whose columns become those of a table or view by their names."""
        for view in self._project.views.values():
            if isinstance(view.query, SqlQuery) and not view.schema:
                yield f'the view "{view.name}"', view.query
        for flow in self._project.flows:
            if isinstance(flow, AppendFlow) and isinstance(flow.query, SqlQuery):
                yield f'the flow "{flow.name}"', flow.query

    def _of_stored(
        self, declared: Table | View, columns: tuple[str, ...]
    ) -> Iterator[DeclarationError]:
        kind = "table" if isinstance(declared, Table) else "view"
        whose = f'the {kind} "{declared.name}"'
        timestamp = declared.timestamp if isinstance(declared, Table) else None
        named = [(each, declared.place) for each in (timestamp, *declared.partition_by) if each]
        for sink in declared.sinks:
            named += [(key, sink.place) for key in _keys(sink)]
        for expectation in declared.expectations:
            named += [(name, expectation.place) for name in _named_in(expectation)]
        for name, place in named:
            if not _has(columns, name):
                yield _no_column(whose, name, columns, place)

    def _of_changes(self, flow: CdcFlow) -> Iterator[DeclarationError]:
        columns = self._known.of_reference(flow.source)
        if columns is None:
            return
        for name in (*flow.keys, *(flow.columns or ()), *flow.except_columns):
            if not _has(columns, name):
                yield _no_column(f'the flow "{flow.name}"', name, columns, flow.place)


def _has(columns: tuple[str, ...], name: str) -> bool:
    lower = [each.lower() for each in columns]
    return name.lower() in lower or name.lower().partition(".")[0] in lower


def _keys(sink: SinkCall) -> list[str]:
    if sink.plugin.lower() != "kafka":
        return []
    text = next((v for k, v in sink.options.items() if k.lower() == "key"), "")
    return [each.strip() for each in text.split(",") if each.strip() and "${" not in each]


def _named_in(expectation: Expectation) -> Iterator[str]:
    """The columns that a condition names, unless it is of a kind that makes names."""
    sql = f"SELECT {expectation.condition}"
    try:
        tree = parse_query(SqlText(sql, expectation.place.file), Names()).tree
    except (SqlglotError, DeclarationError):
        return
    if tree.find(exp.Lambda, exp.Subquery, exp.Exists, *_MAKES_NAMES):
        return
    for column in tree.find_all(exp.Column):
        first = column.parts[0].name
        if first.lower() not in _WORDS and not isinstance(column.this, exp.Star):
            yield first


def _no_column(whose: str, name: str, columns: tuple[str, ...], place: Place) -> DeclarationError:
    last = name.rpartition(".")[2]
    hint = did_you_mean(last.lower(), {each.lower() for each in columns})
    return DeclarationError(
        f'{whose} names the column "{name}", and there is none',
        where=str(place),
        hint=hint or f"The columns are {', '.join(dict.fromkeys(columns))}.",
    )
