"""`springhouse plan`: what would be refreshed now, in which order, and why?"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from springhouse.cli.options import Json, ProjectFolder, open_warehouse
from springhouse.cli.screen import note, print_json, show, table
from springhouse.units import span_text

if TYPE_CHECKING:
    from springhouse.refresh.promises.feasible import UnkeepablePromise
    from springhouse.warehouse import PlannedRefresh


def plan(project: ProjectFolder = None, as_json: Json = False) -> None:
    """Show what would be refreshed now, in which order, and why."""
    with open_warehouse(project) as warehouse:
        planned, unkeepable = warehouse.plan(), warehouse.unkeepable_promises()
    if as_json:
        print_json([each.to_dict() for each in planned])
    elif planned:
        show(plan_table(planned))
        for each in planned:
            show(*plan_details(each))
    else:
        show("everything is up to date")
    if not as_json:
        warn_unkeepable(unkeepable)


def warn_unkeepable(findings: Sequence["UnkeepablePromise"]) -> None:
    """Name each promise that can't be kept, and the shortest one that could be."""
    for each in findings:
        could = "no bound could be kept"
        if each.possible_seconds is not None:
            could = f"{span_text(each.possible_seconds)} could be kept"
        whose = f'the promise of "{each.table}" ({span_text(each.promise_seconds)})'
        note(f"warning: {whose} can't be kept: {each.why}; {could}")


def plan_table(planned: Sequence["PlannedRefresh"]) -> Table:
    """The planned refreshes, in their order."""
    shown = table(
        ">", "table", ">starts", ">cost", "decided by", "tracks", "way", "reads", "reason"
    )
    for number, each in enumerate(planned, 1):
        inputs = ", ".join(f"{name}@{version}" for name, version in each.input_versions.items())
        shown.add_row(
            str(number),
            Text(each.table),
            "now" if each.starts_in_seconds <= 0 else f"in {span_text(each.starts_in_seconds)}",
            f"{each.expected_seconds:.1f} s",
            f"{each.score:.3g} {each.score_meaning}",
            ", ".join(map(str, each.tracks)),
            each.way + (f", driven by {each.driver}" if each.driver else ""),
            Text(inputs or "its sources"),
            Text(each.reason),
        )
    return shown


def plan_details(planned: "PlannedRefresh") -> Iterator[Text]:
    """The planner's remarks on a view: what it will reflect, its promises, and other ways."""
    if not planned.reaches:
        return
    reaches = ", ".join(
        f"{pathway}@{'+'.join(map(str, versions))}" for pathway, versions in planned.reaches.items()
    )
    bounds = ", ".join(
        f"staleness {span_text(each.staleness_seconds)} of {each.pathway}"
        if each.staleness_seconds
        else f"{each.pathway} as fresh as possible"
        for each in planned.bounds
    )
    yield Text.assemble((planned.table, "bold"), f" will reflect {reaches}")
    if bounds:
        yield Text(f"  asked for by {bounds}")
    ways = [f"{each.way} {each.expected_seconds:.1f} s" for each in planned.alternatives]
    cost = "" if planned.planned_seconds is None else f" {planned.planned_seconds:.1f} s"
    instead = f", instead of {', '.join(ways)}" if ways else ""
    yield Text(f"  {planned.way}{cost}{instead}", style="dim")
