"""Is the way that is chosen the cheapest one?

One join view and one aggregate view over TPC-H's orders and lines; changes of 0.01 % to 100 % of
the orders with their lines, half of them deleted and half of them inserted. Each view is there as
often as there are ways to refresh it: always computed anew, always incremental, always by its
touched groups, and as the House does it (the planner's choice, or the lake's where it is close).
All are refreshed after every change, in an order that changes, so that a noisy machine disturbs all
alike. Of each size the first ten changes are not counted: that is when costs are learned, and when
state is built or given up. Those that have no choice learn nothing, so of the ten they are given
the last three, the first of which brings all before it: enough for Java to compile what they run.

Run: `python bench/crossover.py [--scale 0.2] [--rounds 5]`. It writes `bench/results/crossover.md`.
Goal: at every size the median of what was chosen is within 15 % of the median of the best.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow as pa

import springhouse
from springhouse.house import House
from springhouse.house.performing import perform
from springhouse.lake.refresh_view import refresh_view
from springhouse.views.variants import Way

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "tpch"))
import tpch
import tpch_warehouse

RESULTS = Path(__file__).parent / "results"
FRACTIONS = (0.0001, 0.001, 0.01, 0.03, 0.1, 0.3, 1.0)
WARM_UP = 10
WARM_UP_OF_THE_FORCED = 3
TABLES = ("orders", "lineitem")
VIEWS = {
    "join": """SELECT l_orderkey, l_linenumber, l_extendedprice, o_custkey, o_orderdate
  FROM orders JOIN lineitem ON l_orderkey = o_orderkey WHERE l_returnflag = 'R'""",
    "aggregate": """SELECT o_custkey, count(*) AS lines, sum(l_extendedprice) AS spent
  FROM orders JOIN lineitem ON l_orderkey = o_orderkey GROUP BY o_custkey""",
}
WAYS = {
    "full": Way.BATCH,
    "incremental": Way.INCREMENTAL,
    "group recompute": Way.GROUP_RECOMPUTE,
}
COPIES = [
    (view, way)
    for view in VIEWS
    for way in (*WAYS, "chosen")
    if (view, way) != ("join", "group recompute")
]
SETTINGS = {"spark.driver.memory": "6g"}

Seconds = dict[tuple[str, str, float], list[float]]


def main() -> None:
    """Measure, print, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        report = told(*measured(Path(place), asked.scale, asked.rounds), asked.scale, asked.rounds)
    print(f"\n{report}")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "crossover.md").write_text(report)


def measured(
    folder: Path, scale: float, rounds: int
) -> tuple[Seconds, dict[tuple[str, float], Counter[str]]]:
    """The seconds of every copy after every change, and which ways were chosen."""
    files = tpch.generate(scale, folder / "generated")
    rows = {name: tpch.read(files[name]) for name in TABLES}
    schemas = {name: table.schema for name, table in rows.items()}
    project = tpch_warehouse.write_project(folder / "project", schemas, SETTINGS, ())
    statements = [
        f"CREATE MATERIALIZED VIEW {_copy(view, way)} AS {VIEWS[view]};" for view, way in COPIES
    ]
    (project / "transformations" / "views.sql").write_text("\n".join(statements))
    seconds: Seconds = defaultdict(list)
    chosen: dict[tuple[str, float], Counter[str]] = defaultdict(Counter)
    with springhouse.open(project) as house:
        tables = {name: tpch_warehouse.BaseTable(house, name) for name in TABLES}
        for name, table in tables.items():
            table.load(rows[name])
        for view, way in COPIES:
            refreshed(house, view, way)
        plan = [(f, place) for f in FRACTIONS for place in range(WARM_UP + rounds)]
        for number, (fraction, place) in enumerate(plan):
            counts = place >= WARM_UP
            all_of_them = place >= WARM_UP - WARM_UP_OF_THE_FORCED
            changes = tpch.orders_and_lines(rows["orders"], rows["lineitem"], fraction, number)
            for name, change in changes.items():
                rows[name] = tpch.applied(rows[name], change)
                tables[name].change(change)
            print(f"change {number + 1} of {len(plan)}: {fraction:.2%}", flush=True)
            turn = number % len(COPIES)
            for view, way in COPIES[turn:] + COPIES[:turn]:
                if not (all_of_them or way == "chosen"):
                    continue
                taken, variant = refreshed(house, view, way)
                if counts:
                    seconds[view, way, fraction].append(taken)
                    if way == "chosen":
                        chosen[view, fraction][variant] += 1
                print(f"  {view:9} {way:15} {taken:6.2f} s  {variant}", flush=True)
        for view in VIEWS:
            prove_equal(house, view, rows)
    return seconds, chosen


def refreshed(house: House, view: str, way: str) -> tuple[float, str]:
    """Refresh a copy of a view; the seconds, and how it was done."""
    name = _copy(view, way)
    began = time.perf_counter()
    if way == "chosen":
        perform(house.watch, name, "benchmark")
    else:
        declared = house.project.views[name]
        refresh_view(house.lake, house.project, declared, {}, "benchmark", way=WAYS[way])
    taken = time.perf_counter() - began
    newest = house.lake.log(name).newest()
    assert newest is not None
    assert newest.note is not None
    return taken, newest.note.variant


def prove_equal(house: House, view: str, rows: dict[str, pa.Table]) -> None:
    """All copies of a view hold what its query gives."""
    spark = house.lake.spark.session()
    for name in TABLES:
        house.lake.open(name).read(spark).createOrReplaceTempView(name)
    expected = spark.sql(VIEWS[view])
    for each, way in COPIES:
        if each == view:
            found = house.lake.open(_copy(view, way)).read(spark)
            differ = expected.exceptAll(found).count() + found.exceptAll(expected).count()
            assert not differ, f"{view} is wrong when it is refreshed so: {way}"


def told(
    seconds: Seconds, chosen: dict[tuple[str, float], Counter[str]], scale: float, rounds: int
) -> str:
    """The tables, and where the goal was missed."""
    lines = [
        "# Which way is cheapest, and which one is chosen",
        "",
        (
            f"`bench/crossover.py`, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}, TPC-H at "
            f"scale factor {scale:g}. Medians of {rounds} refreshes each, in seconds, after "
            f"{WARM_UP} of the same size to warm up."
        ),
    ]
    missed = []
    for view in VIEWS:
        ways = [way for each, way in COPIES if each == view and way != "chosen"]
        lines += ["", f"## The {view} view", "", f"| changed | {' | '.join(ways)} | chosen | is |"]
        lines.append("|---|" + "---|" * (len(ways) + 2))
        for fraction in FRACTIONS:
            medians = {way: statistics.median(seconds[view, way, fraction]) for way in ways}
            own = statistics.median(seconds[view, "chosen", fraction])
            over = own / min(medians.values()) - 1
            if over > 0.15:
                missed.append(f"{view} at {fraction:.2%} ({over:+.0%})")
            which = ", ".join(f"{way} {n}x" for way, n in chosen[view, fraction].most_common())
            cells = " | ".join(f"{m:.2f}" for m in medians.values())
            lines.append(f"| {fraction:.2%} | {cells} | {own:.2f} ({over:+.0%}) | {which} |")
    lines += [
        "",
        f"Goal, within 15 % of the best: {'missed: ' + ', '.join(missed) if missed else 'kept'}.",
    ]
    return "\n".join(lines) + "\n"


def _copy(view: str, way: str) -> str:
    return f"{view}_{way.replace(' ', '_')}"


if __name__ == "__main__":
    main()
