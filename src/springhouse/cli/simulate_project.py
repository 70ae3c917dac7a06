"""`springhouse simulate warehouse -p DIR`: how would the tables of this project fare?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table
from rich.text import Text

from springhouse.cli.options import open_warehouse
from springhouse.cli.plot import draw_staleness
from springhouse.cli.screen import count_text, note, print_json, show, table
from springhouse.errors import SpringhouseError
from springhouse.project.declarations.durations import duration_seconds
from springhouse.units import Seconds, span_text

if TYPE_CHECKING:
    from springhouse.planner.offers import Offered
    from springhouse.project.declarations.declaration import Project, Promise
    from springhouse.simulate.pretend_project import WhatIf
    from springhouse.simulate.project_outcome import ProjectComparison, ProjectOutcome
    from springhouse.simulate.project_record import ProjectRecord


@dataclass(frozen=True)
class WhatIfOptions:
    """What is to be otherwise than it was recorded."""

    seconds: float
    tracks: int | None
    policy: str | None
    arrivals_times: float
    costs_times: float
    promises: Sequence[str]
    priorities: Sequence[str]
    seed: int


def simulate_project(
    folder: Path, asked: WhatIfOptions, plot: Path | None, *, as_json: bool
) -> None:
    """Replay what a project's logs recorded, and show how its tables would fare."""
    from springhouse.project.settings import TRACKS
    from springhouse.refresh.policy_settings import configured_policy
    from springhouse.simulate.policy_words import read_policy
    from springhouse.simulate.pretend_project import WhatIf
    from springhouse.simulate.project_outcome import compare_policies

    project, recorded, offered = _read(folder)
    project = _with_promises(project, asked)
    guessed = [name for name, each in recorded.tables.items() if each.is_guessed]
    if guessed:
        names = ", ".join(guessed)
        note(f"too few refreshes to know what these cost, so it is guessed: {names}")
    usual = configured_policy(project.configuration)
    policy = usual if asked.policy is None else read_policy(asked.policy, usual)
    tracks = asked.tracks or TRACKS.read(project.configuration)
    what_if = WhatIf(tracks, asked.arrivals_times, asked.costs_times, asked.seed)
    found = compare_policies(project, recorded, offered, policy, what_if, asked.seconds)
    if plot is not None:
        runs = {str(policy): found.ours, "FIFO": found.fifo, "no contention": found.uncontended}
        draw_staleness(plot, {name: fate.curve for name, fate in runs.items()})
    if as_json:
        print_json(_as_json(found, what_if))
        return
    show(outcome_table(found.ours), "", comparison(found), "", *totals(found, what_if))
    if policy.heed_promises and found.ours.kept_share is not None:
        show("tables with a promise wait as long as it allows, which saves refreshes")


def _read(folder: Path) -> "tuple[Project, ProjectRecord, Mapping[str, Offered]]":
    """A project, what its logs recorded, and in which ways its views can be refreshed."""
    from springhouse.simulate.project_record import read_record

    with open_warehouse(folder) as warehouse:
        offers, project = warehouse.internals.watch.offers, warehouse.project
        made = [
            name
            for name in project.views
            if warehouse.internals.lake.log(name).newest() is not None
        ]
        offered = {name: offers.offered(name) for name in (*project.tables, *made)}
        return project, read_record(project, warehouse.internals.lake), offered


def _with_promises(project: "Project", asked: WhatIfOptions) -> "Project":
    """The project with other promises and priorities."""
    for text in asked.promises:
        name, span = _named(project, text, "--promise", "revenue=30 seconds")
        staleness = Seconds(duration_seconds(span))
        project = _promising(project, name, staleness_seconds=staleness, staleness_by_pathway={})
    for text in asked.priorities:
        name, number = _named(project, text, "--priority", "revenue=10")
        try:
            priority = float(number)
        except ValueError:
            raise typer.BadParameter(f'"{number}" is no number', param_hint="--priority") from None
        project = _promising(project, name, priority=priority)
    return project


def _named(project: "Project", text: str, option: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f'"{text}" is not like {example}', param_hint=option)
    if name not in project.tables and name not in project.views:
        raise SpringhouseError(f'this project declares no table or view "{name}"', where=option)
    return name, value


def _promising(project: "Project", name: str, **promise: Any) -> "Project":
    def with_promise(before: "Promise") -> "Promise":
        return replace(before, **promise)

    if name in project.tables:
        declared = project.tables[name]
        changed = replace(declared, promise=with_promise(declared.promise))
        return replace(project, tables={**project.tables, name: changed})
    view = project.views[name]
    changed_view = replace(view, promise=with_promise(view.promise))
    return replace(project, views={**project.views, name: changed_view})


def outcome_table(fate: "ProjectOutcome") -> Table:
    """One row per table."""
    shown = table(
        "table", ">priority", ">refresh", ">refreshes", ">staleness", ">mean lag", ">worst lag",
        ">promise", ">kept",
    )  # fmt: skip
    for each in fate.tables:
        shown.add_row(
            Text(each.name),
            f"{each.priority:g}",
            "" if each.refresh_seconds is None else span_text(each.refresh_seconds),
            f"{each.refreshes:,}",
            span_text(each.mean_staleness),
            span_text(each.mean_lag),
            span_text(each.worst_lag),
            "" if each.promise_seconds is None else span_text(each.promise_seconds),
            _percent(each.kept_share),
        )
    return shown


def comparison(found: "ProjectComparison") -> Table:
    """The policy, FIFO and the run with a track for every table, a line each."""
    shown = table("in all", ">staleness by priority", ">promises kept", ">refreshes")
    runs = (
        ("this policy", found.ours),
        ("FIFO", found.fifo),
        ("no contention", found.uncontended),
    )
    for name, fate in runs:
        shown.add_row(
            name,
            span_text(fate.weighted_staleness),
            _percent(fate.kept_share),
            f"{fate.refreshes:,}",
        )
    return shown


def totals(found: "ProjectComparison", what_if: "WhatIf") -> list[str]:
    """What was simulated."""
    ours = found.ours
    return [
        f"policy  {found.policy}",
        f"tracks  {count_text(what_if.tracks, 'track')}, busy {ours.busy_share:.0%} of the time",
        f"run     {span_text(ours.seconds)}, seed {what_if.seed}",
    ]


def _as_json(found: "ProjectComparison", what_if: "WhatIf") -> Mapping[str, Any]:
    def fate(run: "ProjectOutcome") -> Mapping[str, Any]:
        measures = {
            "weighted_staleness": run.weighted_staleness,
            "kept_share": run.kept_share,
            "refreshes": run.refreshes,
        }
        return asdict(run) | measures

    return {
        "policy": str(found.policy),
        **asdict(what_if),
        "run": fate(found.ours),
        "fifo": fate(found.fifo),
        "without_contention": fate(found.uncontended),
    }


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"
