"""`springhouse simulate workflow`: how fresh is which kind of processing, and at what cost?"""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from springhouse.cli.options import Json
from springhouse.cli.plot import Plot, draw, validate_plot
from springhouse.cli.screen import console, note, print_json, show, table

if TYPE_CHECKING:
    from springhouse.simulate.workflow_run import WorkflowOutcome

_METHODS = {"async-incr": 0, "sync-incr": 1, "async-batch": 2, "sync-batch": 3}
_ALGORITHMS = {"dynamic": 0, "greedy": 1, "random": 2}


def workflow(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORKFLOW]...",
            help="search-preprocessing, feedback-prioritization, crawl-selection; else all three.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="async-incr, sync-incr, async-batch or sync-batch; repeat it for several.  "
            "[default: all four]",
            show_default=False,
        ),
    ] = None,
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            help="The planner: dynamic, greedy or random; repeat it for several.  "
            "[default: dynamic]",
            show_default=False,
        ),
    ] = None,
    hours: Annotated[float, typer.Option(help="The duration in the pretend world.")] = 168.0,
    machines: Annotated[float, typer.Option(help="The size of the elastic cluster.")] = 1000.0,
    noise: Annotated[
        bool, typer.Option(help="Costs and rows differ from expectations by 50 % on average.")
    ] = True,
    give_up_after: Annotated[
        float, typer.Option(metavar="SECONDS", help="Stop a run that takes longer.")
    ] = 600.0,
    seed: Annotated[int, typer.Option(help="The seed; equal seeds give equal runs.")] = 1,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Simulate the planner: freshness lag and cost of batch, incremental and asynchronous work."""
    from springhouse.simulate.paper_workflows import PAPER_WORKFLOWS
    from springhouse.simulate.workflow_run import Algorithm, Method, WorkflowConditions, WorkflowRun

    validate_plot(plot)
    for option, number in (
        ("--hours", hours),
        ("--machines", machines),
        ("--give-up-after", give_up_after),
    ):
        if not 0 < number < float("inf"):
            raise typer.BadParameter(f"{number:g} is not above 0", param_hint=option)
    workflows = _validate_names(names, dict.fromkeys(PAPER_WORKFLOWS, 0), "WORKFLOW")
    methods = [
        list(Method)[_METHODS[each]] for each in _validate_names(method, _METHODS, "--method")
    ]
    wanted = _validate_names(algorithm or ["dynamic"], _ALGORITHMS, "--algorithm")
    algorithms = [list(Algorithm)[_ALGORITHMS[each]] for each in wanted]
    conditions = WorkflowConditions(hours, machines, noise, seed)
    outcomes: list[WorkflowOutcome] = []
    with _Bar(as_json) as bar:
        for name in workflows:
            for each in methods:
                for planner in algorithms:
                    model = PAPER_WORKFLOWS[name]()
                    run = WorkflowRun(model, conditions, each, planner, stopwatch=perf_counter)
                    progress = bar.add_run(f"{model.name} {each.value} {planner.value}", hours)
                    outcomes.append(run.run(progress, _after(give_up_after)))
    for outcome in outcomes:
        if outcome.hours < hours - 1e-6:
            note(
                f"{outcome.workflow}, {_name_of(outcome)}: gave up after {give_up_after:g} s, "
                f"at {outcome.hours:.1f} of {hours:g} h"
            )
    if plot is not None:
        _draw(outcomes, plot)
    if as_json:
        print_json([_as_json(each, seed) for each in outcomes])
    else:
        show(_table(outcomes), "", f"run     {hours:g} h on {machines:g} machines, seed {seed}")


def _validate_names(
    names: Sequence[str] | None, known: Mapping[str, int], option: str
) -> list[str]:
    if not names:
        return list(known)
    for each in names:
        if each not in known:
            raise typer.BadParameter(
                f'"{each}" is not one of: {", ".join(known)}', param_hint=option
            )
    return list(dict.fromkeys(names))


def _after(seconds: float) -> Callable[[], bool]:
    """A function that returns whether so much time has passed since now."""
    end = perf_counter() + seconds
    return lambda: perf_counter() > end


class _Bar:
    """A progress bar on a terminal; nothing elsewhere."""

    def __init__(self, quiet: bool) -> None:
        screen = console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeRemainingColumn(),
            console=screen,
            transient=True,
            disable=quiet or not screen.is_terminal,
        )

    def __enter__(self) -> "_Bar":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def add_run(self, text: str, hours: float) -> Callable[[float], None]:
        task = self._bar.add_task(text, total=hours)
        return lambda passed: self._bar.update(task, completed=passed)


def _name_of(outcome: "WorkflowOutcome") -> str:
    from springhouse.simulate.workflow_run import Algorithm

    if outcome.algorithm is Algorithm.DYNAMIC:
        return outcome.method.value
    return f"{outcome.method.value} {outcome.algorithm.value}"


def _table(outcomes: "Sequence[WorkflowOutcome]") -> Table:
    """One row per run, compared with the first run of its workflow."""
    rows = table(
        "workflow", "processing", ">median lag", ">times", ">cost", ">times", ">plans", ">steps",
        ">planning", ">inconsistent",
    )  # fmt: skip
    first: dict[str, WorkflowOutcome] = {}
    for each in outcomes:
        against = first.setdefault(each.workflow, each)
        rows.add_row(
            each.workflow if against is each else "",
            _name_of(each),
            _cpu_hours(each.median_lag),
            _times(each.median_lag, against.median_lag),
            _cpu_hours(each.cost_cpu_hours),
            _times(each.cost_cpu_hours, against.cost_cpu_hours),
            f"{each.plans:,}",
            f"{each.steps:,}",
            f"{each.planning_seconds:.2f} s",
            f"{each.worst_inconsistency_hours:.1f} h",
        )
    return rows


def _times(number: float, against: float) -> str:
    return _short(number / against) if against > 0 else ""


def _cpu_hours(number: float) -> str:
    return f"{_short(number)} CPU h"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _as_json(outcome: "WorkflowOutcome", seed: int) -> Mapping[str, Any]:
    return {
        "workflow": outcome.workflow,
        "method": outcome.method.value,
        "algorithm": outcome.algorithm.value,
        "seed": seed,
        "hours": outcome.hours,
        "median_lag_cpu_hours": outcome.median_lag,
        "cost_cpu_hours": outcome.cost_cpu_hours,
        "repairs": len(outcome.repairs),
        "plans": outcome.plans,
        "steps": outcome.steps,
        "missed": outcome.missed,
        "explored": outcome.explored,
        "published": outcome.published,
        "planning_seconds": outcome.planning_seconds,
        "worst_planning_seconds": outcome.worst_planning_seconds,
        "worst_inconsistency_hours": outcome.worst_inconsistency_hours,
        "invocations": outcome.variants,
    }


def _draw(outcomes: "Sequence[WorkflowOutcome]", plot: Any) -> None:
    """Draw the lag of every repair over time."""
    several = len({each.workflow for each in outcomes}) > 1
    curves = {
        f"{each.workflow} {_name_of(each)}" if several else _name_of(each): [
            (repair.at / 3600.0, repair.lag_cpu_hours) for repair in each.repairs
        ]
        for each in outcomes
    }
    draw(plot, "Freshness lag of every repair", "pretend time (h)", "lag (CPU hours)", curves)
