"""Inputs that nobody can watch, and sources that do not exist: the views are built and reported."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from typer.testing import CliRunner

from springhouse.cli.app import app
from springhouse.warehouse import Event, Finished, Warehouse, Warned

VIEWS = """
CREATE MATERIALIZED VIEW rates AS SELECT * FROM VALUES ('EUR', 1.0), ('USD', 1.1) AS t(name, rate);
CREATE MATERIALIZED VIEW prices AS SELECT * FROM parquet.`{folder}/prices`;
CREATE MATERIALIZED VIEW dear AS
    SELECT p.id, p.price * r.rate AS price FROM prices p JOIN rates r USING (name);
CREATE MATERIALIZED VIEW names AS SELECT count(*) AS count, max(city) AS city FROM cities;
"""
PYTHON = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()

@dp.materialized_view
def cities():
    return spark.read.csv("{folder}/cities", schema="city STRING")
"""
ALL = {"rates", "prices", "dear", "cities", "names"}


def write(folder: Path, *prices: float) -> None:
    (folder / "prices").mkdir(exist_ok=True)
    names = [["EUR", "USD"][i % 2] for i, _ in enumerate(prices)]
    columns = {"id": list(range(len(prices))), "name": names, "price": list(prices)}
    pq.write_table(pa.table(columns), folder / "prices" / "a.parquet")
    (folder / "cities").mkdir(exist_ok=True)
    (folder / "cities" / "a.csv").write_text("".join(f"City {price}\n" for price in prices))


def dear(warehouse: Warehouse) -> list[float]:
    found = warehouse.query("SELECT price FROM dear ORDER BY id").collect()
    return [round(float(row[0]), 2) for row in found]


def test_run_makes_views_over_inputs_that_nobody_can_watch(project: Any, tmp_path: Path) -> None:
    write(tmp_path, 10.0, 20.0)
    folder = project(VIEWS.format(folder=tmp_path), PYTHON.format(folder=tmp_path))
    made: set[str] = set()

    def listen(event: Event) -> None:
        if isinstance(event, Finished):
            made.add(event.table)
        if made >= ALL:
            warehouse.stop()

    warehouse = Warehouse(folder, listener=listen)
    refreshed = warehouse.run(300.0)
    assert refreshed.ok, refreshed.failures
    assert made >= ALL
    assert dear(warehouse) == [10.0, 22.0]
    assert tuple(warehouse.query("SELECT count, city FROM names").collect()[0]) == (2, "City 20.0")


def test_what_reads_such_a_view_follows_it(project: Any, tmp_path: Path) -> None:
    write(tmp_path, 10.0, 20.0)
    folder = project(VIEWS.format(folder=tmp_path), PYTHON.format(folder=tmp_path))
    warehouse = Warehouse(folder)
    refreshed = warehouse.refresh()
    assert refreshed.ok, refreshed.failures
    assert dear(warehouse) == [10.0, 22.0]
    write(tmp_path, 30.0, 40.0, 50.0)
    refreshed = warehouse.refresh()
    assert refreshed.ok, refreshed.failures
    assert dear(warehouse) == [30.0, 44.0, 50.0]
    assert tuple(warehouse.query("SELECT count, city FROM names").collect()[0]) == (3, "City 50.0")


def test_a_source_folder_that_is_not_there_is_told_every_time(project: Any) -> None:
    folder = project(
        "CREATE STREAMING TABLE orders AS SELECT * FROM "
        "STREAM read_files('data/ordres', format => 'json', schema => 'id BIGINT');"
    )
    for _ in range(2):
        heard: list[Event] = []
        warehouse = Warehouse(folder, listener=heard.append)
        assert warehouse.refresh().ok
        (warned,) = [event for event in heard if isinstance(event, Warned)]
        assert warned.table == "orders"
        assert 'data/ordres" names does not exist' in warned.warning
        (status,) = warehouse.status()
        assert (status.state, status.warning) == ("no source", warned.warning)
    told = CliRunner().invoke(app, ["status", "--project", str(folder)])
    assert "does not exist" in told.output
    (folder / "data" / "ordres").mkdir(parents=True)
    heard = []
    warehouse = Warehouse(folder, listener=heard.append)
    assert warehouse.refresh().ok
    assert not [event for event in heard if isinstance(event, Warned)]
    (status,) = warehouse.status()
    assert (status.problem, status.warning) == (None, None)
