"""Python flows that Structured Streaming runs: each micro-batch is in the table exactly once."""

import json
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from springhouse.lake.ingest.checkpoints import batch_transaction
from springhouse.lake.ingest.streaming_flow import staged_batches
from springhouse.warehouse import Warehouse

PYTHON = """
from pyspark import pipelines as dp

@dp.table
def events():
    return spark.readStream.format("json").schema("id BIGINT, kind STRING").load("{data}")

dp.create_streaming_table("both")

@dp.append_flow(target="both")
def small():
    return spark.readStream.table("events").where("id < 10")

@dp.append_flow(target="both")
def large():
    return spark.readStream.table("events").where("id >= 10")

@dp.materialized_view
def kinds():
    return spark.read.table("both").groupBy("kind").count()
"""


def arrive(folder: Path, number: int, *ids: int) -> None:
    lines = "".join(json.dumps({"id": i, "kind": "ab"[i % 2]}) + "\n" for i in ids)
    (folder / "data" / f"{number}.json").write_text(lines)


def ids(warehouse: Warehouse, table: str) -> list[int]:
    return sorted(
        DeltaTable(warehouse.internals.lake.place(table).root).to_pyarrow_table()["id"].to_pylist()
    )


def opened(project: Any, tmp_path: Path) -> Warehouse:
    (tmp_path / "project" / "data").mkdir(parents=True, exist_ok=True)
    return Warehouse(project("", PYTHON.format(data=tmp_path / "project" / "data")))


def test_streams_of_spark_and_of_our_own_tables(project: Any, tmp_path: Path) -> None:
    warehouse = opened(project, tmp_path)
    folder = warehouse.project.folder
    arrive(folder, 1, 1, 2, 11)
    refreshed = warehouse.refresh()
    assert refreshed.ok, refreshed.failures
    assert ids(warehouse, "both") == [1, 2, 11]
    arrive(folder, 2, 3, 12)
    warehouse = opened(project, tmp_path)
    assert warehouse.refresh().ok
    assert ids(warehouse, "events") == [1, 2, 3, 11, 12]
    assert ids(warehouse, "both") == [1, 2, 3, 11, 12]
    assert sorted(map(tuple, warehouse.query("SELECT * FROM kinds").collect())) == [
        ("a", 2),
        ("b", 3),
    ]
    # The derived table reflects versions of the table that it streams from.
    reflects = warehouse.explain("both").stored.reflects
    assert list(reflects) == ["events"]


def test_a_batch_that_was_staged_and_not_committed_is_committed_once(
    project: Any, tmp_path: Path
) -> None:
    warehouse = opened(project, tmp_path)
    arrive(warehouse.project.folder, 1, 1, 2)
    assert warehouse.refresh().ok
    # The process dies after Spark staged batch 1 and before our commit. Spark considers the batch
    # done and will not repeat it.
    place = warehouse.internals.lake.storage.inside("streams", "events")
    session = warehouse.internals.lake.spark.session()
    rows = session.createDataFrame([(7, "b")], "id BIGINT, kind STRING")
    rows.write.parquet(f"{place.root}/staged/1")
    # A batch that Spark did not finish staging does not count.
    (Path(place.root) / "staged" / "2").mkdir()
    assert [batch.number for batch in staged_batches(place)] == [1]
    warehouse = opened(project, tmp_path)
    assert warehouse.refresh().ok
    assert ids(warehouse, "events") == [1, 2, 7]
    stored = warehouse.internals.lake.open("events")
    flow = warehouse.project.flows_into("events")[0]
    assert stored.offset(batch_transaction(flow)) == 2  # type: ignore[arg-type]
    # Spark repeats the batch with the same number. The table already has its rows.
    rows.write.parquet(f"{place.root}/staged/1")
    assert warehouse.refresh().ok
    assert ids(warehouse, "events") == [1, 2, 7]


def test_a_function_that_does_not_stream_says_so(project: Any) -> None:
    python = """
from pyspark import pipelines as dp

@dp.table
def wrong():
    return spark.range(3)
"""
    warehouse = Warehouse(project("", python))
    refreshed = warehouse.refresh()
    assert 'the flow "wrong" returned a DataFrame that is not streaming' in (
        refreshed.failures["wrong"].problem
    )


def test_a_stream_over_a_table_that_is_updated_in_place_says_so(project: Any) -> None:
    sql = """
CREATE STREAMING TABLE customers;
CREATE FLOW f AS AUTO CDC INTO customers FROM STREAM read_files('data', format => 'json',
  schema => 'id BIGINT, seq BIGINT') KEYS (id) SEQUENCE BY seq;
CREATE STREAMING TABLE copy AS SELECT * FROM STREAM(customers);
"""
    folder = project(sql)
    (folder / "data").mkdir()
    (folder / "data" / "1.json").write_text('{"id": 1, "seq": 1}\n')
    warehouse = Warehouse(folder)
    warehouse.refresh()
    (folder / "data" / "2.json").write_text('{"id": 1, "seq": 2}\n')
    refreshed = warehouse.refresh()
    assert "customers" in refreshed.failures["copy"].problem
    assert list(refreshed.failures) == ["copy"]
