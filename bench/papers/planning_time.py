"""How long does a plan take in a warehouse of 10, 100 or 1,000 views?

Chains, stars and diamonds on top of each other, of views that are consistent (one pathway) and of
views that may be inconsistent (pathways apart, an asynchronous variant per input). Everything is up
to date, then one base table gets new data, and every view downstream wants it. And: a thousand
views in a hundred stars, of which one is touched. The logs hold a hundred versions of each table.

Run: `python bench/papers/planning_time.py`.
"""

import csv
import sys
import time
from pathlib import Path

from springhouse.planner.blocks import MONOTONE, STRONG
from springhouse.planner.bounds import BoundInconsistency, BoundStaleness
from springhouse.planner.costs import Linear, Price
from springhouse.planner.operators import Variant
from springhouse.planner.plan import ANY_DELTA, Situation
from springhouse.planner.planner import Planner
from springhouse.planner.provenance import Channel, Provenance
from springhouse.planner.stored import Stored, blocks_in_logs, held_in_logs
from springhouse.planner.widgets import view, workflow
from springhouse.units import Instant

RESULTS = Path(__file__).parents[1] / "results" / "004"
VERSIONS = 100
VARIANTS = (Variant.BATCH, Variant.INCREMENTAL, Variant.GROUP_RECOMPUTE, Variant.ASYNCHRONOUS)
LIMIT_SECONDS = 1.0


def chain(count):
    return {f"v{i}": [f"v{i - 1}" if i else "base"] for i in range(count)}


def star(count):
    return {f"v{i}": ["base"] for i in range(count)}


def diamonds(count):
    """Three views each: left, right, both."""
    found, top = {}, "base"
    for number in range(count // 3):
        left, right, both = (f"{side}{number}" for side in ("left", "right", "both"))
        found |= {left: [top], right: [top], both: [left, right]}
        top = both
    return found


def many_stars(count):
    return {
        f"v{i}": [f"base{i % (count // 10)}" if i % (count // 10) else "base"] for i in range(count)
    }


def measured(views, loose):
    """Seconds to build the planner, to gather blocks, to plan; and the plan."""
    names = list(views)
    inputs = sorted({each for read in views.values() for each in read} - set(names))
    channels = {
        name: Channel(tuple(range(VERSIONS)), tuple(Instant(60.0 * v) for v in range(VERSIONS)))
        for name in inputs
    }
    began = time.perf_counter()
    flow = workflow(
        inputs,
        [
            view(name, read, VARIANTS, drivers=read if loose else (), strict=not loose)
            for name, read in views.items()
        ],
        strict=() if loose else names,
    )
    bounds = [BoundStaleness(name, None, 0.0) for name in names]
    bounds += [BoundInconsistency(name, 3600.0 if loose else 0.0) for name in names]
    planner = Planner(flow, bounds, dict.fromkeys(names, ANY_DELTA))
    built = time.perf_counter() - began
    logs, read = _logs(flow, views, inputs)
    # All but one base table have their newest version reflected everywhere.
    channels["base"] = Channel(
        (*channels["base"].versions, VERSIONS), (*channels["base"].timestamps, Instant(6000.0))
    )
    logs["base"].append(
        Stored(VERSIONS, Provenance({"base": frozenset({VERSIONS})}), 1e6, 1e3, MONOTONE)
    )
    now = Instant(6001.0)
    began = time.perf_counter()
    held = held_in_logs(flow, logs)
    wanted = [wish.channel for wish in planner.wishes(Situation(now, channels, {}, held))]
    blocks = blocks_in_logs(flow, logs, read, channels, now, flow.above(wanted))
    gathered = time.perf_counter() - began
    began = time.perf_counter()
    plan = planner.plan(
        Situation(now, channels, blocks, held), Linear({}, Price(1.0, 1e-6, 1e-6, (0.5,)))
    )
    planned = time.perf_counter() - began
    assert not plan.missed
    assert len([step for step in plan.steps if step.is_work]) == len(wanted)
    return built, gathered, planned, plan


def _logs(flow, views, inputs):
    logs = {
        name: [
            Stored(v, Provenance({name: frozenset({v})}), 1e6, 1e3, MONOTONE)
            for v in range(VERSIONS)
        ]
        for name in inputs
    }
    read = {}
    for name in flow.order:
        if name not in views:
            continue
        logs[name] = [
            Stored(
                v,
                flow.composed(name, [(x, logs[x][v].provenance) for x in views[name]]),
                1e5,
                1e3,
                STRONG,
            )
            for v in range(VERSIONS)
        ]
        read[name] = dict.fromkeys(views[name], VERSIONS - 1)
    return logs, read


def main():
    rows, slow = [], []
    for shape in (chain, star, diamonds, many_stars):
        for count in (10, 100, 1000):
            for loose in (False, True):
                built, gathered, planned, plan = measured(shape(count), loose)
                kind = "may be inconsistent" if loose else "consistent"
                seconds = [f"{each:.4f}" for each in (built, gathered, planned)]
                numbers = [len(plan.steps), plan.explored]
                rows.append([shape.__name__, count, kind, *seconds, *numbers])
                print(*rows[-1], flush=True)
                if gathered + planned > LIMIT_SECONDS:
                    slow.append(rows[-1])
    RESULTS.mkdir(parents=True, exist_ok=True)
    headers = ["shape", "views", "promise", "build_s", "gather_s", "plan_s", "steps", "explored"]
    with (RESULTS / "planning_time.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([headers, *rows])
    lines = [
        "## Planning time",
        "",
        "| " + " | ".join(headers) + " |",
        "|---|---:|---|" + "---:|" * 5,
    ]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    verdict = "none takes a second" if not slow else f"{len(slow)} take more than a second"
    lines += ["", f"Of plans after one arrival {verdict}."]
    (RESULTS / "planning_time.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
