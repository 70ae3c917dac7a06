"""What is saved by promising less? The three workflows of paper 004 on Spark, under a fast clock.

    python examples/workflows.py search|feedback|crawl [--days D] [--speed S] [--only WAY]

Data streams in, under a clock that runs thousands of times too fast. Each workflow runs in three
ways, each time from nothing:

    declared       as its promises allow: inputs may be apart, and move one by one
    synchronous    never apart, and as fresh as can be: a refresh takes in all that changed, by
                   increments where the query can be
    batch          the same, computed anew each time

What is printed comes from the Delta logs (`outcome`), with the ratios of the paper's Table 5 beside
ours. They have other scales: the paper simulates a thousand machines and two billion pages, and
here a refresh of a few thousand rows takes what it takes to start it.
"""

import argparse
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from outcome import Critical, Outcome, outcome_of

import springhouse
from springhouse.units import Instant, Seconds
from springhouse.warehouse import Warehouse

EXAMPLES = Path(__file__).resolve().parent
HOUR = 3_600.0
DAY = 24 * HOUR
WEEK = 7 * DAY


@dataclass(frozen=True)
class PaperRatios:
    """A method's freshness lag and processing cost in Table 5, over those of Async/Incr."""

    lag: float
    cost: float


@dataclass(frozen=True)
class Workflow:
    """One of the paper's workflows: what is waited for in it, and how long it runs here.

    `history` is what came before the first refresh, in seconds: a recomputation reads all of it.
    """

    name: str
    output: str
    critical: Critical
    history: float
    days: float
    speed: float
    paper: Mapping[str, PaperRatios]


WORKFLOWS = {
    each.name: each
    for each in (
        Workflow(
            "search",
            "output",
            Critical("pages", ("digests",)),
            history=30 * DAY,
            days=10.0,
            speed=8_000.0,
            paper={
                "synchronous": PaperRatios(27.9 / 0.0606, 214_000 / 28_900),
                "batch": PaperRatios(808 / 0.0606, 43.8e6 / 28_900),
            },
        ),
        Workflow(
            "feedback",
            "feedback",
            Critical("searches", ("news",)),
            history=DAY,
            days=3.0,
            speed=3_000.0,
            paper={
                "synchronous": PaperRatios(2.12 / 0.0435, 7_130 / 6_930),
                "batch": PaperRatios(193 / 0.0435, 1.34e9 / 6_930),
            },
        ),
        Workflow(
            "crawl",
            "crawl_queue",
            Critical("fetches", ("successful", "top_unfetched"), Seconds(HOUR)),
            history=30 * DAY,
            days=8.0,
            speed=3_000.0,
            paper={
                "synchronous": PaperRatios(542 / 81.4, 1.69e6 / 364_000),
                "batch": PaperRatios(3_890 / 81.4, 114e6 / 364_000),
            },
        ),
    )
}

WAYS = ("declared", "synchronous", "batch")

QUICK = {
    # Minutes are too short for compilers to pay: the JVM's second one, and Spark's for queries.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
WARM_UP = 4
"""How often everything is refreshed before the clock starts: a cold Spark takes seconds."""

_VIEW = re.compile(
    r"(?P<head>CREATE MATERIALIZED VIEW \w+(?: COMMENT '[^']*')?)"
    r"(?:\s+TBLPROPERTIES \((?P<promises>[^)]*)\))?\s+AS "
)
_FULL = "'springhouse.refresh' = 'full'"
_INCREMENTAL = "'springhouse.refresh' = 'incremental'"


class FastClock:
    """A clock that stands until it is started, and then runs so many times too fast."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._shown = time.time()
        self._started: float | None = None

    def __call__(self) -> Instant:
        passed = 0.0 if self._started is None else time.time() - self._started
        return Instant(round(self._shown + passed * self._speed, 3))

    def forward(self, seconds: float) -> None:
        """Turn it on by hand."""
        self._shown += seconds

    def start(self) -> Instant:
        self._started = time.time()
        return self()


def in_the_way(sql: str, way: str) -> str:
    """The declarations of a project, with the promises that a way has in place of their own."""

    def declared(found: re.Match[str]) -> str:
        # Some selections are batch jobs whatever is promised, as in the paper.
        is_batch = way == "batch" or _FULL in (found["promises"] or "")
        mode = _FULL if is_batch else _INCREMENTAL
        return f"{found['head']}\n  TBLPROPERTIES ({mode})\n  AS "

    return sql if way == "declared" else _VIEW.sub(declared, sql)


def copied(workflow: Workflow, folder: Path, way: str, other: Mapping[str, str]) -> None:
    """Copy a project, with other promises and what is to be put in the `other` texts' places."""
    ignored = shutil.ignore_patterns("storage", "*.txt", "*.md")
    shutil.copytree(EXAMPLES / workflow.name, folder, ignore=ignored)
    for file in folder.glob("transformations/*.sql"):
        sql = file.read_text()
        for text, instead in other.items():
            assert text in sql, f"the text that is to be replaced is not there: {text}"
            sql = sql.replace(text, instead)
        file.write_text(in_the_way(sql, way))


def begun(warehouse: Warehouse, clock: FastClock, history: float) -> Instant:
    """Make everything, and start the clock."""
    for turn in range(WARM_UP):
        refreshed = warehouse.refresh()
        assert refreshed.ok, refreshed.failures
        # What `sample` gives begins with the first refresh.
        clock.forward(2 * HOUR if turn else history)
    return clock.start()


def run(workflow: Workflow, folder: Path, way: str, days: float, speed: float) -> Outcome:
    """Let a workflow run in one of the ways."""
    copied(workflow, folder, way, {})
    clock = FastClock(speed)
    with springhouse.open(folder, clock=clock, configuration=QUICK) as warehouse:
        began = begun(warehouse, clock, workflow.history)
        warehouse.run(seconds=days * DAY)
        return outcome_of(warehouse, workflow.output, workflow.critical, began, clock())


HEADS = ("", "refreshes of the output", "apart", "steps", "most apart", "wait", "cost", "rows")
LINE = "{:<12}  {:<45}  {:>9}  {:>5}  {:>10}  {:>9}  {:>7}  {:>11}"


def line(way: str, found: Outcome, speed: float) -> str:
    """One way of a workflow, as a line of the table."""
    counted = ", ".join(f"{count} {variant}" for variant, count in found.refreshes.most_common())
    return LINE.format(
        way,
        counted,
        found.one_sided,
        found.with_steps,
        f"{max(found.apart, default=0.0) / DAY:.1f} d",
        f"{found.lag / 60:.0f} min",
        f"{found.cost / speed:.0f} s",
        f"{found.rows:,}",
    )


def bounds(found: Outcome) -> list[str]:
    """How stale each pathway with a bound became, as lines."""
    return [
        f"  {bound.view}: {bound.pathway}".ljust(64)
        + f"{bound.greatest / HOUR:8.1f} h of {bound.seconds / HOUR:g} h"
        for bound in found.bounds
    ]


def ratios(workflow: Workflow, found: Mapping[str, Outcome]) -> list[str]:
    """Lag and cost over those as declared, ours and the paper's, as lines."""
    ours = found["declared"]
    lines = []
    for way, paper in workflow.paper.items():
        if way in found and ours.lag and ours.cost:
            lag, cost = found[way].lag / ours.lag, found[way].cost / ours.cost
            lines.append(
                f"  {way + ' over declared':<28}  waits {lag:8.1f} (paper: {paper.lag:,.1f})"
                f"   cost {cost:6.2f} (paper: {paper.cost:,.2f})"
            )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workflow", choices=tuple(WORKFLOWS))
    parser.add_argument("--days", type=float, help="how long, by the fast clock")
    parser.add_argument("--speed", type=float, help="how many times too fast the clock runs")
    parser.add_argument("--only", choices=WAYS, help="one of the ways")
    asked = parser.parse_args()
    workflow = WORKFLOWS[asked.workflow]
    days, speed = asked.days or workflow.days, asked.speed or workflow.speed
    print(f"{workflow.name}: {days:g} days, {speed:,g} times too fast\n")
    print(LINE.format(*HEADS), flush=True)
    found: dict[str, Outcome] = {}
    for way in [asked.only] if asked.only else WAYS:
        with tempfile.TemporaryDirectory() as place:
            found[way] = run(workflow, Path(place) / workflow.name, way, days, speed)
        print(line(way, found[way], speed), flush=True)
    if "declared" in found:
        print("\nThe longest that data waited that may wait, as declared:")
        print("\n".join(bounds(found["declared"])))
        print("\nRatios:" if len(found) > 1 else "")
        print("\n".join(ratios(workflow, found)))
    print(
        "\nWaits are medians by the fast clock, of data that is wanted at once, beyond its bound."
        "\nCosts are seconds of this machine in refreshes of views, rows those that came or went."
    )


if __name__ == "__main__":
    main()
