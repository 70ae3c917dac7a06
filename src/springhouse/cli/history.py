"""`springhouse history NAME`: what was committed to a table, when and why?"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from springhouse.cli.options import Json, Name, ProjectFolder, open_warehouse
from springhouse.cli.screen import moment_text, note, print_json, show, table
from springhouse.lake.storage.clock import steady_clock
from springhouse.units import Instant, span_text


def history(
    name: Name,
    limit: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many commits, newest first.")
    ] = 20,
    project: ProjectFolder = None,
    as_json: Json = False,
) -> None:
    """Show the commits of a table or a view, newest first."""
    with open_warehouse(project) as warehouse:
        commits = warehouse.history(name, limit)
    if as_json:
        print_json(commits)
    elif commits:
        show(history_table(commits, steady_clock()))
    else:
        note(f'nothing was committed to "{name}" yet')


def history_table(commits: Sequence[Mapping[str, Any]], now: Instant) -> Table:
    """One row per commit."""
    shown = table(">version", "at", "kind", ">added", ">removed", ">rows", ">took", "reason")
    for each in commits:
        shown.add_row(
            str(each["version"]),
            moment_text(each["at"], now),
            Text(each["kind"]),
            _number(each, "rows_added"),
            _number(each, "rows_removed"),
            _number(each, "rows"),
            span_text(each["seconds"]) if "seconds" in each else "",
            Text(_reason(each)),
        )
    return shown


def _number(commit: Mapping[str, Any], key: str) -> str:
    return f"{commit[key]:,}" if key in commit else ""


def _reason(commit: Mapping[str, Any]) -> str:
    if commit["by"] != "springhouse":
        return f"by {commit['by']}"
    quarantined = commit["quarantined"]
    aside = [f"{quarantined:,} quarantined"] if quarantined else []
    came = commit.get("activities", {}).get("expectations", {}).get("rows_in", 0)
    moved = [f"{came:,} rows came"] if came and came != commit["rows_added"] else []
    broken = [f"{count:,} broke {name}" for name, count in commit["violations"].items()]
    shared = [f"read once with {', '.join(commit['together'])}"] if commit.get("together") else []
    failed = [f"in full: {commit['why']}"] if commit.get("failed") else []
    return ", ".join([*filter(None, [commit["reason"]]), *shared, *moved, *aside, *broken, *failed])
