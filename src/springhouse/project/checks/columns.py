"""Does every query of a project name columns that exist?

The declared schemas of sources, tables and views are followed through the queries. A table whose
columns only its files show has unknown columns, and so has whatever reads it with `*`. A name that
something unknown could explain is no error: each error is certain, and some wrong names are not
found.
"""

from collections.abc import Iterator
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from springhouse.errors import DeclarationError, SpringhouseError
from springhouse.project.checks.query_columns import (
    MAKES_NAMES,
    NO_COLUMNS,
    Columns,
    QueryColumns,
)
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
from springhouse.project.sql.references import parse_query
from springhouse.project.sql.schema_text import column_names
from springhouse.project.sql.sql_text import SqlText


class KnownColumns:
    """The columns of a project's tables, views and sources."""

    def __init__(self, project: Project, names: Names) -> None:
        self._project = project
        self._names = names
        self._known: dict[str, Columns] = {}
        self._under_way: set[str] = set()

    def of(self, name: str) -> Columns:
        """The columns of a table or view."""
        if name in self._under_way:
            return None  # A circle, which is an error of another rule.
        if name not in self._known:
            self._under_way.add(name)
            self._known[name] = self._declared(name)
            self._under_way.discard(name)
        return self._known[name]

    def _declared(self, name: str) -> Columns:
        project = self._project
        if name in project.views:
            view = project.views[name]
            return _of_schema(view.schema) if view.schema else self._of_query(view.query)
        if name in project.temporary_views:
            return self._of_query(project.temporary_views[name].query)
        if name in project.tables:
            return self._of_table(project.tables[name])
        return None

    def _of_table(self, table: Table) -> Columns:
        """The columns that the table declares, and those that its flows add."""
        columns = list(_of_schema(table.schema) or ()) if table.schema else []
        for flow in self._project.flows_into(table.name):
            added = None if isinstance(flow, CdcFlow) else self._of_query(flow.query)
            if added is None:
                return None
            existing = {name.lower() for name in columns}
            columns += [name for name in added if name.lower() not in existing]
        return tuple(columns) or None

    def _of_query(self, query: Query) -> Columns:
        return self.in_query(query).columns if isinstance(query, SqlQuery) else None

    def in_query(self, query: SqlQuery) -> QueryColumns:
        """The columns of a query's rows, and those that it names and that do not exist."""
        return QueryColumns(query, self.of_reference, self._names)

    def of_reference(self, reference: Reference) -> Columns:
        """The columns of an input of a query."""
        if reference.reading in (ReadMode.TABLE, ReadMode.STREAM):
            return self.of(reference.name)
        if reference.reading is not ReadMode.SOURCE or reference.source is None:
            return None
        call = reference.source
        try:
            options: Any = parse_call("source", call, self._project.sources, self._project.folder)
        except SpringhouseError:
            return None  # An error of another rule.
        if call.plugin.lower() in self._project.sources:
            return None
        return columns_of_source(call.plugin.lower(), options)


def _of_schema(text: str) -> Columns:
    try:
        return column_names(text)
    except SpringhouseError:
        return None


class ColumnCheck:
    """The errors of a project about columns."""

    def __init__(self, project: Project, names: Names) -> None:
        self._project = project
        self._known = KnownColumns(project, names)

    def errors(self, readers: Iterator[tuple[str, Query]]) -> Iterator[DeclarationError]:
        """Columns that are named and do not exist."""
        for reader, query in readers:
            if not isinstance(query, SqlQuery):
                continue
            text = SqlText(query.text, query.place.file, query.place.line)
            for unknown in self._known.in_query(query).unknown:
                place = text.place(unknown.start)
                yield _no_column(reader, unknown.name, unknown.candidates, place)
        for owner, query in self._stored_queries():
            name = self._known.in_query(query).duplicate
            if name is not None:
                problem = f'{owner} has two columns named "{name}"'
                hint = f"Give one another name: … AS {name}_2"
                yield DeclarationError(problem, where=str(query.place), hint=hint)
        stored: list[Table | View] = [*self._project.tables.values(), *self._project.views.values()]
        for declared in stored:
            columns = self._known.of(declared.name)
            if columns is not None:
                yield from _errors_of_stored(declared, columns)
        for flow in self._project.flows:
            if isinstance(flow, CdcFlow):
                yield from self._errors_of_cdc_flow(flow)

    def _stored_queries(self) -> Iterator[tuple[str, SqlQuery]]:
        """The queries whose columns become columns of a table or view, by their names."""
        for view in self._project.views.values():
            if isinstance(view.query, SqlQuery) and not view.schema:
                yield f'the view "{view.name}"', view.query
        for flow in self._project.flows:
            if isinstance(flow, AppendFlow) and isinstance(flow.query, SqlQuery):
                yield f'the flow "{flow.name}"', flow.query

    def _errors_of_cdc_flow(self, flow: CdcFlow) -> Iterator[DeclarationError]:
        columns = self._known.of_reference(flow.source)
        if columns is None:
            return
        for name in (*flow.keys, *(flow.columns or ()), *flow.except_columns):
            if not _has(columns, name):
                yield _no_column(f'the flow "{flow.name}"', name, columns, flow.place)


def _errors_of_stored(
    declared: Table | View, columns: tuple[str, ...]
) -> Iterator[DeclarationError]:
    kind = "table" if isinstance(declared, Table) else "view"
    for name, place in _columns_named_by(declared):
        if not _has(columns, name):
            yield _no_column(f'the {kind} "{declared.name}"', name, columns, place)


def _columns_named_by(declared: Table | View) -> Iterator[tuple[str, Place]]:
    """The columns that properties, partitions, sinks and expectations name."""
    if isinstance(declared, Table) and declared.timestamp:
        yield declared.timestamp, declared.place
    for column in declared.partition_by:
        yield column, declared.place
    for sink in declared.sinks:
        for key in _keys(sink):
            yield key, sink.place
    for expectation in declared.expectations:
        for name in _named_in(expectation):
            yield name, expectation.place


def _has(columns: tuple[str, ...], name: str) -> bool:
    lower = [column.lower() for column in columns]
    return name.lower() in lower or name.lower().partition(".")[0] in lower


def _keys(sink: SinkCall) -> list[str]:
    if sink.plugin.lower() != "kafka":
        return []
    text = next((v for k, v in sink.options.items() if k.lower() == "key"), "")
    return [key.strip() for key in text.split(",") if key.strip() and "${" not in key]


def _named_in(expectation: Expectation) -> Iterator[str]:
    """The columns that a condition names; none of a condition with names of its own."""
    sql = f"SELECT {expectation.condition}"
    try:
        tree = parse_query(SqlText(sql, expectation.place.file), Names()).tree
    except (SqlglotError, DeclarationError):
        return
    if tree.find(exp.Lambda, exp.Subquery, exp.Exists, *MAKES_NAMES):
        return
    for column in tree.find_all(exp.Column):
        first = column.parts[0].name
        if first.lower() not in NO_COLUMNS and not isinstance(column.this, exp.Star):
            yield first


def _no_column(owner: str, name: str, columns: tuple[str, ...], place: Place) -> DeclarationError:
    last = name.rpartition(".")[2]
    hint = did_you_mean(last.lower(), {column.lower() for column in columns})
    return DeclarationError(
        f'{owner} names the column "{name}", which does not exist',
        where=str(place),
        hint=hint or f"The columns are {', '.join(dict.fromkeys(columns))}.",
    )
