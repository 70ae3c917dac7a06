"""`springhouse explain NAME`: how is a table made, and what do its rows reflect?"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from springhouse.cli.options import Json, Name, ProjectFolder, open_warehouse
from springhouse.cli.screen import count_text, moment_text, print_json, show
from springhouse.lake.storage.clock import steady_clock
from springhouse.units import Instant, span_text

if TYPE_CHECKING:
    from springhouse.views.explanation import (
        HiddenColumn,
        RefreshExplanation,
        StatementExplanation,
        StepExplanation,
        ViewState,
    )
    from springhouse.warehouse.reports.table_explanation import (
        PromiseExplanation,
        SharedPass,
        StoredTable,
        TableExplanation,
        ViewExplanation,
    )
    from springhouse.warehouse.reports.table_history import ActivityRecord


def explain(name: Name, project: ProjectFolder = None, as_json: Json = False) -> None:
    """Show how a table or a view is made, and what it reflects now."""
    with open_warehouse(project) as warehouse:
        explained = warehouse.explain(name)
    if as_json:
        print_json(explained.to_dict())
        return
    show(
        Text.assemble((explained.name, "bold"), f", a {explained.kind} of {explained.declared_at}")
    )
    show(facts_table(explained, steady_clock()))
    if explained.kind == "table":
        return
    show("", *query_part(explained.query))
    if explained.incremental_refresh is not None:
        show("", *refresh_part(explained.incremental_refresh))


def query_part(query: str) -> Iterator[RenderableType]:
    """The query as the user wrote it."""
    text = query.strip()
    yield Text(text) if text.startswith("Python: ") else _highlighted(text)


def refresh_part(refresh: "RefreshExplanation") -> Iterator[RenderableType]:
    """The steps of a refresh after all inputs have changed."""
    yield Text(f"A refresh after a change of {', '.join(refresh.changed) or 'nothing'}:")
    for number, step in enumerate(refresh.steps, 1):
        hidden = "the hidden table " if step.hidden else ""
        which = f"step {number} of {len(refresh.steps)} writes {hidden}"
        yield ""
        yield Text.assemble(f"  {which}", (step.writes, "bold"), f", {step.holds}")
        yield from _statements(step)


def _statements(step: "StepExplanation") -> Iterator[RenderableType]:
    """The statements of a step that usually run; of the other statements, only the names."""
    for statement in step.statements:
        if not statement.usual:
            continue
        gives = Text.assemble((statement.name, "bold"), f" gives {statement.gives}")
        yield ""
        yield Padding(gives, (0, 0, 0, 4))
        yield ""
        yield Padding(_relations_table(statement), (0, 0, 0, 6))
        yield ""
        yield Padding(_highlighted(statement.sql), (0, 0, 0, 6))
    others = [statement.name for statement in step.statements if not statement.usual]
    if others:
        yield ""
        yield Text(f"    and where they are needed: {', '.join(others)} (--json)", style="dim")


def _relations_table(statement: "StatementExplanation") -> Table:
    shown = Table.grid(padding=(0, 2, 0, 0))
    shown.add_column(no_wrap=True)
    shown.add_column(style="dim", overflow="fold")
    for relation in statement.reads:
        shown.add_row(Text(relation.name), Text(relation.meaning))
    return shown


def _highlighted(sql: str) -> Text:
    """SQL in colours, if the screen has colours."""
    # This loads Pygments, which no other command needs.
    from rich.syntax import Syntax

    # A text wraps; a panel of code would cut off lines that are too long for the screen.
    text = Syntax("", "sql", theme="ansi_dark", background_color="default").highlight(sql)
    text.rstrip()
    text.no_wrap, text.overflow = False, "fold"
    return text


def facts_table(explained: "TableExplanation | ViewExplanation", now: Instant) -> Table:
    """The known facts, one per row, without the empty ones."""
    shown = Table.grid(padding=(0, 2, 0, 0))
    shown.add_column(style="dim", no_wrap=True)
    shown.add_column(overflow="fold")
    is_view = explained.kind == "view"
    for title, facts in (
        ("promise", [_promise(explained.promise, is_view)]),
        ("expects", _expectations(explained)),
        *(_table_facts(explained) if explained.kind == "table" else _view_facts(explained)),
        ("read by", _listed(explained.read_by)),
        ("goes to", _sinks(explained)),
        ("stored", _stored(explained, now)),
        ("location", [explained.location]),
    ):
        for number, fact in enumerate(facts):
            shown.add_row("" if number else title, Text(fact))
    return shown


_Facts = Iterable[tuple[str, list[str]]]


def _view_facts(view: "ViewExplanation") -> _Facts:
    yield "reads", _listed(view.inputs)
    if view.has_unwatched_inputs:
        yield "", ["and inputs that nobody can watch"]
    yield "pathways", list(view.pathways)
    yield "refresh", [f"{view.refresh}: {_possible(view)}"]
    last = view.stored.last_refresh if view.stored is not None else None
    if last is not None and last.way:
        facts = [f"{last.way}, {span_text(last.duration_seconds or 0.0)}", last.way_reason]
        yield "last", [fact for fact in facts if fact]
    if view.incremental_refresh is not None:
        yield "state", list(_state(view.incremental_refresh.state, view.hidden_tables))


def _possible(view: "ViewExplanation") -> str:
    """The kinds of refresh that are possible for the view, and the reason if some are not."""
    if view.why_not is None:
        promised = view.refresh == "incremental"
        return "as promised" if promised else "incremental where that is cheaper than full"
    why = f"{view.why_not.reason} ({view.why_not.place})"
    return f"not known yet, {why}" if view.incremental is None else f"always full, because {why}"


def _state(state: "ViewState", stored: "tuple[StoredTable, ...] | None") -> Iterator[str]:
    if stored is None:
        yield "none yet; a refresh builds it when later ones would have profited"
    yield from _columns(state.hidden_columns)
    sizes = {
        each.name: f": {count_text(each.rows, 'row')} in {count_text(each.files, 'file')}"
        for each in stored or ()
    }
    for table in state.tables:
        by = f" by {', '.join(table.keys)}" if table.keys else ""
        yield f"hidden table {table.name}{by}{sizes.get(table.name, '')}"
        yield from (f"  {column}" for column in _columns(table.hidden_columns))


def _columns(columns: "Iterable[HiddenColumn]") -> Iterator[str]:
    for column in columns:
        yield f"{column.name} holds {column.holds}"


def _table_facts(table: "TableExplanation") -> _Facts:
    for number, flow in enumerate(table.flows):
        reads = f"{flow.name} ({flow.declared_at}) reads {', '.join(flow.reads)}"
        yield "" if number else "flows", [reads]
    yield "one pass", [_shared_pass(table.shared_pass)]
    if table.stored is not None:
        yield "moved", list(_activities(table.stored.last_refresh.activities))
    yield "offsets", [f"{name}: {offset:,}" for name, offset in table.offsets.items()]
    dated = f"{table.timestamp}, up to {span_text(table.lateness_seconds)} late"
    yield "dated by", [dated if table.timestamp else "arrival"]
    yield "asks", [f"its sources every {span_text(table.period_seconds)}"]


def _shared_pass(shared: "SharedPass") -> str:
    """The tables that one pass fills together, if their offsets agree."""
    if shared.why_not:
        return f"by itself, because {shared.why_not}"
    return f"over {shared.source}, with {', '.join(shared.tables)} where they stand together"


def _activities(activities: "Mapping[str, ActivityRecord]") -> Iterator[str]:
    """The work of each activity in the last refresh."""
    for name, did in activities.items():
        rows = f"{did.rows_in:,} rows in, {did.rows_out:,} out"
        waited = f", at most {count_text(did.most_waiting_packs, 'pack')} waited"
        took = f"{did.duration_seconds * 1000:.1f} ms"
        yield f"{name}: {rows}, {took}{waited if did.most_waiting_packs else ''}"


def _promise(promise: "PromiseExplanation", is_view: bool) -> str:
    parts = []
    if promise.staleness_seconds is not None:
        parts.append(f"staleness {span_text(promise.staleness_seconds)}")
    for pathway, seconds in promise.staleness_seconds_by_pathway.items():
        parts.append(f"staleness {span_text(seconds)} through {pathway}")
    if not parts:
        parts.append("as fresh as possible")
    if is_view:
        bound = promise.inconsistency_seconds
        parts.append(f"inconsistency {span_text(bound)}" if bound else "strictly consistent")
    return ", ".join([*parts, f"priority {promise.priority:g}"])


def _expectations(explained: "TableExplanation | ViewExplanation") -> list[str]:
    return [
        f"{each.name}: {each.condition}, else {each.on_violation}"
        for each in explained.expectations
    ]


def _sinks(explained: "TableExplanation | ViewExplanation") -> list[str]:
    return [
        f"{sink.name}: {sink.plugin}, {count_text(sink.versions_delivered, 'version')}"
        for sink in explained.sinks
    ]


def _stored(explained: "TableExplanation | ViewExplanation", now: Instant) -> list[str]:
    stored = explained.stored
    if stored is None:
        return ["nothing yet"]
    last = stored.last_refresh
    reflects = [
        f"{pathway}@{', '.join(map(str, versions))}"
        for pathway, versions in stored.reflects.items()
    ]
    rows = "" if last.rows is None else f", {count_text(last.rows, 'row')}"
    consistent = "consistent" if stored.consistent else "inconsistent"
    facts = [
        f"version {stored.version} of {moment_text(last.at, now)}{rows}",
        f"{consistent}, reflects {', '.join(reflects) or 'nothing'}",
    ]
    if stored.valid_from is not None:
        until = stored.valid_until
        ends = "now" if until is None else moment_text(until, now)
        facts.append(f"T+ {moment_text(stored.valid_from, now)}, T- {ends}")
    return facts


def _listed(names: Iterable[str]) -> list[str]:
    return [", ".join(names)] if names else []
