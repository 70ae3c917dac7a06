"""How much faster is a view refreshed by its change than by running its query again?

The 22 queries of TPC-H, each a view under `refresh = auto`, at scale factor 1. All sides take turns
in one run, so that a noisy machine disturbs them alike:

    full      Spark runs the query over the files of the same version, with the settings of the
              warehouse, and overwrites a Parquet folder
    plain     the same in a Spark of its own process, with Spark's own settings
    ours      the view is refreshed to that version: rows, hidden state, change, and commit

Each runs after each of these parts of `orders` changed with their `lineitem`. Half is deleted and
half inserted, as in TPC-H's own refresh functions: old orders go, new orders come.

Everything is warm, as in a warehouse that runs for days. Some rounds come first and do not count:
two of full runs and twenty of ours. Java compiles the code that plans and runs small queries only
after some hundred uses (after two rounds a refresh takes about twice as long as after twelve).

The time of a full run hardly depends on the size of the change, and is most of the work. So up to
1 % it is measured only with every 0.1 %. Such a round is one pass through all queries for each
side, and the order of the sides alternates: a warehouse that refreshes by changes has no full run
right before each refresh, which would leave cold caches and a full heap. Seconds are medians; up to
1 % a ratio is that of two medians.

With 10 % and 30 % most of our refreshes are recomputations too. The question is whether they are a
tenth slower, which is less than the machine's noise. So a full run goes right before or right after
each of ours, in turn, and there are more rounds; a ratio is the median of those of the rounds. The
noise is the difference of full runs of one query from their median. A recomputation that also
builds the state for cheaper refreshes is listed apart (`full + state`): after a change of pace that
is a bet (`planner/way/state_worth.py`). `plain` is measured in the last rounds of each size only.

Queries 2, 11 and 16 read neither table and are left out of the mean. At the end the program
compares every view with its query.

Run: `python bench/tpch.py [--scale 1] [--queries 1,6] [--rounds 3] [--large-rounds 6]`. It takes
about 45 minutes (rounds or large rounds may be 0) and writes `bench/results/tpch.md`,
`tpch_large.md` and a CSV beside each. Goals: at 0.1 % the geometric mean of full / ours is at least
8 and the best at least 20; and ours is never above 1.1 times full, up to 30 % changed.
"""

import argparse
import csv
import math
import os
import platform
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from _plain_spark import PlainSpark

import springhouse
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.warehouse import Warehouse
from springhouse.warehouse.running.view_execution import refreshed

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "tpch"))
import tpch
import tpch_warehouse

RESULTS = Path(__file__).parent / "results"
SMALL = (0.0001, 0.001, 0.01)
LARGE = (0.1, 0.3)
COMPARED = 0.001
WARM_UP, WARM_UP_FULL = 20, 2
LARGE_PLAIN = 2
"""In so many rounds of each large size `plain` runs too: it is far enough from ours."""

UNTOUCHED = (2, 11, 16)
SETTINGS = {"springhouse.spark.master": "local[*]", "spark.driver.memory": "8g"}


@dataclass(frozen=True)
class Figure:
    """One query after one change, in seconds; None for a side without a measurement."""

    query: int
    fraction: float
    full: float | None
    ours: float
    way: str
    plain: float | None = None


@dataclass(frozen=True)
class Step:
    """One change, and the measurements after it."""

    fraction: float
    counts: bool = False
    full: bool = False
    plain: bool = False
    full_first: bool = True


def steps(small: int, large: int) -> Iterator[Step]:
    """All changes of a run, with the rounds of the small and of the large sizes."""
    for _ in range(WARM_UP):
        yield Step(0.001)
    for turn in range(small):
        for fraction in SMALL:
            compared = fraction == COMPARED
            yield Step(fraction, True, compared, compared, full_first=turn % 2 == 0)
    # One size after the other: a workload that alternates 10 % and 30 % is a case of its own.
    for fraction in LARGE:
        for turn in range(large):
            yield Step(fraction, True, True, turn >= large - LARGE_PLAIN, full_first=turn % 2 == 0)


class TpchWarehouse:
    """The eight tables and a view per query."""

    def __init__(
        self, warehouse: Warehouse, plain: PlainSpark, folder: Path, tables: dict[str, pa.Table]
    ) -> None:
        self._warehouse = warehouse
        self._plain = plain
        self._folder = folder
        self._rows = tables
        self._tables = {name: tpch_warehouse.BaseTable(warehouse, name) for name in tables}
        self._changes = 0

    def load(self) -> None:
        for name, table in self._tables.items():
            table.load(self._rows[name])

    def change(self, fraction: float) -> None:
        """Delete and insert orders with their lines."""
        self._changes += 1
        orders, lines = self._rows["orders"], self._rows["lineitem"]
        changes = tpch.orders_and_lines(orders, lines, fraction, self._changes)
        for name, change in changes.items():
            self._rows[name] = tpch.applied(self._rows[name], change)
            self._tables[name].change(change)

    def full(self, query: int) -> float:
        began = time.perf_counter()
        spark = self._warehouse.internals.lake.spark.session()
        for name in tpch.tables_of(query):
            self._warehouse.internals.lake.open(name).read(spark).createOrReplaceTempView(name)
        spark.sql(tpch.query(query)).write.mode("overwrite").parquet(str(self._folder / "bare"))
        return time.perf_counter() - began

    def plain(self, query: int) -> float:
        opened = {name: self._warehouse.internals.lake.open(name) for name in tpch.tables_of(query)}
        paths = {
            name: [f"{table.storage.root}/{file.path}" for file in table.files]
            for name, table in opened.items()
        }
        return self._plain.run(tpch.query(query), paths, self._folder / "plain")

    def ours(self, query: int) -> tuple[float, str]:
        began = time.perf_counter()
        view = self._warehouse.project.views[tpch_warehouse.view_of(query)]
        plan = RefreshPlan(view.name, "benchmark", self._warehouse.internals.lake.now())
        refreshed(self._warehouse.internals.lake, self._warehouse.project, plan)
        seconds = time.perf_counter() - began
        newest = self._warehouse.internals.lake.log(view.name).newest()
        assert newest is not None
        assert newest.note is not None
        note = newest.note
        builds = note.variant == "full" and note.stateful and query not in UNTOUCHED
        return seconds, f"{note.variant} + state" if builds else note.variant

    def measure(self, queries: Sequence[int], step: Step) -> Iterator[Figure]:
        """All queries after a change, with the full runs that its size requires."""
        if step.fraction in LARGE:
            yield from (self._beside(query, step) for query in queries)
            return
        fulls: dict[int, float] = {}
        plains: dict[int, float] = {}
        ours: dict[int, tuple[float, str]] = {}
        for side in ("full", "plain", "ours") if step.full_first else ("ours", "plain", "full"):
            for query in queries:
                if side == "ours":
                    ours[query] = self.ours(query)
                elif side == "full" and step.full:
                    fulls[query] = self.full(query)
                elif side == "plain" and step.plain:
                    plains[query] = self.plain(query)
        for query, (seconds, way) in ours.items():
            yield Figure(query, step.fraction, fulls.get(query), seconds, way, plains.get(query))

    def _beside(self, query: int, step: Step) -> Figure:
        """One query, right beside a full run; an unchanged query needs no full run."""
        touched = query not in UNTOUCHED
        full = self.full(query) if touched and step.full_first else None
        ours, way = self.ours(query)
        if touched and not step.full_first:
            full = self.full(query)
        plain = self.plain(query) if touched and step.plain else None
        return Figure(query, step.fraction, full, ours, way, plain)

    def differs(self, query: int) -> bool:
        """Whether the rows of a view differ from its query."""
        spark = self._warehouse.internals.lake.spark.session()
        for name in tpch.tables_of(query):
            self._warehouse.internals.lake.open(name).read(spark).createOrReplaceTempView(name)
        expected = spark.sql(tpch.query(query))
        found = self._warehouse.internals.lake.open(tpch_warehouse.view_of(query)).read(spark)
        same = found.schema.simpleString() == expected.schema.simpleString()
        missing, surplus = expected.exceptAll(found), found.exceptAll(expected)
        return not same or bool(missing.limit(1).count() or surplus.limit(1).count())


def main() -> None:
    """Measure, check, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--queries", type=_numbers, default=list(tpch.QUERIES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large-rounds", type=int, default=6)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        rounds = asked.rounds, asked.large_rounds
        figures = measured(folder, asked.scale, asked.queries, rounds)
    for name, fractions, count in (("tpch", SMALL, rounds[0]), ("tpch_large", LARGE, rounds[1])):
        part = [each for each in figures if each.fraction in fractions]
        if not part:
            continue
        report = told(part, asked.scale, count)
        print(f"\n{report}")
        if list(asked.queries) == list(tpch.QUERIES):
            write_down(name, part, report)


def write_down(name: str, figures: Sequence[Figure], report: str) -> None:
    """Write the page, and a CSV with every figure."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(report)
    with (RESULTS / f"{name}.csv").open("w", newline="") as file:
        write = csv.writer(file)
        columns = ["query", "fraction", "full_seconds", "plain_seconds", "ours_seconds", "way"]
        write.writerow(columns)
        for each in figures:
            full, plain = ("" if s is None else f"{s:.3f}" for s in (each.full, each.plain))
            row = [each.query, each.fraction, full, plain, f"{each.ours:.3f}", each.way]
            write.writerow(row)


def measured(
    folder: Path, scale: float, queries: Sequence[int], rounds: tuple[int, int]
) -> list[Figure]:
    """All figures, with a line of progress for each."""
    files = tpch.generate(scale, folder / "generated")
    tables = {name: tpch.read(path) for name, path in files.items()}
    schemas = {name: table.schema for name, table in tables.items()}
    project = tpch_warehouse.write_project(folder / "project", schemas, SETTINGS, queries)
    figures: list[Figure] = []
    with (
        springhouse.open(project) as opened,
        PlainSpark(SETTINGS["spark.driver.memory"]) as plain,
    ):
        warehouse = TpchWarehouse(opened, plain, folder, tables)
        _say(f"loading the tables at scale factor {scale:g}")
        warehouse.load()
        for query in queries:
            _say(f"q{query:02}: first refresh {warehouse.ours(query)[0]:.1f} s")
        for query in queries * WARM_UP_FULL:
            _say(f"q{query:02}: full {warehouse.full(query):.1f} s (to warm up)")
            _say(f"q{query:02}: plain {warehouse.plain(query):.1f} s (to warm up)")
        plan = list(steps(*rounds))
        for place, step in enumerate(plan, start=1):
            warehouse.change(step.fraction)
            what = "" if step.counts else " (to warm up)"
            _say(f"change {place} of {len(plan)}: {step.fraction:.2%}{what}")
            for figure in warehouse.measure(queries, step):
                figures += [figure] if step.counts else []
                told = "      " if figure.full is None else f"{figure.full:6.2f}"
                plain_told = "" if figure.plain is None else f"  plain {figure.plain:.2f}"
                way = figure.way + plain_told
                _say(f"  q{figure.query:02} full {told} ours {figure.ours:6.2f}  {way}")
        wrong = [query for query in queries if warehouse.differs(query)]
    if wrong:
        sys.exit(f"these views are not what their queries give: {wrong}")
    _say("every view is what its query gives")
    return figures


def told(figures: Sequence[Figure], scale: float, rounds: int) -> str:
    """The table, with its summary."""
    by: dict[tuple[int, float], list[Figure]] = defaultdict(list)
    for each in figures:
        by[each.query, each.fraction].append(each)
    fractions = sorted({fraction for _, fraction in by})
    queries = sorted({query for query, _ in by})
    head = ["query", "full", "plain"]
    lines = [
        f"# TPC-H at scale factor {scale:g}: recomputing against refreshing",
        "",
        (
            f"`bench/tpch.py`, {_machine()}. Seconds are medians of {rounds} rounds. `full` is "
            "Spark with the settings of the warehouse, `plain` Spark with its own; ratios are "
            "against `full`."
        ),
        "",
        f"| {' | '.join(head)} | " + " | ".join(f"{f:.2%} changed" for f in fractions) + " |",
        "|" + "---|" * (len(head) + len(fractions)),
    ]
    for query in queries:
        own = [each for each in figures if each.query == query]
        cells = [_seconds(_full(own)), _seconds(_plain(own))]
        for fraction in fractions:
            cell = by[query, fraction]
            ratio = _ratio(cell, own)
            ways = dict.fromkeys(f.way for f in cell if f.way != "incremental")
            way = "".join(f", {way}{_of(way, cell)}" for way in ways)
            seconds = statistics.median(f.ours for f in cell)
            cells.append(f"{seconds:.2f} s{'' if ratio is None else f', {ratio:.2f}x'}{way}")
        lines.append(f"| {query} | " + " | ".join(cells) + " |")
    lines += ["", "Without the queries that read neither table:", ""]
    for fraction in fractions:
        lines.append(f"- {fraction:.2%}: {_summary(by, queries, fraction)}")
    return "\n".join([*lines, *_noise(by)]) + "\n"


def _summary(
    by: dict[tuple[int, float], list[Figure]], queries: Sequence[int], fraction: float
) -> str:
    """Mean, best and worst of a size, against both sides."""
    parts = []
    for side in ("full", "plain"):
        ratios: dict[int, float] = {}
        for query in queries:
            own = [each for (q, _), found in by.items() if q == query for each in found]
            ratio = _ratio(by[query, fraction], own, side)
            if query not in UNTOUCHED and ratio is not None:
                ratios[query] = ratio
        best, worst = max(ratios, key=ratios.__getitem__), min(ratios, key=ratios.__getitem__)
        parts.append(
            f"against `{side}` geometric mean {_geometric_mean(ratios.values()):.1f}x, best "
            f"{ratios[best]:.1f}x (query {best}), worst {ratios[worst]:.2f}x (query {worst})"
        )
    return "; ".join(parts)


def _of(way: str, cell: Sequence[Figure]) -> str:
    """The number of rounds that went this way, unless all did."""
    count = sum(figure.way == way for figure in cell)
    return "" if count == len(cell) else f" {count} of {len(cell)}"


def _noise(by: dict[tuple[int, float], list[Figure]]) -> list[str]:
    """How much full runs of one query over equally many rows differ from their median."""
    apart = []
    for cell in by.values():
        usual = _full(cell)
        apart += [abs(f.full / usual - 1) for f in cell if f.full is not None and usual is not None]
    dear = sorted(apart)[int(len(apart) * 0.9)]
    return [
        "",
        (
            f"The noise: of {len(apart)} full runs half differ from the median of their query by "
            f"more than {statistics.median(apart):.0%}, and a tenth by more than {dear:.0%}."
        ),
    ]


def _full(figures: Sequence[Figure]) -> float | None:
    found = [each.full for each in figures if each.full is not None]
    return statistics.median(found) if found else None


def _plain(figures: Sequence[Figure]) -> float | None:
    found = [each.plain for each in figures if each.plain is not None]
    return statistics.median(found) if found else None


def _ratio(cell: Sequence[Figure], own: Sequence[Figure], side: str = "full") -> float | None:
    """How many times faster: round by round if each of ours ran right beside a full run."""
    if cell[0].fraction in LARGE and side == "full":
        beside = [f.full / f.ours for f in cell if f.full is not None]
        return statistics.median(beside) if beside else None
    other = _full(own) if side == "full" else _plain(own)
    return None if other is None else other / statistics.median(f.ours for f in cell)


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f} s"


def _geometric_mean(values: Iterable[float]) -> float:
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


def _machine() -> str:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, {time.strftime('%Y-%m-%d')}"


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
