"""What does a scheduling decision cost, and how does that grow with the number of tables?

    events      one event and the decision after it, in a pretend warehouse: data arrives by the
                period of each table, refreshes take 0.5 to 1.5 times the expected time, tracks are
                busy for 90 % of the time. Only the scheduler is measured, not the world.
    per second  events per second of one core, 30 tables on 4 tracks, for several policies
    simulated   the same with the world: `springhouse simulate`, the paper's 30 tables on 4 tracks
    growth      10, 1,000 and 100,000 tables on 32 tracks

Goals: at least 50,000 simulated events per second for 30 tables, and a cost per event that grows
far less than the number of tables. Run: `python bench/scheduler.py [--events 200000]`; it writes
`bench/results/scheduler.md`. Other work on the machine affects all numbers except the simulator's,
which are in processor time.
"""

import argparse
import os
import platform
import random
import statistics
import time
from heapq import heapify, heappop, heappush
from pathlib import Path

from springhouse.refresh.policy import EdfPartitioned, Global, Policy
from springhouse.refresh.ranking.basic import Basic
from springhouse.refresh.scheduler import Scheduler
from springhouse.refresh.table.load_cost import LoadCost
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.simulate.pretend_schedule import PretendWarehouse, ScheduleConditions
from springhouse.simulate.slowdowns import Slowdowns
from springhouse.simulate.workload import Workload, equal_tables
from springhouse.units import Instant, Seconds

RESULTS = Path(__file__).parent / "results" / "scheduler.md"
GOAL = 50_000

POLICIES = {
    "default": Policy(),
    "default, with promises": Policy(),
    "global": Policy(tracks=Global()),
    "edf-partitioned": Policy(tracks=EdfPartitioned()),
    "lookahead": Policy(basic=Basic.LOOKAHEAD),
    "random": Policy(basic=Basic.RANDOM, tracks=Global()),
}


def main() -> None:
    """Measure, print, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=200_000)
    events = parser.parse_args().events
    lines = [
        "# What a scheduling decision costs",
        "",
        (
            f"`bench/scheduler.py`, {events:,} events each, one of {os.cpu_count()} cores "
            f"({platform.machine()}, Python {platform.python_version()}), "
            f"{time.strftime('%Y-%m-%d')}. Microseconds per event, with the decision after it."
        ),
        "",
        "| tables, tracks | policy | mean | median | 99 % | events per second | set up |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for name, policy in POLICIES.items():
        promise = Seconds(150.0) if "promises" in name else None
        lines.append(f"| 30, 4 | {name} {_told(measured(30, 4, events, policy, promise))}")
    means = {}
    for tables in (10, 1_000, 100_000):
        figures = measured(tables, 32, events, Policy(), None)
        means[tables] = figures["mean"]
        lines.append(f"| {tables:,}, 32 | default {_told(figures)}")
    growth = means[100_000] / means[10]
    speed = simulated(events)
    lines += [
        "",
        (
            f"10,000 times as many tables cost {growth:.1f} times as much per event (goal: far "
            f"less than proportionally: {'kept' if growth < 100 else 'missed'})."
        ),
        "",
        (
            f"The simulator, world and all, the paper's 30 tables on four tracks under the default "
            f"policy: {speed:,.0f} events per second of one core (goal {GOAL:,}: "
            f"{'kept' if speed >= GOAL else 'missed'})."
        ),
    ]
    page = "\n".join(lines) + "\n"
    print(page)
    RESULTS.write_text(page, encoding="utf-8")
    assert growth < 100, "a decision must cost far less than proportionally more"


def simulated(events: int) -> float:
    """Events per second of the simulator."""
    workload = Workload(equal_tables(30)).at_utilisation(0.45, 4)
    world = PretendWarehouse(workload, ScheduleConditions(slowdowns=Slowdowns()), Policy())
    world.run(events=events / 20)
    began = time.process_time()
    world.run(events=events)
    return events / (time.process_time() - began)


def measured(
    tables: int, tracks: int, events: int, policy: Policy, promise: Seconds | None
) -> dict[str, float]:
    """Microseconds per event: mean, median and 99th percentile; and events per second."""
    dice = random.Random(1)
    scheduler = Scheduler(tracks, policy)
    names = [f"t{i}" for i in range(tables)]
    periods = [100.0 * dice.choice([1, 1, 1, 30]) for _ in names]
    for i, (name, period) in enumerate(zip(names, periods, strict=True)):
        work = 0.9 * tracks / tables * period
        scheduler.declare(
            TableProfile(
                name,
                period_seconds=Seconds(period),
                priority=1.0 + i % 10,
                promise_seconds=promise,
                cost=LoadCost(work / 10, work * 0.9 / period),
            ),
            freshness=Instant(0.0),
        )
    world: list[tuple[float, int, int, float]] = [
        (dice.uniform(0, period), i, -1, 0.0) for i, period in enumerate(periods)
    ]
    heapify(world)
    began = time.perf_counter()
    scheduler.starts([], Instant(0.0))
    set_up = time.perf_counter() - began
    free, spent = {*scheduler.tracks}, []
    number = {name: i for i, name in enumerate(names)}
    for _ in range(events):
        at, table, track, seconds = heappop(world)
        now = Instant(at)
        if track >= 0:
            free.add(track)
        began = time.perf_counter()
        if track < 0:
            scheduler.arrived(names[table], now, freshness=now)
        else:
            scheduler.finished(names[table], now, seconds=seconds)
        orders = scheduler.starts(free, now)
        spent.append(time.perf_counter() - began)
        if track < 0:
            heappush(world, (at + periods[table], table, -1, 0.0))
        for start in orders:
            free.discard(start.track)
            took = start.expected_seconds * dice.uniform(0.5, 1.5)
            heappush(world, (at + took, number[start.table], start.track, took))
    mean = statistics.fmean(spent)
    return {
        "mean": mean * 1e6,
        "median": statistics.median(spent) * 1e6,
        "p99": statistics.quantiles(spent, n=100)[-1] * 1e6,
        "events per second": 1 / mean,
        "set up seconds": set_up,
    }


def _told(figures: dict[str, float]) -> str:
    return (
        f"| {figures['mean']:.1f} | {figures['median']:.1f} | {figures['p99']:.1f} "
        f"| {figures['events per second']:,.0f} | {figures['set up seconds']:.3f} s |"
    )


if __name__ == "__main__":
    main()
