"""What does one pass save on Spark: a fork into five targets, and a chain of six Python activities?

Over the same Parquet files, warm, in turn in one process:

    fork              two Python functions (clean a text, compute a price), then rows by five
                      conditions into five tables
    fork, no work     rows by the same five conditions, and nothing before: there is little to share
    chain             six Python functions, then one table

    ours              one flow over the Delta table: tasks read the files themselves
    ours, DataFrame   the same flow over a DataFrame: Spark reads, and hands rows over to Python
    Spark             what a Spark user would write: a `mapInArrow` per function, a `write` per
                      target
    Spark, persist    the same, with what the targets share kept by `persist`

Ours commits Delta tables; Spark writes Parquet files and commits nothing. Seconds are medians over
the rounds. Memory is measured apart, each side in a process of its own, so that nobody pays for a
heap that another has filled: the largest sum over that process, its JVM and its Python workers
(Pss: what is shared counts once), of two runs.

Goals: at least 2.5 times as fast for the fork and 2 times for the chain, than the better of what
Spark does, with peak memory no higher. Run, in parts if it is too long for one sitting:

    python bench/flows.py [--rows 2000000] [--rounds 5] [--only "fork;chain"] [--keep]
    python bench/flows.py --memory [--rows 2000000] [--keep]
    python bench/flows.py --again

`--keep` adds to `bench/results/flows.csv` and writes `bench/results/flows.md`; `--again` only
writes the page, and fails if a goal is missed.
"""

import argparse
import csv
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import convert_to_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import springhouse
from springhouse.flows.declare import Draft, Flow
from springhouse.lake.flows.run_flow import run_flow
from springhouse.lake.spark.session import Spark

RESULTS = Path(__file__).parent / "results"
CONDITIONS = ("kind = 0", "kind = 1", "kind = 2", "kind = 3")
LOOK_SECONDS = 0.05
GOALS = {"fork": 2.5, "fork, no work": 2.5, "chain": 2.0}
JUDGED_ROWS = 1_000_000
HEADER = ("rows", "what", "side", "seconds", "fastest", "slowest", "rounds", "peak_mb")

PackFunction = Callable[[pa.RecordBatch], pa.RecordBatch]


def cleaned(pack: pa.RecordBatch) -> pa.RecordBatch:
    """Names without blanks around them, in capitals, without double blanks."""
    at = pack.schema.get_field_index("name")
    names = pc.utf8_upper(pc.utf8_trim_whitespace(pack.column(at)))
    return pack.set_column(at, "name", pc.replace_substring(names, "  ", " "))


def priced(pack: pa.RecordBatch) -> pa.RecordBatch:
    """Values with tax, in whole cents."""
    at = pack.schema.get_field_index("value")
    return pack.set_column(at, "value", pc.round(pc.multiply(pack.column(at), 1.19), 2))


def shifted(pack: pa.RecordBatch, by: int) -> pa.RecordBatch:
    """A light function: one column changed."""
    at = pack.schema.get_field_index("value")
    return pack.set_column(at, "value", pc.add(pack.column(at), float(by)))


SHARED: tuple[PackFunction, ...] = (cleaned, priced)
LINKS: tuple[PackFunction, ...] = tuple((lambda pack, by=n: shifted(pack, by)) for n in range(1, 7))


@springhouse.flow
def fork(flow: Draft) -> None:
    ways = flow.read("rows").apply(cleaned).apply(priced).route(*CONDITIONS)
    for number, rows in enumerate(ways):
        rows.write(f"target_{number}")


@springhouse.flow
def fork_without_work(flow: Draft) -> None:
    for number, rows in enumerate(flow.read("rows").route(*CONDITIONS)):
        rows.write(f"target_{number}")


@springhouse.flow
def chain(flow: Draft) -> None:
    rows = flow.read("rows")
    for number, function in enumerate(LINKS):
        rows = rows.apply(function, name=f"function {number}")
    rows.write("target_0")


def mapped(rows: DataFrame, functions: tuple[PackFunction, ...]) -> DataFrame:
    for function in functions:

        def each(
            packs: Iterator[pa.RecordBatch], function: PackFunction = function
        ) -> Iterator[pa.RecordBatch]:
            yield from map(function, packs)

        rows = rows.mapInArrow(each, rows.schema)
    return rows


def written(rows: DataFrame, folder: Path, targets: int) -> None:
    for number in range(targets):
        condition = CONDITIONS[number] if number < len(CONDITIONS) else "kind >= 4"
        chosen = rows if targets == 1 else rows.where(condition)
        chosen.write.parquet(str(folder / f"target_{number}"))


Side = Callable[[SparkSession, Path, Path], None]


def ours(flow: Flow, targets: int, *, by_table: bool) -> Side:
    def run(spark: SparkSession, given: Path, folder: Path) -> None:
        source = str(given) if by_table else spark.read.parquet(str(given))
        places = {f"target_{n}": str(folder / f"target_{n}") for n in range(targets)}
        run_flow(spark, flow, sources={"rows": source}, targets=places)

    return run


def theirs(functions: tuple[PackFunction, ...], targets: int, *, persist: bool) -> Side:
    def run(spark: SparkSession, given: Path, folder: Path) -> None:
        rows = mapped(spark.read.parquet(str(given)), functions)
        if persist:
            rows = rows.persist()
        written(rows, folder, targets)
        if persist:
            rows.unpersist(blocking=True)

    return run


def sides(
    flow: Flow, functions: tuple[PackFunction, ...], targets: int, *, persist: bool
) -> dict[str, Side]:
    made = {
        "ours": ours(flow, targets, by_table=True),
        "ours, DataFrame": ours(flow, targets, by_table=False),
        "Spark": theirs(functions, targets, persist=False),
    }
    if persist:
        made["Spark, persist"] = theirs(functions, targets, persist=True)
    return made


SIDES = {
    "fork": sides(fork, SHARED, 5, persist=True),
    "fork, no work": sides(fork_without_work, (), 5, persist=True),
    "chain": sides(chain, LINKS, 1, persist=False),
}


def make_rows(spark: SparkSession, rows: int, folder: Path) -> None:
    """A table of five columns in four Parquet files that Spark wrote, and a Delta log over them."""
    given = spark.range(0, rows, numPartitions=4).select(
        "id",
        sf.xxhash64("id").alias("spread"),
        (sf.col("id") % 5).cast("int").alias("kind"),
        (sf.col("id") * 0.25).alias("value"),
        sf.concat(sf.lit(" customer  "), (sf.col("id") % 1000).cast("string")).alias("name"),
    )
    given.write.parquet(str(folder))
    convert_to_deltalake(str(folder))


class Peak:
    """Measures the memory of this process and all processes that it started, while a block runs."""

    def __enter__(self) -> "Peak":
        self.most = 0
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look, daemon=True)
        self._looking.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        self._looking.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.most = max(self.most, sum(map(_pss, _family())))


def _family() -> list[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(words[1]), []).append(int(path.parent.name))
    family, todo = [], [os.getpid()]
    while todo:
        member = todo.pop()
        family.append(member)
        todo += children.get(member, [])
    return family


def _pss(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


Row = dict[str, str]


def timed(options: argparse.Namespace, root: Path) -> list[Row]:
    """The seconds of every side, in turn."""
    spark = Spark({}, "flows").session()
    make_rows(spark, options.rows, root / "rows")
    found: list[Row] = []
    for what in options.only:
        seconds: dict[str, list[float]] = {name: [] for name in SIDES[what]}
        for round_ in range(options.rounds + 1):
            for name, side in SIDES[what].items():
                began = time.perf_counter()
                side(spark, root / "rows", root / "out")
                took = time.perf_counter() - began
                shutil.rmtree(root / "out")
                print(f"{what}: {name} {took:.2f} s", file=sys.stderr, flush=True)
                if round_:  # the first one warms up
                    seconds[name].append(took)
        for name, took_each in seconds.items():
            numbers = statistics.median(took_each), min(took_each), max(took_each)
            shown = [f"{number:.3f}" for number in numbers]
            values = (options.rows, what, name, *shown, options.rounds, "")
            found.append(dict(zip(HEADER, map(str, values), strict=True)))
            print(*found[-1].values(), sep="  ", flush=True)
    return found


def weighed(options: argparse.Namespace, root: Path) -> list[Row]:
    """The peak memory of every side, each in a process of its own."""
    subprocess.run(
        [sys.executable, __file__, "--make", str(root / "rows"), "--rows", str(options.rows)],
        check=True,
    )
    found: list[Row] = []
    for what in options.only:
        for name in SIDES[what]:
            words = [sys.executable, __file__, "--alone", what, name, str(root)]
            said = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
            values = (options.rows, what, name, "", "", "", "", said.split()[-1])
            found.append(dict(zip(HEADER, map(str, values), strict=True)))
            print(*found[-1].values(), sep="  ", flush=True)
    return found


def alone(what: str, name: str, root: Path) -> None:
    """Run one side twice; print its peak in megabytes."""
    spark = Spark({}, "flows").session()
    with Peak() as peak:
        for _ in range(2):
            SIDES[what][name](spark, root / "rows", root / "out")
            shutil.rmtree(root / "out")
    print(round(peak.most / 2**20))


def kept(found: list[Row]) -> list[Row]:
    """All measurements, old and new: the newest figure of each."""
    path = RESULTS / "flows.csv"
    merged: dict[tuple[str, str, str], Row] = {}
    before = list(csv.DictReader(path.open())) if path.exists() else []
    for row in (*before, *found):
        key = row["rows"], row["what"], row["side"]
        there = merged.setdefault(key, dict.fromkeys(HEADER, ""))
        there.update({name: value for name, value in row.items() if value})
    order = {
        (what, side): n for n, (what, side) in enumerate((w, s) for w in SIDES for s in SIDES[w])
    }
    rows = sorted(merged.values(), key=lambda r: (int(r["rows"]), order[r["what"], r["side"]]))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, HEADER, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return rows


def page(rows: list[Row]) -> tuple[str, bool]:
    """The page, and whether all goals were measured, with many rows, and reached."""
    lines = [
        "# One pass: a fork into five targets, and a chain of six Python activities",
        "",
        __doc__.partition("\n\n")[2].partition("Goals:")[0].rstrip(),
        "",
        (
            f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}. "
            '"Times ours" is how many times as long a side takes as ours does, in the same run.'
        ),
    ]
    reached = True
    for count in sorted({int(row["rows"]) for row in rows}):
        mine = [row for row in rows if int(row["rows"]) == count]
        lines += ["", f"## {count:,} rows", ""]
        lines += ["| what | side | rounds | seconds | fastest to slowest | times ours | peak MB |"]
        lines += ["|---|---|---:|---:|---:|---:|---:|"]
        by = {(row["what"], row["side"]): row for row in mine}
        for row in mine:
            base = by[row["what"], "ours"]["seconds"]
            times = f"{float(row['seconds']) / float(base):.2f}" if row["seconds"] and base else ""
            seconds = f"{float(row['seconds']):.2f}" if row["seconds"] else ""
            spread = ""
            if row["fastest"]:
                spread = f"{float(row['fastest']):.2f} to {float(row['slowest']):.2f}"
            lines.append(
                f"| {row['what']} | {row['side']} | {row['rounds']} | {seconds} | {spread} "
                f"| {times} | {row['peak_mb']} |"
            )
        if count < JUDGED_ROWS:
            continue
        lines += ["", "| goal | found | |", "|---|---|---|"]
        for what, goal in GOALS.items():
            for text, found, good in _judged(what, goal, by):
                reached &= good
                lines.append(f"| {text} | {found} | {'kept' if good else '**missed**'} |")
    missing = [
        f"{of} of {what}"
        for what in SIDES
        for of, field in (("seconds", "seconds"), ("memory", "peak_mb"))
        if not any(r["what"] == what and r[field] for r in rows if int(r["rows"]) >= JUDGED_ROWS)
    ]
    if missing:
        lines += ["", f"**Not measured yet:** {', '.join(missing)}."]
    return "\n".join(lines) + "\n", reached and not missing


def _judged(
    what: str, goal: float, by: dict[tuple[str, str], Row]
) -> Iterator[tuple[str, str, bool]]:
    mine = by.get((what, "ours"))
    others = [row for (w, side), row in by.items() if w == what and side.startswith("Spark")]
    if mine is None:
        return
    if mine["seconds"]:
        best = min(others, key=lambda row: float(row["seconds"]))
        times = float(best["seconds"]) / float(mine["seconds"])
        yield f"{what}: {goal:g} times as fast", f"{times:.2f} ({best['side']})", times >= goal
    if mine["peak_mb"]:
        least = min(float(row["peak_mb"]) for row in others)
        found = f"{mine['peak_mb']} to {least:.0f} MB"
        yield f"{what}: peak memory no higher", found, float(mine["peak_mb"]) <= least


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", type=lambda text: text.split(";"), default=list(SIDES))
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--alone", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make_rows(Spark({}, "flows").session(), options.rows, options.make)
        return
    if options.alone:
        what, name, root = options.alone
        alone(what, name, Path(root))
        return
    found: list[Row] = []
    if not options.again:
        with tempfile.TemporaryDirectory() as folder:
            found = (weighed if options.memory else timed)(options, Path(folder))
    if options.keep or options.again:
        text, reached = page(kept(found))
        (RESULTS / "flows.md").write_text(text)
        print(text)
        if not reached:
            sys.exit(1)


if __name__ == "__main__":
    main()
