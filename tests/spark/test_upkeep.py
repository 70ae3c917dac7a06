"""Compaction and vacuum change no data, and keep every version that somebody still needs."""

from collections.abc import Callable
from pathlib import Path

from deltalake import DeltaTable

from springhouse.lake.upkeep.compaction import compact
from springhouse.warehouse import Warehouse
from springhouse.warehouse.running.execution import perform

SQL = """
CREATE STREAMING TABLE orders AS
  SELECT * FROM STREAM read_files('data', format => 'json', schema => 'id BIGINT, city STRING');
CREATE MATERIALIZED VIEW by_city AS SELECT city, count(*) AS orders FROM orders GROUP BY city;
"""


def opened(project: Callable[[str], Path]) -> Warehouse:
    folder = project(SQL)
    (folder / "data").mkdir()
    return Warehouse(folder)


def arrive(warehouse: Warehouse, number: int) -> None:
    line = f'{{"id": {number}, "city": "Oslo"}}\n'
    (warehouse.project.folder / "data" / f"{number:04}.json").write_text(line)
    assert warehouse.refresh().ok


def table(warehouse: Warehouse, name: str) -> DeltaTable:
    return DeltaTable(warehouse.internals.lake.place(name).root)


def test_compaction_keeps_the_rows_and_wakes_nobody(project: Callable[[str], Path]) -> None:
    warehouse = opened(project)
    for number in range(4):
        arrive(warehouse, number)
    assert compact(warehouse.internals.lake, "orders", most_files=2) == 4
    assert len(table(warehouse, "orders").file_uris()) == 1
    assert sorted(table(warehouse, "orders").to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2, 3]
    assert warehouse.history("orders")[0].kind == "compaction"
    # The rows are the same: no refresh is due, and the table reads the next arrival exactly once.
    assert warehouse.plan() == []
    arrive(warehouse, 4)
    assert table(warehouse, "orders").to_pyarrow_table().num_rows == 5


def test_vacuum_keeps_what_a_pending_refresh_needs(project: Callable[[str], Path]) -> None:
    warehouse = opened(project)
    arrive(warehouse, 1)
    reflected = warehouse.internals.lake.log("orders").newest()
    assert reflected is not None
    # The view falls behind by one arrival and one compaction.
    (warehouse.project.folder / "data" / "0002.json").write_text('{"id": 2, "city": "Moss"}\n')
    perform(warehouse.internals.watch, warehouse.internals.watch.forced("orders", "test"))
    compact(warehouse.internals.lake, "orders", most_files=1)
    warehouse.vacuum("0 seconds", grace_seconds=-1)
    before = warehouse.internals.lake.open("orders", reflected.version)
    assert sorted(before.to_arrow()["id"].to_pylist()) == [1]
    assert warehouse.refresh().ok
    # Now every view is up to date, so only the newest version is needed.
    assert warehouse.vacuum("0 seconds", grace_seconds=-1)["orders"] == 2
    assert sorted(table(warehouse, "orders").to_pyarrow_table()["id"].to_pylist()) == [1, 2]
    arrive(warehouse, 3)
    counts = {r["city"]: r["orders"] for r in warehouse.query("SELECT * FROM by_city").collect()}
    assert counts == {"Oslo": 2, "Moss": 1}


def test_vacuum_leaves_alone_what_may_be_about_to_be_committed(
    project: Callable[[str], Path],
) -> None:
    warehouse = opened(project)
    arrive(warehouse, 1)
    fresh = Path(warehouse.internals.lake.place("orders").root) / "being-written.parquet"
    fresh.write_bytes(b"not yet")
    assert warehouse.vacuum("0 seconds") == {}
    assert fresh.exists()


def test_vacuum_keeps_what_another_tool_put_together(project: Callable[[str], Path]) -> None:
    warehouse = opened(project)
    for number in range(3):
        arrive(warehouse, number)
    # The view falls behind, so an older version is still needed; then another process optimizes.
    (warehouse.project.folder / "data" / "0009.json").write_text('{"id": 9, "city": "Moss"}\n')
    perform(warehouse.internals.watch, warehouse.internals.watch.forced("orders", "test"))
    table(warehouse, "orders").optimize.compact()
    warehouse.vacuum("0 seconds", grace_seconds=-1)
    assert sorted(table(warehouse, "orders").to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2, 9]
    assert warehouse.refresh().ok
