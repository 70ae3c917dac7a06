"""How is a table of paper 004 made again?

Each cell is the average over a few seeds of a run of the simulator. What the paper and we have in
common are not CPU hours but ratios: of one method, or one planner, to the best. The table is
written to bench/results/004 as CSV, and told there beside the paper's. Each finding is one line:
what the paper says, what came out here, whether that agrees. A finding that does not agree makes
the script fail, unless it is known to differ, and then it says why.
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

from springhouse.simulate.paper_workflows import PAPER_WORKFLOWS
from springhouse.simulate.workflow import Algorithm, Conditions, Method, WorkflowRun

RESULTS = Path(__file__).parents[1] / "results" / "004"
WORKFLOWS = {
    "SearchPreprocessing": "search-preprocessing",
    "FeedbackPrioritization": "feedback-prioritization",
    "CrawlSelection": "crawl-selection",
}
MOST_CPU_SECONDS = 60.0
_COLUMNS = ("lag", "cost", "planning_seconds", "worst_planning_ms", "plans", "steps", "explored")
_MORE = ("hours", "repairs", "missed", "published", "worst_inconsistency_hours")


@dataclass(frozen=True)
class Paper:
    """What the paper has in one row."""

    lag: float
    cost: float
    seconds: float


@dataclass(frozen=True)
class Row:
    """One run, or the average of several."""

    workflow: str
    who: str
    seed: int
    numbers: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.numbers[name]


@dataclass(frozen=True)
class Task:
    workflow: str
    method: Method
    algorithm: Algorithm
    hours: float
    seed: int


@dataclass(frozen=True)
class Finding:
    """What the paper says, what came out here, and whether they agree, or why they need not."""

    paper: str
    ours: str
    agrees: bool
    differs: str = ""


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
        """How many times the first row's number it is."""
        return self.of(workflow, who, name) / self.of(workflow, self.whos[0], name)

    def paper_times(self, workflow: str, who: str, name: str) -> float:
        best, row = self.paper[workflow, self.whos[0]], self.paper[workflow, who]
        return getattr(row, name) / getattr(best, name)


def table(
    number: int,
    title: str,
    paper: Mapping[tuple[str, str], Paper],
    tasks: Callable[[Sequence[int], float], Sequence[Task]],
    findings: Callable[[Table], Sequence[Finding]],
    *,
    hours: float,
    seeds: int,
) -> None:
    """Run a table, write it down, and check it."""
    parser = argparse.ArgumentParser(description=f"Table {number} of paper 004: {title}.")
    parser.add_argument("--hours", type=float, default=hours, help="pretend hours per run")
    parser.add_argument("--seeds", type=int, default=seeds, help="runs per cell")
    parser.add_argument("--jobs", type=int, default=1, help="processes; more make planning slower")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where to write")
    parser.add_argument("--again", action="store_true", help="check the CSV again, run nothing")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    file = options.results / f"table{number}.csv"
    began = time.perf_counter()
    if options.again:
        rows = _read(file)
    else:
        rows = _run(tasks(range(1, options.seeds + 1), options.hours), options.jobs)
        _write(file, rows)
    found = Table(rows, paper)
    told = findings(found)
    page = _told(number, title, found, told, options.hours)
    (options.results / f"table{number}.md").write_text(page, encoding="utf-8")
    print(page)
    print(f"{len(rows)} runs in {time.perf_counter() - began:.0f} s")
    if not all(each.agrees or each.differs for each in told):
        sys.exit(1)


def ratios(found: Table, best: str, differs: Mapping[tuple[str, str, str], str]) -> list[Finding]:
    """Lag and cost of everybody against the best, as the paper has them."""
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
                    )
                )
    return told


def magnitude(ours: float, paper: float) -> bool:
    """Whether two ratios are within one order of magnitude of each other."""
    return 0.1 <= ours / paper <= 10.0


def _run(tasks: Sequence[Task], jobs: int) -> list[Row]:
    if jobs <= 1:
        return [_measured(task) for task in tasks]
    with ProcessPoolExecutor(min(jobs, os.cpu_count() or 1)) as pool:
        return list(pool.map(_measured, tasks))


def _measured(task: Task) -> Row:
    run = WorkflowRun(
        PAPER_WORKFLOWS[WORKFLOWS[task.workflow]](),
        Conditions(task.hours, seed=task.seed),
        task.method,
        task.algorithm,
        stopwatch=time.process_time,
    )
    # GREEDY and RANDOM drown in blocks of their own making; what they did until then counts.
    end = time.process_time() + MOST_CPU_SECONDS
    outcome = run.run(give_up=lambda: time.process_time() > end)
    plain = task.algorithm is Algorithm.DYNAMIC and task.hours > 12
    who = task.method.value if plain else task.algorithm.value
    print(f"{task.workflow} {who} seed {task.seed}", file=sys.stderr, flush=True)
    return Row(
        task.workflow,
        who,
        task.seed,
        {
            "lag": outcome.median_lag,
            "cost": outcome.cost_cpu_hours,
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


def _told(number: int, title: str, found: Table, findings: Sequence[Finding], hours: float) -> str:
    """The table beside the paper's, and the findings."""
    about = (
        f"{hours:g} pretend hours, average of {len(found.seeds)} seeds. Lag (median) and cost are "
        "in CPU hours, planning in CPU seconds per run (the machine was shared). Times are "
        f"against {found.whos[0]}: ours and, in brackets, the paper's. [CSV](table{number}.csv)."
    )
    lines = [
        f"## Table {number}: {title}",
        "",
        about,
        "",
        "| workflow | | lag | times | cost | times | planning (paper) | plans |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for workflow in WORKFLOWS:
        for who in found.whos:
            numbers = [
                f"{_short(found.of(workflow, who, name))} | "
                f"{_short(found.times(workflow, who, name))} "
                f"({_short(found.paper_times(workflow, who, name))})"
                for name in ("lag", "cost")
            ]
            seconds = found.of(workflow, who, "planning_seconds")
            lines.append(
                f"| {workflow} | {who} | {numbers[0]} | {numbers[1]} | "
                f"{_short(seconds)} ({found.paper[workflow, who].seconds:g}) | "
                f"{found.of(workflow, who, 'plans'):,.0f} |"
            )
    lines += ["", "| the paper's finding | ours | |", "|---|---|---|"]
    for finding in findings:
        verdict = "agrees" if finding.agrees else "**differs**"
        why = f" {finding.differs}" if finding.differs and not finding.agrees else ""
        lines.append(f"| {finding.paper} | {finding.ours}{why} | {verdict} |")
    return "\n".join(lines) + "\n"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _write(file: Path, rows: Sequence[Row]) -> None:
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(["workflow", "who", "seed", *_COLUMNS, *_MORE])
        for row in rows:
            numbers = [f"{row[name]:.9g}" for name in (*_COLUMNS, *_MORE)]
            writer.writerow([row.workflow, row.who, row.seed, *numbers])


def _read(file: Path) -> list[Row]:
    with file.open(newline="", encoding="utf-8") as opened:
        return [
            Row(
                each["workflow"],
                each["who"],
                int(each["seed"]),
                {name: float(each[name]) for name in (*_COLUMNS, *_MORE)},
            )
            for each in csv.DictReader(opened)
        ]
