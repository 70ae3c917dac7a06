"""`springhouse simulate warehouse -p DIR`: how fresh would the tables of this project be?"""

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
    """The changes to the recorded world."""

    seconds: float
    tracks: int | None
    policy: str | None
    arrivals_times: float
    costs_times: float
    promises: Sequence[str]
    priorities: Sequence[str]
    seed: int


def simulate_project(
    folder: Path, options: WhatIfOptions, plot: Path | None, *, as_json: bool
) -> None:
    """Replay the logs of a project, and show how fresh its tables would be."""
    from springhouse.project.settings import TRACKS
    from springhouse.refresh.policy_settings import configured_policy
    from springhouse.simulate.policy_words import read_policy
    from springhouse.simulate.pretend_project import WhatIf
    from springhouse.simulate.project_outcome import compare_policies

    project, recorded, offered = _read(folder)
    project = _with_promises(project, options)
    guessed = [name for name, each in recorded.tables.items() if each.is_guessed]
    if guessed:
        names = ", ".join(guessed)
        note(f"too few refreshes to know their cost; the simulation guesses it for: {names}")
    usual = configured_policy(project.configuration)
    policy = usual if options.policy is None else read_policy(options.policy, usual)
    tracks = options.tracks or TRACKS.read(project.configuration)
    what_if = WhatIf(tracks, options.arrivals_times, options.costs_times, options.seed)
    results = compare_policies(project, recorded, offered, policy, what_if, options.seconds)
    if plot is not None:
        runs = {
            str(policy): results.ours,
            "FIFO": results.fifo,
            "no contention": results.uncontended,
        }
        draw_staleness(plot, {name: run.curve for name, run in runs.items()})
    if as_json:
        print_json(_as_json(results, what_if))
        return
    show(outcome_table(results.ours), "", comparison(results), "", *totals(results, what_if))
    if policy.heed_promises and results.ours.kept_share is not None:
        show("a table with a promise waits as long as that allows, which saves refreshes")


def _read(folder: Path) -> "tuple[Project, ProjectRecord, Mapping[str, Offered]]":
    """A project, the record in its logs, and the ways to refresh its views."""
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


def _with_promises(project: "Project", options: WhatIfOptions) -> "Project":
    """The project with other promises and priorities."""
    for text in options.promises:
        name, span = _named(project, text, "--promise", "revenue=30 seconds")
        staleness = Seconds(duration_seconds(span))
        project = _promising(project, name, staleness_seconds=staleness, staleness_by_pathway={})
    for text in options.priorities:
        name, number = _named(project, text, "--priority", "revenue=10")
        try:
            priority = float(number)
        except ValueError:
            raise typer.BadParameter(
                f'"{number}" is not a number', param_hint="--priority"
            ) from None
        project = _promising(project, name, priority=priority)
    return project


def _named(project: "Project", text: str, option: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f'"{text}" does not have the form {example}', param_hint=option)
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


def outcome_table(run: "ProjectOutcome") -> Table:
    """One row per table."""
    rows = table(
        "table", ">priority", ">refresh", ">refreshes", ">staleness", ">mean lag", ">worst lag",
        ">promise", ">kept",
    )  # fmt: skip
    for each in run.tables:
        rows.add_row(
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
    return rows


def comparison(results: "ProjectComparison") -> Table:
    """One row for the policy, for FIFO, and for the run with a track per table."""
    rows = table("in all", ">staleness by priority", ">promises kept", ">refreshes")
    runs = (
        ("this policy", results.ours),
        ("FIFO", results.fifo),
        ("no contention", results.uncontended),
    )
    for name, run in runs:
        rows.add_row(
            name,
            span_text(run.weighted_staleness),
            _percent(run.kept_share),
            f"{run.refreshes:,}",
        )
    return rows


def totals(results: "ProjectComparison", what_if: "WhatIf") -> list[str]:
    """The lines that describe the simulation."""
    ours = results.ours
    return [
        f"policy  {results.policy}",
        f"tracks  {count_text(what_if.tracks, 'track')}, busy {ours.busy_share:.0%} of the time",
        f"run     {span_text(ours.seconds)}, seed {what_if.seed}",
    ]


def _as_json(results: "ProjectComparison", what_if: "WhatIf") -> Mapping[str, Any]:
    def as_json(run: "ProjectOutcome") -> Mapping[str, Any]:
        measures = {
            "weighted_staleness": run.weighted_staleness,
            "kept_share": run.kept_share,
            "refreshes": run.refreshes,
        }
        return asdict(run) | measures

    return {
        "policy": str(results.policy),
        **asdict(what_if),
        "run": as_json(results.ours),
        "fifo": as_json(results.fifo),
        "without_contention": as_json(results.uncontended),
    }


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"
