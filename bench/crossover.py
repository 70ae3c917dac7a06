"""Is the way that is chosen the cheapest one?

One join view and one aggregate view over TPC-H's orders and lines; changes of 0.01 % to 100 % of
the orders with their lines, half of them deleted and half of them inserted. Each view is there as
often as there are ways to refresh it: always computed anew, always incremental, always by its
touched groups, and as the House does it (the planner's choice, or the lake's where it is close).
All are refreshed after every change, in random order: a noisy machine then disturbs all alike, and
nobody always comes after the heaviest one and cleans up its memory. Of each size the first ten
changes are not counted: that is when costs are learned, and when state is built or given up. Those
that have no choice learn nothing, so of the ten they are given the last four: one in which they are
computed anew, one that builds state, and two to warm up.

Run: `python bench/crossover.py [--scale 0.2] [--rounds 5] [--sizes small]`. It writes what every
refresh took to `bench/results/crossover.csv`, and tells it in `crossover.md`.
Goal: at every size the median of what was chosen is within 15 % of the median of the best.
"""

import argparse
import csv
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import springhouse
from springhouse.house import House
from springhouse.house.performing import perform
from springhouse.lake.refresh_view import refresh_view
from springhouse.views.variants import Way

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "tpch"))
import tpch
import tpch_warehouse

RESULTS = Path(__file__).parent / "results"
SIZES = {"small": (0.0001, 0.001, 0.01, 0.03), "large": (0.1, 0.3, 1.0)}
FRACTIONS = (*SIZES["small"], *SIZES["large"])
MORE_IF_SMALL = 3
"""A refresh of a quarter of a second is disturbed by anything: small changes count more often."""
WARM_UP = 10
WARM_UP_OF_THE_FORCED = 4
TABLES = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
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


@dataclass(frozen=True)
class Refresh:
    """One that counts: how a copy of a view was to be refreshed, how it was, and how long."""

    view: str
    way: str
    fraction: float
    variant: str
    seconds: float


def main() -> None:
    """Measure, print, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", choices=tuple(SIZES), help="of changes; the others are kept")
    asked = parser.parse_args()
    fractions = SIZES[asked.sizes] if asked.sizes else FRACTIONS
    file = RESULTS / "crossover.csv"
    kept = _read(file) if asked.sizes and file.exists() else []
    with tempfile.TemporaryDirectory() as place:
        found = measured(Path(place), asked.scale, asked.rounds, fractions)
    RESULTS.mkdir(exist_ok=True)
    _write(file, [each for each in kept if each.fraction not in fractions] + found)
    report = told(_read(file), asked.scale)
    print(f"\n{report}")
    (RESULTS / "crossover.md").write_text(report)


def measured(folder: Path, scale: float, rounds: int, fractions: Sequence[float]) -> list[Refresh]:
    """What every copy took after every change that counts."""
    files = tpch.generate(scale, folder / "generated")
    rows = {name: tpch.read(files[name]) for name in TABLES}
    schemas = {name: table.schema for name, table in rows.items()}
    project = tpch_warehouse.write_project(folder / "project", schemas, SETTINGS, ())
    statements = [
        f"CREATE MATERIALIZED VIEW {_copy(view, way)} AS {VIEWS[view]};" for view, way in COPIES
    ]
    (project / "transformations" / "views.sql").write_text("\n".join(statements))
    found = []
    with springhouse.open(project) as house:
        tables = {name: tpch_warehouse.BaseTable(house, name) for name in TABLES}
        for name, table in tables.items():
            table.load(rows[name])
        for view, way in COPIES:
            refreshed(house, view, way)
        plan = [
            (f, place)
            for f in fractions
            for place in range(WARM_UP + rounds * (MORE_IF_SMALL if f in SIZES["small"] else 1))
        ]
        for number, (fraction, place) in enumerate(plan):
            counts = place >= WARM_UP
            forced = place - (WARM_UP - WARM_UP_OF_THE_FORCED)
            changes = tpch.orders_and_lines(rows["orders"], rows["lineitem"], fraction, number)
            for name, change in changes.items():
                rows[name] = applied(name, rows[name], change)
                tables[name].change(change)
            print(f"change {number + 1} of {len(plan)}: {fraction:.2%}", flush=True)
            for view, way in random.Random(number).sample(COPIES, len(COPIES)):
                if forced < 0 and way != "chosen":
                    continue
                catches_up = forced == 0 and way != "chosen"
                taken, variant = refreshed(house, view, way, catches_up=catches_up)
                if counts:
                    found.append(Refresh(view, way, fraction, variant, taken))
                print(f"  {view:9} {way:15} {taken:6.2f} s  {variant}", flush=True)
        for view in VIEWS:
            prove_equal(house, view)
    return found


def applied(name: str, table: pa.Table, change: tpch.Change) -> pa.Table:
    """The table after a change: orders go with all their lines, so keys tell all."""
    key = TABLES[name]
    gone = pc.is_in(table[key], value_set=change.deleted[key].combine_chunks())
    return pa.concat_tables([table.filter(pc.invert(gone)), change.inserted]).combine_chunks()


def refreshed(house: House, view: str, way: str, *, catches_up: bool = False) -> tuple[float, str]:
    """Refresh a copy of a view; the seconds, and how it was done."""
    name = _copy(view, way)
    began = time.perf_counter()
    if way == "chosen":
        perform(house.watch, name, "benchmark")
    else:
        declared = house.project.views[name]
        forced = Way.BATCH if catches_up else WAYS[way]
        refresh_view(house.lake, house.project, declared, {}, "benchmark", way=forced)
    taken = time.perf_counter() - began
    newest = house.lake.log(name).newest()
    assert newest is not None
    assert newest.note is not None
    return taken, newest.note.variant


def prove_equal(house: House, view: str) -> None:
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


def told(found: Sequence[Refresh], scale: float) -> str:
    """The tables, and where the goal was missed."""
    seconds: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    chosen: dict[tuple[str, float], Counter[str]] = defaultdict(Counter)
    for each in found:
        seconds[each.view, each.way, each.fraction].append(each.seconds)
        if each.way == "chosen":
            chosen[each.view, each.fraction][each.variant] += 1
    lines = [
        "# Which way is cheapest, and which one is chosen",
        "",
        (
            f"`bench/crossover.py`, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}, TPC-H at "
            f"scale factor {scale:g}. Medians, in seconds, of as many refreshes as the last column "
            f"says, after {WARM_UP} of the same size to warm up. [CSV](crossover.csv)."
        ),
    ]
    missed = []
    for view in VIEWS:
        ways = [way for each, way in COPIES if each == view and way != "chosen"]
        lines += ["", f"## The {view} view", "", f"| changed | {' | '.join(ways)} | chosen | is |"]
        lines.append("|---|" + "---|" * (len(ways) + 2))
        for fraction in sorted({each.fraction for each in found}):
            medians = {way: statistics.median(seconds[view, way, fraction]) for way in ways}
            own = statistics.median(seconds[view, "chosen", fraction])
            best = min(medians, key=lambda way: medians[way])
            over = own / medians[best] - 1
            if over > 0.15:
                # The same way twice differs by noise, and by what choosing costs.
                same = chosen[view, fraction].keys() == {best}
                which_way = "by the best way" if same else f"{best} is best"
                missed.append(f"{view} at {fraction:.2%} ({over:+.0%}, {which_way})")
            which = ", ".join(f"{way} {n}x" for way, n in chosen[view, fraction].most_common())
            cells = " | ".join(f"{m:.2f}" for m in medians.values())
            lines.append(f"| {fraction:.2%} | {cells} | {own:.2f} ({over:+.0%}) | {which} |")
    lines += [
        "",
        f"Goal, within 15 % of the best: {'missed: ' + ', '.join(missed) if missed else 'kept'}.",
    ]
    return "\n".join(lines) + "\n"


def _read(file: Path) -> list[Refresh]:
    with file.open(newline="", encoding="utf-8") as opened:
        return [
            Refresh(e["view"], e["way"], float(e["fraction"]), e["variant"], float(e["seconds"]))
            for e in csv.DictReader(opened)
        ]


def _write(file: Path, found: Sequence[Refresh]) -> None:
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(["view", "way", "fraction", "variant", "seconds"])
        writer.writerows((e.view, e.way, e.fraction, e.variant, f"{e.seconds:.3f}") for e in found)


def _copy(view: str, way: str) -> str:
    return f"{view}_{way.replace(' ', '_')}"


if __name__ == "__main__":
    main()
