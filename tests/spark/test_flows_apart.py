"""Two flows into one table: one that fails neither stops nor delays the other."""

import json

import pytest

from springhouse import Warehouse
from springhouse.warehouse import Failed, Finished

FILES = "STREAM read_files('data/{0}', format => 'json', schema => 'id BIGINT')"
GOOD = f"SELECT id FROM {FILES.format('good')}"
# The flow fails as soon as it computes rows, so nobody can list its data beforehand.
FAILING = {
    "rows": f"SELECT CAST(raise_error('no such luck') AS BIGINT) AS id FROM {FILES.format('bad')}",
    "source": "SELECT id FROM STREAM read_delta('data/garbled')",
}


def declared(good, bad, first):
    flows = {
        "good": f"CREATE FLOW good AS INSERT INTO orders BY NAME {good};",
        "bad": f"CREATE FLOW bad AS INSERT INTO orders BY NAME {bad};",
    }
    order = [first, *(each for each in flows if each != first)]
    table = "CREATE STREAMING TABLE orders (id BIGINT);"
    return "\n".join([table, *(flows[each] for each in order)])


def drop(folder, source, name, *ids):
    place = folder / "data" / source
    place.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps({"id": each}) + "\n" for each in ids)
    (place / f"_{name}").write_text(lines)
    (place / f"_{name}").rename(place / name)


def ids(warehouse):
    found = warehouse.internals.lake.find("orders")
    return [] if found is None else sorted(found.to_arrow(["id"])["id"].to_pylist())


@pytest.mark.parametrize("first", ["good", "bad"])
@pytest.mark.parametrize("how", ["rows", "source"])
def test_one_fails_and_the_other_goes_on(project, how, first):
    folder = project(declared(GOOD, FAILING[how], first))
    drop(folder, "good", "1.json", 1, 2)
    drop(folder, "bad", "1.json", 7)
    drop(folder, "garbled/_delta_log", f"{0:020}.json")
    with Warehouse(folder) as warehouse:
        refreshed = warehouse.refresh()
        assert ids(warehouse) == [1, 2]
        assert list(refreshed.failures) == ["orders < bad"]
        (told,) = warehouse.status()
        assert told.state == "failing"
        drop(folder, "good", "2.json", 3)
        # Another refresh tries every flow again.
        again = warehouse.refresh()
        assert ids(warehouse) == [1, 2, 3]
        assert list(again.failures) == ["orders < bad"]


def test_a_flow_that_was_mended_takes_in_what_waited(project):
    folder = project(declared(GOOD, FAILING["rows"], "bad"))
    drop(folder, "good", "1.json", 1)
    drop(folder, "bad", "1.json", 7)
    with Warehouse(folder) as warehouse:
        assert not warehouse.refresh().ok
    project(declared(GOOD, f"SELECT id FROM {FILES.format('bad')}", "bad"))
    with Warehouse(folder) as warehouse:
        assert warehouse.refresh().ok
        assert ids(warehouse) == [1, 7]


def test_a_flow_that_waits_for_its_next_try_holds_nobody_up(project):
    folder = project(
        declared(GOOD, FAILING["rows"], "bad"), **{"springhouse.retry.seconds": "100000"}
    )
    drop(folder, "good", "1.json", 1)
    drop(folder, "bad", "1.json", 7)
    failures, commits = [], []

    def hear(event):
        if isinstance(event, Failed):
            failures.append(event.table)
            drop(folder, "good", "2.json", 2)
        if isinstance(event, Finished) and event.done is not None and event.done.committed:
            commits.append(event.done.rows_added)
            if sum(commits) == 2:
                warehouse.stop()

    with Warehouse(folder, listener=hear) as warehouse:
        warehouse.run(seconds=600)
        assert ids(warehouse) == [1, 2]
        assert failures == ["orders < bad"]
        assert list(warehouse.failures) == ["orders < bad"]
