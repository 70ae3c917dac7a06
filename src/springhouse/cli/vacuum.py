"""`springhouse vacuum`: delete the files that nobody can need any more."""

from typing import Annotated

import typer

from springhouse.cli.options import ProjectFolder, open_warehouse, parse_duration
from springhouse.cli.screen import count_text, show, table


def _duration(text: str | None) -> str | None:
    if text is not None:
        parse_duration(text)
    return text


def vacuum(
    retain: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            callback=_duration,
            help="How long old versions stay readable. Default: springhouse.retention, or 7 days.",
            show_default=False,
        ),
    ] = None,
    project: ProjectFolder = None,
) -> None:
    """Delete the files of old versions that nobody can need any more."""
    with open_warehouse(project, read_only=False) as warehouse:
        deleted = warehouse.vacuum(retain)
    if not deleted:
        show("nothing to delete")
        return
    shown = table("table", ">files deleted")
    for name, files in deleted.items():
        shown.add_row(name, f"{files:,}")
    show(shown, f"\n{count_text(sum(deleted.values()), 'file')} deleted")
