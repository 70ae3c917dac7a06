"""`springhouse verify`: do the files of all tables agree with the logs?"""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from springhouse.cli.options import Json, ProjectFolder, open_warehouse
from springhouse.cli.screen import count_text, note, print_json, show

if TYPE_CHECKING:
    from springhouse.lake.upkeep.verification import Verified
    from springhouse.warehouse import Warehouse


def verify(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[TABLE]", help="One table or view. Default: all.", show_default=False
        ),
    ] = None,
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Also run the query of each view, and compare.")
    ] = False,
    project: ProjectFolder = None,
    as_json: Json = False,
) -> None:
    """Compare every file, note and offset with the logs, and views with their queries.

    Nothing is changed. The exit code is 1 if there is any problem.
    """
    with open_warehouse(project) as warehouse:
        show_table = _no_progress if as_json else _tell
        found = warehouse.verify(name, recompute=recompute, on_table=show_table)
    problems = sum(len(each.problems) for each in found)
    if as_json:
        print_json([_as_json(each) for each in found])
    elif not found:
        note("there is nothing to verify yet")
    elif problems:
        show(f"\n{count_text(problems, 'problem')} in {count_text(len(found), 'table')}")
        _advise(warehouse, found)
    else:
        show(f"\n{count_text(len(found), 'table')} verified: all is as it should be")
    if problems:
        raise typer.Exit(1)


def _no_progress(each: "Verified") -> None:
    """With `--json`, the command prints everything at the end."""


def _tell(each: "Verified") -> None:
    """Print the result of one table at once, because a large warehouse takes its time."""
    held = f"{count_text(each.rows, 'row')} in {count_text(each.files, 'file')}"
    show(Text(f"{each.table}: {held}" + ("" if each.problems else ", ok")))
    if each.untold:
        show(Text(f"  not compared with its query: {each.untold}"))
    for problem in each.problems:
        show(Text(f"  {problem}"))


def _advise(warehouse: "Warehouse", found: "list[Verified]") -> None:
    views = [e.table for e in found if e.problems and e.table in warehouse.project.views]
    others = [e.table for e in found if e.problems and e.table not in warehouse.project.views]
    if views:
        note(f"`springhouse run --once` computes views with lost files anew: {', '.join(views)}")
    if others:
        note(
            f"restore lost files of {', '.join(others)} from a backup, or delete the table's "
            "folder: then it is read anew from its sources"
        )


def _as_json(each: "Verified") -> dict[str, object]:
    return {
        "table": each.table,
        "files": each.files,
        "rows": each.rows,
        "bytes": each.size,
        "problems": list(each.problems),
        **({"untold": each.untold} if each.untold else {}),
    }
