"""`springhouse status`: how does every table and view stand?"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from springhouse.cli.options import Json, ProjectFolder, open_house
from springhouse.cli.screen import moment_text, print_json, show, table
from springhouse.units import Instant, span_text

if TYPE_CHECKING:
    from springhouse.house import TableStatus

_STYLES = {"up to date": "green", "waiting": "yellow", "failing": "red"}


def status(project: ProjectFolder = None, as_json: Json = False) -> None:
    """Show how fresh every table and view is, against its promise."""
    with open_house(project) as house:
        tables = house.status()
    if as_json:
        print_json([each.as_json() for each in tables])
        return
    show(status_table(tables, Instant(time.time())), *problems(tables))


def status_table(
    tables: Sequence["TableStatus"], now: Instant, running: Mapping[str, Instant] | None = None
) -> Table:
    """One row per table; `running` are those that are being refreshed, and since when."""
    running = running or {}
    set_aside = any(each.quarantined for each in tables)
    shown = table("table", ">rows", *([">quarantined"] if set_aside else []), "state", "lag")
    shown.add_column("staleness", justify="right")
    shown.add_column("refreshed", justify="right")
    for each in tables:
        shown.add_row(
            Text(each.name),
            "" if each.rows is None else f"{each.rows:,}",
            *([f"{each.quarantined:,}"] if set_aside else []),
            _state(each, now, running.get(each.name)),
            _lag(each),
            "" if each.staleness_seconds is None else span_text(each.staleness_seconds),
            "" if each.refreshed_at is None else moment_text(each.refreshed_at, now),
        )
    return shown


def _state(each: "TableStatus", now: Instant, running_since: Instant | None) -> Text:
    if running_since is not None:
        return Text(f"running {now - running_since:.0f} s", "cyan")
    return Text(each.state, _STYLES.get(each.state, "dim"))


def _lag(each: "TableStatus") -> Text:
    """The lag, beside the promise if there is one: "3 s of 1 min"."""
    lag = span_text(each.lag_seconds)
    if each.promise_seconds is None:
        return Text(lag)
    style = "" if each.promise_kept else "bold red"
    return Text(f"{lag} of {span_text(each.promise_seconds)}", style)


def problems(tables: Sequence["TableStatus"]) -> list[Text]:
    """What keeps tables from being refreshed, a paragraph for each."""
    return [
        Text.assemble((f"\n{each.name}: ", "red"), each.problem) for each in tables if each.problem
    ]
