"""How is a table of paper 004 made again?

Each cell is the average over a few seeds of a run of the simulator. CPU hours differ from the
paper's, so the comparison uses ratios: of one method, or one planner, to the best. A table may have
several worlds: each is a section of the page, with its own findings. The program writes the rows to
bench/results/004 as CSV, and a page there beside the paper's numbers. It compares the findings with
the paper and with earlier results (`_finding`).

`--quick` makes a short run of each, which takes seconds, and writes nothing. It compares the
results with the stored ones of such a run. So do the tests.
"""

import argparse
import csv
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from _finding import Finding, Page, add_hold_option, findings_table

from springhouse.simulate.paper_workflows import PAPER_WORKFLOWS
from springhouse.simulate.workflow_model import Model
from springhouse.simulate.workflow_run import Algorithm, Method, WorkflowConditions, WorkflowRun

RESULTS = Path(__file__).parents[1] / "results" / "004"
WORKFLOWS = {
    "SearchPreprocessing": "search-preprocessing",
    "FeedbackPrioritization": "feedback-prioritization",
    "CrawlSelection": "crawl-selection",
}
MOST_EXPLORED = 60_000
"""Blocks that a run may look at: GREEDY and RANDOM drown in those of their own making.

Not seconds: a run has to end at the same moment on every machine.
"""
UNLIMITED = 1_000_000.0
"""So many machines that the dearest plan takes less than a minute, and nothing waits for another.

Lag is in CPU hours, whatever the number of machines, so it is then what a repair costs.
"""
_COLUMNS = ("lag", "cost", "planning_seconds", "worst_planning_ms", "plans", "steps", "explored")
_MORE = ("hours", "repairs", "missed", "published", "worst_inconsistency_hours")


@dataclass(frozen=True)
class Paper:
    """The paper's numbers in one row."""

    lag: float
    cost: float
    planning_seconds: float


@dataclass(frozen=True)
class Row:
    """One run, or the average of several."""

    world: str
    workflow: str
    who: str
    seed: int
    numbers: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.numbers[name]


@dataclass(frozen=True)
class Task:
    """One run: its world, its workflow, its planner and its kind of processing."""

    world: str
    workflow: str
    who: str
    conditions: WorkflowConditions
    method: Method = Method.ASYNC_INCR
    algorithm: Algorithm = Algorithm.DYNAMIC
    change: Callable[[Model], Model] | None = None

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.world, self.workflow, self.who, self.conditions.seed


@dataclass(frozen=True)
class Wanted:
    """The length of the runs, and their number."""

    hours: float
    seeds: int

    def conditions(self, **choices: object) -> list[WorkflowConditions]:
        """The conditions for each seed."""
        return [
            WorkflowConditions(self.hours, seed=seed, **choices)  # type: ignore[arg-type]
            for seed in range(1, self.seeds + 1)
        ]


class Table:
    """The average over seeds of each cell, and ratios to the first row of each workflow."""

    def __init__(self, rows: Sequence[Row], paper: Mapping[tuple[str, str], Paper]) -> None:
        self.rows, self.paper = rows, paper
        self.whos = list(dict.fromkeys(who for _, who in paper))
        self.seeds = sorted({row.seed for row in rows})

    def of(self, workflow: str, who: str, name: str) -> float:
        found = [row[name] for row in self.rows if (row.workflow, row.who) == (workflow, who)]
        return fmean(found)

    def times(self, workflow: str, who: str, name: str) -> float:
        """The number as a multiple of the first row's."""
        return self.of(workflow, who, name) / self.of(workflow, self.whos[0], name)

    def paper_times(self, workflow: str, who: str, name: str) -> float:
        best, row = self.paper[workflow, self.whos[0]], self.paper[workflow, who]
        return getattr(row, name) / getattr(best, name)


@dataclass(frozen=True)
class Section:
    """A world in which the table is made, and the paper's findings about it."""

    world: str
    about: str
    findings: Callable[[Table], Sequence[Finding]]


@dataclass(frozen=True)
class Made:
    """How a table is made: its runs, and the numbers to compare with."""

    number: int
    title: str
    paper: Mapping[tuple[str, str], Paper]
    tasks: Callable[[Wanted], Sequence[Task]]
    sections: Sequence[Section]
    usual: Wanted
    small: Wanted
    before: str = ""

    def of(self, rows: Sequence[Row], section: Section) -> Table:
        return Table([row for row in rows if row.world == section.world], self.paper)

    def page(self, section: Section, *, small: bool = False) -> Page:
        """The stored findings of a section."""
        world = section.world.replace(",", "").replace(" ", "-")
        name = f"004-table{self.number}-{world}"
        return Page(name + "-quick" * small, is_small=small)

    def quick(self) -> list[Row]:
        """The rows of short runs."""
        return [measured(task) for task in self.tasks(self.small)]

    def again(self, results: Path = RESULTS) -> list[Row]:
        """The rows that were written last."""
        return _read(results / f"table{self.number}.csv")


def table(made: Made) -> None:
    """Run a table, write it, and check it."""
    options = _options(made)
    if options.quick:
        rows = made.quick()
        settled = [
            made.page(each, small=True).settle(
                timeless(each.findings(made.of(rows, each))), hold=options.hold
            )
            for each in made.sections
        ]
        sys.exit(0 if all(settled) else 1)
    options.results.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    rows = made.again(options.results) if options.again or options.missing else []
    if not options.again:
        rows = _run(made, options, rows)
    _write(options.results / f"table{made.number}.csv", rows)
    page, settled_all = _page(made, rows, options)
    (options.results / f"table{made.number}.md").write_text(page, encoding="utf-8")
    print(page)
    print(f"{len(rows)} runs in {time.perf_counter() - began:.0f} s")
    if not settled_all:
        sys.exit(1)


def timeless(findings: Sequence[Finding]) -> list[Finding]:
    """The findings without seconds: they are the same on every machine."""
    return [each for each in findings if "planning" not in each.paper]


def _options(made: Made) -> argparse.Namespace:
    about = f"Table {made.number} of paper 004: {made.title}."
    parser = argparse.ArgumentParser(description=about)
    usual = made.usual
    parser.add_argument("--hours", type=float, default=usual.hours, help="pretend hours per run")
    parser.add_argument("--seeds", type=int, default=usual.seeds, help="runs per cell")
    parser.add_argument("--jobs", type=int, default=1, help="processes; more make planning slower")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where to write")
    parser.add_argument("--again", action="store_true", help="check the CSV again, run nothing")
    parser.add_argument("--missing", action="store_true", help="run what is not in the CSV yet")
    parser.add_argument("--quick", action="store_true", help="short runs, write no page")
    add_hold_option(parser)
    return parser.parse_args()


def ratios(found: Table, best: str, differs: Mapping[tuple[str, str, str], str]) -> list[Finding]:
    """Lag and cost of every row relative to the best, as in the paper."""
    told = []
    for workflow in WORKFLOWS:
        for who in found.whos[1:]:
            for name in ("lag", "cost"):
                ours = found.times(workflow, who, name)
                paper = found.paper_times(workflow, who, name)
                told.append(
                    Finding(
                        f"{workflow}: the {name} of {who} is {paper:,.3g} times {best}'s.",
                        f"{ours:,.3g} times",
                        magnitude(ours, paper),
                        differs.get((workflow, who, name), ""),
                        {"times": ours},
                    )
                )
    return told


def magnitude(ours: float, paper: float) -> bool:
    """Whether two ratios are within one order of magnitude of each other."""
    return 0.1 <= ours / paper <= 10.0


def _run(made: Made, options: argparse.Namespace, there: Sequence[Row]) -> list[Row]:
    """All rows, in order: the existing ones, and new runs for the others."""
    tasks = made.tasks(Wanted(options.hours, options.seeds))
    known = {(row.world, row.workflow, row.who, row.seed): row for row in there}
    missing = [task for task in tasks if task.key not in known]
    if options.jobs <= 1:
        rows = [measured(task) for task in missing]
    else:
        with ProcessPoolExecutor(min(options.jobs, os.cpu_count() or 1)) as pool:
            rows = list(pool.map(measured, missing))
    known |= {task.key: row for task, row in zip(missing, rows, strict=True)}
    return [known[task.key] for task in tasks]


def measured(task: Task) -> Row:
    """The result of one run."""
    model = PAPER_WORKFLOWS[WORKFLOWS[task.workflow]]()
    run = WorkflowRun(
        model if task.change is None else task.change(model),
        task.conditions,
        task.method,
        task.algorithm,
        stopwatch=time.process_time,
    )
    outcome = run.run(give_up=lambda: run.explored > MOST_EXPLORED and _is_simple(task.algorithm))
    seed = task.conditions.seed
    print(f"{task.world}: {task.workflow} {task.who} seed {seed}", file=sys.stderr, flush=True)
    return Row(
        task.world,
        task.workflow,
        task.who,
        seed,
        {
            "lag": outcome.median_lag,
            # A run may stop early or end with a long plan, so scale its cost by its hours.
            "cost": outcome.cost_cpu_hours * task.conditions.hours / outcome.hours,
            "planning_seconds": outcome.planning_seconds,
            "worst_planning_ms": 1000 * outcome.worst_planning_seconds,
            "plans": outcome.plans,
            "steps": outcome.steps,
            "explored": outcome.explored,
            "hours": outcome.hours,
            "repairs": len(outcome.repairs),
            "missed": outcome.missed,
            "published": outcome.published,
            "worst_inconsistency_hours": outcome.worst_inconsistency_hours,
        },
    )


def _is_simple(algorithm: Algorithm) -> bool:
    return algorithm is not Algorithm.DYNAMIC


def _page(made: Made, rows: Sequence[Row], options: argparse.Namespace) -> tuple[str, bool]:
    """All sections, and whether every finding equals the stored one."""
    settled = True
    parts = [f"## Table {made.number}: {made.title}", ""]
    parts += [made.before, ""] if made.before else []
    for section in made.sections:
        found = made.of(rows, section)
        held, findings = made.page(section), section.findings(found)
        settled = held.settle(findings, hold=options.hold) and settled
        parts += [f"### {section.world[0].upper()}{section.world[1:]}", "", section.about, ""]
        parts += [*_told(made.number, found, options.hours), "", findings_table(held, findings), ""]
    return "\n".join(parts).rstrip() + "\n", settled


def _told(number: int, found: Table, hours: float) -> list[str]:
    """The table beside the paper's."""
    lines = [
        (
            f"{hours:,.0f} pretend hours, average of {len(found.seeds)} seeds. Lag (median) and "
            "cost are in CPU hours, planning in CPU seconds per run: the machine was busy with "
            "other work, so compare methods, and not seconds with another page's. Times are "
            f"against {found.whos[0]}: ours and, in brackets, the paper's. "
            f"[CSV](table{number}.csv)."
        ),
        "",
        "| workflow | | lag | times | cost | times | planning | times | plans |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for workflow in WORKFLOWS:
        for who in found.whos:
            cells = [
                f"{_short(found.of(workflow, who, name))} ({_short(paper)}) | "
                f"{_short(found.times(workflow, who, name))} "
                f"({_short(found.paper_times(workflow, who, name))})"
                for name, paper in vars(found.paper[workflow, who]).items()
            ]
            plans = f"{found.of(workflow, who, 'plans'):,.0f}"
            lines.append(f"| {workflow} | {who} | {' | '.join(cells)} | {plans} |")
    return lines


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _write(file: Path, rows: Sequence[Row]) -> None:
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(["world", "workflow", "who", "seed", *_COLUMNS, *_MORE])
        for row in rows:
            numbers = [f"{row[name]:.9g}" for name in (*_COLUMNS, *_MORE)]
            writer.writerow([row.world, row.workflow, row.who, row.seed, *numbers])


def _read(file: Path) -> list[Row]:
    with file.open(newline="", encoding="utf-8") as opened:
        return [
            Row(
                each["world"],
                each["workflow"],
                each["who"],
                int(each["seed"]),
                {name: float(each[name]) for name in (*_COLUMNS, *_MORE)},
            )
            for each in csv.DictReader(opened)
        ]
