"""Does the whole of a project make sense?

The readers look at one statement at a time. The rules here need all of them: names are unique and
allowed, everything that is read is declared, nothing reads itself, flows and tables fit together,
and streams are read where a stream can be read. Each rule is a function from a project to errors.
`RULES` lists them in order, and `check` applies all of them, so that a project that breaks three
rules gets three errors.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from springhouse.errors import DeclarationError, SpringhouseError
from springhouse.project.checks.columns import ColumnCheck
from springhouse.project.declarations.contents import KINDS
from springhouse.project.declarations.declaration import (
    AppendFlow,
    CdcFlow,
    Flow,
    Place,
    Project,
    Query,
    ReadMode,
    Reference,
    SinkCall,
    SourceCall,
    SqlQuery,
    Table,
    TemporaryView,
    View,
)
from springhouse.project.declarations.locations import location
from springhouse.project.declarations.names import Names, did_you_mean, did_you_mean_the, wrong_name
from springhouse.project.declarations.secrets import resolve, secret_problem
from springhouse.project.lineage.graph import QUARANTINE, Graph
from springhouse.project.options.calls import parse_call
from springhouse.project.sql.schema_text import column_names
from springhouse.project.sql.streaming_state import STREAMING, stateful_part


@dataclass(frozen=True)
class CheckedProject:
    """A project that is being checked, and the facts that the rules need besides.

    `excused` are names whose declaration has an error of its own. `names_missing` says that a file
    could not be read: then more names may be declared, and no rule reports an undeclared name.
    """

    project: Project
    names: Names
    known_sources: frozenset[str]
    known_sinks: frozenset[str] = frozenset()
    excused: frozenset[str] = frozenset()
    names_missing: bool = False

    @cached_property
    def graph(self) -> Graph:
        return Graph(self.project)

    @cached_property
    def stored(self) -> dict[str, Table | View]:
        return {**self.project.tables, **self.project.views}

    @cached_property
    def declared(self) -> dict[str, Table | View | TemporaryView]:
        return {**self.stored, **self.project.temporary_views}

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The kind of everything that can be read by name."""
        quarantines = {name + QUARANTINE: f'quarantine of "{name}"' for name in self.stored}
        return {**quarantines, **{name: KINDS[type(d)] for name, d in self.declared.items()}}

    def readers(self) -> Iterator[tuple[str, Query]]:
        """All queries, each with a label of its view or flow."""
        for name, declaration in self.declared.items():
            if isinstance(declaration, View | TemporaryView):
                yield f'{self.kinds[name]} "{name}"', declaration.query
        for flow in self.project.flows:
            if isinstance(flow, AppendFlow):
                yield flow_label(flow), flow.query

    def references(self) -> Iterator[tuple[str, Reference]]:
        """All references, each with a label of the view or flow that reads it."""
        for reader, query in self.readers():
            for reference in query.references:
                yield reader, reference
        for flow in self.project.flows:
            if isinstance(flow, CdcFlow):
                yield flow_label(flow), flow.source


def check(checked: CheckedProject) -> list[DeclarationError]:
    """The errors of the project as a whole."""
    return [error for rule in RULES for error in rule(checked)]


def flow_label(flow: Flow) -> str:
    """What to call a flow in an error: a flow that its table declares is called by the table."""
    by_table = flow.name == flow.target
    return f'streaming table "{flow.target}"' if by_table else f'flow "{flow.name}"'


def _error(problem: str, place: Place, hint: str | None = None) -> DeclarationError:
    return DeclarationError(problem, where=str(place), hint=hint)


# Names


def names_are_free(checked: CheckedProject) -> Iterator[DeclarationError]:
    """Names that Springhouse reserves, or that no folder can have."""
    stored = checked.stored
    flows = {flow.name: flow for flow in checked.project.flows if flow.name != flow.target}
    for name, declaration in (*checked.declared.items(), *flows.items()):
        wrong = wrong_name(name)
        if wrong is not None:
            yield _error(wrong[0], declaration.place, wrong[1])
        elif name.endswith(QUARANTINE) and name.removesuffix(QUARANTINE) in stored:
            owner = name.removesuffix(QUARANTINE)
            problem = f'"{name}" is the name of the quarantine of "{owner}"'
            yield _error(problem, declaration.place, f'"{owner}" is at {stored[owner].place}.')


def reads_are_declared(checked: CheckedProject) -> Iterator[DeclarationError]:
    """Tables that are read and not declared."""
    if checked.names_missing:
        return
    for reader, reference in checked.references():
        if reference.reading not in (ReadMode.TABLE, ReadMode.STREAM):
            continue
        name = reference.name
        if name in checked.kinds or name.removesuffix(QUARANTINE) in checked.excused:
            continue
        hint = did_you_mean_the(name, checked.kinds)
        yield _error(
            f'{reader} reads "{name}", which this project does not declare',
            reference.place,
            hint or "A Delta table that others write is read by its path: delta.`path`.",
        )


def nothing_reads_itself(checked: CheckedProject) -> Iterator[DeclarationError]:
    """Circles of tables and views."""
    for circle in checked.graph.cycles:
        yield _error(
            f'"{circle[0]}" reads itself: {" -> ".join(circle)}',
            checked.declared[circle[0]].place,
            "A table can't depend on itself: remove one of these reads.",
        )


# Flows and tables


def flows_have_targets(checked: CheckedProject) -> Iterator[DeclarationError]:
    """Flows whose target is not declared or is not a table."""
    tables = dict.fromkeys(checked.project.tables, "table")
    for flow in checked.project.flows:
        target = flow.target
        if target in tables or target in checked.excused:
            continue
        if target in checked.declared:
            kind = checked.kinds[target]
            yield _error(
                f'{flow_label(flow)} writes into "{target}", which is a {kind}',
                flow.place,
                "Flows write into streaming tables; a view is made by its query alone.",
            )
        elif not checked.names_missing:
            yield _error(
                f'{flow_label(flow)} writes into "{target}", which this project does not declare',
                flow.place,
                did_you_mean_the(target, tables) or f"Declare it: CREATE STREAMING TABLE {target};",
            )


def tables_have_flows(checked: CheckedProject) -> Iterator[DeclarationError]:
    """Tables without a flow, and tables that get both changes and appended rows."""
    for table in checked.project.tables.values():
        flows = checked.project.flows_into(table.name)
        if not flows and not checked.names_missing and table.name not in checked.excused:
            yield _error(
                f'no flow writes into the table "{table.name}"',
                table.place,
                f"Add AS SELECT … FROM STREAM …, or CREATE FLOW … AS INSERT INTO {table.name} ….",
            )
        changing = [flow for flow in flows if isinstance(flow, CdcFlow)]
        appending = [flow for flow in flows if isinstance(flow, AppendFlow)]
        if changing and appending:
            yield _error(
                f'the table "{table.name}" gets both changes ({flow_label(changing[0])}) and '
                f"appended rows ({flow_label(appending[0])})",
                appending[0].place,
                "An appended row has no place in a sequence of changes: use two tables.",
            )


# Streams


def views_read_tables(checked: CheckedProject) -> Iterator[DeclarationError]:
    """Materialized views that read a stream, directly or through a temporary view."""
    for view in checked.project.views.values():
        for reference in view.query.references:
            if reference.reading in STREAMING:
                yield _error(
                    f'view "{view.name}" reads a stream, and a materialized view reads all rows of '
                    "its inputs",
                    reference.place,
                    "Leave STREAM out, or make it CREATE STREAMING TABLE.",
                )
    for reader, reference in checked.references():
        inner = checked.project.temporary_views.get(reference.name)
        if inner is not None and reference.reading in (ReadMode.TABLE, ReadMode.STREAM):
            yield from _same_kind_of_reading(checked, reader, reference, inner)


def _same_kind_of_reading(
    checked: CheckedProject, reader: str, reference: Reference, inner: TemporaryView
) -> Iterator[DeclarationError]:
    """A temporary view over a stream is read as a stream, any other as a table."""
    streams = _is_streaming(checked, inner.query)
    if streams is None or streams == (reference.reading is ReadMode.STREAM):
        return
    what, hint = "a stream", f"Leave STREAM out, or put it into {inner.name}."
    if streams:
        what, hint = "all rows", f"Write STREAM({inner.name}), in a streaming table."
    yield _error(
        f'{reader} reads {what} of the temporary view "{inner.name}", which '
        f"{'reads a stream' if streams else 'reads none'}",
        reference.place,
        hint,
    )


def flows_read_streams(checked: CheckedProject) -> Iterator[DeclarationError]:
    """Flows that would append all rows again and again, or whose query needs earlier rows."""
    for flow in checked.project.flows:
        if not isinstance(flow, AppendFlow) or flow.once or not isinstance(flow.query, SqlQuery):
            continue
        if not any(reference.reading in STREAMING for reference in flow.query.references):
            yield _error(
                f"{flow_label(flow)} reads no stream, so it would append all rows again and again",
                flow.query.place,
                "Read STREAM(table), or make it CREATE MATERIALIZED VIEW.",
            )
        else:
            yield from _needs_no_earlier_rows(checked, flow_label(flow), flow.query)
    for view in checked.project.temporary_views.values():
        if isinstance(view.query, SqlQuery) and _is_streaming(checked, view.query):
            yield from _needs_no_earlier_rows(checked, f'temporary view "{view.name}"', view.query)


def _needs_no_earlier_rows(
    checked: CheckedProject, who: str, query: SqlQuery
) -> Iterator[DeclarationError]:
    problem = stateful_part(query, checked.names)
    if problem is not None:
        yield _error(
            f"{who} has {problem}, which needs earlier rows",
            query.place,
            "Use a materialized view over the table; it is kept up to date incrementally too.",
        )


def _is_streaming(checked: CheckedProject, query: Query) -> bool | None:
    """Whether a query reads a stream; None for a Python function whose reads are unknown."""
    readings = {reference.reading for reference in query.references}
    if readings & STREAMING:
        return True
    return False if isinstance(query, SqlQuery) else None


def sources_are_known(checked: CheckedProject) -> Iterator[DeclarationError]:
    """Sources that no plug-in provides, and sources that are read without STREAM."""
    for _, reference in checked.references():
        call = reference.source
        if call is None:
            continue
        known = call.plugin in checked.known_sources
        if reference.reading is ReadMode.SOURCE and not known:
            yield _error(
                f'no source is named "{call.plugin}"',
                call.place,
                did_you_mean(call.plugin, checked.known_sources)
                or f"The sources are {', '.join(sorted(checked.known_sources))}.",
            )
        elif reference.reading is ReadMode.OTHER and known:
            yield _error(
                f"{call.plugin} is a source, and is read here without STREAM",
                call.place,
                f"Write STREAM {call.plugin}(…) in a streaming table and read that table here; "
                "a Delta table is read by its path: delta.`path`.",
            )


def sinks_are_known(checked: CheckedProject) -> Iterator[DeclarationError]:
    """Sinks that no plug-in provides."""
    for declaration in checked.stored.values():
        for sink in declaration.sinks:
            if sink.plugin.lower() not in checked.known_sinks:
                yield _error(
                    f'no kind of sink is named "{sink.plugin}"',
                    sink.place,
                    did_you_mean(sink.plugin, checked.known_sinks)
                    or f"The sinks are {', '.join(sorted(checked.known_sinks))}.",
                )


def calls_fit(checked: CheckedProject) -> Iterator[DeclarationError]:
    """Options of sources and sinks that are wrong, missing or misspelt, and wrong schemas."""
    project = checked.project
    for _, reference in checked.references():
        call = reference.source
        if call is not None and reference.reading is ReadMode.SOURCE:
            yield from _call_errors("source", call, project.sources, project.folder)
    for declaration in checked.stored.values():
        for sink in declaration.sinks:
            yield from _call_errors("sink", sink, project.sinks, project.folder)
        if declaration.schema:
            try:
                column_names(declaration.schema)
            except SpringhouseError as error:
                problem = f'the columns of "{declaration.name}": {error.problem}'
                yield _error(problem, declaration.place, error.hint)


def _call_errors(
    kind: str, call: SourceCall | SinkCall, own: Mapping[str, type], folder: Path
) -> Iterator[DeclarationError]:
    try:
        parse_call(kind, call, own, folder)
    except DeclarationError as error:
        yield error


def sinks_have_places(checked: CheckedProject) -> Iterator[DeclarationError]:
    """Sinks that would overwrite each other, or files of the warehouse."""
    folder = checked.project.folder
    storage = location(checked.project.storage, folder)
    first: dict[str, SinkCall] = {}
    for declaration in checked.stored.values():
        for sink in declaration.sinks:
            text = next((v for k, v in sink.options.items() if k.lower() == "path"), None)
            if text is None or secret_problem(text, folder) is not None:
                continue
            place = location(resolve(text, folder), folder)
            if f"{place}/".startswith(f"{storage}/"):
                problem = f'the sink "{sink.name}" writes into the storage of this project'
                yield _error(problem, sink.place, "Give it a path elsewhere.")
            other = first.setdefault(place, sink)
            if other is not sink:
                yield _error(
                    f'the sinks "{other.name}" and "{sink.name}" have one path, "{text}"',
                    sink.place,
                    f"Give each a path of its own; the first is at {other.place}.",
                )


def columns_exist(checked: CheckedProject) -> Iterator[DeclarationError]:
    """Columns that a query names and none of its inputs has."""
    yield from ColumnCheck(checked.project, checked.names).errors(checked.readers())


# Promises


def promises_name_pathways(checked: CheckedProject) -> Iterator[DeclarationError]:
    """Promises about the data of an input from which the view is not made."""
    for declaration in checked.declared.values():
        if isinstance(declaration, TemporaryView):
            continue
        for pathway in sorted(declaration.promise.staleness_by_pathway):
            *names, last = pathway.split(">")
            reader = declaration.name
            for name in (last, *reversed(names)):
                upstream = checked.graph.upstream(reader)
                if name not in upstream:
                    kinds = {each: checked.kinds.get(each, "table") for each in upstream}
                    yield _error(
                        f'"springhouse.staleness.{pathway}": "{reader}" is not made from "{name}"',
                        declaration.place,
                        _promise_hint(checked, name, kinds),
                    )
                    break
                reader = name


def _promise_hint(checked: CheckedProject, name: str, inputs: dict[str, str]) -> str | None:
    view = checked.project.temporary_views.get(name)
    if view is not None:
        reads = ", ".join(dict.fromkeys(reference.name for reference in view.query.references))
        return f'"{name}" is only a name for a query: name what it reads: {reads}.'
    made_from = ", ".join(inputs) or "no table of this project"
    return did_you_mean_the(name, inputs) or f"It is made from {made_from}."


RULES: tuple[Callable[[CheckedProject], Iterator[DeclarationError]], ...] = (
    names_are_free,
    reads_are_declared,
    nothing_reads_itself,
    flows_have_targets,
    tables_have_flows,
    views_read_tables,
    flows_read_streams,
    sources_are_known,
    sinks_are_known,
    calls_fit,
    sinks_have_places,
    columns_exist,
    promises_name_pathways,
)
