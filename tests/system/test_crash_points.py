"""A process dies at each critical point: its work is neither lost nor done twice.

The points are: files are written but not committed; committed but not acknowledged; and between the
commit of the rows and the commit of their quarantine. Every process dies at one point. The test
examines the remains, and the next process goes on from them.
"""

import json
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SQL = """
CREATE STREAMING TABLE orders (
  CONSTRAINT paid EXPECT (amount > 0) ON VIOLATION QUARANTINE
) AS SELECT * FROM STREAM read_files('data/orders', format => 'json',
  schema => 'id BIGINT, customer BIGINT, amount BIGINT');

CREATE STREAMING TABLE customers;
CREATE FLOW customers_in AS AUTO CDC INTO customers
  FROM STREAM read_files('data/customers', format => 'json',
    schema => 'id BIGINT, name STRING, op STRING, seq BIGINT')
  KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq)
  STORED AS SCD TYPE 1;

CREATE MATERIALIZED VIEW totals AS
  SELECT c.name, sum(o.amount) AS amount FROM orders o JOIN customers c ON c.id = o.customer
  GROUP BY c.name;
"""

STREAMED = """
CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_files('data/orders', format => 'json',
  schema => 'id BIGINT, amount BIGINT');

-- Each order is in `copied` as soon as it is reflected there: never one without the other.
CREATE MATERIALIZED VIEW balance AS
  SELECT count(o.id) AS orders, count(c.id) AS copies
  FROM orders o FULL JOIN copied c ON c.id = o.id;
"""

PYTHON = """
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()


@dp.table
def copied() -> DataFrame:
    return spark.readStream.table("orders").select("id", "amount")
"""

# The point where a process ends, and the increase of the table's version afterwards. Another
# commit, which creates the table, precedes the first commit of a flow.
POINTS = (
    ("commit:before:files/orders", 1),
    ("commit:after:files/orders", 1),
    ("ensure:after:orders", 1),
    ("commit:before:orders", 0),
    ("commit:after:orders_quarantine", 2),
    ("commit:before:orders_quarantine", 0),
    ("commit:after:orders", 1),
    ("create:before:totals", 0),
    ("create:after:totals", 1),
    ("commit:before:totals", 0),
    ("commit:after:totals", 1),
    ("commit:before:customers", 0),
    ("commit:after:customers_quarantine", 1),
    ("commit:before:customers_quarantine", 0),
    ("commit:after:customers", 1),
)


@dataclass
class World:
    """The data that has arrived, and the tables that must result in the end."""

    orders: list[tuple[int, int, int]] = field(default_factory=list)
    customers: dict[int, str] = field(default_factory=dict)
    bad_orders: list[str] = field(default_factory=list)
    bad_customers: list[str] = field(default_factory=list)

    def batch(self, number: int) -> tuple[str, str]:
        """A file of orders and one of customers, each with good and bad records."""
        orders = [(10 * number + i, i % 4, number + i + 1) for i in range(6)]
        unpaid = {"id": 10 * number + 7, "customer": 1, "amount": 0}
        torn = f'{{"id": {10 * number + 8}, "customer": '
        self.orders += orders
        self.bad_orders += [json.dumps(unpaid), torn]
        lines = [json.dumps({"id": a, "customer": b, "amount": c}) for a, b, c in orders]
        gone, come = number % 4, (number + 1) % 4
        self.customers.pop(gone, None)
        self.customers[come] = f"customer {come} as of {number}"
        keyless = {"name": f"nobody {number}", "op": "U", "seq": number}
        self.bad_customers.append(json.dumps(keyless))
        events = [
            {"id": gone, "op": "D", "seq": number},
            {"id": come, "name": self.customers[come], "op": "U", "seq": number},
            keyless,
        ]
        return "\n".join([*lines, json.dumps(unpaid), torn]), "\n".join(map(json.dumps, events))


def test_no_point_of_death_loses_or_repeats_anything(
    start_worker: Callable[..., Any],
    write_project: Callable[..., Path],
    drop: Callable[[Path, str, str], None],
    rows_of: Callable[..., list[dict[str, Any]]],
    spark_server: str,
) -> None:
    # One track: all work before the point is done, and no other work runs beside it.
    one_track = {"springhouse.spark.remote": spark_server, "springhouse.tracks": "1"}
    folder = write_project(SQL, **one_track)
    world = World()
    for number, (point, commits) in enumerate(POINTS):
        orders, customers = world.batch(number)
        drop(folder / "data" / "orders", f"{number:04}.json", orders)
        drop(folder / "data" / "customers", f"{number:04}.json", customers)
        table = point.split(":")[2]
        before, files = version(folder, table), parquet_files(folder, table)
        die_at(start_worker, folder, point)
        assert version(folder, table) == before + commits, point
        # The rows were written, committed or not.
        assert point.startswith("ensure") or parquet_files(folder, table) > files, point

    refresh_to_the_end(start_worker, folder)

    def tuples(name: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in rows_of(folder, name))

    def records(name: str) -> Counter[str]:
        return Counter(canonical(row["record"]) for row in rows_of(folder, name))

    assert tuples("orders") == world.orders
    assert records("orders_quarantine") == Counter(map(canonical, world.bad_orders))
    assert tuples("customers") == sorted(world.customers.items())
    assert records("customers_quarantine") == Counter(map(canonical, world.bad_customers))
    totals: Counter[str] = Counter()
    for _, customer, amount in world.orders:
        if customer in world.customers:
            totals[world.customers[customer]] += amount
    assert tuples("totals") == sorted(totals.items())


def test_a_streaming_function_that_dies_with_a_staged_batch(
    start_worker: Callable[..., Any],
    write_project: Callable[..., Path],
    drop: Callable[[Path, str, str], None],
    rows_of: Callable[..., list[dict[str, Any]]],
) -> None:
    folder = write_project(STREAMED, PYTHON)
    # The process before this one died while Spark stored the offsets of the very first batch.
    offsets = folder / "storage" / "streams" / "copied" / "checkpoint" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.97cee3e7-fb43-492a-9ccb-fb6fff73b7c8.tmp").write_text("v1")
    for number, moment in enumerate(("never", "before", "after", "before")):
        order = json.dumps({"id": number, "amount": 7})
        drop(folder / "data" / "orders", f"{number:04}.json", order)
        if moment == "never":
            refresh_to_the_end(start_worker, folder)
        else:
            die_at(start_worker, folder, f"commit:{moment}:copied")
    refresh_to_the_end(start_worker, folder)
    assert sorted(row["id"] for row in rows_of(folder, "copied")) == [0, 1, 2, 3]
    # The table also knows what it reflects: a view of it and its input finds a common moment.
    assert rows_of(folder, "balance") == [{"orders": 4, "copies": 4}]


def die_at(start_worker: Callable[..., Any], folder: Path, point: str) -> None:
    worker = start_worker(folder, f"{point}:die")
    worker.say("refresh")
    assert worker.hear_the_end() == -signal.SIGKILL, point
    assert worker.heard("failed") == [], point


def refresh_to_the_end(start_worker: Callable[..., Any], folder: Path) -> None:
    worker = start_worker(folder)
    assert worker.ask("refresh", "refreshed")["failures"] == {}
    assert worker.ask("refresh", "refreshed")["done"] == [], "there was nothing left to do"


def version(folder: Path, table: str) -> int:
    newest = [int(entry.stem) for entry in stored(folder, table, "_delta_log/*.json")]
    return max(newest, default=-1)


def parquet_files(folder: Path, table: str) -> int:
    return len(stored(folder, table, "**/*.parquet"))


def stored(folder: Path, table: str, pattern: str) -> list[Path]:
    """The files of a table, or of the list of `read_files`: files/<flow>.<more>."""
    where = f"{table}.*" if table.startswith("files/") else f"tables/{table}"
    return [*(folder / "storage").glob(f"{where}/{pattern}")]


def canonical(record: str) -> str:
    """A record as text: an expectation's quarantine writes the row again, without NULL values."""
    try:
        parsed = json.loads(record)
    except json.JSONDecodeError:
        return record
    for internal in ("__springhouse_sequence", "__springhouse_delete", "op", "seq"):
        parsed.pop(internal, None)
    return json.dumps(parsed, sort_keys=True)
