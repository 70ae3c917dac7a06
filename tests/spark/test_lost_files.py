"""Lost and damaged files: a view is rebuilt from its inputs, a base table names the file."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from springhouse.lake.delta.writing import write_with_spark
from springhouse.lake.storage.leases import Leases
from springhouse.lake.storage.presence import FileLost
from springhouse.lake.storage.storage import Storage
from springhouse.warehouse import Warehouse

SQL = """
CREATE STREAMING TABLE orders AS
  SELECT * FROM STREAM read_files('data', format => 'json', schema => 'id BIGINT, city STRING');
CREATE MATERIALIZED VIEW by_city TBLPROPERTIES ('springhouse.refresh' = 'incremental')
  AS SELECT city, count(*) AS n, count(DISTINCT id) AS ids FROM orders GROUP BY city;
CREATE MATERIALIZED VIEW spread TBLPROPERTIES ('springhouse.refresh' = 'incremental')
  AS SELECT n, count(*) AS cities
  FROM (SELECT city, count(*) AS n FROM orders GROUP BY city) GROUP BY n;
CREATE MATERIALIZED VIEW sizes AS SELECT n, count(*) AS cities FROM by_city GROUP BY n;
"""


PIPELINE = """name: test
storage: storage
libraries:
  - glob:
      include: transformations/**
"""


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse after two refreshes; each test damages a copy."""
    folder = tmp_path_factory.mktemp("made")
    for name in ("data", "transformations"):
        (folder / name).mkdir()
    (folder / "spark-pipeline.yml").write_text(PIPELINE)
    (folder / "transformations" / "all.sql").write_text(SQL)
    warehouse = Warehouse(folder)
    arrive(warehouse, 1, "Oslo")
    assert warehouse.refresh().ok
    arrive(warehouse, 2, "Moss")
    assert warehouse.refresh().ok
    return folder


@pytest.fixture
def warehouse(made: Path, tmp_path: Path) -> Warehouse:
    return Warehouse(shutil.copytree(made, tmp_path / "project"))


def arrive(warehouse: Warehouse, number: int, city: str) -> None:
    line = f'{{"id": {number}, "city": "{city}"}}\n'
    (warehouse.project.folder / "data" / f"{number:04}.json").write_text(line)


def rows(warehouse: Warehouse, name: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, warehouse.query(f"SELECT * FROM {name}").collect()), key=str)


def parts(warehouse: Warehouse, table: str, kind: str) -> list[Path]:
    """The files of a table that are in use: of its rows, its changes or its state."""
    log = warehouse.internals.lake.log(table)
    newest = log.newest()
    assert newest is not None
    assert newest.note is not None
    stored = warehouse.internals.lake.open(table)
    named = {
        "rows": [file.path for file in stored.files],
        "state": [path for paths in newest.note.state.values() for path in paths],
        "changes": [p for c in log.commits() if c.note for p in c.note.changes or ()],
    }[kind]
    return [Path(stored.storage.root) / path for path in named]


def lose(path: Path) -> None:
    path.unlink()


def rot(path: Path) -> None:
    """Overwrite the bytes of the file from the first page to the footer, and keep its size."""
    size = path.stat().st_size
    path.write_bytes(b"PAR1" + b"\xff" * (size - 8) + b"PAR1")


@pytest.mark.parametrize("harm", [lose, rot])
@pytest.mark.parametrize(("view", "kind"), [("by_city", "rows"), ("spread", "state")])
def test_a_view_heals(
    warehouse: Warehouse, view: str, kind: str, harm: Callable[[Path], None]
) -> None:
    files = parts(warehouse, view, kind)
    assert files
    for path in files:
        harm(path)
    arrive(warehouse, 3, "Moss")
    again = Warehouse(warehouse.project.folder)
    done = again.refresh()
    assert done.failures == {}
    assert rows(again, "by_city") == [("Moss", 2, 2), ("Oslo", 1, 1)]
    assert rows(again, "sizes") == rows(again, "spread") == [(1, 1), (2, 1)]
    assert "rebuilt" in again.history(view)[0].way_reason
    # The next refresh is incremental again.
    arrive(again, 4, "Bodø")
    assert again.refresh().ok
    assert rows(again, "sizes") == rows(again, "spread") == [(1, 2), (2, 1)]
    assert again.history(view)[0].kind == "merge"


def test_a_view_with_nothing_new_heals_too(warehouse: Warehouse) -> None:
    for path in parts(warehouse, "sizes", "rows"):
        path.unlink()
    with pytest.raises(FileLost, match='of the table "sizes" is missing'):
        rows(warehouse, "sizes")
    assert any(
        "is lost" in done.reason for done in Warehouse(warehouse.project.folder).refresh().done
    )
    assert rows(warehouse, "sizes") == [(1, 2)]


def test_a_running_warehouse_heals_the_view_that_another_one_reads(warehouse: Warehouse) -> None:
    for path in parts(warehouse, "by_city", "rows"):
        rot(path)
    (warehouse.project.folder / "transformations" / "more.sql").write_text(
        "CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS n FROM by_city;"
    )
    again = Warehouse(warehouse.project.folder)
    assert again.refresh().failures == {}
    assert rows(again, "total") == [(2,)]


@pytest.mark.parametrize("harm", [lose, rot])
def test_a_view_whose_inputs_changes_are_lost_is_computed_anew(
    warehouse: Warehouse, harm: Callable[[Path], None], project: Callable[..., Path]
) -> None:
    only = project(SQL.rpartition("CREATE")[0])
    first = Warehouse(only)
    arrive(first, 3, "Oslo")
    assert first.refresh().ok
    for path in parts(first, "by_city", "changes"):
        harm(path)
    again = Warehouse(project(SQL))
    assert again.refresh().failures == {}
    assert rows(again, "sizes") == [(1, 1), (2, 1)]


@pytest.mark.parametrize("harm", [lose, rot])
def test_a_base_table_says_which_file_is_lost(
    warehouse: Warehouse, harm: Callable[[Path], None]
) -> None:
    path = parts(warehouse, "orders", "rows")[0]
    harm(path)
    (warehouse.project.folder / "transformations" / "more.sql").write_text(
        "CREATE MATERIALIZED VIEW total AS SELECT sum(id) AS n FROM orders;"
    )
    again = Warehouse(warehouse.project.folder)
    failure = again.refresh().failures["total"]
    assert f'the file "{path.name}" of the table "orders" is' in failure.problem
    assert "Restore it from a backup" in failure.problem
    # A view that does not read the lost file is unchanged.
    assert rows(again, "sizes") == [(1, 2)]


@pytest.mark.parametrize("mode", ["incremental", "auto"])
def test_a_table_of_others_that_was_updated_and_vacuumed(
    project: Callable[..., Path], tmp_path: Path, mode: str
) -> None:
    rates = tmp_path / "rates"
    codes = [f"c{n}" for n in range(100)]
    write_deltalake(rates, pa.table({"code": codes, "rate": [1.0] * 100}))
    warehouse = Warehouse(
        project(
            f"CREATE MATERIALIZED VIEW total TBLPROPERTIES ('springhouse.refresh' = '{mode}') "
            f"AS SELECT rate, count(*) AS n FROM delta.`{rates}` GROUP BY rate;"
        )
    )
    assert warehouse.refresh().ok
    table = DeltaTable(rates)
    table.update(updates={"rate": "2.0"}, predicate="code = 'c1'")
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert warehouse.refresh().failures == {}
    assert rows(warehouse, "total") == [(1.0, 99), (2.0, 1)]
    table.update(updates={"rate": "2.0"}, predicate="code = 'c2'")
    assert warehouse.refresh().failures == {}
    assert rows(warehouse, "total") == [(1.0, 98), (2.0, 2)]


def test_vacuum_keeps_what_long_work_has_written(warehouse: Warehouse) -> None:
    place = warehouse.internals.lake.place("by_city")
    now = time.time()
    hours = 3600.0
    written = Path(place.root) / "of-work-under-way.parquet"
    rubbish = Path(place.root) / "of-nobody.parquet"
    for path, age in ((written, 2 * hours), (rubbish, 6 * hours)):
        path.write_bytes(b"x")
        os.utime(path, (now - age, now - age))
    other = Leases(warehouse.internals.lake.storage)
    with other.hold():
        # The other process began three hours ago, so younger files may be its own.
        (lease,) = (Path(warehouse.internals.lake.storage.root) / "leases").glob(f"*{other.name}")
        told = lease.read_text()
        lease.write_text(told.replace(told.partition('"start": ')[2], f"{now - 3 * hours}}}"))
        warehouse.vacuum()
        assert written.exists()
        assert not rubbish.exists()
    other.release()
    warehouse.vacuum()
    assert not written.exists()


def test_the_rows_that_tasks_wrote_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    """A foreign vacuum between the last task and the commit removes files; no footer shows it."""
    storage = Storage.at(str(tmp_path))
    frame = spark.range(0, 1000, 1, 4)
    assert len(write_with_spark(storage, frame)) == 4

    class Thief(Storage):
        def files(self, *, recursive: bool = False) -> list[Any]:
            return super().files(recursive=recursive)[:-1]

        def inside(self, *parts: str) -> "Storage":
            return Thief(super().inside(*parts).root)

    with pytest.raises(FileLost, match="has 750 rows, and 1000 were written"):
        write_with_spark(Thief(str(storage.root)), frame)


def test_no_rows_at_all_are_none(spark: SparkSession, tmp_path: Path) -> None:
    storage = Storage.at(str(tmp_path))
    assert write_with_spark(storage, spark.range(0)) == []
    assert write_with_spark(storage, spark.range(10).where("id < 0")) == []
    assert write_with_spark(storage, spark.sql("SELECT 1 AS a WHERE false")) == []


@pytest.mark.parametrize("entry", [0, -1])
@pytest.mark.parametrize("table", ["orders", "by_city", "sizes"])
def test_a_damaged_log_holds_up_only_what_reads_it(
    warehouse: Warehouse, table: str, entry: int
) -> None:
    reads = {"orders": ["by_city", "sizes", "spread"], "by_city": ["sizes"], "sizes": []}[table]
    log = Path(warehouse.internals.lake.place(table).root) / "_delta_log"
    sorted(log.glob("*.json"))[entry].write_text("")
    arrive(warehouse, 3, "Oslo")
    other = Warehouse(warehouse.project.folder)
    assert [each.name for each in other.status()] == ["orders", "by_city", "spread", "sizes"]
    other.plan()
    failures = other.refresh().failures
    assert "the file is empty" in failures[table].problem
    assert {*failures} <= {table, *reads}
    well = {"orders", "by_city", "spread", "sizes"} - {table, *reads}
    for each in well:
        newest = other.internals.lake.log(each).newest()
        assert newest is not None
        assert newest.version >= 2
    found = {each.table: each.problems for each in Warehouse(warehouse.project.folder).verify()}
    assert "the file is empty" in found[table][0]
    assert all(found[each] == () for each in well)
    other.plan()
