"""`springhouse history NAME`: which commits does a table have, when and why?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from springhouse.cli.options import Json, Name, ProjectFolder, open_warehouse
from springhouse.cli.screen import moment_text, note, print_json, show, table
from springhouse.lake.storage.clock import steady_clock
from springhouse.units import Instant, span_text

if TYPE_CHECKING:
    from springhouse.warehouse import CommitRecord


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
        print_json([each.to_dict() for each in commits])
    elif commits:
        show(history_table(commits, steady_clock()))
    else:
        note(f'nothing was committed to "{name}" yet')


def history_table(commits: Sequence["CommitRecord"], now: Instant) -> Table:
    """One row per commit."""
    shown = table(">version", "at", "kind", ">added", ">removed", ">rows", ">took", "reason")
    for commit in commits:
        took = commit.duration_seconds
        shown.add_row(
            str(commit.version),
            moment_text(commit.at, now),
            Text(commit.kind),
            _count(commit.rows_added),
            _count(commit.rows_removed),
            _count(commit.rows),
            "" if took is None else span_text(took),
            Text(_reason(commit)),
        )
    return shown


def _count(rows: int | None) -> str:
    return "" if rows is None else f"{rows:,}"


def _reason(commit: "CommitRecord") -> str:
    if commit.by != "springhouse":
        return f"by {commit.by}"
    parts = [commit.reason]
    if commit.together_with:
        parts.append(f"read once with {', '.join(commit.together_with)}")
    judged = commit.activities.get("expectations")
    if judged is not None and judged.rows_in not in (0, commit.rows_added):
        parts.append(f"{judged.rows_in:,} rows came")
    if commit.quarantined_rows:
        parts.append(f"{commit.quarantined_rows:,} quarantined")
    parts += [f"{count:,} broke {name}" for name, count in commit.violations.items()]
    if commit.failure:
        parts.append(f"in full: {commit.way_reason}")
    return ", ".join(filter(None, parts))
