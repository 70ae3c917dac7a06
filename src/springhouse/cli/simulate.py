"""`springhouse simulate`: what would happen with other tracks, more data, another policy?"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from springhouse.cli.options import Json
from springhouse.cli.plot import Plot, draw_staleness, validate_plot
from springhouse.cli.screen import count_text, print_json, show, table
from springhouse.cli.simulate_cluster import cluster
from springhouse.cli.simulate_project import WhatIfOptions, simulate_project
from springhouse.cli.simulate_workflow import workflow
from springhouse.project.declarations.durations import duration_seconds
from springhouse.units import span_text

if TYPE_CHECKING:
    from springhouse.refresh.policy import Policy
    from springhouse.simulate.pretend_schedule import ScheduleConditions
    from springhouse.simulate.what_if import PolicyComparison, Run
    from springhouse.simulate.workload import Workload

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Try decisions in a pretend world, with a pretend clock.",
)


@app.callback()
def simulate() -> None:
    """Try decisions in a pretend world, with a pretend clock."""


app.command()(workflow)
app.command()(cluster)


@app.command()
def warehouse(
    project: Annotated[
        Path | None,
        typer.Option(
            "--project",
            "-p",
            metavar="DIR",
            help="Simulate this project: replay its logs in the loop of a warehouse.",
            show_default=False,
        ),
    ] = None,
    tables: Annotated[
        int | None,
        typer.Option(help="The number of equal tables, without a project.  [default: 30]", min=1),
    ] = None,
    tracks: Annotated[
        int | None,
        typer.Option(help="How many refreshes may run at once.  [default: 4, or the project's]"),
    ] = None,
    utilisation: Annotated[
        float | None,
        typer.Option(help="The share of the tracks' time that refreshes need.  [default: 0.9]"),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help='The scheduling policy, such as "fifo; tracks global; chopping none".',
            show_default=False,
        ),
    ] = None,
    arrivals_times: Annotated[
        float, typer.Option(help="What if data arrived so many times as often?")
    ] = 1.0,
    costs_times: Annotated[
        float, typer.Option(help="What if refreshes took so many times as long?")
    ] = 1.0,
    slowdown: Annotated[
        float | None,
        typer.Option(help="Half of the time refreshes take so many times as long.  [default: 3]"),
    ] = None,
    events: Annotated[
        int | None,
        typer.Option(
            help="How many arrivals and ends of refreshes, without a project.  [default: 200000]",
            min=100,
        ),
    ] = None,
    span: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="SPAN", help="The duration, with a project.  [default: 10 minutes]"
        ),
    ] = None,
    promise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE=SPAN",
            help="What if the table had this promise of staleness?",
            show_default=False,
        ),
    ] = None,
    priority: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE=NUMBER", help="What if a table had this priority?", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed; equal seeds give equal runs.")] = 1,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Simulate a warehouse: the staleness and promises of its tables, compared with FIFO."""
    from springhouse.simulate.pretend_schedule import ScheduleConditions
    from springhouse.simulate.slowdowns import NEVER, Slowdowns
    from springhouse.simulate.what_if import what_if

    validate_plot(plot)
    _validate_numbers(tracks, utilisation, slowdown, arrivals_times, costs_times)
    if project is not None:
        _refuse(
            "a project has its own tables, data and costs",
            {
                "--tables": tables,
                "--utilisation": utilisation,
                "--slowdown": slowdown,
                "--events": events,
            },
        )
        options = WhatIfOptions(
            duration_seconds(span or "10 minutes"),
            tracks,
            policy,
            arrivals_times,
            costs_times,
            promise or (),
            priority or (),
            seed,
        )
        simulate_project(project, options, plot, as_json=as_json)
        return
    projects_own = {"--for": span, "--promise": promise, "--priority": priority}
    _refuse("this option needs a project", projects_own)

    workload, tracks = _equal_tables(tables or 30), tracks or 4
    utilisation = 0.9 if utilisation is None else utilisation
    slowdown = 3.0 if slowdown is None else slowdown
    slowdowns = NEVER
    if slowdown > 1:
        cycle = 20 * max(workload.periods.values())
        slowdowns = Slowdowns(slowdown, cycle_seconds=cycle)
    workload = workload.at_utilisation(utilisation / slowdowns.mean, tracks)
    workload = workload.costs_times(costs_times).arrivals_times(arrivals_times)
    conditions = ScheduleConditions(tracks, slowdowns, seed=seed)
    answer = what_if(workload, conditions, _policy(policy), events or 200_000)
    if plot is not None:
        _draw(plot, answer)
    if as_json:
        print_json(_as_json(answer, workload, conditions))
    else:
        show(outcome_table(answer, workload), "", comparison(answer, conditions), "")
        show(*totals(answer, workload, conditions))


def _validate_numbers(
    tracks: int | None,
    utilisation: float | None,
    slowdown: float | None,
    arrivals_times: float,
    costs_times: float,
) -> None:
    for name, number in (
        ("--arrivals-times", arrivals_times),
        ("--costs-times", costs_times),
        ("--utilisation", utilisation),
    ):
        if number is not None and not 0 < number < float("inf"):
            raise typer.BadParameter(f"{number:g} is not above 0", param_hint=name)
    if tracks is not None and tracks < 1:
        raise typer.BadParameter(f"{tracks} is not at least 1", param_hint="--tracks")
    if slowdown is not None and not 1 <= slowdown < float("inf"):
        raise typer.BadParameter(f"{slowdown:g} is not at least 1", param_hint="--slowdown")


def _refuse(problem: str, options: Mapping[str, object]) -> None:
    for name, value in options.items():
        if value is not None and value != []:
            raise typer.BadParameter(problem, param_hint=name)


def _equal_tables(count: int) -> "Workload":
    from springhouse.simulate.workload import Workload, equal_tables

    return Workload(equal_tables(count))


def _policy(words: str | None) -> "Policy":
    from springhouse.refresh.policy import Policy
    from springhouse.simulate.policy_words import read_policy

    return Policy() if words is None else read_policy(words)


def outcome_table(answer: "PolicyComparison", workload: "Workload") -> Table:
    """One row per table."""
    rows = table(
        "table", ">priority", ">period", ">refresh", ">refreshes", ">staleness", ">worst lag",
        ">promise", ">kept",
    )  # fmt: skip
    for declared, each in zip(workload.tables, answer.run.outcome.tables, strict=True):
        period = workload.periods[each.name]
        assert declared.cost is not None
        rows.add_row(
            Text(each.name),
            f"{each.priority:g}",
            span_text(period),
            span_text(declared.cost.seconds(period)),
            f"{each.refreshes:,}",
            span_text(each.average_staleness),
            span_text(each.worst_lag),
            "" if each.promise_seconds is None else span_text(each.promise_seconds),
            _percent(each.kept_share),
        )
    return rows


def totals(
    answer: "PolicyComparison", workload: "Workload", conditions: "ScheduleConditions"
) -> list[str]:
    """The lines that describe the simulation."""
    run = answer.run.outcome
    share = workload.busy * conditions.slowdowns.mean / conditions.tracks
    events = f"{count_text(run.events, 'event')} in {span_text(run.seconds)}"
    return [
        f"policy  {answer.policy}",
        f"load    {share:.0%} of {count_text(conditions.tracks, 'track')}",
        f"run     {events}, seed {conditions.seed}",
    ]


def comparison(answer: "PolicyComparison", conditions: "ScheduleConditions") -> Table:
    """One row for the policy, for FIFO, and for the run without contention."""
    rows = table(
        "in all", ">staleness by priority", ">times the least", ">promises kept", ">refreshes",
        ">tracks busy",
    )  # fmt: skip
    for name, run in (
        ("this policy", answer.run),
        ("FIFO", answer.fifo),
        ("no contention", answer.ideal),
    ):
        outcome = run.outcome
        least = answer.ideal.outcome.weighted_staleness
        rows.add_row(
            name,
            span_text(outcome.weighted_staleness),
            f"{outcome.weighted_staleness / least:.2f}" if least > 0 else "",
            _percent(outcome.kept_share),
            f"{outcome.refreshes:,}",
            f"{outcome.work_seconds / outcome.seconds / conditions.tracks:.0%}",
        )
    return rows


def _as_json(
    answer: "PolicyComparison", workload: "Workload", conditions: "ScheduleConditions"
) -> Mapping[str, Any]:
    return {
        "policy": str(answer.policy),
        "tracks": conditions.tracks,
        "load": workload.busy * conditions.slowdowns.mean / conditions.tracks,
        "seed": conditions.seed,
        "relative_lateness": answer.relative_lateness,
        "relative_lateness_of_fifo": answer.relative_lateness_of_fifo,
        "run": _run_json(answer.run),
        "fifo": _run_json(answer.fifo),
        "without_contention": _run_json(answer.ideal),
    }


def _run_json(run: "Run") -> Mapping[str, Any]:
    outcome = run.outcome
    return {
        "seconds": outcome.seconds,
        "events": outcome.events,
        "refreshes": outcome.refreshes,
        "work_seconds": outcome.work_seconds,
        "weighted_staleness": outcome.weighted_staleness,
        "kept_share": outcome.kept_share,
        "tables": [asdict(each) for each in outcome.tables],
        "curve": run.curve,
    }


def _draw(file: Path, answer: "PolicyComparison") -> None:
    runs = {
        str(answer.policy): answer.run,
        "FIFO": answer.fifo,
        "without contention": answer.ideal,
    }
    draw_staleness(file, {name: run.curve for name, run in runs.items()})


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"
