"""Does the scheduler keep what matters fresh when there is too much to do?

On real Spark, through the public API: random workloads, each under five policies. The family was
fixed before the first run, and must not change after one:

    streams     4 to 6; data comes every 1 to 20 s (order of magnitude uniform), one event at a time
    views       6 to 9; each reads a stream, or (three in ten) an earlier view
    priorities  of streams and views 1 to 100, order of magnitude uniform, whatever the period
    work        the query of a view sleeps in a Spark task, so that a noisy machine does not decide
                how much there is to do; lengths differ by a factor of up to 30
    load        workload k of n has its load from the k-th part of 0.6 to 2.0: the share of two
                tracks that is asked for if every table is refreshed for each of its data
    promises    none: no policy is told that anything may wait

The program first measures how long refreshes take here without any work. Then it sets the works to
reach the load; none is below zero. The policies are

    springhouse     the default
    fifo            first come, first served, as Spark Declarative Pipelines does
    round robin     each table in turn
    priority queue  the highest priority first
    max benefit     that of paper 001: one queue, the largest priority inherited, no chopping

Every second the warehouse notes the staleness of each table: the time since the newest data that
the table reflects came in. The figure is its mean, weighted by priority. Goals: at most half of
FIFO's at the median of the workloads whose load is above 1, and never more than 5 % above the best
baseline. The table also shows about the least that any policy could reach: the simulator's result
for the same tables with one track per table, so that nothing ever waits.

Run: `python bench/contention.py [--workloads 5] [--seconds 60]`: 36 minutes on a quiet machine. It
writes `bench/results/contention.md`. `--workloads 1 --seconds 10` (2 minutes) shows that the
program works, and writes nothing.
"""

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import exp, log
from pathlib import Path

from springhouse.project.load import load
from springhouse.refresh.policy import Policy
from springhouse.simulate.pretend_project import WhatIf
from springhouse.simulate.project_outcome import simulate_run
from springhouse.simulate.project_record import (
    Duration,
    ProjectRecord,
    RecordedArrival,
    TableRecord,
)
from springhouse.units import Seconds
from springhouse.warehouse import Finished, Warehouse

RESULTS = Path(__file__).parent / "results"
_PLAIN = {
    "springhouse.scheduler.tracks": "global",
    "springhouse.scheduler.inheritance": "none",
    "springhouse.scheduler.chopping": "none",
    "springhouse.scheduler.promises": "ignore",
    "springhouse.scheduler.last-track": "take",
}
_BASIC, _INHERITANCE = "springhouse.scheduler.basic", "springhouse.scheduler.inheritance"
POLICIES: Mapping[str, Mapping[str, str]] = {
    "springhouse": {},
    "fifo": {**_PLAIN, _BASIC: "fifo"},
    "round robin": {**_PLAIN, _BASIC: "round-robin"},
    "priority queue": {**_PLAIN, _BASIC: "edf-p"},
    "max benefit": {**_PLAIN, _BASIC: "max-benefit", _INHERITANCE: "max"},
}
TRACKS, LOWEST, HIGHEST = 2, 0.6, 2.0
WARM_UP_SECONDS, CALIBRATION_SECONDS, FIRST_SEED = 15.0, 20.0, 1
_FULL_SECONDS = 60.0
_SIMULATED_SECONDS = 600.0
PIPELINE = """name: contention
storage: storage
configuration:
  springhouse.tracks: "2"
  springhouse.spark.master: "local[4]"
libraries:
  - glob:
      include: transformations/**
"""


@dataclass(frozen=True)
class Table:
    """A stream, or a view that reads another table and works for this long."""

    name: str
    every_seconds: float
    priority: float
    reads: str = ""
    work: float = 0.0


@dataclass(frozen=True)
class Workload:
    """Tables, and the load that they should make."""

    seed: int
    load: float
    tables: tuple[Table, ...]

    def busy(self, table_seconds: float, view_seconds: float) -> float:
        """The share of the tracks that refreshes take without any work."""
        fixed = {True: view_seconds, False: table_seconds}
        return sum(fixed[bool(t.reads)] / t.every_seconds for t in self.tables) / TRACKS

    def working(self, table_seconds: float, view_seconds: float) -> "Workload":
        """The same, with works as long as the load requires."""
        left = max(self.load - self.busy(table_seconds, view_seconds), 0.0) * TRACKS
        asked = sum(t.work / t.every_seconds for t in self.tables)
        return replace(
            self, tables=tuple(replace(t, work=t.work * left / asked) for t in self.tables)
        )


def drawn(seed: int, number: int, count: int) -> Workload:
    """Workload `number` of `count`."""
    dice = random.Random(seed)

    def spread(low: float, high: float) -> float:
        return exp(dice.uniform(log(low), log(high)))

    part = (HIGHEST - LOWEST) / count
    load = LOWEST + part * (number + dice.random())
    tables = [
        Table(f"stream_{n}", spread(1.0, 20.0), spread(1.0, 100.0))
        for n in range(dice.randint(4, 6))
    ]
    streams = list(tables)
    for n in range(dice.randint(6, 9)):
        views = tables[len(streams) :]
        source = dice.choice(views if views and dice.random() < 0.3 else streams)
        tables.append(
            Table(
                f"view_{n}",
                source.every_seconds,
                spread(1.0, 100.0),
                source.name,
                spread(1.0, 30.0),
            )
        )
    return Workload(seed, load, tuple(tables))


def main() -> None:
    """Run all workloads under each policy, print, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=_FULL_SECONDS)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    given = parser.parse_args()
    found: list[tuple[Workload, dict[str, float], float]] = []
    with tempfile.TemporaryDirectory() as folder:
        idle = drawn(given.first_seed, 0, 1)
        taken = calibrated(Path(folder) / "idle", idle)
        print(f"without work a table takes {taken[0]:.2f} s, a view {taken[1]:.2f} s", flush=True)
        for number in range(given.workloads):
            workload = drawn(given.first_seed + number, number, given.workloads).working(*taken)
            stale = {}
            for policy, settings in POLICIES.items():
                place = Path(folder) / f"{number} {policy}"
                stale[policy] = observed(place, workload, settings, given.seconds)
                print(
                    f"workload {workload.seed}, load {workload.load:.2f}, {policy}: "
                    f"{stale[policy]:.2f} s",
                    flush=True,
                )
            found.append((workload, stale, least(Path(folder) / f"{number}", workload, taken)))
    report = told(found, taken, given.seconds)
    print(f"\n{report}")
    if given.workloads >= 5 and given.seconds >= _FULL_SECONDS:
        (RESULTS / "contention.md").write_text(report, encoding="utf-8")


def write_project(folder: Path, workload: Workload, *, works: bool) -> None:
    """The tables and views as a project."""
    start = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    statements = []
    for table in workload.tables:
        properties = f"TBLPROPERTIES ('springhouse.priority' = '{table.priority:g}')"
        if not table.reads:
            statements.append(
                f"CREATE STREAMING TABLE {table.name} {properties} AS SELECT * FROM STREAM "
                f"sample(rate => '{1 / table.every_seconds:.9f}', start => '{start}');"
            )
            continue
        milliseconds = 1000 * table.work * works
        statements.append(
            f"CREATE MATERIALIZED VIEW {table.name} {properties} AS\n"
            f"SELECT events, reflect('java.lang.Thread', 'sleep', work) AS worked\n"
            f"FROM (SELECT count(*) AS events, CAST({milliseconds:.0f} AS BIGINT) AS work "
            f"FROM {table.reads});"
        )
    (folder / "transformations").mkdir(parents=True)
    (folder / "transformations" / "all.sql").write_text("\n".join(statements))
    (folder / "spark-pipeline.yml").write_text(PIPELINE)


def calibrated(folder: Path, workload: Workload) -> tuple[float, float]:
    """How long refreshes of tables and of views take here without any work."""
    write_project(folder, workload, works=False)
    taken: dict[bool, list[float]] = {True: [], False: []}
    views = {table.name for table in workload.tables if table.reads}

    def note(event: object) -> None:
        if isinstance(event, Finished) and event.done is not None:
            taken[event.table in views].append(event.done.seconds)

    with Warehouse(folder, listener=note) as warehouse:
        warehouse.refresh()
        warehouse.run(seconds=CALIBRATION_SECONDS / 2)
        taken[True].clear()
        taken[False].clear()
        warehouse.run(seconds=CALIBRATION_SECONDS)
    return statistics.median(taken[False]), statistics.median(taken[True])


def observed(
    folder: Path, workload: Workload, settings: Mapping[str, str], seconds: float
) -> float:
    """The staleness of all tables, weighted by priority, over this many seconds."""
    write_project(folder, workload, works=True)
    with Warehouse(folder, configuration=dict(settings)) as warehouse:
        warehouse.refresh()
        # Warm up, and let the scheduler learn the costs of refreshes.
        warehouse.run(seconds=WARM_UP_SECONDS)
        kept = warehouse.run(seconds=seconds).freshness
    weight = sum(table.priority for table in workload.tables)
    return (
        sum(
            table.priority * statistics.fmean(kept[table.name].staleness)
            for table in workload.tables
        )
        / weight
    )


def least(folder: Path, workload: Workload, taken: tuple[float, float]) -> float:
    """The staleness, weighted by priority, if every table had a track of its own: simulated."""
    write_project(folder, workload, works=True)
    project = load(folder)
    records = {
        table.name: TableRecord(durations={"full": Duration(taken[1] + table.work)})
        if table.reads
        else TableRecord(
            arrivals=(RecordedArrival(0.0, 1),),
            cycle_seconds=table.every_seconds,
            durations={"append": Duration(taken[0])},
        )
        for table in workload.tables
    }
    seconds = Seconds(_SIMULATED_SECONDS)
    enough = WhatIf(tracks=len(workload.tables))
    recorded = ProjectRecord(records, seconds)
    return simulate_run(project, recorded, {}, Policy(), enough, seconds).weighted_staleness


def told(
    found: Sequence[tuple[Workload, Mapping[str, float], float]],
    taken: tuple[float, float],
    seconds: float,
) -> str:
    """The table of results, and its summary."""
    baselines = [policy for policy in POLICIES if policy != "springhouse"]
    lines = [
        "# Under contention: who stays fresh",
        "",
        (
            f"`bench/contention.py`, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}, "
            f"{seconds:g} s for each policy. Staleness in seconds, weighted by priority, over "
            "workloads drawn from the family that the program describes. Without work a table "
            f"takes {taken[0]:.2f} s and a view {taken[1]:.2f} s."
        ),
        "",
        f"| seed | load | {' | '.join(POLICIES)} | uncontended | of FIFO | of the best baseline |",
        "|---:|---:|" + "---:|" * (len(POLICIES) + 3),
    ]
    of_fifo, of_best, over, floors = [], [], [], []
    for workload, stale, floor in found:
        ours = stale["springhouse"]
        of_fifo.append(ours / stale["fifo"])
        of_best.append(ours / min(stale[each] for each in baselines))
        if workload.load > 1:
            over.append(of_fifo[-1])
            floors.append(floor / stale["fifo"])
        lines.append(
            f"| {workload.seed} | {workload.load:.2f} | "
            + " | ".join(f"{stale[policy]:.1f}" for policy in POLICIES)
            + f" | {floor:.1f} | {of_fifo[-1]:.2f} | {of_best[-1]:.2f} |"
        )
    lines += [
        "",
        (
            f"Of FIFO's: median {statistics.median(of_fifo):.2f} ({min(of_fifo):.2f} to "
            f"{max(of_fifo):.2f}). Of the best baseline's: median "
            f"{statistics.median(of_best):.2f}, "
            f"at worst {max(of_best):.2f} "
            f"(goal 1.05: {'kept' if max(of_best) <= 1.05 else 'missed'})."
        ),
    ]
    if over:
        middle = statistics.median(over)
        verdict = "kept" if middle <= 0.5 else "missed"
        lines.append(
            f"Where load is above 1: median {middle:.2f} (goal 0.50: {verdict}). With a track for "
            f"each table, the simulator says, it would be {statistics.median(floors):.2f}."
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
