"""What does it save to read a change once for several views, instead of once for each?

All rows of a table change in two commits (`netted`: opposite changes have to be cancelled), or the
table gains rows in two commits (`appended`). There are two equal sets of views of it, sums by a key
each. After every change one set is refreshed view by view, and the other as one job from one scan;
they take turns in being first. In each round both read the same change, and start from equal state.

The ratio of a round is the time of the job over the time of the separate views. The page shows its
median, with the interval that holds the true median nine times of ten (`_paired`). Because the
machine is never quiet, it shows the same for the processor time of this process and of Spark's. The
last column is the planner's own choice, which the constants in `planner/one_scan.py` decide.

Run: `python bench/one_scan.py [--rounds 5] [--cases small]`. It writes `one_scan.md` into
`--results`.
"""

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from _paired import Ratio, ratio

import springhouse
from springhouse.lake.delta.changes import FOLDER, WEIGHT
from springhouse.lake.delta.commits import Change, commit, create
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.tables import spark_schema
from springhouse.lake.delta.writing import paths_of, write_arrow
from springhouse.planner.refresh_plan import OneScan, RefreshPlan
from springhouse.units import Seconds
from springhouse.warehouse import Warehouse
from springhouse.warehouse.running.execution import Permitted, perform_together

COMMITS = 2
KEYS = ("customer", "product", "shop", "day")

PROJECT = """name: one_scan
storage: storage
libraries:
  - glob:
      include: transformations/**
"""
FLOW = """CREATE STREAMING TABLE orders AS SELECT offset AS id, 0 AS customer, 0 AS product,
  0 AS shop, 0 AS day, 0L AS amount, '' AS remark FROM STREAM sample(limit => '0');
"""
VIEW = """CREATE MATERIALIZED VIEW {name} TBLPROPERTIES ('springhouse.refresh' = 'incremental') AS
  SELECT {key}, count(*) AS n, sum(amount + {number}) AS amount FROM orders GROUP BY {key};
"""


@dataclass(frozen=True)
class Case:
    """A kind of change with this many rows, read by this many views."""

    kind: str
    rows: int
    views: int

    def names(self, side: str) -> list[str]:
        return [f"{side}_{number}" for number in range(self.views)]


@dataclass(frozen=True)
class Found:
    """The results of a case."""

    case: Case
    wall: Ratio
    processor: Ratio
    one_by_one: float
    planned: str


CASES = (
    Case("netted", 1_000_000, 2),
    Case("netted", 1_000_000, 4),
    Case("netted", 1_000_000, 8),
    Case("appended", 1_000_000, 4),
    Case("netted", 400_000, 4),
    Case("netted", 3_000_000, 2),
    Case("netted", 400_000, 8),
    Case("appended", 1_000_000, 8),
)
SMALL = Case("netted", 400_000, 2)


class Orders:
    """The table: its rows, and commits that change all of them, or add some."""

    def __init__(self, warehouse: Warehouse, case: Case) -> None:
        self._warehouse, self._case, self._dice = warehouse, case, np.random.default_rng(1)
        each = case.rows // COMMITS
        # An old and a new row for each changed row.
        self._rows = self._drawn(each // 2 if case.kind == "netted" else each)
        place = warehouse.internals.lake.place("orders")
        note = Note(
            "append", warehouse.internals.lake.now(), channel=True, rows=self._rows.num_rows
        )
        note = replace(note, rows_added=self._rows.num_rows)
        schema = spark_schema(self._rows.schema)
        create(place, schema, Change(note, [write_arrow(place, self._rows)]))

    def change(self) -> None:
        for _ in range(COMMITS):
            (self._rewrite if self._case.kind == "netted" else self._append)()

    def _append(self) -> None:
        rows, ground = (
            self._drawn(self._case.rows // COMMITS),
            self._warehouse.internals.lake.open("orders"),
        )
        note = Note("append", self._warehouse.internals.lake.now(), channel=True, rows=ground.rows)
        note = replace(note, rows_added=rows.num_rows)
        commit(ground, Change(note, [write_arrow(ground.storage, rows)]))

    def _rewrite(self) -> None:
        ground, old, new = (
            self._warehouse.internals.lake.open("orders"),
            self._rows,
            self._drawn(len(self._rows)),
        )
        self._rows = new
        parts = [
            rows.append_column(WEIGHT, pa.array(np.full(len(rows), weight), pa.int64()))
            for rows, weight in ((old, -1), (new, 1))
        ]
        told = paths_of([write_arrow(ground.storage, pa.concat_tables(parts), FOLDER)])
        note = Note(
            "merge", self._warehouse.internals.lake.now(), channel=True, rows=len(new), changes=told
        )
        note = replace(note, rows_added=len(new), rows_removed=len(old))
        commit(ground, Change(note, [write_arrow(ground.storage, new)], ground.files))

    def _drawn(self, count: int) -> pa.Table:
        keys = {key: self._dice.integers(0, 50 * 4**place, count, np.int32)
                for place, key in enumerate(KEYS)}  # fmt: skip
        remarks = np.array([f"remark number {each}" for each in range(1000)])
        return pa.table(
            {"id": np.arange(count), **keys, "amount": self._dice.integers(0, 10**6, count),
             "remark": remarks[self._dice.integers(0, 1000, count)]}
        )  # fmt: skip


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", choices=("all", "small"), default="all")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    asked = parser.parse_args()
    chosen = CASES if asked.cases == "all" else (SMALL,)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        # One warehouse keeps Spark running for the warehouses of all cases.
        first = warehouse_of(root / "first", Case("netted", 2, 1))
        first.internals.lake.spark.session()
        for case in chosen:
            place = root / f"{case.kind}_{case.rows}_{case.views}"
            found.append(measured(place, case, asked.rounds))
            print(line(found[-1]), flush=True)
            if asked.cases == "all":
                (asked.results / "one_scan.md").write_text(page(found, asked.rounds))
        first.close()


def warehouse_of(folder: Path, case: Case) -> Warehouse:
    """A warehouse with two sets of views."""
    (folder / "transformations").mkdir(parents=True)
    (folder / "spark-pipeline.yml").write_text(PROJECT)
    views = (
        VIEW.format(name=name, key=KEYS[number % len(KEYS)], number=number)
        for side in ("alone", "shared")
        for number, name in enumerate(case.names(side))
    )
    (folder / "transformations" / "all.sql").write_text(FLOW + "".join(views))
    return springhouse.open(folder)


def measured(folder: Path, case: Case, rounds: int) -> Found:
    """The ratios of a case; the first round warms up and does not count."""
    wall: dict[str, dict[int, float]] = {"alone": {}, "shared": {}}
    processor: dict[str, dict[int, float]] = {"alone": {}, "shared": {}}
    warehouse = warehouse_of(folder, case)
    orders, planned = Orders(warehouse, case), ""
    for number in range(-1, rounds):
        if number >= 0:
            orders.change()
        # The second side finds files in the page cache, and the garbage of the first.
        for side in ("alone", "shared") if number % 2 else ("shared", "alone"):
            plans = [warehouse.internals.watch.forced(name, "bench") for name in case.names(side)]
            job = warehouse.internals.watch.planning.from_one_scan(plans[0], plans[1:])
            planned = "one job" if len(job) == case.views else "view by view"
            work = (
                one_job(warehouse, plans)
                if side == "shared" and number >= 0
                else apart(warehouse, plans)
            )
            wall[side][number], processor[side][number] = timed(warehouse, work)
        prove_equal(warehouse, case)
    warehouse.close()
    for seconds in (*wall.values(), *processor.values()):
        for warm_up in (-1, 0):
            seconds.pop(warm_up)
    alone = sorted(wall["alone"].values())[len(wall["alone"]) // 2]
    return Found(
        case,
        ratio(wall["shared"], wall["alone"]),
        ratio(processor["shared"], processor["alone"]),
        alone,
        planned,
    )


def apart(warehouse: Warehouse, plans: Sequence[RefreshPlan]) -> Callable[[], None]:
    """Refresh every view by itself."""

    def work() -> None:
        for plan in plans:
            done(perform_together(warehouse.internals.watch, Permitted(plan), []))

    return work


def one_job(warehouse: Warehouse, plans: Sequence[RefreshPlan]) -> Callable[[], None]:
    """Refresh all views from one scan, whatever the planner would choose."""
    newest = warehouse.internals.lake.log(plans[0].table).newest()
    assert newest is not None
    assert newest.note is not None
    since, until = newest.note.read["orders"], plans[0].versions["orders"]
    names = tuple(plan.table for plan in plans)
    scan = OneScan("orders", since, until, names, Seconds(1.0))
    lead, *along = [Permitted(replace(plan, scan=scan)) for plan in plans]
    return lambda: done(perform_together(warehouse.internals.watch, lead, along))


def done(outcomes: Iterator[tuple[str, object]]) -> None:
    for _, outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


def timed(warehouse: Warehouse, work: Callable[[], None]) -> tuple[float, float]:
    """Seconds by the clock, and of processor time in this process and in Spark's."""
    clock, used = time.perf_counter(), processor_seconds(warehouse)
    work()
    return time.perf_counter() - clock, processor_seconds(warehouse) - used


def processor_seconds(warehouse: Warehouse) -> float:
    """The processor time of this process and the JVM; without the JVM if that is unknown."""
    gateway = warehouse.internals.lake.spark.session().sparkContext._gateway  # noqa: SLF001  nobody else knows it
    stat = Path(f"/proc/{gateway.proc.pid}/stat")
    if not stat.exists():
        return time.process_time()
    fields = stat.read_text().rpartition(")")[2].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def prove_equal(warehouse: Warehouse, case: Case) -> None:
    """Check that both sets of views hold the same rows, and those of the query."""
    for one, other in zip(case.names("alone"), case.names("shared"), strict=True):
        left, right = (sorted(warehouse.internals.lake.open(name).to_arrow().to_pylist(), key=str)
                       for name in (one, other))  # fmt: skip
        assert left == right, f"{one} and {other} differ"


def line(found: Found) -> str:
    """One row of the table."""
    case = found.case
    return (
        f"| {case.kind} | {case.rows:,} | {case.views} | {found.one_by_one:.1f} s "
        f"| {found.wall.median:.2f} ({found.wall.low:.2f} to {found.wall.high:.2f}) "
        f"| {found.processor.median:.2f} ({found.processor.low:.2f} to {found.processor.high:.2f}) "
        f"| {found.planned} |"
    )


def page(found: Sequence[Found], rounds: int) -> str:
    """The page of results."""
    machine = f"{os.cpu_count()} cores ({platform.machine()}, Python {platform.python_version()})"
    return f"""# One scan of a change for several views

`bench/one_scan.py`, {rounds - 1} counted rounds per line, {machine}, {time.strftime("%Y-%m-%d")}.
The machine was busy with other work: compare ratios, not seconds. A ratio below 1 says that one job
from one scan is quicker than the views one by one; in brackets the interval of the median, which is
from the least to the largest ratio where there are fewer than five rounds.

| change | rows | views | one by one | one scan over it, by the clock | processor time | planner |
|---|---|---|---|---|---|---|
{chr(10).join(map(line, found))}
"""


if __name__ == "__main__":
    sys.exit(main())
