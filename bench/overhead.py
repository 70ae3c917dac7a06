"""What does Springhouse cost on top of the Spark job that does the same?

Both sides alternate in one run, so that a noisy machine disturbs both alike:

    refresh   a small view (read, aggregate, replace) after its table changed, against a bare Spark
              job that reads the same files, aggregates, and overwrites a Parquet folder
    ingest    one small JSON file into a table, against a bare Spark job that reads the same file
              with the same schema and appends to a Parquet folder

Both are warm. The figure is the median over the rounds of each side, and the ratio of the medians.
Run: `python bench/overhead.py [--rounds 30]`. The goal is a ratio of at most 1.5.
"""

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

import springhouse
from springhouse.warehouse import Warehouse
from springhouse.warehouse.running.execution import perform

SCHEMA = "id BIGINT, customer BIGINT, amount DECIMAL(12,2), placed_at TIMESTAMP"
QUERY = "SELECT customer, count(*) AS n, sum(amount) AS revenue FROM {orders} GROUP BY customer"
PROJECT = {
    "spark-pipeline.yml": "name: overhead\nstorage: storage\n"
    "libraries:\n  - glob:\n      include: transformations/**\n"
    'configuration:\n  springhouse.compact.files: "64"\n',
    "transformations/all.sql": "CREATE STREAMING TABLE orders AS SELECT * FROM "
    f"STREAM read_files('data', format => 'json', schema => '{SCHEMA}');\n"
    f"CREATE MATERIALIZED VIEW by_customer AS {QUERY.format(orders='orders')};\n",
}


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in PROJECT.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        (root / "data").mkdir()
        with springhouse.open(root) as warehouse:
            figures = measured(warehouse, root, rounds)
    print(f"{rounds} rounds, {platform.machine()}, Python {platform.python_version()}, local[*]")
    for name, (ours, bare) in figures.items():
        mine, theirs = statistics.median(ours), statistics.median(bare)
        print(
            f"{name:<8} springhouse {mine:.3f} s   bare Spark {theirs:.3f} s   "
            f"ratio {mine / theirs:.2f}"
        )


def measured(
    warehouse: Warehouse, root: Path, rounds: int
) -> dict[str, tuple[list[float], list[float]]]:
    """Seconds of each side, by measurement; the first rounds warm up and do not count."""
    session = warehouse.internals.lake.spark.session()
    figures: dict[str, tuple[list[float], list[float]]] = {"ingest": ([], []), "refresh": ([], [])}
    warm_up = 5
    for number in range(rounds + warm_up):
        file = arrive(root, number)
        sides = {
            "ingest": (
                lambda: perform(
                    warehouse.internals.watch, warehouse.internals.watch.forced("orders", "bench")
                ),
                lambda file=file: bare_ingest(session, root, file),
            ),
            "refresh": (
                lambda: perform(
                    warehouse.internals.watch,
                    warehouse.internals.watch.forced("by_customer", "bench"),
                ),
                lambda: bare_refresh(session, root, warehouse),
            ),
        }
        for name, (ours, bare) in sides.items():
            # The first side alternates: the second finds the files in the page cache.
            order = (ours, bare) if number % 2 else (bare, ours)
            if name == "refresh":
                order = (ours, bare)  # The bare job reads the files that our ingest committed.
            seconds = {side: timed(side) for side in order}
            if number >= warm_up:
                figures[name][0].append(seconds[ours])
                figures[name][1].append(seconds[bare])
    return figures


def timed(work: Callable[[], object]) -> float:
    """The duration of this work."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def arrive(root: Path, number: int) -> Path:
    """A file of a hundred orders."""
    file = root / "data" / f"{number:05}.json"
    records = (
        {"id": number * 100 + i, "customer": i % 20, "amount": i + 0.5,
         "placed_at": "2026-01-01T00:00:00Z"}
        for i in range(100)
    )  # fmt: skip
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


def bare_ingest(session: SparkSession, root: Path, file: Path) -> None:
    """A Spark job that reads one file in."""
    rows = session.read.schema(SCHEMA).json(str(file))
    rows.write.mode("append").parquet(str(root / "bare" / "orders"))


def bare_refresh(session: SparkSession, root: Path, warehouse: Warehouse) -> None:
    """A Spark job that recomputes the view from the same files."""
    rows = session.read.schema(SCHEMA).parquet(
        *warehouse.internals.lake.open("orders").delta.file_uris()
    )
    view = session.sql(QUERY, orders=rows)
    view.write.mode("overwrite").parquet(str(root / "bare" / "by_customer"))


if __name__ == "__main__":
    main()
