"""What does one pass save on Spark: a fork into five targets, and a chain of six Python activities?

In one run, in turn, over the same Parquet files, everything warm:

    fork    rows by five conditions into five tables. Ours: one flow, one pass. Theirs: what a Spark
            user would write, one filtered `write` per target, plain and with `persist`
    chain   six Python functions on Arrow batches, then a table. Ours: one flow. Theirs: one
            `mapInArrow` per function, one `write`

Both sides write Parquet; ours also commits Delta tables. Seconds are medians over the rounds; peak
memory is the largest sum over this process, its JVM and its Python workers (Pss, so that what is
shared counts once). Goals: at least 2.5 times as fast for the fork and 2 times for the chain, with
peak memory no higher.

Run: `python bench/flows.py [--rows 4000000] [--rounds 5] [--keep]`. `--keep` writes
`bench/results/flows.md`.
"""

import argparse
import os
import platform
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import springhouse
from springhouse.flows.declare import Draft
from springhouse.lake.flows.run_flow import run_flow
from springhouse.lake.session import Spark

RESULTS = Path(__file__).parent / "results"
CONDITIONS = ("kind = 0", "kind = 1", "kind = 2", "kind = 3")
LOOK_SECONDS = 0.05


def shifted(pack: pa.RecordBatch, by: int) -> pa.RecordBatch:
    """A light function: one column changed."""
    at = pack.schema.get_field_index("value")
    return pack.set_column(at, "value", pc.add(pack.column(at), float(by)))


FUNCTIONS = tuple((lambda pack, by=by: shifted(pack, by)) for by in range(1, 7))


@springhouse.flow
def fork(flow: Draft) -> None:
    for number, rows in enumerate(flow.read("rows").route(*CONDITIONS)):
        rows.write(f"target_{number}")


@springhouse.flow
def chain(flow: Draft) -> None:
    rows = flow.read("rows")
    for number, function in enumerate(FUNCTIONS):
        rows = rows.apply(function, name=f"function {number}")
    rows.write("target_0")


def our_fork(spark: SparkSession, rows: DataFrame, folder: Path) -> None:
    targets = {f"target_{n}": str(folder / f"target_{n}") for n in range(5)}
    run_flow(spark, fork, sources={"rows": rows}, targets=targets)


def our_chain(spark: SparkSession, rows: DataFrame, folder: Path) -> None:
    run_flow(spark, chain, sources={"rows": rows}, targets={"target_0": str(folder / "target_0")})


def their_fork(spark: SparkSession, rows: DataFrame, folder: Path) -> None:
    for number in range(5):
        condition = CONDITIONS[number] if number < 4 else "kind >= 4"
        rows.where(condition).write.parquet(str(folder / f"target_{number}"))


def their_fork_with_persist(spark: SparkSession, rows: DataFrame, folder: Path) -> None:
    kept = rows.persist()
    their_fork(spark, kept, folder)
    kept.unpersist(blocking=True)


def their_chain(spark: SparkSession, rows: DataFrame, folder: Path) -> None:
    for function in FUNCTIONS:

        def mapped(
            packs: Iterator[pa.RecordBatch],
            function: Callable[[pa.RecordBatch], pa.RecordBatch] = function,
        ) -> Iterator[pa.RecordBatch]:
            yield from map(function, packs)

        rows = rows.mapInArrow(mapped, rows.schema)
    rows.write.parquet(str(folder / "target_0"))


SIDES = {
    "fork": {"ours": our_fork, "theirs": their_fork, "with persist": their_fork_with_persist},
    "chain": {"ours": our_chain, "theirs": their_chain},
}


class Peak:
    """Looks at the memory of this process and all that it started, while something runs."""

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


def main() -> None:
    """Measure, tell, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    spark = Spark({}, "flows").session()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        given = spark.range(0, options.rows, numPartitions=4).select(
            "id",
            (sf.xxhash64("id") % 5 + 4).cast("int").alias("spread"),
            (sf.col("id") % 5).cast("int").alias("kind"),
            (sf.col("id") * 0.25).alias("value"),
            sf.concat(sf.lit("customer "), (sf.col("id") % 1000).cast("string")).alias("name"),
        )
        given.write.parquet(str(root / "rows"))
        for what, sides in SIDES.items():
            seconds: dict[str, list[float]] = {name: [] for name in sides}
            peaks: dict[str, list[int]] = {name: [] for name in sides}
            for round_ in range(options.rounds + 1):
                for name, side in sides.items():
                    rows = spark.read.parquet(str(root / "rows"))
                    target = root / "out"
                    with Peak() as peak:
                        began = time.perf_counter()
                        side(spark, rows, target)
                        took = time.perf_counter() - began
                    shutil.rmtree(target)
                    if round_:  # the first one warms up
                        seconds[name].append(took)
                        peaks[name].append(peak.most)
            ours = statistics.median(seconds["ours"])
            for name in sides:
                median = statistics.median(seconds[name])
                memory = statistics.median(peaks[name]) / 2**20
                lines.append(
                    f"| {what} | {name} | {median:.2f} | {median / ours:.2f} | {memory:.0f} |"
                )
                print(lines[-1], flush=True)
    text = (
        "# One pass: a fork into five targets, and a chain of six Python activities\n\n"
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"{options.rows:,} rows, {options.rounds} rounds, medians. Goals: fork 2.5, chain 2, peak "
        "memory no higher.\n\n| what | side | seconds | times ours | peak MB |\n"
        "|---|---|---|---|---|\n" + "\n".join(lines) + "\n"
    )
    print(text)
    if options.keep:
        (RESULTS / "flows.md").write_text(text)


if __name__ == "__main__":
    main()
