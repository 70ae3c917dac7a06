"""`springhouse status`: how fresh is every table and view?"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from springhouse.cli.options import Json, ProjectFolder, open_warehouse
from springhouse.cli.screen import console, count_text, moment_text, print_json, show, table
from springhouse.lake.storage.clock import steady_clock
from springhouse.units import Instant, span_text

if TYPE_CHECKING:
    from springhouse.warehouse import TableStatus

_WIDE = 105
_STYLES = {"up to date": "green", "waiting": "yellow", "failing": "red", "no source": "red"}


def status(project: ProjectFolder = None, as_json: Json = False) -> None:
    """Show how fresh every table and view is, against its promise."""
    with open_warehouse(project) as warehouse:
        tables = warehouse.status()
    if as_json:
        print_json([each.to_dict() for each in tables])
        return
    picture = status_table(tables, steady_clock(), console().width)
    show(picture, *remarks(tables))


def status_table(tables: Sequence["TableStatus"], now: Instant, width: int = 80) -> Table:
    """One row per table; a narrow screen shows fewer columns."""
    if width < _WIDE:
        shown = table("table", "state", "lag", ">staleness", ">kept", "next")
        for each in tables:
            kept, _, _, turn = _schedule(each)
            name, _, state, lag, stale = _cells(each, _state(each))
            shown.add_row(name, state, lag, stale, kept, turn)
        return shown
    words = ("table", ">rows", "state", "lag", ">staleness", ">kept", ">cost", "tracks", "next")
    shown = table(*words, ">refreshed")
    for each in tables:
        refreshed = "" if each.refreshed_at is None else moment_text(each.refreshed_at, now)
        shown.add_row(*_cells(each, _state(each)), *_schedule(each), refreshed)
    return shown


def _schedule(each: "TableStatus") -> list[Text]:
    """How its promise was kept, the expected seconds of a refresh, and its place and time."""
    kept = "" if each.promise_kept_share is None else f"{each.promise_kept_share:.0%}"
    cost = "" if each.expected_refresh_seconds is None else f"{each.expected_refresh_seconds:.1f} s"
    return [
        Text(kept, "" if each.promise_kept_share in (None, 1.0) else "red"),
        Text(cost),
        Text(", ".join(map(str, each.tracks))),
        Text(_turn(each)),
    ]


def _turn(each: "TableStatus") -> str:
    """When its next refresh starts, or on which track its refresh runs now."""
    if each.running_on_track is not None:
        return f"runs on {each.running_on_track}"
    if each.starts_in_seconds:
        return f"in {span_text(each.starts_in_seconds)}"
    return "" if each.queue_place is None else f"{each.queue_place}."


def live_table(
    tables: Sequence["TableStatus"], now: Instant, running: Mapping[str, Instant]
) -> Table:
    """The same while a warehouse runs; `running` are the refreshes under way, with their start."""
    shown = table("table", ">rows", "state", "lag", ">staleness")
    for each in tables:
        since = running.get(each.name)
        state = _state(each) if since is None else Text(f"running {now - since:.0f} s", "cyan")
        shown.add_row(*_cells(each, state))
    return shown


def _cells(each: "TableStatus", state: Text) -> list[Text]:
    return [
        Text(each.name),
        Text("" if each.rows is None else f"{each.rows:,}"),
        state,
        _lag(each),
        Text("" if each.staleness_seconds is None else span_text(each.staleness_seconds)),
    ]


def _state(each: "TableStatus") -> Text:
    return Text(each.state, _STYLES.get(each.state, "dim"))


def _lag(each: "TableStatus") -> Text:
    """The lag, beside the promise if there is one: "3 s of 1 min"."""
    lag = span_text(each.lag_seconds)
    if each.promise_seconds is None:
        return Text(lag)
    style = "" if each.promise_kept else "bold red"
    return Text(f"{lag} of {span_text(each.promise_seconds)}", style)


def remarks(tables: Sequence["TableStatus"]) -> list[Text]:
    """Problems, warnings and quarantined rows, which do not fit into the table."""
    lines = []
    for each in tables:
        if each.problem:
            lines.append(Text.assemble((f"\n{each.name}: ", "red"), each.problem))
        if each.warning:
            lines.append(Text.assemble((f"\n{each.name}: ", "yellow"), each.warning))
        if each.quarantined_rows:
            rows = count_text(each.quarantined_rows, "row")
            lines.append(Text(f"\n{each.name}: {rows} in {each.name}_quarantine"))
    return lines
