"""How much faster is a view refreshed by its change than by running its query again?

The 22 queries of TPC-H, each a view under `refresh = auto`, at scale factor 1. In one run, and in
turn, so that a noisy machine disturbs both sides alike:

    full      Spark runs the query over the files of the same version, with the settings of the
              House, and overwrites a Parquet folder
    ours      the view is refreshed to that version: rows, hidden state, change, and commit

after each of these parts of `orders` changed with their `lineitem` (half deleted, half inserted, as
TPC-H's own refresh functions do: old orders go, new orders come).

Everything is warm, as in a House that runs for days. Rounds that are not counted come first: two of
full runs and twenty of ours, because Java compiles what plans and runs small queries only after it
was used some hundred times (after two rounds a refresh takes about twice as long as after twelve).

Seconds of ours are medians over the rounds of a size. What a full run takes hardly depends on the
size of the change, and is by far most of the work, so it is measured with every 0.1 %, 10 % and 30
%. With 0.1 % a round is one pass of ours through all queries and one of full runs, every other
round the other way round: a House that refreshes by changes has no full run right before each,
which leaves it cold caches and a full heap. With 10 % and 30 % most of ours are recomputations too,
and the question is whether they are slower by a tenth, which is less than the machine's noise:
there a full run goes before and another after each of ours, `full` of the round is the mean of
both, and how much those two differ is told as the noise. For all these sizes a ratio is the median
over its own rounds; for the others, the median of all full runs over the median of ours. Queries 2,
11 and 16 read neither table and are left out of the mean. At the end every view is held against its
query.

Run: `python bench/tpch.py [--scale 1] [--queries 1,6] [--rounds 3] [--large-rounds 5]`. It takes
about 45 minutes and writes `bench/results/tpch.md` and `tpch.csv`. Goals: at 0.1 % the geometric
mean of full / ours is at least 8 and the best at least 20; and ours is never above 1.1 times full,
up to 30 % changed.
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

import springhouse
from springhouse.house import House
from springhouse.lake.refresh_view import refresh_view

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "tpch"))
import tpch
import tpch_warehouse

RESULTS = Path(__file__).parent / "results"
SMALL = (0.0001, 0.001, 0.01)
LARGE = (0.1, 0.3)
COMPARED = 0.001
WARM_UP, WARM_UP_FULL = 20, 2
UNTOUCHED = (2, 11, 16)
SETTINGS = {"springhouse.spark.master": "local[*]", "spark.driver.memory": "8g"}


@dataclass(frozen=True)
class Figure:
    """One query after one change, in seconds; `fulls` are the full runs around it."""

    query: int
    fraction: float
    fulls: tuple[float, ...]
    ours: float
    way: str

    @property
    def full(self) -> float | None:
        return statistics.fmean(self.fulls) if self.fulls else None


class Warehouse:
    """The eight tables and a view per query."""

    def __init__(self, house: House, folder: Path, tables: dict[str, pa.Table]) -> None:
        self._house = house
        self._folder = folder
        self._rows = tables
        self._tables = {name: tpch_warehouse.BaseTable(house, name) for name in tables}
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
        spark = self._house.lake.spark.session()
        for name in tpch.tables_of(query):
            self._house.lake.open(name).read(spark).createOrReplaceTempView(name)
        spark.sql(tpch.query(query)).write.mode("overwrite").parquet(str(self._folder / "bare"))
        return time.perf_counter() - began

    def ours(self, query: int) -> tuple[float, str]:
        began = time.perf_counter()
        view = self._house.project.views[tpch_warehouse.view_of(query)]
        refresh_view(self._house.lake, self._house.project, view, {}, "benchmark")
        seconds = time.perf_counter() - began
        newest = self._house.lake.log(view.name).newest()
        assert newest is not None
        assert newest.note is not None
        return seconds, newest.note.variant

    def measure(
        self, queries: Sequence[int], fraction: float, *, full: bool, full_first: bool
    ) -> Iterator[Figure]:
        """All queries after a change, with the full runs that its size asks for."""
        if fraction in LARGE:
            yield from (self._between(query, fraction) for query in queries)
            return
        fulls = {query: (self.full(query),) for query in queries} if full and full_first else {}
        ours = {query: self.ours(query) for query in queries}
        if full and not full_first:
            fulls = {query: (self.full(query),) for query in queries}
        for query, (seconds, way) in ours.items():
            yield Figure(query, fraction, fulls.get(query, ()), seconds, way)

    def _between(self, query: int, fraction: float) -> Figure:
        """One query, between two full runs; what does not change at all needs none."""
        before = () if query in UNTOUCHED else (self.full(query),)
        ours, way = self.ours(query)
        after = () if query in UNTOUCHED else (self.full(query),)
        return Figure(query, fraction, before + after, ours, way)

    def differs(self, query: int) -> bool:
        """Whether a view is anything else than its query."""
        spark = self._house.lake.spark.session()
        for name in tpch.tables_of(query):
            self._house.lake.open(name).read(spark).createOrReplaceTempView(name)
        expected = spark.sql(tpch.query(query))
        found = self._house.lake.open(tpch_warehouse.view_of(query)).read(spark)
        same = found.schema.simpleString() == expected.schema.simpleString()
        missing, surplus = expected.exceptAll(found), found.exceptAll(expected)
        return not same or bool(missing.limit(1).count() or surplus.limit(1).count())


def main() -> None:
    """Measure, check, print, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--queries", type=_numbers, default=list(tpch.QUERIES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large-rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        rounds = asked.rounds, asked.large_rounds
        figures = measured(folder, asked.scale, asked.queries, rounds)
    report = told(figures, asked.scale, rounds)
    print(f"\n{report}")
    if list(asked.queries) == list(tpch.QUERIES):
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "tpch.md").write_text(report)
        with (RESULTS / "tpch.csv").open("w", newline="") as file:
            write = csv.writer(file)
            write.writerow(["query", "fraction", "full_seconds", "ours_seconds", "way"])
            for each in figures:
                full = " ".join(f"{seconds:.3f}" for seconds in each.fulls)
                write.writerow([each.query, each.fraction, full, f"{each.ours:.3f}", each.way])


def measured(
    folder: Path, scale: float, queries: Sequence[int], rounds: tuple[int, int]
) -> list[Figure]:
    """All figures, with a line of progress for each."""
    files = tpch.generate(scale, folder / "generated")
    tables = {name: tpch.read(path) for name, path in files.items()}
    schemas = {name: table.schema for name, table in tables.items()}
    project = tpch_warehouse.write_project(folder / "project", schemas, SETTINGS, queries)
    figures: list[Figure] = []
    with springhouse.open(project) as house:
        warehouse = Warehouse(house, folder, tables)
        _say(f"loading the tables at scale factor {scale:g}")
        warehouse.load()
        for query in queries:
            _say(f"q{query:02}: first refresh {warehouse.ours(query)[0]:.1f} s")
        for query in queries * WARM_UP_FULL:
            _say(f"q{query:02}: full {warehouse.full(query):.1f} s (to warm up)")
        plan = [(0.001, False)] * WARM_UP
        plan += [(fraction, True) for _ in range(rounds[0]) for fraction in SMALL]
        plan += [(fraction, True) for _ in range(rounds[1]) for fraction in LARGE]
        rounds_of: dict[float, int] = defaultdict(int)
        for place, (fraction, counts) in enumerate(plan):
            warehouse.change(fraction)
            rounds_of[fraction] += counts
            what = "" if counts else " (to warm up)"
            _say(f"change {place + 1} of {len(plan)}: {fraction:.2%}{what}")
            full = counts and fraction == COMPARED
            first = rounds_of[fraction] % 2 == 1
            for figure in warehouse.measure(queries, fraction, full=full, full_first=first):
                figures += [figure] if counts else []
                told = "      " if figure.full is None else f"{figure.full:6.2f}"
                _say(f"  q{figure.query:02} full {told} ours {figure.ours:6.2f}  {figure.way}")
        wrong = [query for query in queries if warehouse.differs(query)]
    if wrong:
        sys.exit(f"these views are not what their queries give: {wrong}")
    _say("every view is what its query gives")
    return figures


def told(figures: Sequence[Figure], scale: float, rounds: tuple[int, int]) -> str:
    """The table, with what it says in sum."""
    by: dict[tuple[int, float], list[Figure]] = defaultdict(list)
    for each in figures:
        by[each.query, each.fraction].append(each)
    fractions = sorted({fraction for _, fraction in by})
    queries = sorted({query for query, _ in by})
    lines = [
        f"# TPC-H at scale factor {scale:g}: recomputing against refreshing",
        "",
        (
            f"`bench/tpch.py`, {_machine()}. Seconds are medians of {rounds[0]} rounds up to 1 % "
            f"and of {rounds[1]} above; `full` is the median of all full runs, which were measured "
            "with 0.1 %, 10 % and 30 %."
        ),
        "",
        "| query | full | " + " | ".join(f"{f:.2%} changed" for f in fractions) + " |",
        "|---|---|" + "---|" * len(fractions),
    ]
    for query in queries:
        full = _full(figures, query)
        cells = []
        for fraction in fractions:
            cell = by[query, fraction]
            seconds = statistics.median(f.ours for f in cell)
            ratio = _ratio(cell, full)
            way = "" if cell[-1].way == "incremental" else f", {cell[-1].way}"
            cells.append(f"{seconds:.2f} s, {ratio:.1f}x{way}")
        lines.append(f"| {query} | {full:.2f} s | " + " | ".join(cells) + " |")
    lines += ["", "Without the queries that read neither table:", ""]
    for fraction in fractions:
        ratios = {
            query: _ratio(by[query, fraction], _full(figures, query))
            for query in queries
            if query not in UNTOUCHED
        }
        if ratios:
            best, worst = max(ratios, key=ratios.__getitem__), min(ratios, key=ratios.__getitem__)
            lines.append(
                f"- {fraction:.2%}: geometric mean {_geometric_mean(ratios.values()):.1f}x, best "
                f"{ratios[best]:.1f}x (query {best}), worst {ratios[worst]:.2f}x (query {worst})"
            )
    return "\n".join([*lines, *_noise(figures)]) + "\n"


def _noise(figures: Sequence[Figure]) -> list[str]:
    """How much two full runs of one query differ that have only one refresh between them."""
    apart = sorted(
        max(each.fulls) / min(each.fulls) - 1 for each in figures if len(each.fulls) == 2
    )
    if not apart:
        return []
    dear = apart[int(len(apart) * 0.9)]
    return [
        "",
        (
            f"The noise: of {len(apart)} pairs of full runs of one query, one right before and one "
            f"right after ours, half differ by more than {statistics.median(apart):.0%}, and a "
            f"tenth by more than {dear:.0%}."
        ),
    ]


def _full(figures: Sequence[Figure], query: int) -> float:
    return statistics.median(f.full for f in figures if f.query == query and f.full is not None)


def _ratio(cell: Sequence[Figure], full: float) -> float:
    """How many times faster: round by round where both were measured in one."""
    both = [f.full / f.ours for f in cell if f.full is not None]
    return statistics.median(both) if both else full / statistics.median(f.ours for f in cell)


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
