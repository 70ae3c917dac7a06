"""`springhouse explain NAME`: how is a table made, and what do its rows reflect?"""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from springhouse.cli.options import Json, Name, ProjectFolder, open_house
from springhouse.cli.screen import moment_text, print_json, show
from springhouse.units import Instant, span_text


def explain(name: Name, project: ProjectFolder = None, as_json: Json = False) -> None:
    """Show how a table or a view is made, and what it reflects now."""
    with open_house(project) as house:
        told = house.explain(name)
    if as_json:
        print_json(told)
        return
    show(Text.assemble((told["name"], "bold"), f", a {told['kind']} of {told['declared_at']}"))
    show(facts_table(told, Instant(time.time())))
    if "query" in told:
        show("", Text(told["query"].strip()))


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
    yield "refresh", [f"{told['refresh']}, now {told['variant']}: {told['why']}"]


def _table_facts(told: Mapping[str, Any]) -> _Facts:
    for number, flow in enumerate(told["flows"]):
        reads = f"{flow['name']} ({flow['declared_at']}) reads {', '.join(flow['reads'])}"
        yield "" if number else "flows", [reads]
    yield "offsets", [f"{name}: {offset:,}" for name, offset in told["offsets"].items()]
    dated = f"{told['timestamp']}, up to {span_text(told['lateness_seconds'])} late"
    yield "dated by", [dated if told["timestamp"] else "arrival"]
    yield "asks", [f"its sources every {span_text(told['period_seconds'])}"]


def _promise(promise: Mapping[str, Any], is_view: bool) -> str:
    parts = []
    if promise["staleness_seconds"] is not None:
        parts.append(f"staleness {span_text(promise['staleness_seconds'])}")
    for name, seconds in promise["staleness_by_input"].items():
        parts.append(f"staleness {span_text(seconds)} through {name}")
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


def _stored(told: Mapping[str, Any], now: Instant) -> list[str]:
    if "stored" not in told:
        return ["nothing yet"]
    stored = told["stored"]
    last = stored["last_refresh"]
    reflects = [
        f"{channel}@{', '.join(map(str, versions)) if isinstance(versions, list) else versions}"
        for channel, versions in stored["reflects"].items()
    ]
    rows = f", {last['rows']:,} rows" if "rows" in last else ""
    consistent = "consistent" if stored["consistent"] else "inconsistent"
    return [
        f"version {stored['version']} of {moment_text(last['at'], now)}{rows}",
        f"{consistent}, reflects {', '.join(reflects) or 'nothing'}",
    ]


def _listed(names: Iterable[str]) -> list[str]:
    return [", ".join(names)] if names else []
