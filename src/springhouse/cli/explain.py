"""`springhouse explain NAME`: how is a table made, and what do its rows reflect?"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from springhouse.cli.options import Json, Name, ProjectFolder, open_warehouse
from springhouse.cli.screen import count_text, moment_text, print_json, show
from springhouse.lake.storage.clock import steady_clock
from springhouse.units import Instant, span_text


def explain(name: Name, project: ProjectFolder = None, as_json: Json = False) -> None:
    """Show how a table or a view is made, and what it reflects now."""
    with open_warehouse(project) as warehouse:
        told = warehouse.explain(name)
    if as_json:
        print_json(told)
        return
    show(Text.assemble((told["name"], "bold"), f", a {told['kind']} of {told['declared_at']}"))
    show(facts_table(told, steady_clock()))
    if "query" in told:
        show("", *query_part(told))
    if "steps" in told:
        show("", *refresh_part(told))


def query_part(told: Mapping[str, Any]) -> Iterator[RenderableType]:
    """What the user wrote."""
    text = told["query"].strip()
    yield Text(text) if text.startswith("Python: ") else _highlighted(text)


def refresh_part(told: Mapping[str, Any]) -> Iterator[RenderableType]:
    """The steps of a refresh after a change of all inputs."""
    yield Text(f"A refresh after a change of {', '.join(told['changed']) or 'nothing'}:")
    for number, step in enumerate(told["steps"], 1):
        hidden = "the hidden table " if step["hidden"] else ""
        which = f"step {number} of {len(told['steps'])} writes {hidden}"
        yield ""
        yield Text.assemble(f"  {which}", (step["writes"], "bold"), f", {step['holds']}")
        yield from _statements(step)


def _statements(step: Mapping[str, Any]) -> Iterator[RenderableType]:
    """The statements of a step that usually run, and the names of the others."""
    for statement in step["statements"]:
        if not statement["usual"]:
            continue
        gives = Text.assemble((statement["name"], "bold"), f" gives {statement['gives']}")
        yield ""
        yield Padding(gives, (0, 0, 0, 4))
        yield ""
        yield Padding(_relations_table(statement), (0, 0, 0, 6))
        yield ""
        yield Padding(_highlighted(statement["sql"]), (0, 0, 0, 6))
    others = [each["name"] for each in step["statements"] if not each["usual"]]
    if others:
        yield ""
        yield Text(f"    and where they are needed: {', '.join(others)} (--json)", style="dim")


def _relations_table(statement: Mapping[str, Any]) -> Table:
    shown = Table.grid(padding=(0, 2, 0, 0))
    shown.add_column(no_wrap=True)
    shown.add_column(style="dim", overflow="fold")
    for relation in statement["reads"]:
        shown.add_row(Text(relation["name"]), Text(relation["is"]))
    return shown


def _highlighted(sql: str) -> Text:
    """SQL in colours, where there are colours."""
    # It brings Pygments along, which all other commands can do without.
    from rich.syntax import Syntax

    # As a text that wraps: a panel of code would cut off what is too long for the screen.
    text = Syntax("", "sql", theme="ansi_dark", background_color="default").highlight(sql)
    text.rstrip()
    text.no_wrap, text.overflow = False, "fold"
    return text


def facts_table(told: Mapping[str, Any], now: Instant) -> Table:
    """What is known, a fact per row; what says nothing is left out."""
    shown = Table.grid(padding=(0, 2, 0, 0))
    shown.add_column(style="dim", no_wrap=True)
    shown.add_column(overflow="fold")
    is_view = told["kind"] == "view"
    for title, facts in (
        ("promise", [_promise(told["promise"], is_view)]),
        ("expects", _expectations(told)),
        *(_view_facts(told) if is_view else _table_facts(told)),
        ("read by", _listed(told["read_by"])),
        ("goes to", _sinks(told)),
        ("stored", _stored(told, now)),
        ("location", [told["location"]]),
    ):
        for number, fact in enumerate(facts):
            shown.add_row("" if number else title, Text(fact))
    return shown


_Facts = Iterable[tuple[str, list[str]]]


def _view_facts(told: Mapping[str, Any]) -> _Facts:
    yield "reads", _listed(told["inputs"])
    if told["inputs_that_nobody_can_watch"]:
        yield "", ["and inputs that nobody can watch"]
    yield "pathways", list(told["pathways"])
    yield "refresh", [f"{told['refresh']}: {_possible(told)}"]
    if "stored" in told and told["stored"]["last_refresh"].get("variant"):
        last = told["stored"]["last_refresh"]
        facts = [f"{last['variant']}, {span_text(last['seconds'])}", last["why"]]
        yield "last", [fact for fact in facts if fact]
    if told["incremental"]:
        yield "state", list(_state(told["state"]))


def _possible(told: Mapping[str, Any]) -> str:
    """Which refreshes the view can have, and if not all, why."""
    if told["incremental"]:
        promised = told["refresh"] == "incremental"
        return "as promised" if promised else "incremental where that is cheaper than full"
    why = f"{told['why_not']['reason']} ({told['why_not']['place']})"
    return f"not known yet, {why}" if told["incremental"] is None else f"always full, because {why}"


def _state(state: Mapping[str, Any]) -> Iterator[str]:
    if not state["stored"]:
        yield "none yet; a refresh builds it when later ones would have profited"
    yield from _columns(state["hidden_columns"])
    for table in state["tables"]:
        stored = f": {count_text(table['rows'], 'row')} in {count_text(table['files'], 'file')}"
        by = f" by {', '.join(table['keys'])}" if table["keys"] else ""
        yield f"hidden table {table['name']}{by}{stored if state['stored'] else ''}"
        yield from (f"  {column}" for column in _columns(table["hidden_columns"]))


def _columns(columns: Iterable[Mapping[str, str]]) -> Iterator[str]:
    for column in columns:
        yield f"{column['name']} holds {column['holds']}"


def _table_facts(told: Mapping[str, Any]) -> _Facts:
    for number, flow in enumerate(told["flows"]):
        reads = f"{flow['name']} ({flow['declared_at']}) reads {', '.join(flow['reads'])}"
        yield "" if number else "flows", [reads]
    yield "one pass", [_one_pass(told["one_pass"])]
    if "stored" in told:
        yield "moved", list(_activities(told["stored"]["last_refresh"]))
    yield "offsets", [f"{name}: {offset:,}" for name, offset in told["offsets"].items()]
    dated = f"{told['timestamp']}, up to {span_text(told['lateness_seconds'])} late"
    yield "dated by", [dated if told["timestamp"] else "arrival"]
    yield "asks", [f"its sources every {span_text(told['period_seconds'])}"]


def _one_pass(shared: Mapping[str, Any]) -> str:
    """With whom the table is given its rows, when they stand at the same place."""
    if shared["why_not"]:
        return f"by itself, because {shared['why_not']}"
    return f"over {shared['source']}, with {', '.join(shared['with'])} where they stand together"


def _activities(last: Mapping[str, Any]) -> Iterator[str]:
    """What each activity did in the last refresh."""
    for name, did in last.get("activities", {}).items():
        rows = f"{did['rows_in']:,} rows in, {did['rows_out']:,} out"
        waited = f", at most {count_text(did['most_waiting'], 'pack')} waited"
        took = f"{did['seconds'] * 1000:.1f} ms"
        yield f"{name}: {rows}, {took}{waited if did['most_waiting'] else ''}"


def _promise(promise: Mapping[str, Any], is_view: bool) -> str:
    parts = []
    if promise["staleness_seconds"] is not None:
        parts.append(f"staleness {span_text(promise['staleness_seconds'])}")
    for pathway, seconds in promise["staleness_by_pathway"].items():
        parts.append(f"staleness {span_text(seconds)} through {pathway}")
    if not parts:
        parts.append("as fresh as possible")
    if is_view:
        bound = promise["inconsistency_seconds"]
        parts.append(f"inconsistency {span_text(bound)}" if bound else "strictly consistent")
    return ", ".join([*parts, f"priority {promise['priority']:g}"])


def _expectations(told: Mapping[str, Any]) -> list[str]:
    return [
        f"{e['name']}: {e['condition']}, else {e['on_violation']}" for e in told["expectations"]
    ]


def _sinks(told: Mapping[str, Any]) -> list[str]:
    return [
        f"{sink['name']}: {sink['plugin']}, {count_text(sink['versions_delivered'], 'version')}"
        for sink in told.get("sinks", ())
    ]


def _stored(told: Mapping[str, Any], now: Instant) -> list[str]:
    if "stored" not in told:
        return ["nothing yet"]
    stored = told["stored"]
    last = stored["last_refresh"]
    reflects = [
        f"{channel}@{', '.join(map(str, versions)) if isinstance(versions, list) else versions}"
        for channel, versions in stored["reflects"].items()
    ]
    rows = f", {count_text(last['rows'], 'row')}" if "rows" in last else ""
    consistent = "consistent" if stored["consistent"] else "inconsistent"
    found = [
        f"version {stored['version']} of {moment_text(last['at'], now)}{rows}",
        f"{consistent}, reflects {', '.join(reflects) or 'nothing'}",
    ]
    since, until = stored["valid_from"], stored["valid_until"]
    if since is not None:
        ends = "now" if until is None else moment_text(Instant(until), now)
        found.append(f"T+ {moment_text(Instant(since), now)}, T- {ends}")
    return found


def _listed(names: Iterable[str]) -> list[str]:
    return [", ".join(names)] if names else []
