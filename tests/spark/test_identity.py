"""A replaced input is a different input: nothing is skipped or doubled, and no traceback shows."""

import hashlib
import json
import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner

from springhouse.cli.app import app
from springhouse.errors import SpringhouseError
from springhouse.lake.storage.clock import steady_clock
from springhouse.units import Instant
from springhouse.warehouse import Warehouse
from springhouse.warehouse.running.execution import perform

FILES = """
CREATE STREAMING TABLE orders AS SELECT id FROM
  STREAM read_files('data', format => 'json', schema => 'id BIGINT');
"""


def put(folder: Path, name: str, *ids: int) -> None:
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / name).write_text("".join(f'{{"id": {each}}}\n' for each in ids))


def make(place: Path, *commits: list[int]) -> None:
    """A foreign Delta table with one commit per list; it replaces any table in that place."""
    shutil.rmtree(place, ignore_errors=True)
    for ids in commits:
        write_deltalake(place, pa.table({"id": pa.array(ids, pa.int64())}), mode="append")


def rows(folder: Path, table: str) -> list[int]:
    found = DeltaTable(folder / "storage" / "tables" / table).to_pyarrow_table()
    return sorted(next(iter(row.values())) for row in found.to_pylist())


def refreshed(folder: Path, **settings: str) -> dict[str, str]:
    """Refresh everything as a separate process would; return the failures and their problems."""
    warehouse = Warehouse(folder, configuration=settings)
    return {name: failure.problem for name, failure in warehouse.refresh().failures.items()}


def test_a_view_over_a_table_that_was_made_anew_with_as_many_versions(project: Any) -> None:
    folder = project(
        "CREATE MATERIALIZED VIEW total AS SELECT sum(id) AS n FROM delta.`rates`;"
        "CREATE MATERIALIZED VIEW shown AS SELECT n + 0 AS n FROM total;"
        "CREATE MATERIALIZED VIEW both AS "
        "  SELECT t.n + r.id AS n FROM total t CROSS JOIN delta.`rates` r;"
    )
    make(folder / "rates", [1], [2])
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    assert (rows(folder, "total"), rows(folder, "shown")) == ([3], [3])

    make(folder / "rates", [10], [20])
    assert warehouse.refresh().ok
    assert (rows(folder, "total"), rows(folder, "shown")) == ([30], [30])
    assert rows(folder, "both") == [40, 50]

    make(folder / "rates", [100], [200])
    assert refreshed(folder) == {}
    assert (rows(folder, "total"), rows(folder, "shown")) == ([300], [300])
    assert rows(folder, "both") == [400, 500]
    # The definition has not changed, so nothing is computed again.
    assert [done.committed for done in Warehouse(folder).refresh().done] == []


@pytest.mark.parametrize("call", range(8, 36, 3))
def test_a_table_that_is_made_anew_while_a_view_reads_it(project: Any, call: int) -> None:
    """The replacement happens at a reading of the clock: before, amid or after the reads."""
    folder = project(
        "CREATE STREAMING TABLE orders AS SELECT * FROM "
        "STREAM read_files('orders', format => 'json', schema => 'rate BIGINT');"
        "CREATE MATERIALIZED VIEW joined TBLPROPERTIES ('springhouse.refresh' = 'incremental') AS "
        "SELECT count(*) AS n FROM orders o JOIN delta.`rates` r ON o.rate = r.id;"
    )
    (folder / "orders").mkdir()
    (folder / "orders" / "1.json").write_text('{"rate": 1}\n{"rate": 2}\n')
    make(folder / "rates", [1], [7])
    left = [0]

    def clock() -> Instant:
        left[0] -= 1
        if left[0] == 0:
            make(folder / "rates", [2], [1])
        return steady_clock()

    warehouse = Warehouse(folder, clock=clock)
    assert warehouse.refresh().ok
    assert rows(folder, "joined") == [1]
    (folder / "orders" / "2.json").write_text('{"rate": 1}\n')
    perform(warehouse.internals.watch, warehouse.internals.watch.forced("orders", "test"))
    plan = warehouse.internals.watch.forced("joined", "test")
    left[0] = call
    with suppress(SpringhouseError):
        perform(warehouse.internals.watch, plan)
    if left[0] > 0:
        make(folder / "rates", [2], [1])
    assert refreshed(folder) == {}
    assert rows(folder, "joined") == [3]


READ_DELTA = """
CREATE STREAMING TABLE copied{properties} AS SELECT id FROM STREAM read_delta('{path}');
"""
READ = " TBLPROPERTIES ('springhouse.recreated' = 'read')"


def test_a_delta_table_that_was_made_anew_is_refused_with_the_choices(project: Any) -> None:
    folder = project(READ_DELTA.format(path="rates", properties=""))
    make(folder / "rates", [1], [2], [3])
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    # The new table has as many versions, then more, then fewer. It is neither read nor skipped.
    for commits in ([[10], [20], [30]], [[10], [20], [30], [40]], [[10]]):
        make(folder / "rates", *commits)
        for problem in (
            warehouse.refresh().failures["copied"].problem,
            refreshed(folder)["copied"],
        ):
            assert 'the Delta table "rates" was deleted and created again' in problem
            assert "'springhouse.recreated' = 'read'" in problem
        assert rows(folder, "copied") == [1, 2, 3]

    # To keep only the current rows, the user deletes the table, and a refresh creates it again.
    shutil.rmtree(folder / "storage" / "tables" / "copied")
    assert refreshed(folder) == {}
    assert rows(folder, "copied") == [10]


def test_a_delta_table_that_was_made_anew_is_read_if_that_is_wanted(project: Any) -> None:
    folder = project(READ_DELTA.format(path="rates", properties=READ))
    make(folder / "rates", [1], [2])
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    make(folder / "rates", [10], [20])
    assert warehouse.refresh().ok
    assert rows(folder, "copied") == [1, 2, 10, 20]
    write_deltalake(folder / "rates", pa.table({"id": [30]}), mode="append")
    assert refreshed(folder) == {}
    make(folder / "rates", [100])
    assert warehouse.refresh().ok
    assert rows(folder, "copied") == [1, 2, 10, 20, 30, 100]
    assert Warehouse(folder).refresh().done == ()


def test_an_older_copy_of_a_delta_table_is_refused(project: Any) -> None:
    folder = project(READ_DELTA.format(path="rates", properties=""))
    make(folder / "rates", [1])
    shutil.copytree(folder / "rates", folder / "backup")
    write_deltalake(folder / "rates", pa.table({"id": [2]}), mode="append")
    assert refreshed(folder) == {}
    shutil.rmtree(folder / "rates")
    shutil.move(folder / "backup", folder / "rates")
    assert "an older copy of it was put in its place" in refreshed(folder)["copied"]


def test_one_folder_is_one_source_however_it_is_spelled(project: Any) -> None:
    folder = project(FILES)
    put(folder, "1.json", 1)
    assert refreshed(folder) == {}
    for number, path in enumerate(
        ("./data", "data/", str(folder / "data"), f"file://{folder}/data/", "x/../data"), 2
    ):
        project(FILES.replace("'data'", f"'{path}'"))
        put(folder, f"{number}.json", number)
        assert refreshed(folder) == {}
        assert rows(folder, "orders") == list(range(1, number + 1))


FLOW = """
CREATE STREAMING TABLE orders;
CREATE FLOW {flow} AS INSERT INTO orders BY NAME SELECT id FROM
  STREAM read_files('{path}', format => 'json', schema => 'id BIGINT');
"""


def test_a_flow_with_another_name_goes_on_where_it_stood(project: Any) -> None:
    folder = project(FLOW.format(flow="first", path="data"))
    put(folder, "1.json", 1)
    assert refreshed(folder) == {}
    for number, flow in enumerate(("second", "third"), 2):
        project(FLOW.format(flow=flow, path="./data"))
        put(folder, f"{number}.json", number)
        assert refreshed(folder) == {}
    assert rows(folder, "orders") == [1, 2, 3]
    # A new flow with the old name starts with its own offsets.
    first = FLOW.format(flow="first", path="data").replace("CREATE STREAMING TABLE orders;", "")
    project(FLOW.format(flow="third", path="data") + first)
    assert refreshed(folder) == {}
    assert rows(folder, "orders") == [1, 1, 2, 2, 3, 3]
    assert Warehouse(folder).refresh().done == ()


ARM = "SELECT id FROM STREAM read_files('data', format => 'json', {more}pattern => '{pattern}')"
MORE = "schema => 'id BIGINT', "


def arms(*patterns: str, more: str = MORE) -> str:
    queries = [ARM.format(pattern=each, more=more) for each in patterns]
    return f"CREATE STREAMING TABLE orders AS {' UNION ALL '.join(queries)};"


def test_arms_of_a_union_that_read_one_folder_keep_their_offsets(project: Any) -> None:
    folder = project(arms("a*", "b*"))
    put(folder, "a1.json", 1)
    put(folder, "b1.json", 2)
    assert refreshed(folder) == {}
    other = "max_files => '9', "
    for number, sql in enumerate(
        (
            arms("b*", "a*"),
            arms("a*", "b*", more=MORE + other),
            arms("b*", "a*", more=MORE),
            arms("c*", "b*", "a*"),
            arms("b*"),
            arms("a*", "c*", "b*"),
        ),
        3,
    ):
        project(sql)
        put(folder, f"b{number}.json", number)
        assert refreshed(folder) == {}
        assert rows(folder, "orders") == list(range(1, number + 1))


def named(flows: dict[str, str]) -> str:
    """Flows by name into one table, each with its condition (or pattern, if it has a star)."""
    text = "CREATE STREAMING TABLE orders;"
    for flow, what in flows.items():
        arm = ARM.format(pattern=what if "*" in what else "*", more=MORE)
        condition = "" if "*" in what else f" WHERE {what}"
        text += f"CREATE FLOW {flow} AS INSERT INTO orders BY NAME {arm}{condition};"
    return text


@pytest.mark.parametrize("whats", [("a*", "b*"), ("id % 2 = 1", "id % 2 = 0")])
@pytest.mark.parametrize("names", ["yz", "zy", "ba", "bz", "za", "az"])
def test_flows_that_change_their_names_at_once_go_on_where_each_stood(
    project: Any, whats: tuple[str, str], names: str
) -> None:
    folder = project(named(dict(zip("ab", whats, strict=True))))
    put(folder, "a1.json", 1)
    put(folder, "b1.json", 2)
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    project(named(dict(zip(names, whats, strict=True))))
    for number in (3, 5):
        put(folder, f"a{number}.json", number)
        put(folder, f"b{number}.json", number + 1)
        assert refreshed(folder) == {}
        assert rows(folder, "orders") == list(range(1, number + 2))


def test_a_flow_that_may_go_on_for_several_asks_first(project: Any) -> None:
    folder = project(named({"a": "id % 2 = 1", "b": "id % 2 = 0"}))
    put(folder, "1.json", 1, 2)
    assert refreshed(folder) == {}
    project(named({"y": "id % 2 = 1 AND id > 0", "z": "id % 2 = 0 AND id > 0"}))
    (planned,) = Warehouse(folder).plan()
    assert planned.reason == 'reads the folder "data" from the start'
    failures = refreshed(folder)
    assert len(failures) == 2
    for problem in failures.values():
        assert 'as the flow "a" or "b" did' in problem
        assert "--yes" in problem
    assert rows(folder, "orders") == [1, 2]
    assert refreshed(folder, **{"springhouse.reread": "allow"}) == {}
    assert rows(folder, "orders") == [1, 1, 2, 2]
    assert refreshed(folder) == {}


NUMBERS = """
import springhouse

@springhouse.source("numbers")
class Numbers:
    {identified}
    def __init__(self, first, password="", end="2"):
        self.first, self.end = int(first), int(end)
    def latest(self):
        return {{"0": self.end}}
    def read(self, spark, ranges):
        found = [self.first + n for given in ranges.values() for n in range(*given)]
        return spark.createDataFrame([(n,) for n in found], "id BIGINT")
"""


def test_another_source_of_ones_own_is_told_by_its_arguments(project: Any) -> None:
    sql = "CREATE STREAMING TABLE orders AS SELECT id FROM STREAM numbers({});"
    folder = project(sql.format("first => '10'"), NUMBERS.format(identified=""))
    assert refreshed(folder) == {}
    project(sql.format("first => '20'"))
    assert (
        "reads numbers now, and has read numbers with other arguments"
        in (refreshed(folder)["orders"])
    )
    assert rows(folder, "orders") == [10, 11]
    # The source itself may name the arguments that identify its data.
    identified = 'identified_by = ("first",)'
    project(
        sql.format("FIRST => '10', end => '3', password => 'x'"),
        NUMBERS.format(identified=identified),
    )
    assert refreshed(folder) == {}
    assert rows(folder, "orders") == [10, 11, 12]
    project(sql.format("first => '20'"), NUMBERS.format(identified=identified))
    assert "with other arguments" in refreshed(folder)["orders"]
    # The log holds the arguments only as a hash, because one may be a password.
    log = folder / "storage" / "tables" / "orders" / "_delta_log"
    assert "'x'" not in "".join(each.read_text() for each in log.glob("*.json"))


def test_a_flow_that_reads_something_else_asks_first(project: Any) -> None:
    folder = project(FLOW.format(flow="taken", path="data"))
    put(folder, "1.json", 1)
    assert refreshed(folder) == {}
    shutil.copytree(folder / "data", folder / "other")
    project(FLOW.format(flow="taken", path="other"))
    (planned,) = Warehouse(folder).plan()
    assert planned.reason == 'reads the folder "other" from the start'
    problem = refreshed(folder)["orders"]
    assert 'reads the folder "other" now, and has read the folder "data" until now' in problem
    assert "--yes" in problem
    assert rows(folder, "orders") == [1]
    assert refreshed(folder, **{"springhouse.reread": "allow"}) == {}
    assert rows(folder, "orders") == [1, 1]
    # One confirmation is enough: from now on the flow reads this folder.
    assert refreshed(folder) == {}
    # Back to the first folder: the flow still knows its position there.
    project(FLOW.format(flow="taken", path="data"))
    put(folder, "2.json", 2)
    assert refreshed(folder) == {}
    assert rows(folder, "orders") == [1, 1, 2]


def test_without_the_list_of_files_nothing_is_read_twice_or_skipped(project: Any) -> None:
    folder = project(FILES)
    put(folder, "1.json", 1)
    put(folder, "2.json", 2)
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    shutil.rmtree(folder / "storage" / "files")
    put(folder, "0.json", 3)
    put(folder, "3.json", 4)
    for problem in (warehouse.refresh().failures["orders"].problem, refreshed(folder)["orders"]):
        assert 'has read from the folder "data" is gone' in problem
    assert not (folder / "storage" / "files").exists()
    assert rows(folder, "orders") == [1, 2]
    project(FILES.replace("orders AS", f"orders {READ} AS"))
    assert refreshed(folder) == {}
    assert rows(folder, "orders") == [1, 1, 2, 2, 3, 4]
    shutil.rmtree(folder / "storage" / "files")
    project(FILES)
    shutil.rmtree(folder / "storage" / "tables" / "orders")
    assert refreshed(folder) == {}
    assert rows(folder, "orders") == [1, 2, 3, 4]


def test_a_base_tables_folder_that_was_deleted(project: Any) -> None:
    folder = project(
        FILES + "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM orders;"
        "CREATE STREAMING TABLE copied AS SELECT * FROM STREAM(orders);"
    )
    put(folder, "1.json", 1, 2)
    put(folder, "2.json", 3)
    assert refreshed(folder) == {}
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    shutil.rmtree(folder / "storage" / "tables" / "orders")
    for each in (warehouse, Warehouse(folder)):
        assert [status.name for status in each.status()] == ["orders", "copied", "n"]
        assert "orders" in [planned.table for planned in each.plan()]
        each.explain("n")
        each.history("orders")
    put(folder, "3.json", 4)
    failures = warehouse.refresh().failures
    assert rows(folder, "orders") == [1, 2, 3, 4]
    assert rows(folder, "n") == [4]
    # The stream of the old table and the stream of the new table are different.
    assert list(failures) == ["copied"]
    assert rows(folder, "copied") == [1, 2, 3]
    assert 'the table "orders" was deleted and created again' in failures["copied"].problem


FUNCTION = """
from pyspark import pipelines as dp

dp.create_streaming_table("events", table_properties={properties})

@dp.append_flow(target="events")
def {name}():
    return spark.readStream.format("json").schema("id BIGINT").load("{data}")
"""


def test_without_a_checkpoint_nothing_is_read_twice_or_skipped(project: Any) -> None:
    def written(name: str = "taken", properties: str = "{}") -> Path:
        folder: Path = project()
        text = FUNCTION.format(name=name, data=folder / "data", properties=properties)
        return project("", text)  # type: ignore[no-any-return]

    folder = written()
    put(folder, "1.json", 1)
    assert refreshed(folder) == {}
    put(folder, "2.json", 2)
    assert refreshed(folder) == {}
    # The user deletes the table, so a refresh reads everything again into a new one.
    shutil.rmtree(folder / "storage" / "tables" / "events")
    assert refreshed(folder) == {}
    assert rows(folder, "events") == [1, 2]

    shutil.rmtree(folder / "storage" / "streams")
    put(folder, "3.json", 3)
    assert 'the checkpoint of the flow "taken" is gone' in refreshed(folder)["events"]
    assert rows(folder, "events") == [1, 2]
    written(properties="{'springhouse.recreated': 'read'}")
    assert refreshed(folder) == {}
    assert rows(folder, "events") == [1, 1, 2, 2, 3]
    written()
    put(folder, "4.json", 4)
    assert refreshed(folder) == {}
    assert rows(folder, "events") == [1, 1, 2, 2, 3, 4]

    # After a function is renamed, nobody can tell which data it reads.
    written("renamed")
    assert 'the function "taken" until now' in refreshed(folder)["events"]
    assert rows(folder, "events") == [1, 1, 2, 2, 3, 4]


def test_a_function_that_streams_a_table_that_was_made_anew(project: Any) -> None:
    python = """
from pyspark import pipelines as dp

@dp.table{properties}
def copied():
    return spark.readStream.table("orders")
"""
    folder = project(FILES, python.format(properties=""))
    put(folder, "1.json", 1)
    put(folder, "2.json", 2)
    assert refreshed(folder) == {}
    assert rows(folder, "copied") == [1, 2]
    shutil.rmtree(folder / "storage" / "tables" / "orders")
    put(folder, "3.json", 3)
    assert 'the table "orders" was deleted and created again' in refreshed(folder)["copied"]
    assert rows(folder, "copied") == [1, 2]
    read = "(table_properties={'springhouse.recreated': 'read'})"
    project(FILES, python.format(properties=read))
    for ids in ([1, 1, 2, 2, 3], [1, 1, 2, 2, 3, 4]):
        assert refreshed(folder) == {}
        assert rows(folder, "copied") == ids
        put(folder, "4.json", 4)


def test_a_flow_that_runs_once_does_not_run_again_under_another_name(project: Any) -> None:
    once = """
CREATE STREAMING TABLE orders;
CREATE FLOW {name} AS INSERT INTO ONCE orders BY NAME SELECT id FROM delta.`rates`;
"""
    folder = project(once.format(name="first"))
    make(folder / "rates", [1])
    assert refreshed(folder) == {}
    project(once.format(name="second"))
    assert refreshed(folder) == {}
    assert rows(folder, "orders") == [1]


def test_yes_lets_a_flow_read_from_the_start(project: Any, spark: Any) -> None:
    folder = project(FLOW.format(flow="taken", path="data"))
    put(folder, "1.json", 1)
    assert refreshed(folder) == {}
    shutil.copytree(folder / "data", folder / "other")
    project(FLOW.format(flow="taken", path="other"))
    runner = CliRunner()
    asked = runner.invoke(app, ["run", "--once", "-p", str(folder)])
    assert asked.exit_code == 1
    assert rows(folder, "orders") == [1]
    assert runner.invoke(app, ["run", "--once", "--yes", "-p", str(folder)]).exit_code == 0
    assert rows(folder, "orders") == [1, 1]


def test_a_topic_that_was_made_anew(project: Any, kafka: Any) -> None:
    sql = f"""
CREATE STREAMING TABLE events{{properties}} AS SELECT CAST(CAST(value AS STRING) AS BIGINT) AS id
  FROM STREAM read_kafka('{{topic}}', bootstrapServers => '{kafka.address}'{{options}});
"""
    for options, properties in (("", READ), (", failOnDataLoss => 'false'", "")):
        topic = f"anew-{uuid.uuid4().hex[:8]}"
        folder = project(sql.format(topic=topic, options="", properties=""))
        shutil.rmtree(folder / "storage", ignore_errors=True)
        kafka.make(topic, partitions=1)
        kafka.send(topic, "1", "2")
        assert refreshed(folder) == {}
        kafka.remove(topic)
        kafka.make(topic, partitions=1)
        kafka.send(topic, "10", "20", "30")
        assert "was deleted and created again" in refreshed(folder)["events"]
        assert rows(folder, "events") == [1, 2]
        project(sql.format(topic=topic, options=options, properties=properties))
        assert refreshed(folder) == {}
        assert rows(folder, "events") == [1, 2, 10, 20, 30]
        assert Warehouse(folder).refresh().done == ()


@pytest.mark.parametrize("spelled", ["data", "./data", "data/"])
def test_a_warehouse_of_an_older_release_keeps_its_offsets(project: Any, spelled: str) -> None:
    folder = project(FILES.replace("'data'", f"'{spelled}'"))
    put(folder, "1.json", 1)
    assert refreshed(folder) == {}
    # An older release named this entry after the path as written, and stored nothing beside it.
    (files,) = (folder / "storage" / "files").iterdir()
    name = files.name.removeprefix("orders.")
    mark = hashlib.sha256(f"read_files.{spelled}".encode()).hexdigest()[:4]
    older = f"{name.rpartition('-')[0]}-{mark}"
    files.rename(files.with_name(f"orders.{older}"))
    for entry in (folder / "storage" / "tables" / "orders" / "_delta_log").glob("*.json"):
        actions = [json.loads(line.replace(name, older)) for line in entry.read_text().splitlines()]
        for action in actions:
            note = action.get("commitInfo", {}).get("springhouse", {})
            for flow in note.get("flows", {}).values():
                assert flow.pop("streams")
        entry.write_text("".join(json.dumps(action) + "\n" for action in actions))
    project(FILES)
    put(folder, "2.json", 2)
    assert refreshed(folder) == {}
    assert rows(folder, "orders") == [1, 2]
    assert Warehouse(folder).refresh().done == ()


def restore(folder: Path, what: str) -> None:
    """Replace a part of the storage with its backup."""
    shutil.rmtree(folder / "storage" / what)
    shutil.copytree(folder / "backup" / what, folder / "storage" / what)


def test_a_table_that_was_restored_has_other_versions_under_the_old_numbers(project: Any) -> None:
    folder = project(
        FILES + "CREATE MATERIALIZED VIEW total AS SELECT sum(id) AS n FROM orders;"
        "CREATE MATERIALIZED VIEW shown AS SELECT n + 0 AS n FROM total;"
        "CREATE STREAMING TABLE copied AS SELECT * FROM STREAM(orders);"
    )
    put(folder, "1.json", 1)
    assert refreshed(folder) == {}
    shutil.copytree(folder / "storage", folder / "backup")
    put(folder, "2.json", 10)
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    for number, each in enumerate((warehouse, Warehouse(folder)), 3):
        # The table reads 2.json again, and another file too. Its version numbers stay the same.
        restore(folder, "tables/orders")
        put(folder, f"{number}.json", 10**number)
        assert "older copy" in each.refresh().failures["copied"].problem
        assert rows(folder, "copied") == [1, 10]
        assert rows(folder, "total") == rows(folder, "shown") == [sum(rows(folder, "orders"))]
    assert rows(folder, "orders") == [1, 10, 1000, 10_000]
    assert Warehouse(folder).refresh().done == ()


def test_a_list_of_files_that_was_restored_is_refused(project: Any) -> None:
    folder = project(FILES)
    put(folder, "1.json", 1)
    assert refreshed(folder) == {}
    shutil.copytree(folder / "storage", folder / "backup")
    put(folder, "2.json", 2)
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    # If a file that was read is gone from the folder, the next file gets its offset.
    (folder / "data" / "2.json").unlink()
    restore(folder, "files")
    put(folder, "3.json", 3)
    for problem in (warehouse.refresh().failures["orders"].problem, refreshed(folder)["orders"]):
        assert 'the list of the files that were read from the folder "data"' in problem
        assert "older copy" in problem
    assert rows(folder, "orders") == [1, 2]
    # The hint of the error suggests this.
    shutil.rmtree(folder / "storage" / "tables" / "orders")
    put(folder, "2.json", 2)
    assert refreshed(folder) == {}
    assert rows(folder, "orders") == [1, 2, 3]
