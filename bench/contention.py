"""Does the scheduler keep what matters fresh when there is too much to do?

On real Spark: five base tables whose data comes every second to every five minutes, and ten views
over them with priorities from 1 to 100. What is important has no promise and is to be as fresh as
possible; the long reports have one, and may rest as long as it allows. Each refresh of a view works
for some time (its query sleeps in a Spark task, so that a noisy machine does not decide), four
times as long in slow phases of 100 seconds in every five minutes. First it is measured what
refreshes take without any of that on this machine, and the work is scaled so that two tracks are
asked for 80 % of what they can do on average; in slow phases that is about 120 %.

The same House runs it three times, one after the other, under

    springhouse   the default: Max Benefit, Proportional tracks, inherited priority, promises
    fifo          first come, first served in topological order, as Spark Declarative Pipelines does
    round robin   each table in turn

and observes every second how stale each table is: how long ago the newest data came in that it
reflects. The figure is the mean of that, weighted by priority; beside it, for how much of the time
each promise was kept. Data that comes every minute is half a minute old on average before anything
can be done about it, so the same is also told without that half period. Goal: at most half of the
better of the two others.

Run: `python bench/contention.py [--minutes 10]`. It writes `bench/results/contention.md`.
"""

import argparse
import os
import statistics
import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from springhouse.house import Finished, House, Kept

RESULTS = Path(__file__).parent / "results"
PLAIN = {
    "springhouse.scheduler.tracks": "global",
    "springhouse.scheduler.inheritance": "none",
    "springhouse.scheduler.chopping": "none",
    "springhouse.scheduler.promises": "ignore",
}
POLICIES = {
    "springhouse": {},
    "fifo": {"springhouse.scheduler.basic": "fifo", **PLAIN},
    "round robin": {"springhouse.scheduler.basic": "round-robin", **PLAIN},
}
SLOW_SECONDS, CYCLE_SECONDS, SLOW_TIMES = 100, 300, 4
LOAD, TRACKS = 0.8, 2
CALIBRATION_SECONDS = 40.0
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
class Stream:
    """A base table, to which an event comes every so many seconds."""

    name: str
    every_seconds: float


@dataclass(frozen=True)
class Work:
    """A view over a stream, whose refresh works for a while."""

    name: str
    reads: str
    seconds: float
    priority: float
    promise: str | None = None


STREAMS = (
    Stream("clicks", 1),
    Stream("orders", 5),
    Stream("payments", 15),
    Stream("stock", 60),
    Stream("prices", 300),
)
VIEWS = (
    Work("live_clicks", "clicks", 0.05, 100),
    Work("all_clicks", "clicks", 0.05, 1, "10 seconds"),
    Work("live_orders", "orders", 0.2, 60),
    Work("all_orders", "orders", 0.5, 1, "30 seconds"),
    Work("risk", "payments", 0.5, 30),
    Work("ledger", "payments", 2.0, 2, "1 minute"),
    Work("stock_now", "stock", 1.0, 5),
    Work("stock_report", "stock", 6.0, 1, "3 minutes"),
    Work("price_list", "prices", 2.0, 3),
    Work("price_history", "prices", 20.0, 1, "10 minutes"),
)


def main() -> None:
    """Run under each policy, print, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    minutes = parser.parse_args().minutes
    figures: dict[str, dict[str, Kept]] = {}
    busy: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_project(Path(folder) / "idle", 0.0)
        scale, loads = calibrated(Path(folder) / "idle")
        print(loads, flush=True)
        write_project(Path(folder) / "busy", scale)
        for policy, settings in POLICIES.items():
            run = observed(Path(folder) / "busy", policy, settings, minutes)
            figures[policy], busy[policy] = run
    report = told(figures, busy, loads, minutes)
    print(f"\n{report}")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "contention.md").write_text(report)


def write_project(folder: Path, scale: float) -> None:
    """The tables and views as a project; each view works so many times its usual time."""
    start = datetime.now(UTC).isoformat()
    statements = [
        f"CREATE STREAMING TABLE {s.name} AS SELECT * FROM "
        f"STREAM sample(rate => '{1 / s.every_seconds:.6f}', start => '{start}');"
        for s in STREAMS
    ]
    for view in VIEWS:
        promise = f", 'springhouse.staleness' = '{view.promise}'" if view.promise else ""
        slow = f"CASE WHEN unix_timestamp() % {CYCLE_SECONDS} < {SLOW_SECONDS} THEN {SLOW_TIMES} "
        work = f"CAST({view.seconds * scale * 1000:.0f} * ({slow} ELSE 1 END) AS BIGINT)"
        statements.append(
            f"CREATE MATERIALIZED VIEW {view.name} "
            f"TBLPROPERTIES ('springhouse.priority' = '{view.priority:g}'{promise}) AS\n"
            f"SELECT events, reflect('java.lang.Thread', 'sleep', work) AS worked\n"
            f"FROM (SELECT count(*) AS events, {work} AS work FROM {view.reads});"
        )
    (folder / "transformations").mkdir(parents=True)
    (folder / "transformations" / "all.sql").write_text("\n".join(statements))
    (folder / "spark-pipeline.yml").write_text(PIPELINE)


def calibrated(folder: Path) -> tuple[float, str]:
    """By what to scale the work, so that the load is right; and what the loads are then."""
    taken: dict[bool, list[float]] = {True: [], False: []}
    views = {view.name for view in VIEWS}

    def note(event: object) -> None:
        if isinstance(event, Finished) and event.done is not None:
            taken[event.table in views].append(event.done.seconds)

    house = House(folder, listener=note)
    house.refresh()
    house.run(seconds=CALIBRATION_SECONDS / 2)
    taken[True].clear()
    taken[False].clear()
    house.run(seconds=CALIBRATION_SECONDS)
    house.close()
    periods = {s.name: s.every_seconds for s in STREAMS}
    view, table = statistics.median(taken[True]), statistics.median(taken[False])
    fixed = sum(view / periods[v.reads] for v in VIEWS) + sum(table / p for p in periods.values())
    work = sum(v.seconds / periods[v.reads] for v in VIEWS)
    slow = SLOW_SECONDS / CYCLE_SECONDS
    scale = max(LOAD * TRACKS - fixed, 0.1) / (work * (1 + slow * (SLOW_TIMES - 1)))
    average = (fixed + scale * work * (1 + slow * (SLOW_TIMES - 1))) / TRACKS
    worst = (fixed + scale * work * SLOW_TIMES) / TRACKS
    return scale, (
        f"Without work a view takes {view:.2f} s and a table {table:.2f} s. The work is scaled by "
        f"{scale:.2f}: the offered load is {average:.0%}, and {worst:.0%} in slow phases."
    )


def observed(
    folder: Path, policy: str, settings: dict[str, str], minutes: float
) -> tuple[dict[str, Kept], float]:
    """What each table was like, second by second, and for how much of the time tracks worked."""
    began, refreshes = time.time(), [0]
    worked = [0.0]

    def count(event: object) -> None:
        if isinstance(event, Finished):
            refreshes[0] += 1
            worked[0] += event.done.seconds if event.done is not None else 0.0

    house = House(folder, configuration=settings, listener=count)
    house.refresh()
    ticker = threading.Event()

    def tick() -> None:
        while not ticker.wait(30):
            print(f"{policy}: {time.time() - began:.0f} s, {refreshes[0]} refreshes", flush=True)

    threading.Thread(target=tick, daemon=True).start()
    try:
        # To warm up, and for the scheduler to learn what refreshes take.
        house.run(seconds=min(60.0, 15.0 * minutes))
        worked[0] = 0.0
        house.run(seconds=60.0 * minutes)
    finally:
        ticker.set()
        house.close()
    return dict(house.kept), worked[0] / (60.0 * minutes * TRACKS)


def told(
    figures: dict[str, dict[str, Kept]], busy: dict[str, float], loads: str, minutes: float
) -> str:
    """The table, and what it says in sum."""
    promises = {view.name: view.promise for view in VIEWS if view.promise}
    lines = [
        "# Under contention: who stays fresh",
        "",
        (
            f"`bench/contention.py`, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}, "
            f"{minutes:g} minutes under each policy. Mean staleness in seconds; with a promise, "
            f"for how much of the time it was kept. {loads}"
        ),
        "",
        f"| table | priority | {' | '.join(figures)} |",
        "|---|---|" + "---|" * len(figures),
    ]
    priorities = {s.name: 1.0 for s in STREAMS} | {v.name: v.priority for v in VIEWS}
    for name, priority in priorities.items():
        cells = []
        for kept in figures.values():
            cell = f"{_mean(kept[name]):.1f}"
            if name in promises:
                allowed = _seconds(promises[name] or "")
                lags = kept[name].lags
                cell += f", kept {sum(lag <= allowed for lag in lags) / max(len(lags), 1):.0%}"
            cells.append(cell)
        lines.append(f"| {name} | {priority:g} | " + " | ".join(cells) + " |")
    weight = sum(priorities.values())
    total = {
        policy: sum(priorities[name] * _mean(kept[name]) for name in priorities) / weight
        for policy, kept in figures.items()
    }
    half = {s.name: s.every_seconds / 2 for s in STREAMS}
    half |= {v.name: half[v.reads] for v in VIEWS}
    unavoidable = sum(priorities[name] * half[name] for name in priorities) / weight
    over = [each - unavoidable for each in total.values()]
    lines += [
        f"| **weighted by priority** | | {' | '.join(f'{t:.1f}' for t in total.values())} |",
        f"| without half a period each | | {' | '.join(f'{t:.1f}' for t in over)} |",
        f"| share of time that tracks worked | | {' | '.join(f'{b:.0%}' for b in busy.values())} |",
    ]
    ours, best = total["springhouse"], min(t for p, t in total.items() if p != "springhouse")
    goal = "kept" if ours <= best / 2 else "missed"
    lines += ["", f"Ours is {ours / best:.2f} of the best baseline (goal 0.50: {goal})."]
    return "\n".join(lines) + "\n"


def _mean(kept: Kept) -> float:
    return statistics.fmean(kept.staleness) if kept.staleness else 0.0


def _seconds(text: str) -> float:
    count, unit = text.split()
    return float(count) * (60 if unit.startswith("minute") else 1)


if __name__ == "__main__":
    main()
