"""`springhouse plan`: what would be refreshed now, in which order, and why?"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from springhouse.cli.options import Json, ProjectFolder, open_house
from springhouse.cli.screen import print_json, show, table
from springhouse.units import span_text

if TYPE_CHECKING:
    from springhouse.house import PlannedRefresh


def plan(project: ProjectFolder = None, as_json: Json = False) -> None:
    """Show what would be refreshed now, in which order, and why."""
    with open_house(project) as house:
        planned = house.plan()
    if as_json:
        print_json([asdict(each) for each in planned])
    elif planned:
        show(plan_table(planned))
    else:
        show("everything is up to date")


def plan_table(planned: Sequence["PlannedRefresh"]) -> Table:
    """The refreshes, first one first."""
    shown = table(
        ">", "table", ">starts", ">cost", "decided by", "tracks", "variant", "reads", "reason"
    )
    for number, each in enumerate(planned, 1):
        inputs = ", ".join(f"{name}@{version}" for name, version in each.inputs.items())
        shown.add_row(
            str(number),
            Text(each.table),
            "now" if each.starts_in_seconds <= 0 else f"in {span_text(each.starts_in_seconds)}",
            f"{each.expected_seconds:.1f} s",
            f"{each.number:.3g} {each.why}",
            ", ".join(map(str, each.tracks)),
            each.variant,
            Text(inputs or "its sources"),
            Text(each.reason),
        )
    return shown
