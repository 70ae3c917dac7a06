"""Tables over one source share one pass: each gets the rows of a pass of its own, exactly once."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patience import patience
from springhouse.lake.delta.requirements import CommitPermit
from springhouse.lake.sources.read_files import ReadFiles
from springhouse.planner import placement
from springhouse.warehouse import Event, Finished, Started, Warehouse
from springhouse.warehouse.node.permits import Permits
from springhouse.warehouse.running.execution import Permitted, perform, perform_together

FILES = (
    "STREAM read_files('data', format => 'json', schema => 'id BIGINT, amount INT, kind STRING')"
)
FIVE = f"""
CREATE TEMPORARY VIEW paid AS
  SELECT id, amount, kind, CAST(amount AS BIGINT) * 2 AS twice FROM {FILES} WHERE amount > 0;
CREATE STREAMING TABLE everything AS SELECT * FROM {FILES};
CREATE STREAMING TABLE large AS SELECT id, twice FROM STREAM(paid) AS p WHERE p.twice > 10;
CREATE STREAMING TABLE small
  (CONSTRAINT known EXPECT (kind IN ('a', 'b')) ON VIOLATION QUARANTINE,
   CONSTRAINT even EXPECT (amount % 2 = 0) ON VIOLATION DROP ROW)
  AS SELECT id, amount, kind FROM STREAM(paid) WHERE twice <= 10;
CREATE STREAMING TABLE numbers (id BIGINT, share DOUBLE, nothing STRING)
  AS SELECT id, 100 / amount AS share FROM {FILES} WHERE amount <> 0;
CREATE STREAMING TABLE dated TBLPROPERTIES ('springhouse.timestamp' = 'at')
  AS SELECT id, timestamp_seconds(id) AS at FROM {FILES} WHERE kind = 'a';
"""
TABLES = ("everything", "large", "small", "numbers", "dated")
COLUMNS = {"small_quarantine": "record, reason", **dict.fromkeys(TABLES, "*")}


def arrive(folder: Path, number: int, *records: Any) -> None:
    (folder / "data").mkdir(exist_ok=True)
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    (folder / "data" / f"{number}.json").write_text("\n".join(lines) + "\n")


def orders(*amounts: int) -> list[dict[str, Any]]:
    return [{"id": 10 * i + a, "amount": a, "kind": "abc"[i % 3]} for i, a in enumerate(amounts)]


def rows(warehouse: Warehouse, *tables: str) -> dict[str, list[tuple[Any, ...]]]:
    return {
        name: sorted(
            map(tuple, warehouse.query(f"SELECT {COLUMNS[name]} FROM {name}").collect()), key=str
        )
        for name in tables or COLUMNS
    }


def together(warehouse: Warehouse, table: str, commit: int = 0) -> list[str]:
    appended = [c for c in warehouse.history(table) if c.kind == "append"]
    return sorted(appended[commit].together_with)


def others(table: str) -> list[str]:
    return sorted(set(TABLES) - {table})


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The readers of the files: one entry per read."""
    found: list[str] = []
    glance = ReadFiles.glance

    def noted(self: ReadFiles, *given: Any) -> Any:
        found.append("read")
        return glance(self, *given)

    monkeypatch.setattr(ReadFiles, "glance", noted)
    return found


def _call_all_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "INPUT_BYTES", 0)


@pytest.fixture(params=["here", "in tasks"])
def anywhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass runs in this process or, as for large arrivals, inside Spark's tasks."""
    if request.param == "in tasks":
        _call_all_large(monkeypatch)


FIRST = [*orders(3, 4, 0, -2, 9, 30), {"id": 99, "amount": 2, "kind": "z"}, "{broken"]
SECOND = [*orders(8, 2, 0, 5), {"id": 77, "amount": 4, "kind": "y"}]


@pytest.mark.usefixtures("anywhere")
def test_five_tables_get_in_one_pass_what_each_gets_alone(
    project: Callable[..., Path], reads: list[str], tmp_path: Path
) -> None:
    folder = project(FIVE)
    warehouse = Warehouse(folder)
    for number, records in enumerate((FIRST, SECOND)):
        arrive(folder, number, *records)
        reads.clear()
        assert warehouse.refresh().ok
        assert len(reads) == 1
        assert {name: together(warehouse, name) for name in TABLES} == {
            name: others(name) for name in TABLES
        }
    assert rows(warehouse) == _alone(folder, tmp_path, FIVE)
    (newest,) = warehouse.history("small", limit=1)
    assert newest.violations == {"known": 1, "even": 1}
    activities = newest.activities
    assert activities["select"].rows_in >= activities["expectations"].rows_in
    explained = warehouse.explain("large")
    assert explained.kind == "table"
    assert sorted(explained.shared_pass.tables) == others("large")


def _alone(folder: Path, tmp_path: Path, sql: str) -> dict[str, list[tuple[Any, ...]]]:
    """The rows that the same files give if every table is refreshed alone."""
    other = tmp_path / "alone"
    (other / "transformations").mkdir(parents=True)
    (other / "data").symlink_to(folder / "data")
    (other / "transformations" / "all.sql").write_text(sql)
    (other / "spark-pipeline.yml").write_text((folder / "spark-pipeline.yml").read_text())
    warehouse = Warehouse(other)
    for name in TABLES:
        perform(warehouse.internals.watch, warehouse.internals.watch.forced(name, "test"))
        assert together(warehouse, name) == []
    return rows(warehouse)


def test_one_that_is_behind_is_caught_up_by_itself_and_then_shares(
    project: Callable[..., Path], reads: list[str]
) -> None:
    folder = project(FIVE)
    arrive(folder, 0, *FIRST)
    warehouse = Warehouse(folder)
    perform(warehouse.internals.watch, warehouse.internals.watch.forced("large", "test"))
    arrive(folder, 1, *SECOND)
    reads.clear()
    assert warehouse.refresh().ok
    # Four tables stand at the beginning. The table large does not: it reads the second file alone.
    assert len(reads) == 2
    assert together(warehouse, "large") == []
    assert together(warehouse, "small") == ["dated", "everything", "numbers"]
    arrive(folder, 2, *orders(6, 7))
    reads.clear()
    assert warehouse.refresh().ok
    assert len(reads) == 1
    assert together(warehouse, "large") == others("large")
    assert [row[0] for row in rows(warehouse, "everything")["everything"]].count(99) == 1


class Died(BaseException):
    """The process ends here."""


def dies(at: int) -> Callable[[], None]:
    """End the process before the commit of a table with this number."""
    asked = iter(range(1, 100))

    def prove() -> None:
        if next(asked) == at:
            raise Died

    return prove


@pytest.mark.parametrize(
    ("table", "commit", "large"),
    [
        # The first commit assigns offsets to the found files.
        ("large", 2, False),
        # The quarantine is committed last: the process dies between the two commits.
        ("small", 3, False),
        ("small", 3, True),
    ],
)
def test_a_process_that_dies_between_two_commits_leaves_each_table_exactly_once(
    project: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    table: str,
    commit: int,
    large: bool,
) -> None:
    if large:
        _call_all_large(monkeypatch)
    folder = project(FIVE)
    warehouse = Warehouse(folder)
    arrive(folder, 0, *FIRST)
    assert warehouse.refresh().ok
    arrive(folder, 1, *SECOND)
    warehouse.internals.watch.observing.poll(warehouse.internals.lake.now(), all_of_them=True)
    order = ("everything", "small", "large", "numbers", "dated")
    plans = [warehouse.internals.watch.forced(name, "test") for name in order]
    deadly = CommitPermit(dies(commit))
    wanted = [Permitted(p, deadly if p.table == table else CommitPermit()) for p in plans]
    done: list[str] = []
    with pytest.raises(Died):
        done += (
            name for name, _ in perform_together(warehouse.internals.watch, wanted[0], wanted[1:])
        )
    assert done == list(order[: order.index(table)])
    # A new process knows only the tables: some stand at the second file, some after it.
    again = Warehouse(folder)
    assert again.refresh().ok
    assert rows(again) == _alone(folder, tmp_path, FIVE)
    arrive(folder, 2, *orders(6, 7))
    assert again.refresh().ok
    assert together(again, table) == others(table)


def test_what_one_table_breaks_is_no_other_s_trouble(project: Callable[..., Path]) -> None:
    sql = f"""
CREATE STREAMING TABLE good AS SELECT id FROM {FILES};
CREATE STREAMING TABLE fair (CONSTRAINT never EXPECT (amount > 0) ON VIOLATION FAIL UPDATE)
  AS SELECT id, amount FROM {FILES};
CREATE STREAMING TABLE raising AS SELECT id, 1 / amount AS share FROM {FILES};
"""
    folder = project(sql)
    arrive(folder, 0, *orders(1, 0))
    warehouse = Warehouse(folder)
    refreshed = warehouse.refresh()
    assert sorted(refreshed.failures) == ["fair", "raising"]
    assert 'broke the expectation "never"' in refreshed.failures["fair"].problem
    assert "DIVIDE_BY_ZERO" in refreshed.failures["raising"].problem
    assert warehouse.query("SELECT count(*) FROM good").collect() == [(2,)]


def test_tables_over_a_table_and_over_events_share_too(project: Callable[..., Path]) -> None:
    sql = """
CREATE STREAMING TABLE ticks AS SELECT offset FROM
  STREAM sample(start => '2026-01-01', limit => '10');
CREATE STREAMING TABLE tocks AS SELECT offset AS n FROM
  STREAM sample(start => '2026-01-01', limit => '10') WHERE offset > 3;
CREATE STREAMING TABLE even AS SELECT offset FROM STREAM(ticks) WHERE offset % 2 = 0;
CREATE STREAMING TABLE odd AS SELECT offset FROM STREAM(ticks) WHERE offset % 2 = 1;
"""
    warehouse = Warehouse(project(sql))
    assert warehouse.refresh().ok
    assert together(warehouse, "ticks") == ["tocks"]
    assert together(warehouse, "odd") == ["even"]
    assert warehouse.query("SELECT count(*), sum(n) FROM tocks").collect() == [(6, 39)]
    assert warehouse.query("SELECT sum(offset) FROM odd").collect() == [(25,)]
    # A derived table reflects the same versions as after a refresh of its own.
    assert warehouse.history("odd")[0].reflects == warehouse.history("even")[0].reflects != {}


def test_a_running_warehouse_takes_along_what_it_owns(project: Callable[..., Path]) -> None:
    folder = project(FIVE)
    arrive(folder, 0, *FIRST)
    permits = Permits(everything=False)
    permits.take((("large", 0), ("small", 0)))
    heard: list[Event] = []
    done = threading.Event()

    def listen(event: Event) -> None:
        heard.append(event)
        if {"large", "small"} <= {e.table for e in heard if isinstance(e, Finished) and e.done}:
            done.set()

    warehouse = Warehouse(folder, permits=permits, listener=listen)
    runner = threading.Thread(target=warehouse.run)
    runner.start()
    try:
        assert done.wait(patience(90)), heard
    finally:
        warehouse.stop()
        runner.join(60)
    started = [(event.table, event.track) for event in heard if isinstance(event, Started)]
    assert sorted(started[:2]) == [("large", started[0][1]), ("small", started[0][1])]
    assert together(warehouse, "large", -1) == ["small"]
    assert warehouse.internals.lake.log("everything").newest() is None
