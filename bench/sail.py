"""How long does a small refresh take on Apache Spark over Spark Connect, and how long on Sail?

    python bench/sail.py [--rounds 15]

Both servers run on this machine, and take turns. In every round a small file of lines and one of
changes arrive, first in one server's project and then in the other's, and each project refreshes
everything. The numbers are the seconds that a refresh reports, from reading its inputs to its
commit: the median of all rounds except the first five.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

from springhouse.lake.spark.java import find_java
from springhouse.warehouse import Warehouse

WARM_UP = 5
LINES = 500
CUSTOMERS = 50
COUNTRIES = ("DE", "FR", "IN", "JP", "KE")
LONGEST_START = 120.0

SQL = """
CREATE STREAMING TABLE lines AS
  SELECT id, customer, amount FROM STREAM read_files('data/lines', format => 'parquet');
CREATE STREAMING TABLE changes AS
  SELECT * FROM STREAM read_files('data/changes', format => 'parquet');
CREATE STREAMING TABLE customers;
CREATE FLOW customers_now AS AUTO CDC INTO customers FROM STREAM(changes)
  KEYS (id) SEQUENCE BY seq COLUMNS * EXCEPT (seq) STORED AS SCD TYPE 1;
CREATE MATERIALIZED VIEW by_customer AS
  SELECT customer, count(*) AS lines, sum(amount) AS amount FROM lines GROUP BY customer;
CREATE MATERIALIZED VIEW by_country AS
  SELECT c.country, sum(b.amount) AS amount, max(b.lines) AS most
  FROM by_customer b JOIN customers c ON c.id = b.customer GROUP BY c.country;
"""

SHOWN = {
    "lines": "ingest of a Parquet file of 500 rows",
    "customers": "AUTO CDC of 20 changes, type 1",
    "by_customer": "view: aggregate of one table",
    "by_country": "view: join of two, aggregate",
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Small refreshes on Spark and on Sail.")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--worker", nargs=2, metavar=("FOLDER", "ADDRESS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(Path(given.worker[0]), given.worker[1])
        return
    if given.rounds <= WARM_UP:
        parser.error(f"the first {WARM_UP} rounds do not count: take more")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        ports = {"spark": _free_port(), "sail": _free_port()}
        stack.enter_context(serving(spark_command(ports["spark"]), ports["spark"], Path(folder)))
        stack.enter_context(serving(sail_command(ports["sail"]), ports["sail"], Path(folder)))
        workers = {
            name: stack.enter_context(working(Path(folder) / name, f"sc://127.0.0.1:{port}"))
            for name, port in ports.items()
        }
        rounds = [{name: ask(each) for name, each in workers.items()} for _ in range(given.rounds)]
    print_medians(rounds[WARM_UP:])


def print_medians(rounds: list[dict[str, dict[str, float]]]) -> None:
    spark, sail = f"Spark {pyspark.__version__}", f"Sail {version('pysail')}"
    print(f"{'median seconds of a refresh':<40}{spark:>14}{sail:>14}")
    for table, what in SHOWN.items():
        medians = [statistics.median(r[name][table] for r in rounds) for name in ("spark", "sail")]
        print(f"{what:<40}" + "".join(f"{median:>14.3f}" for median in medians))
    everything = [statistics.median(r[name]["all"] for r in rounds) for name in ("spark", "sail")]
    print(f"{'all of it, with what is around it':<40}" + "".join(f"{m:>14.3f}" for m in everything))


# A process per server: PySpark has one client per process.


def work(folder: Path, address: str) -> None:
    """Refresh once for every line on stdin, and print the seconds of each table."""
    (folder / "transformations").mkdir(parents=True)
    (folder / "transformations" / "all.sql").write_text(SQL)
    (folder / "spark-pipeline.yml").write_text(
        "name: bench\nstorage: storage\nlibraries:\n  - glob:\n      include: transformations/**\n"
    )
    settings = {"springhouse.spark.remote": address, "spark.sql.shuffle.partitions": "2"}
    with Warehouse(folder, configuration=settings) as warehouse:
        for number, _ in enumerate(sys.stdin):
            arrive(folder / "data", number)
            began = time.perf_counter()
            refreshed = warehouse.refresh()
            took = {"all": time.perf_counter() - began}
            assert refreshed.ok, refreshed.failures
            took |= {done.table: done.seconds for done in refreshed.done}
            print(json.dumps(took), flush=True)


def arrive(data: Path, number: int) -> None:
    ids = range(number * LINES, (number + 1) * LINES)
    lines = {
        "id": pa.array(ids, pa.int64()),
        "customer": pa.array([i * 7 % CUSTOMERS for i in ids], pa.int64()),
        "amount": pa.array([Decimal(i % 997) / 100 for i in ids], pa.decimal128(12, 2)),
    }
    # The first round brings every customer, a later one moves some.
    moved = range(CUSTOMERS) if number == 0 else [(number * 20 + i) % CUSTOMERS for i in range(20)]
    changes = {
        "id": pa.array(moved, pa.int64()),
        "country": [COUNTRIES[(i + number) % len(COUNTRIES)] for i in moved],
        "seq": pa.array([number] * len(moved), pa.int64()),
    }
    for name, columns in (("lines", lines), ("changes", changes)):
        (data / name).mkdir(parents=True, exist_ok=True)
        hidden = data / name / f".{number}.parquet"
        pq.write_table(pa.table(columns), hidden)
        hidden.rename(data / name / f"{number}.parquet")


@contextmanager
def working(folder: Path, address: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, __file__, "--worker", str(folder), address]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=20)


def ask(worker: "subprocess.Popen[str]") -> Mapping[str, float]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()
    answer = worker.stdout.readline()
    assert answer, "the worker ended"
    took: Mapping[str, float] = json.loads(answer)
    return took


# The servers


def spark_command(port: int) -> list[str]:
    find_java()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    return [
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        *("--master", "local[2]", "--driver-memory", "1g"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *(f"--conf={key}={value}" for key, value in settings.items()),
        "spark-internal",
    ]


def sail_command(port: int) -> list[str]:
    command = [sys.executable, "-m", "pysail", "spark", "server"]
    return [*command, "--ip", "127.0.0.1", "--port", str(port)]


@contextmanager
def serving(command: list[str], port: int, folder: Path) -> Iterator[None]:
    with (folder / f"{port}.log").open("w") as log:
        server = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            cwd=folder,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )
    try:
        _await(port, server)
        yield
    finally:
        server.terminate()
        server.wait(timeout=30)


def _await(port: int, server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + LONGEST_START
    while True:
        assert server.poll() is None, "the server ended"
        assert time.monotonic() < deadline, "the server does not answer"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        except OSError:
            time.sleep(0.1)
        else:
            return


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


if __name__ == "__main__":
    main()
