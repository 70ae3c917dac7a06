"""Any Delta reader can read the warehouse, without Spark or Springhouse, at any moment."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from patience import patience

BATCHES = 50
KEYS = 200

SQL = f"""
CREATE STREAMING TABLE batches AS SELECT * FROM STREAM read_files('data/batches', format => 'json',
  schema => 'batch BIGINT');

CREATE MATERIALIZED VIEW stamped AS
  SELECT id AS key, (SELECT max(batch) FROM batches) AS batch FROM range({KEYS});
"""

CUSTOMERS = """
CREATE STREAMING TABLE customers;
CREATE FLOW customers_in AS AUTO CDC INTO customers
  FROM STREAM read_files('data/customers', format => 'json',
    schema => 'id BIGINT, name STRING, op STRING, seq BIGINT')
  KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq)
  STORED AS SCD TYPE 1;

CREATE MATERIALIZED VIEW letters AS
  SELECT left(name, 1) AS letter, count(*) AS customers FROM customers GROUP BY left(name, 1);
"""


class Reader:
    """Reads a view over and over in its own thread, and remembers all results."""

    def __init__(self, place: Path) -> None:
        self.seen: list[int] = []
        self.wrong: list[str] = []
        self._place = place
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> "Reader":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(timeout=patience(60))
        assert not self._thread.is_alive()

    def _read(self) -> None:
        while not self._over.is_set():
            try:
                table = DeltaTable(self._place).to_pyarrow_table()
            except Exception as error:  # noqa: BLE001  whatever a reader gets, the test must tell
                self.wrong.append(f"{type(error).__name__}: {error}")
                return
            batches = set(table["batch"].to_pylist())
            if table.num_rows != KEYS or len(batches) != 1:
                self.wrong.append(f"{table.num_rows} rows of the batches {sorted(batches)}")
            self.seen += batches


def test_a_reader_sees_one_whole_batch_at_any_moment(
    start_worker: Callable[..., Any],
    write_project: Callable[..., Path],
    drop: Callable[[Path, str, str], None],
    spark_server: str,
) -> None:
    folder = write_project(SQL, **{"springhouse.spark.remote": spark_server})
    worker = start_worker(folder)

    def refresh(batch: int) -> None:
        drop(folder / "data" / "batches", f"{batch:04}.json", json.dumps({"batch": batch}))
        refreshed = worker.ask("refresh", "refreshed")
        assert (refreshed["failures"], refreshed["done"]) == ({}, ["batches", "stamped"])

    refresh(0)
    with Reader(folder / "storage" / "tables" / "stamped") as reader:
        for batch in range(1, BATCHES + 1):
            refresh(batch)
    assert reader.wrong == []
    assert reader.seen == sorted(reader.seen), "a reader went back in time"
    assert len(set(reader.seen)) > BATCHES / 2, "the reader slept"


@pytest.fixture
def customers(
    start_worker: Callable[..., Any],
    write_project: Callable[..., Path],
    drop: Callable[[Path, str, str], None],
    spark_server: str,
) -> Path:
    """The tables of a project with customers that were changed and deleted."""
    folder = write_project(CUSTOMERS, **{"springhouse.spark.remote": spark_server})
    worker = start_worker(folder)
    for number, names in enumerate((["Ada", "Bob", "Cid"], ["Ann", None])):
        events = [
            {"id": i, "name": name, "op": "U" if name else "D", "seq": number}
            for i, name in enumerate(names)
        ]
        text = "\n".join(map(json.dumps, events))
        drop(folder / "data" / "customers", f"{number}.json", text)
        assert worker.ask("refresh", "refreshed")["failures"] == {}
    return folder / "storage" / "tables"


def by_deltalake(place: Path) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = DeltaTable(place).to_pyarrow_table().to_pydict()
    return found


def by_duckdb(place: Path) -> dict[str, list[Any]]:
    # DuckDB downloads `delta_scan`, an extension. A dataset of the same files needs no download.
    with duckdb.connect() as connection:
        connection.register("given", DeltaTable(place).to_pyarrow_dataset())
        found: dict[str, list[Any]] = connection.sql("FROM given").to_arrow_table().to_pydict()
        return found


def by_polars(place: Path) -> dict[str, list[Any]]:
    return pl.read_delta(str(place)).to_dict(as_series=False)


def by_lazy_polars(place: Path) -> dict[str, list[Any]]:
    return pl.scan_delta(str(place)).collect().to_dict(as_series=False)


def test_every_reader_sees_the_declared_columns_and_no_hidden_one(customers: Path) -> None:
    files = DeltaTable(customers / "customers").file_uris()
    stored = {name for file in files for name in pq.read_schema(file).names}
    assert stored == {"id", "name", "__springhouse_sequence"}
    for read in (by_deltalake, by_duckdb, by_polars, by_lazy_polars):
        assert in_order(read(customers / "customers")) == [
            {"id": 0, "name": "Ann"},
            {"id": 2, "name": "Cid"},
        ], read.__name__
        assert in_order(read(customers / "letters")) == [
            {"letter": "A", "customers": 1},
            {"letter": "C", "customers": 1},
        ], read.__name__


def in_order(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return sorted(rows, key=lambda row: tuple(row.values()))
