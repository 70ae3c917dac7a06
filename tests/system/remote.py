"""A warehouse with Spark on a remote server: `python remote.py shop|… FOLDER KEY=ADDRESS`.

The program creates the project in FOLDER, refreshes it while data arrives, compares every view with
its query, and prints its findings as one line of JSON.
"""

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

# The example's own modules; its folder is on the path.
import checks
import generator
import ledger
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from springhouse.lake.delta.commits import Change, commit
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.writing import write_arrow
from springhouse.lake.storage.presence import FileLost
from springhouse.project.declarations.declaration import SqlQuery, View
from springhouse.project.lineage.graph import Graph
from springhouse.warehouse import Refreshed, Warehouse

SQL = """
CREATE STREAMING TABLE ticks AS
  SELECT * FROM STREAM sample(rate => '1', start => '2024-01-01', limit => '50');
CREATE STREAMING TABLE lines (
  CONSTRAINT known EXPECT (customer IS NOT NULL) ON VIOLATION QUARANTINE,
  CONSTRAINT some EXPECT (amount > 0) ON VIOLATION DROP ROW,
  CONSTRAINT small EXPECT (amount < 50)
) TBLPROPERTIES ('springhouse.timestamp' = 'at')
  AS SELECT id, customer, amount, at FROM STREAM read_files('data/lines', format => 'parquet');
CREATE STREAMING TABLE json_orders AS SELECT * FROM STREAM read_files('data/json',
  format => 'json', schema => 'id BIGINT, at TIMESTAMP');
CREATE STREAMING TABLE csv_orders AS SELECT * FROM STREAM read_files('data/csv',
  format => 'csv', header => true, schema => 'id BIGINT, amount DECIMAL(12, 2)');
CREATE STREAMING TABLE notes AS SELECT * FROM STREAM read_files('data/text', format => 'text');
CREATE STREAMING TABLE rates AS SELECT * FROM STREAM read_delta('data/rates');

CREATE STREAMING TABLE large AS
  SELECT id, customer, amount FROM STREAM(lines) WHERE amount >= 20;
CREATE TEMPORARY VIEW even AS
  SELECT id, customer, amount FROM STREAM(lines) WHERE id % 2 = 0;
CREATE STREAMING TABLE picked (id BIGINT, customer BIGINT, amount DECIMAL(12, 2));
CREATE FLOW picked_even AS INSERT INTO picked BY NAME SELECT * FROM STREAM(even);
CREATE FLOW picked_large AS INSERT INTO picked BY NAME
  SELECT customer, id, amount FROM STREAM(large);

CREATE STREAMING TABLE changes AS
  SELECT * FROM STREAM read_files('data/changes', format => 'parquet');
CREATE STREAMING TABLE customers;
CREATE FLOW customers_now AS AUTO CDC INTO customers FROM STREAM(changes)
  KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq)
  STORED AS SCD TYPE 1;
CREATE STREAMING TABLE history;
CREATE FLOW customers_then AS AUTO CDC INTO history FROM STREAM(changes)
  KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq)
  STORED AS SCD TYPE 2;

CREATE MATERIALIZED VIEW revenue AS
  SELECT c.name, count(*) AS many, sum(l.amount) AS amount
  FROM lines l LEFT JOIN customers c ON c.id = l.customer GROUP BY c.name;
CREATE TEMPORARY VIEW strong AS SELECT * FROM revenue WHERE amount > 20;
CREATE MATERIALIZED VIEW ranked AS
  SELECT name, amount, rank() OVER (ORDER BY amount DESC, name) AS place FROM strong;
CREATE MATERIALIZED VIEW priced AS
  SELECT l.id, l.amount * r.rate AS priced
  FROM lines l JOIN delta.`data/rates` r ON r.customer = l.customer;
CREATE MATERIALIZED VIEW newest AS
  SELECT max(time) AS time, count(DISTINCT offset % 7) AS kinds FROM ticks;
"""

PYTHON = """
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

spark = SparkSession.active()


@dp.materialized_view
def by_day() -> DataFrame:
    day = sf.to_date("at").alias("day")
    return spark.read.table("lines").groupBy(day).agg(sf.sum("amount").alias("amount"))


@dp.materialized_view
def most() -> DataFrame:
    return spark.sql("SELECT customer, max(amount) AS most FROM lines GROUP BY customer")


@dp.table
def streamed() -> DataFrame:
    return spark.readStream.table("lines").where("id > 3").select("id", "customer")
"""

PIPELINE = """
name: features
storage: storage
configuration:
  spark.sql.session.timeZone: UTC
libraries:
  - glob:
      include: transformations/**
"""

# A busy server gives a Python process ten seconds to start, and then gives up.
BUSY = "Python worker failed to connect back"


def main() -> None:
    job, folder, setting = sys.argv[1:]
    key, _, address = setting.partition("=")
    jobs = {"shop": shop, "features": features, "lost": lost}
    sys.stdout.write(json.dumps(jobs[job](Path(folder), {key: address})) + "\n")


# The shop


def shop(folder: Path, configuration: Mapping[str, str]) -> dict[str, Any]:
    """The example, with a few seconds of trade between two refreshes."""
    example = Path(generator.__file__).parent
    shutil.copytree(example / "transformations", folder / "transformations")
    shutil.copytree(example / "reference", folder / "reference")
    shutil.copy(example / "spark-pipeline.yml", folder)
    prices = generator.read_prices(folder / "reference" / "products.csv")
    trade = generator.Shop(7, datetime.now(UTC), prices)
    book = ledger.Ledger()
    moments = [*(trade.tick() for _ in range(6)), trade.closing()]
    failures: dict[str, str] = {}
    with Warehouse(folder, configuration=configuration) as warehouse:
        for first, last in ((0, 3), (3, len(moments))):
            for number in range(first, last):
                generator.write(moments[number], number, folder / "data")
                book.enter(moments[number].entries)
            failures |= _failures(warehouse.refresh())
        read = checks.reader(lambda name: str(folder / "storage" / "tables" / name))
        accounts = ledger.from_json(book.to_json())
        findings = [
            *checks.check_tables(accounts, read),
            *checks.check_clicks(read),
            *checks.check_quarantines(accounts, read),
            *_recomputed(warehouse, read),
            *checks.check_diamond(str(folder / "storage" / "tables" / "reconciliation")),
        ]
        billed, in_ledger = warehouse.query(
            "SELECT (SELECT count(*) FROM order_totals), (SELECT count(*) FROM order_payments)",
            consistent=True,
        ).collect()[0]
        return {
            "failures": failures,
            "wrong": [f"{each.claim}: {each.problem}" for each in findings if not each.ok],
            "tables": len(warehouse.project.tables),
            "views": len(warehouse.project.views),
            "quarantined": warehouse.query("SELECT * FROM orders_quarantine").count(),
            "billed": billed,
            "in_ledger": in_ledger,
        }


# One table or view per feature


def features(folder: Path, configuration: Mapping[str, str]) -> dict[str, Any]:
    """Everything that a project can declare, refreshed while data arrives."""
    (folder / "transformations").mkdir(parents=True)
    (folder / "spark-pipeline.yml").write_text(PIPELINE)
    (folder / "transformations" / "all.sql").write_text(SQL)
    (folder / "transformations" / "all.py").write_text(PYTHON)
    failures: dict[str, str] = {}
    with Warehouse(folder, configuration=configuration) as warehouse:
        for number in range(3):
            _arrive(folder / "data", number)
            failures |= {k: v for k, v in _failures(warehouse.refresh()).items() if BUSY not in v}
        last = _failures(warehouse.refresh())
        for _ in range(5):
            # A running warehouse retries work that a busy server could not finish in time,
            # and so does this loop.
            if any(BUSY in each for each in last.values()):
                last = _failures(warehouse.refresh())
        failures |= last
        read = checks.reader(lambda name: str(folder / "storage" / "tables" / name))
        wrong = [f"{f.claim}: {f.problem}" for f in _recomputed(warehouse, read) if not f.ok]
        places = warehouse.query("SELECT max(place) FROM ranked", consistent=True).collect()[0][0]
        assert places == warehouse.query("SELECT * FROM ranked").count()
    return {"failures": failures, "wrong": wrong, "rows": _rows(folder / "storage" / "tables")}


def _rows(tables: Path) -> dict[str, list[list[str]]]:
    """The rows of every table and quarantine that has some."""
    # Times and places do not depend on the server. The digits of a record as text do.
    passed_over = {"quarantined_at", "origin", "record"}
    found = {}
    for place in sorted(tables.iterdir()):
        table = checks.rows_at(str(place))
        kept = table.select([name for name in table.schema.names if name not in passed_over])
        found[place.name] = [list(map(str, row)) for row in checks.rows_of(kept)]
    return {name: rows for name, rows in found.items() if rows}


def _arrive(data: Path, number: int) -> None:
    ids = range(10 * number, 10 * number + 10)
    began = datetime(2024, 1, 1, tzinfo=UTC)
    lines = {
        "id": pa.array(ids, pa.int64()),
        "customer": pa.array([None if i % 9 == 8 else i % 4 for i in ids], pa.int64()),
        "amount": pa.array([i * Decimal("2.50") - 1 for i in ids], pa.decimal128(12, 2)),
        "at": pa.array([began + timedelta(hours=7 * i) for i in ids], pa.timestamp("us", "UTC")),
    }
    _write(data / "lines", number, pa.table(lines))
    events = [
        (0, "Ada", "U", 1),
        (1, "Bo", "U", 2),
        (2, "Chidi", "U", 5),
        (2, None, "D", 7),
        (1, "late", "U", 1),
        (3, f"Dana {number}", "U", 4),
    ]
    changes = {
        "id": pa.array([id for id, _, _, _ in events], pa.int64()),
        "name": [name for _, name, _, _ in events],
        "op": [op for _, _, op, _ in events],
        "seq": pa.array([seq + 10 * number for _, _, _, seq in events], pa.int64()),
    }
    _write(data / "changes", number, pa.table(changes))
    texts = {
        "json": f'{{"id": {number}, "at": "2024-01-02T03:04:05Z"}}\n{{"id": "x"}}\nnothing\n',
        "csv": f"id,amount\n{number},1.50\nx,2\n",
        "text": f"hello {number}\n",
    }
    for kind, text in texts.items():
        (data / kind).mkdir(exist_ok=True)
        (data / kind / f"{number}.{kind}").write_text(text)
    rates = {
        "customer": pa.array([number], pa.int64()),
        "rate": pa.array([Decimal("1.10")], pa.decimal128(4, 2)),
    }
    write_deltalake(data / "rates", pa.table(rates), mode="append")


def _write(folder: Path, number: int, rows: pa.Table) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / f"{number}.parquet")


# Missing files, and a reader that is far behind

BEHIND = 300

FAR = """
CREATE STREAMING TABLE orders (id BIGINT, city STRING) AS
  SELECT * FROM STREAM read_files('data/orders', format => 'json',
                                  schema => 'id BIGINT, city STRING');
CREATE MATERIALIZED VIEW by_city TBLPROPERTIES ('springhouse.refresh' = 'incremental')
  AS SELECT city, count(*) AS n, sum(id) AS ids FROM orders GROUP BY city;
CREATE STREAMING TABLE followed AS SELECT id, city FROM STREAM(orders);
CREATE STREAMING TABLE rated AS SELECT * FROM STREAM read_delta('data/many');
CREATE MATERIALIZED VIEW rates TBLPROPERTIES ('springhouse.refresh' = 'incremental')
  AS SELECT rate, count(*) AS n FROM delta.`data/rates` GROUP BY rate;
"""


def lost(folder: Path, configuration: Mapping[str, str]) -> dict[str, Any]:
    """Versions that others vacuumed, hundreds of commits at once, and then a missing file."""
    data = folder / "data"
    (data / "orders").mkdir(parents=True)
    (folder / "transformations").mkdir()
    (folder / "spark-pipeline.yml").write_text(PIPELINE)
    (folder / "transformations" / "all.sql").write_text(FAR)
    (data / "orders" / "0.json").write_text('{"id": 0, "city": "Oslo"}\n')
    codes = [f"c{number}" for number in range(100)]
    write_deltalake(data / "rates", pa.table({"code": codes, "rate": [1] * 100}))
    write_deltalake(data / "many", pa.table({"id": [0]}))
    told: dict[str, Any] = {}
    with Warehouse(folder, configuration=configuration) as warehouse:
        failures = _failures(warehouse.refresh())
        outside = DeltaTable(data / "rates")
        outside.update(updates={"rate": "2"}, predicate="code = 'c1'")
        outside.vacuum(0, dry_run=False, enforce_retention_duration=False)
        for number in range(1, BEHIND + 1):
            _append(warehouse, number)
            write_deltalake(data / "many", pa.table({"id": [number]}), mode="append")
        failures |= _failures(warehouse.refresh())
        told["failures"] = failures
        told["rates"] = _sorted(warehouse.query("SELECT * FROM rates"))
        told["by_city"] = _sorted(warehouse.query("SELECT * FROM by_city"))
        for name in ("followed", "rated"):
            told[name] = _sorted(warehouse.query(f"SELECT count(*), sum(id) FROM {name}"))
        gone = (
            Path(warehouse.internals.lake.place("orders").root)
            / warehouse.internals.lake.open("orders").files[0].path
        )
        gone.unlink()
        (folder / "transformations" / "more.sql").write_text(
            "CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM orders;"
        )
        told["gone"] = gone.name
        try:
            told["queried"] = warehouse.query("SELECT count(*) FROM orders").collect()[0][0]
        except FileLost as error:
            told["queried"] = error.problem
    with Warehouse(folder, configuration=configuration) as warehouse:
        told["then"] = _failures(warehouse.refresh())
    return told


def _append(warehouse: Warehouse, number: int) -> None:
    """Commit as a refresh does."""
    ground = warehouse.internals.lake.open("orders")
    rows = pa.table({"id": [number], "city": ["Moss" if number % 3 else "Oslo"]})
    note = Note(
        kind="append",
        at=warehouse.internals.lake.now(),
        channel=True,
        rows=number + 1,
        rows_added=1,
    )
    commit(ground, Change(note, [write_arrow(ground.storage, rows)]))


def _sorted(rows: Any) -> list[list[Any]]:
    return sorted([list(row) for row in rows.collect()], key=str)


# Findings


def _failures(refreshed: Refreshed) -> dict[str, str]:
    return {name: failure.problem for name, failure in refreshed.failures.items()}


def _recomputed(warehouse: Warehouse, read: checks.Read) -> Iterator[checks.Finding]:
    """Compare every view with its query, which the server runs over plain tables."""
    project = warehouse.project
    session = warehouse.query("SELECT 1").sparkSession
    tables = [name for name in project.tables if read(name).num_rows]
    views = [project.views[name] for name in Graph(project).order if name in project.views]
    for finding in checks.check_views(session, tables, [_plain(view) for view in views], read):
        yield finding
        if finding.claim.startswith("revenue ("):
            strong = project.temporary_views["strong"].query
            assert isinstance(strong, SqlQuery)
            session.sql(strong.text).createOrReplaceTempView("strong")


def _plain(view: View) -> View:
    """The view without the path of a Delta table: the table `rates` streams the same rows."""
    if not isinstance(view.query, SqlQuery):
        return view
    text = view.query.text.replace("delta.`data/rates`", "rates")
    return replace(view, query=replace(view.query, text=text))


if __name__ == "__main__":
    main()
