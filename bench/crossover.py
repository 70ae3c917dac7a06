"""Is the way that is chosen the cheapest one?

One join view and one aggregate view over TPC-H's orders and lines; changes of 0.01 % to 100 % of
the orders with their lines, half of them deleted and half of them inserted. With `--changed
suppliers`, views over lines and their suppliers, of whom some move to the next nation: few rows
change, and all lines that refer to them change with them.

Each view exists once per way to refresh it: always recomputed, always incremental, always by its
touched groups, and by the warehouse's choice (the planner's, or the lake's if the costs are close).
One more copy is a twin: it is refreshed by force in the way that the warehouse takes. All copies
are refreshed after every change, in random order: a noisy machine then disturbs all alike, and no
copy always follows the heaviest one and cleans up its memory.

The first ten changes of each size do not count: costs are learned in them, and state is built or
given up. Copies without a choice learn nothing, so they take part only in the last four of the
ten: one recomputes them, one builds state, and two warm up. A way that is far behind by then leaves
the race: a few rounds are enough to show its seconds.

The page shows three values, each as the median of ratios within a round (see `_paired`):

    choice   the way that the warehouse takes over the best way, both by force: is it the right way?
    chosen   the warehouse over the best way: the goal, at most 15 % more
    noise    the twin over the copy that is refreshed in the same way: the difference of the same
             work from itself on this machine; smaller differences are invisible

Run: `python bench/crossover.py [--changed orders] [--scale 0.2] [--rounds 25] [--minutes 30]
[--sizes small]`. It writes the seconds of every refresh to `crossover.csv` in `--results`, and a
page to `crossover.md`; for suppliers, to `crossover_suppliers`. The rounds of a size end when its
time is over, but there are at least five.
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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from _paired import Ratio, ratio

import springhouse
from springhouse.lake.upkeep.compaction import compact
from springhouse.lake.views.prepared import prepared
from springhouse.lake.views.refresh_view import refresh_view
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.way.choose_way import choose_way
from springhouse.views.variants import Way
from springhouse.warehouse import Warehouse
from springhouse.warehouse.running.execution import perform

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "tpch"))
import tpch
import tpch_warehouse

RESULTS = Path(__file__).parent / "results"
WARM_UP = 10
WARM_UP_OF_THE_FORCED = 4
FEWEST_ROUNDS = 5
IN_THE_RACE = 1.5
"""A way is in the race if it takes at most so many times as long as the best, when warm."""
ROUNDS_OF_THE_OTHERS = 3
COMPACT_EVERY = 16
GOAL = 1.15
WAYS = {
    "full": Way.BATCH,
    "incremental": Way.INCREMENTAL,
    "group recompute": Way.GROUP_RECOMPUTE,
}
CHOSEN, TWIN = "chosen", "twin"
NATIONS = 25
Rows = Mapping[str, pa.Table]


@dataclass(frozen=True)
class Story:
    """The changed tables with their keys, the sizes of changes, and views with their queries."""

    name: str
    about: str
    tables: Mapping[str, str]
    views: Mapping[str, str]
    sizes: Mapping[str, tuple[float, ...]]
    change: Callable[[Rows, float, int], dict[str, tpch.Change]]

    @property
    def fractions(self) -> tuple[float, ...]:
        return tuple(each for sizes in self.sizes.values() for each in sizes)

    @property
    def copies(self) -> list[tuple[str, str]]:
        """Each view in each way; a view without groups can't recompute them."""
        return [
            (view, way)
            for view in self.views
            for way in (*WAYS, CHOSEN, TWIN)
            if (view, way) != ("join", "group recompute")
        ]

    def ways(self, view: str) -> list[str]:
        """The ways that a view can be refreshed by force."""
        return [way for each, way in self.copies if each == view and way in WAYS]


def _orders_and_lines(rows: Rows, fraction: float, seed: int) -> dict[str, tpch.Change]:
    return tpch.orders_and_lines(rows["orders"], rows["lineitem"], fraction, seed)


def _suppliers(rows: Rows, fraction: float, seed: int) -> dict[str, tpch.Change]:
    """Some suppliers, from anywhere, move to the next nation."""
    table = rows["supplier"]
    count = max(1, round(fraction * table.num_rows))
    chosen = random.Random(seed).sample(range(table.num_rows), count)
    old = table.take(pa.array(sorted(chosen)))
    place = old.schema.get_field_index("s_nationkey")
    field = old.schema.field(place)
    moved = [(nation + 1) % NATIONS for nation in old["s_nationkey"].to_pylist()]
    new = old.set_column(place, field, pa.array(moved, field.type))
    return {"supplier": tpch.Change(deleted=old, inserted=new)}


STORIES = {
    "orders": Story(
        name="crossover",
        about="orders with their lines",
        tables={"orders": "o_orderkey", "lineitem": "l_orderkey"},
        views={
            "join": """SELECT l_orderkey, l_linenumber, l_extendedprice, o_custkey, o_orderdate
  FROM orders JOIN lineitem ON l_orderkey = o_orderkey WHERE l_returnflag = 'R'""",
            "aggregate": """SELECT o_custkey, count(*) AS lines, sum(l_extendedprice) AS spent
  FROM orders JOIN lineitem ON l_orderkey = o_orderkey GROUP BY o_custkey""",
        },
        sizes={"small": (0.0001, 0.001, 0.01, 0.03), "large": (0.1, 0.3, 1.0)},
        change=_orders_and_lines,
    ),
    "suppliers": Story(
        name="crossover_suppliers",
        about="suppliers that lines refer to",
        tables={"supplier": "s_suppkey", "lineitem": "l_orderkey"},
        views={
            "join": """SELECT l_orderkey, l_linenumber, l_extendedprice, s_name, s_nationkey
  FROM lineitem JOIN supplier ON l_suppkey = s_suppkey WHERE l_returnflag = 'R'""",
            "aggregate": """SELECT s_nationkey, l_returnflag, count(*) AS lines,
    sum(l_extendedprice) AS spent
  FROM lineitem JOIN supplier ON l_suppkey = s_suppkey GROUP BY s_nationkey, l_returnflag""",
        },
        sizes={"small": (0.001, 0.01), "large": (0.1, 1.0)},
        change=_suppliers,
    ),
}
SETTINGS = {"spark.driver.memory": "6g"}


@dataclass(frozen=True)
class Refresh:
    """A counted refresh: the intended way of a copy, the actual way, and the seconds."""

    view: str
    way: str
    fraction: float
    round: int
    variant: str
    seconds: float


def main() -> None:
    """Measure, print, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--changed", choices=tuple(STORIES), default="orders")
    parser.add_argument("--scale", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=25, help="that count, of each size, at most")
    parser.add_argument("--minutes", type=float, default=30.0, help="for all sizes together")
    parser.add_argument(
        "--sizes", choices=("small", "large"), help="of changes; the others are kept"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="where to write")
    asked = parser.parse_args()
    story = STORIES[asked.changed]
    fractions = story.sizes[asked.sizes] if asked.sizes else story.fractions
    file = asked.results / f"{story.name}.csv"
    kept = _read(file) if asked.sizes and file.exists() else []
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as place,
        opened_warehouse(story, Path(place), asked.scale) as race,
    ):
        found = race.run(fractions, asked.rounds, 60 * asked.minutes)
    asked.results.mkdir(parents=True, exist_ok=True)
    _write(file, [each for each in kept if each.fraction not in fractions] + found)
    report = told(story, _read(file), asked.scale, time.monotonic() - began)
    print(f"\n{report}")
    file.with_suffix(".md").write_text(report, encoding="utf-8")


@contextmanager
def opened_warehouse(
    story: Story, folder: Path, scale: float, ways: Collection[str] = (*WAYS, CHOSEN, TWIN)
) -> Iterator["Race"]:
    """A warehouse with loaded tables, and with the copies of the views for some ways."""
    copies = [copy for copy in story.copies if copy[1] in ways]
    files = tpch.generate(scale, folder / "generated")
    rows = {name: tpch.read(files[name]) for name in story.tables}
    schemas = {name: table.schema for name, table in rows.items()}
    project = tpch_warehouse.write_project(folder / "project", schemas, SETTINGS, ())
    statements = [
        f"CREATE MATERIALIZED VIEW {_copy(view, way)} AS {story.views[view]};"
        for view, way in copies
    ]
    (project / "transformations" / "views.sql").write_text("\n".join(statements))
    with springhouse.open(project) as warehouse:
        yield Race(story, warehouse, rows, copies)


class Race:
    """Changes the tables, and refreshes the copies after each change."""

    def __init__(
        self,
        story: Story,
        warehouse: Warehouse,
        rows: dict[str, pa.Table],
        copies: Sequence[tuple[str, str]],
    ) -> None:
        self._story, self._warehouse, self._rows = story, warehouse, rows
        self._copies = copies
        self._tables = {name: tpch_warehouse.BaseTable(warehouse, name) for name in story.tables}
        for name, table in self._tables.items():
            table.load(rows[name])
        self._changes = 0
        # The forced ways of copies without a choice; the twin follows the warehouse.
        self._forced = {(view, way): WAYS[way] for view, way in self._copies if way in WAYS}
        self.built: dict[str, float] = {}
        for view, way in self._copies:
            if way == CHOSEN:
                self.built[view] = self.refreshed(view, way)[0]
            else:
                self._catch_up(view, way)

    def run(self, fractions: Sequence[float], rounds: int, seconds: float) -> list[Refresh]:
        """The seconds of every copy after every change that counts."""
        end = time.monotonic() + seconds
        found = []
        for number, fraction in enumerate(fractions):
            now = time.monotonic()
            own_end = now + (end - now) / (len(fractions) - number)
            racing = self._warm_up(fraction)
            for count in range(rounds):
                if count >= FEWEST_ROUNDS and time.monotonic() > own_end:
                    break
                entrants = self._copies if count < ROUNDS_OF_THE_OTHERS else racing
                self.change(fraction, f"round {count + 1}")
                for view, way in self.shuffled(entrants):
                    taken, variant = self.refreshed(view, way)
                    found.append(Refresh(view, way, fraction, count, variant, taken))
        for view, way in self._copies:
            self._catch_up(view, way)
        for view in self._story.views:
            self._prove_equal(view)
        return found

    def _warm_up(self, fraction: float) -> list[tuple[str, str]]:
        """Make changes that do not count; return the copies whose seconds are worth comparing."""
        chosen = [(view, CHOSEN) for view in self._story.views]
        for _ in range(WARM_UP - WARM_UP_OF_THE_FORCED):
            self.change(fraction, "warm-up")
            variants = {view: self.refreshed(view, way)[1] for view, way in chosen}
        for view, variant in variants.items():
            self._forced[view, TWIN] = WAYS[variant]
        for view, way in self._copies:
            if way != CHOSEN:
                self._catch_up(view, way)
        seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        for _ in range(WARM_UP_OF_THE_FORCED - 1):
            self.change(fraction, "warm-up")
            for view, way in self.shuffled(self._copies):
                seconds[view, way].append(self.refreshed(view, way)[0])
        warm = {copy: min(each[1:]) for copy, each in seconds.items()}
        best = {
            view: min(warm[view, way] for way in self._story.ways(view))
            for view in self._story.views
        }
        return [
            (view, way)
            for view, way in self._copies
            if way not in WAYS
            or WAYS[way] is self._forced[view, TWIN]
            or warm[view, way] <= IN_THE_RACE * best[view]
        ]

    def shuffled(self, copies: Sequence[tuple[str, str]] = ()) -> list[tuple[str, str]]:
        """Some copies, or all, in an order that differs for every change."""
        copies = copies or self._copies
        return random.Random(self._changes).sample(copies, len(copies))

    def change(self, fraction: float, what: str) -> None:
        """Change the tables, and maintain files as a warehouse does, unmeasured."""
        self._changes += 1
        print(f"{what}, change {self._changes}: {fraction:.2%}", flush=True)
        for name, change in self._story.change(self._rows, fraction, self._changes).items():
            key = self._story.tables[name]
            self._rows[name] = applied(key, self._rows[name], change)
            self._tables[name].change(change)
        if self._changes % COMPACT_EVERY == 0:
            for view, way in self._copies:
                compact(self._warehouse.internals.lake, _copy(view, way))

    def refreshed(self, view: str, way: str) -> tuple[float, str]:
        """Refresh a copy of a view; the seconds, and the way."""
        warehouse, name = self._warehouse, _copy(view, way)
        began = time.perf_counter()
        if way == CHOSEN:
            perform(
                warehouse.internals.watch,
                warehouse.internals.watch.forced(name, "benchmark"),
                most_files=sys.maxsize,
            )
        else:
            self._force(name, self._forced[view, way])
        taken = time.perf_counter() - began
        newest = warehouse.internals.lake.log(name).newest()
        assert newest is not None
        assert newest.note is not None
        print(f"  {view:9} {way:15} {taken:6.2f} s  {newest.note.variant}", flush=True)
        return taken, newest.note.variant

    def _catch_up(self, view: str, way: str) -> None:
        """Recompute a copy, whatever it missed."""
        self._force(_copy(view, way), Way.BATCH)

    def _force(self, name: str, way: Way) -> None:
        warehouse = self._warehouse
        plan = RefreshPlan(name, "benchmark", warehouse.internals.lake.now())
        ready = prepared(warehouse.internals.lake, warehouse.project, plan)
        by_change = way is not Way.BATCH
        asked = replace(
            ready.facts, asked=WidgetVariant[way.name], keep=by_change, incremental=by_change
        )
        refresh_view(ready, plan.by(choose_way(asked, ready.look)))

    def _prove_equal(self, view: str) -> None:
        """Check that all copies of a view hold the rows of its query."""
        lake = self._warehouse.internals.lake
        spark = lake.spark.session()
        for name in self._story.tables:
            lake.open(name).read(spark).createOrReplaceTempView(name)
        expected = spark.sql(self._story.views[view])
        for each, way in self._copies:
            if each == view:
                found = lake.open(_copy(view, way)).read(spark)
                differ = expected.exceptAll(found).count() + found.exceptAll(expected).count()
                assert not differ, f"{view} is wrong when it is refreshed so: {way}"


def applied(key: str, table: pa.Table, change: tpch.Change) -> pa.Table:
    """The table after a change: orders go with all their lines, so the keys suffice."""
    gone = pc.is_in(table[key], value_set=change.deleted[key].combine_chunks())
    return pa.concat_tables([table.filter(pc.invert(gone)), change.inserted]).combine_chunks()


class Point:
    """One view at one size: the seconds of every way, and the conclusion."""

    def __init__(self, refreshes: Sequence[Refresh]) -> None:
        self.seconds: dict[str, dict[int, float]] = defaultdict(dict)
        for each in refreshes:
            self.seconds[each.way][each.round] = each.seconds
        self.variants = Counter(each.variant for each in refreshes if each.way == CHOSEN)
        twins = Counter(each.variant for each in refreshes if each.way == TWIN)
        ways = [way for way in WAYS if way in self.seconds]
        self.medians = {way: statistics.median(self.seconds[way].values()) for way in ways}
        self.best = min(self.medians, key=self.medians.__getitem__)
        self.taken = self.variants.most_common(1)[0][0]
        self.choice = self._over(self.taken, self.best)
        self.chosen = self._over(CHOSEN, self.best)
        self.noise = self._over(TWIN, twins.most_common(1)[0][0])

    def _over(self, one: str, other: str) -> Ratio:
        return ratio(self.seconds[one], self.seconds[other])

    @property
    def verdict(self) -> str:
        if self.chosen.median <= GOAL:
            return "kept"
        return "missed" if self.chosen.low > GOAL else "missed, perhaps by noise"


Points = Mapping[tuple[str, float], Point]
"""By view and size."""


def told(story: Story, found: Sequence[Refresh], scale: float, seconds: float) -> str:
    """The tables, and the points where the goal was missed."""
    by_point: dict[tuple[str, float], list[Refresh]] = defaultdict(list)
    for each in found:
        by_point[each.view, each.fraction].append(each)
    points = {where: Point(each) for where, each in sorted(by_point.items())}
    lines = [
        "# Which way is cheapest, and which one is chosen",
        "",
        (
            f"`bench/crossover.py`, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}, TPC-H at "
            f"scale factor {scale:g}, {seconds / 60:.0f} minutes. What changed are {story.about}. "
            "Seconds are medians; those of a way that is out of the race are of "
            f"{ROUNDS_OF_THE_OTHERS} rounds only, all others of as many as the column *is* says, "
            f"after {WARM_UP} changes of the same size to warm up. Ratios are medians of those "
            "within each round, with the interval in which the true one lies nine times of ten. "
            f"[CSV]({story.name}.csv)."
        ),
        "",
        "- *choice*: the way that the warehouse takes over the best way, both by force;",
        "- *chosen*: what the warehouse takes over the best way, by force;",
        "- *noise*: the same way twice, by force, on two copies of the view.",
    ]
    for view in story.views:
        lines += ["", *_table(view, story.ways(view), points)]
    return "\n".join([*lines, "", *_summary(points)]) + "\n"


def _table(view: str, ways: Sequence[str], points: Points) -> Iterator[str]:
    heads = ["changed", *ways, CHOSEN, "is", "choice", "chosen", "noise", "goal"]
    yield from (f"## The {view} view", "", f"| {' | '.join(heads)} |", "|" + "---|" * len(heads))
    for (each, fraction), point in points.items():
        if each == view:
            own = statistics.median(point.seconds[CHOSEN].values())
            is_what = ", ".join(f"{way} {n}x" for way, n in point.variants.most_common())
            choice = "the best" if point.taken == point.best else str(point.choice)
            cells = [f"{fraction:.2%}", *(f"{point.medians[way]:.2f}" for way in ways)]
            cells += [f"{own:.2f}", is_what, choice, str(point.chosen), str(point.noise)]
            yield f"| {' | '.join([*cells, point.verdict])} |"


def _summary(points: Points) -> Iterator[str]:
    wrong = [
        f"{view} at {fraction:.2%} ({point.taken} instead of {point.best}, {point.choice})"
        for (view, fraction), point in points.items()
        if point.taken != point.best
    ]
    missed = [
        f"{view} at {fraction:.2%} ({point.chosen}, {point.verdict})"
        for (view, fraction), point in points.items()
        if point.verdict != "kept"
    ]
    noises = [abs(point.noise.median - 1) for point in points.values()]
    right = f"at {len(points) - len(wrong)} of {len(points)} points"
    but = f"; not at {', '.join(wrong)}" if wrong else ""
    yield f"- The warehouse takes the way with the lowest median {right}{but}."
    yield f"- Goal, within 15 % of the best: {'; '.join(missed) or 'kept at every point'}."
    half, most = statistics.median(noises), max(noises)
    yield f"- The same way differs from itself by {half:.0%} in the middle, {most:.0%} at most."


def _read(file: Path) -> list[Refresh]:
    with file.open(newline="", encoding="utf-8") as opened:
        return [
            Refresh(
                each["view"],
                each["way"],
                float(each["fraction"]),
                int(each["round"]),
                each["variant"],
                float(each["seconds"]),
            )
            for each in csv.DictReader(opened)
        ]


def _write(file: Path, found: Sequence[Refresh]) -> None:
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow([each.name for each in fields(Refresh)])
        for each in found:
            writer.writerow([*astuple(each)[:-1], f"{each.seconds:.4f}"])


def _copy(view: str, way: str) -> str:
    return f"{view}_{way.replace(' ', '_')}"


if __name__ == "__main__":
    main()
