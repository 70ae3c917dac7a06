"""`verify` finds every difference from the logs, in every kind of file, and no false ones."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from springhouse.cli.app import app
from springhouse.warehouse import Warehouse

SQL = """
CREATE STREAMING TABLE orders (CONSTRAINT known EXPECT (city <> '') ON VIOLATION QUARANTINE) AS
  SELECT * FROM STREAM read_files('data', format => 'json',
    schema => 'id BIGINT, city STRING, price DOUBLE, at TIMESTAMP, day DATE, paid DECIMAL(9, 2)');
CREATE STREAMING TABLE newest;
CREATE FLOW newest_now AS AUTO CDC INTO newest FROM STREAM(orders)
  KEYS (city) SEQUENCE BY id STORED AS SCD TYPE 1;
CREATE MATERIALIZED VIEW by_city TBLPROPERTIES ('springhouse.refresh' = 'incremental')
  AS SELECT city, count(*) AS n, sum(price) AS price FROM orders GROUP BY city;
CREATE MATERIALIZED VIEW spread TBLPROPERTIES ('springhouse.refresh' = 'incremental')
  AS SELECT n, count(*) AS cities
  FROM (SELECT city, count(*) AS n FROM orders GROUP BY city) GROUP BY n;
CREATE MATERIALIZED VIEW dear (CONSTRAINT some EXPECT (price > 1) ON VIOLATION DROP ROW)
  AS SELECT id, price FROM orders;
"""


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse after three refreshes; each test damages a copy."""
    folder = tmp_path_factory.mktemp("made")
    for name in ("data", "transformations"):
        (folder / name).mkdir()
    (folder / "spark-pipeline.yml").write_text(
        "name: test\nstorage: storage\nlibraries:\n  - glob:\n      include: transformations/**\n"
    )
    (folder / "transformations" / "all.sql").write_text(SQL)
    warehouse = Warehouse(folder)
    for batch in range(3):
        lines = []
        for number in range(batch * 40, batch * 40 + 40):
            row = {
                "id": number,
                "city": ["Oslo", "Moss", "", "Bodø"][number % 4],
                "price": number / 7 if number % 5 else None,
                "at": f"2026-11-18T10:00:00.{number:06}Z",
                "day": "1969-12-30",
                "paid": -number / 4,
            }
            lines.append(json.dumps(row))
        (folder / "data" / f"{batch}.json").write_text("\n".join(lines))
        assert warehouse.refresh().failures == {}
    return folder


@pytest.fixture
def warehouse(made: Path, tmp_path: Path) -> Warehouse:
    return Warehouse(shutil.copytree(made, tmp_path / "project"))


def problems(warehouse: Warehouse, *, recompute: bool = False) -> dict[str, tuple[str, ...]]:
    found = Warehouse(warehouse.project.folder).verify(recompute=recompute)
    return {each.table: each.problems for each in found if each.problems}


def test_all_is_as_it_should_be(warehouse: Warehouse) -> None:
    found = warehouse.verify(recompute=True)
    assert {each.table for each in found} == {
        *("orders", "orders_quarantine", "newest", "by_city", "spread", "dear")
    }
    assert problems(warehouse, recompute=True) == {}
    assert all(each.files and each.rows and each.size and not each.untold for each in found)


def test_a_file_that_is_gone_cut_or_other(warehouse: Warehouse) -> None:
    place = Path(warehouse.internals.lake.place("orders").root)
    one, two, three = (place / file.path for file in warehouse.internals.lake.open("orders").files)
    one.unlink()
    two.write_bytes(two.read_bytes()[:-9])
    # A file of the same size and with fewer rows replaces the first one.
    rows = pq.read_table(three).slice(1)
    size = three.stat().st_size
    pq.write_table(rows, three)
    assert three.stat().st_size <= size
    found = problems(warehouse)["orders"]
    assert [
        f'"{path.name}"' in problem for path, problem in zip((one, two, three), found, strict=True)
    ]
    assert "is missing" in found[0]
    assert "instead of" in found[1]


def test_statistics_that_lie(warehouse: Warehouse) -> None:
    """Readers prune files by statistics, so wrong statistics make them skip rows."""
    log = Path(warehouse.internals.lake.place("orders").root) / "_delta_log"
    commit = next(f for f in sorted(log.glob("*.json")) if '"add"' in f.read_text())
    text = commit.read_text()
    assert '\\"maxValues\\":' in text
    lied = []
    for line in text.splitlines():
        value = json.loads(line)
        if "add" in value:
            told = json.loads(value["add"]["stats"])
            told["maxValues"]["id"] -= 1
            del told["minValues"]["id"]
            told["nullCount"]["price"] += 1
            value["add"]["stats"] = json.dumps(told)
        lied.append(json.dumps(value))
    commit.write_text("\n".join(lied))
    found = problems(warehouse)["orders"]
    assert any('values of "id" outside the bounds' in problem for problem in found)
    assert any('NULLs of "price"' in problem for problem in found)


@pytest.mark.parametrize("kind", ["_state", "_changes"])
def test_state_and_changes(warehouse: Warehouse, kind: str) -> None:
    harmed = {}
    for path in Path(warehouse.internals.lake.storage.root).glob(f"tables/*/{kind}/**/*.parquet"):
        rows = pq.read_table(path)
        if kind == "_changes":
            pq.write_table(rows.slice(1), path)
        else:
            path.unlink()
        harmed[
            path.relative_to(Path(warehouse.internals.lake.storage.root) / "tables").parts[0]
        ] = path
    assert harmed
    assert problems(warehouse).keys() <= harmed.keys()
    assert (
        "by_city" in problems(warehouse) if kind == "_changes" else "spread" in problems(warehouse)
    )


@pytest.mark.parametrize("how", ["gone", "rotten"])
def test_changes_that_nobody_reads_any_more_may_go_or_rot(warehouse: Warehouse, how: str) -> None:
    found = list(Path(warehouse.internals.lake.storage.root).glob("tables/*/_changes/*.parquet"))
    for path in found:
        if how == "gone":
            path.unlink()
        else:
            path.write_bytes(b"PAR1" + b"\xff" * (path.stat().st_size - 8) + b"PAR1")
    assert found
    assert problems(warehouse) == {}


def test_a_view_that_is_not_what_its_query_gives(warehouse: Warehouse) -> None:
    stored = warehouse.internals.lake.open("dear")
    (file,) = stored.files if len(stored.files) == 1 else stored.files[:1]
    path = Path(stored.storage.root) / file.path
    rows = pq.read_table(path)
    price = pa.array([None if v is None else 1.0 + v for v in rows["price"].to_pylist()])
    changed = rows.set_column(rows.schema.get_field_index("price"), "price", price)
    write_deltalake(stored.storage.root, changed.select(["id", "price"]), mode="overwrite")
    again = Warehouse(warehouse.project.folder)
    (found,) = again.verify("dear", recompute=True)
    assert "another writer" in found.untold
    # This commit claims to be one of ours, and is wrong.
    assert again.refresh().ok
    assert problems(again, recompute=True) == {}


def test_a_wrong_row_is_shown(warehouse: Warehouse) -> None:
    """Only the query finds a file with other values of the same size and bounds."""
    stored = warehouse.internals.lake.open("by_city")
    (file,) = stored.files
    path = Path(stored.storage.root) / file.path
    rows = pq.read_table(path)
    counts = rows["n"].to_pylist()
    swapped = pa.array([counts[0] - 1, counts[1] + 1, *counts[2:]], rows["n"].type)
    log = sorted((Path(stored.storage.root) / "_delta_log").glob("*.json"))
    pq.write_table(rows.set_column(rows.schema.get_field_index("n"), "n", swapped), path)
    for commit in log:
        text = commit.read_text().replace(f'"size":{file.size}', f'"size":{path.stat().st_size}')
        commit.write_text(text)
    (found,) = Warehouse(warehouse.project.folder).verify("by_city", recompute=True)
    told = " ".join(found.problems)
    assert "outside the bounds" in told or "it holds 2 rows that its query does not give" in told


def test_the_command(warehouse: Warehouse) -> None:
    folder = str(warehouse.project.folder)
    runner = CliRunner()
    well = runner.invoke(app, ["verify", "--project", folder])
    assert well.exit_code == 0, well.output
    assert "6 tables verified: all is as it should be" in well.output
    stored = warehouse.internals.lake.open("by_city")
    (Path(stored.storage.root) / stored.files[0].path).unlink()
    ill = runner.invoke(app, ["verify", "--project", folder])
    assert ill.exit_code == 1
    assert f'the file "{stored.files[0].path}" of the table "by_city" is missing' in ill.output
    assert "computes views with lost files anew: by_city" in ill.output
    one = runner.invoke(app, ["verify", "orders", "--json", "--project", folder])
    assert one.exit_code == 0
    assert json.loads(one.output)[0]["problems"] == []


def test_what_lies_beside_the_tables(warehouse: Warehouse) -> None:
    """The list of files, and the quarantine."""
    storage = warehouse.project.folder / "storage"
    (listed, *_) = sorted(storage.glob("files/*/*.parquet"))
    kept = listed.read_bytes()
    listed.unlink()
    assert [f"{listed.name}" in each for each in problems(warehouse)["orders"]] == [True]
    listed.write_bytes(kept)
    assert problems(warehouse) == {}
    shutil.rmtree(storage / "files")
    (problem,) = problems(warehouse)["orders"]
    assert 'has read from the folder "data" is gone' in problem
    assert not (storage / "files").exists()
    shutil.rmtree(storage / "tables" / "orders_quarantine")
    assert any("30 records were set aside" in each for each in problems(warehouse)["orders"])


def test_tables_that_are_not_those_that_were_read(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / "transformations").mkdir(parents=True)
    (folder / "spark-pipeline.yml").write_text(
        "name: test\nstorage: storage\nlibraries:\n  - glob:\n      include: transformations/**\n"
    )
    (folder / "transformations" / "all.sql").write_text(
        "CREATE STREAMING TABLE copied"
        " TBLPROPERTIES ('springhouse.sink.out' = 'positioned_file',"
        " 'springhouse.sink.out.path' = 'out.json') AS SELECT id FROM STREAM read_delta('rates');"
        "CREATE MATERIALIZED VIEW total AS SELECT sum(id) AS n FROM delta.`rates`;"
        "CREATE MATERIALIZED VIEW shown AS SELECT sum(id) AS n FROM copied;"
    )

    def append(place: Path, *ids: int) -> None:
        for each in ids:
            write_deltalake(place, pa.table({"id": [each]}), mode="append")

    append(folder / "rates", 1)
    shutil.copytree(folder / "rates", folder / "backup")
    append(folder / "rates", 2)
    warehouse = Warehouse(folder)
    assert warehouse.refresh().failures == {}
    assert problems(warehouse) == {}
    for was in ("nothing", "backup"):
        shutil.rmtree(folder / "rates")
        if was == "backup":
            shutil.copytree(folder / was, folder / "rates")
        append(folder / "rates", *([20] if was == "backup" else [10, 20]))
        found = problems(warehouse)
        expected = "older copy" if was == "backup" else '"rates" was deleted and created again'
        assert expected in found["copied"][0]
        assert "of another" in found["total"][0]
        assert list(found) == ["copied", "total"]
    # The table that a sink received.
    log = folder / "storage" / "tables" / "copied" / "_delta_log"
    (newest,) = sorted(log.glob("*.json"))[-1:]
    newest.write_text(newest.read_text() + "\n")
    found = problems(warehouse)
    assert any('the sink "out"' in each for each in found["copied"])
    assert any('another "copied"' in each for each in found["shown"])
    # In another folder, because a process checks an entry only once.
    other = shutil.copytree(folder, tmp_path / "other")
    (ledger,) = sorted(other.glob("storage/sinks/*/_delta_log/*.json"))[-1:]
    ledger.write_text("")
    assert any("the file is empty" in each for each in problems(Warehouse(other))["copied"])
