"""A running warehouse: views stay fresh, one failure blocks no other view, and it stops cleanly."""

import logging
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patience import patience
from springhouse.errors import SpringhouseError
from springhouse.units import Seconds
from springhouse.warehouse import Event, Failed, Finished, Refreshed, Started, Warehouse

SQL = """
CREATE STREAMING TABLE ticks AS SELECT offset FROM
  STREAM read_files('data', format => 'json', schema => 'offset BIGINT');
CREATE MATERIALIZED VIEW total TBLPROPERTIES ('springhouse.staleness' = '2 seconds')
  AS SELECT count(*) AS n FROM ticks;
"""
IMPATIENT = """
CREATE MATERIALIZED VIEW impatient AS
  SELECT CASE WHEN n < 2 THEN raise_error('too few') ELSE n END AS n FROM total;
"""


class Follower:
    """Listens to a warehouse and waits for events; a test may answer an event with new data."""

    def __init__(self) -> None:
        self.heard: list[Event] = []
        self._news = threading.Condition()

    def __call__(self, event: Event) -> None:
        with self._news:
            self.heard.append(event)
            self._news.notify_all()

    def until(self, wanted: Callable[[list[Event]], bool]) -> None:
        with self._news:
            assert self._news.wait_for(lambda: wanted(self.heard), patience(90)), self.heard


def arrive(folder: Path, number: int) -> None:
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / f"{number}.json").write_text(f'{{"offset": {number}}}\n')


def finished(table: str) -> Callable[[list[Event]], bool]:
    return lambda heard: any(isinstance(e, Finished) and e.table == table for e in heard)


def failures(table: str, times: int) -> Callable[[list[Event]], bool]:
    return lambda heard: sum(isinstance(e, Failed) and e.table == table for e in heard) >= times


def test_a_warehouse_keeps_views_fresh_retries_and_stops(project: Any) -> None:
    folder = project(SQL + IMPATIENT, **{"springhouse.retry.seconds": "0.1"})
    arrive(folder, 1)
    follower = Follower()
    warehouse = Warehouse(folder, listener=follower)
    runs: list[Refreshed] = []
    runner = threading.Thread(target=lambda: runs.append(warehouse.run()))
    runner.start()
    try:
        # The warehouse retries the failing view again and again, and keeps the others fresh.
        follower.until(failures("impatient", 2))
        follower.until(finished("total"))
        problem = warehouse.failures["impatient"]
        assert "too few" in problem.problem
        assert problem.times >= 2
        # The missing data arrives, and the view recovers without help.
        arrive(folder, 2)
        follower.until(finished("impatient"))
        assert "impatient" not in warehouse.failures
    finally:
        warehouse.stop()
        runner.join(60)
    assert not runner.is_alive()
    assert warehouse.query("SELECT n FROM impatient").collect() == [(2,)]
    assert runs[0].freshness["total"].share(Seconds(3600.0)) == 1.0


def test_run_for_some_seconds_ends_by_itself(project: Any) -> None:
    folder = project(SQL)
    arrive(folder, 1)
    arrive(folder, 2)
    warehouse = Warehouse(folder)
    refreshed = warehouse.run(seconds=0.5)
    assert refreshed.ok


def test_at_most_one_refresh_per_table_at_a_time(project: Any) -> None:
    folder = project(SQL)
    follower = Follower()
    warehouse = Warehouse(folder, listener=follower)
    for number in range(6):
        arrive(folder, number)
    warehouse.refresh()
    running: set[str] = set()
    for event in follower.heard:
        if isinstance(event, Started):
            assert event.table not in running
            running.add(event.table)
        elif isinstance(event, Finished | Failed):
            running.discard(event.table)


def test_everything_but_rows_is_answered_without_spark(project: Any) -> None:
    folder = project(SQL + IMPATIENT)
    arrive(folder, 1)
    arrive(folder, 2)
    assert Warehouse(folder).refresh().ok
    arrive(folder, 3)
    warehouse = Warehouse(folder)
    states = {s.name: s.state for s in warehouse.status()}
    assert states == {"ticks": "waiting", "total": "behind", "impatient": "behind"}
    lags = {s.name: s.lag_seconds for s in warehouse.status()}
    assert lags["total"] > 0  # What waits at the source waits for the view as well.
    assert [p.table for p in warehouse.plan()] == ["ticks"]
    assert warehouse.explain("total").inputs == ("ticks",)
    assert warehouse.history("total")[0].rows == 1
    assert not warehouse.internals.lake.spark.started


def test_a_query_names_what_it_does_not_find(project: Any) -> None:
    warehouse = Warehouse(project(SQL))
    with pytest.raises(SpringhouseError) as caught:
        warehouse.query("SELECT * FROM totals")
    assert str(caught.value) == (
        'this project declares no table or view "totals"\n  hint: Did you mean the view "total"?'
    )
    with pytest.raises(SpringhouseError, match="no refresh has created it yet"):
        warehouse.query("SELECT * FROM total")


def test_a_consistent_query_reads_all_tables_as_of_one_moment(project: Any) -> None:
    from springhouse.warehouse.running.execution import perform

    folder = project(SQL)
    arrive(folder, 1)
    arrive(folder, 2)
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    arrive(folder, 3)
    perform(warehouse.internals.watch, warehouse.internals.watch.forced("ticks", "test"))
    both = "SELECT n, (SELECT count(*) FROM ticks) AS m FROM total"
    assert warehouse.query(both).collect() == [(2, 3)]
    assert warehouse.query(both, consistent=True).collect() == [(2, 2)]


COUNTED = SQL.splitlines()[1:3]


def test_a_refresh_brings_every_view_to_the_newest_moment(project: Any) -> None:
    """Also a view that could use a past moment of its sibling: after the refresh none is behind."""
    table = "\n".join(COUNTED)
    one = "CREATE MATERIALIZED VIEW one AS SELECT count(*) AS n FROM ticks;"
    folder = project(f"{table}\n{one}")
    arrive(folder, 1)
    assert Warehouse(folder).refresh().ok
    other = one.replace("VIEW one", "VIEW other")
    both = "CREATE MATERIALIZED VIEW both AS SELECT one.n AS a, other.n AS b FROM one, other;"
    project(f"{table}\n{one}\n{other}\n{both}")
    arrive(folder, 2)
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    assert warehouse.query("SELECT a, b FROM both").collect() == [(2, 2)]
    assert warehouse.plan() == []


def test_tables_without_records_are_there_and_empty(project: Any) -> None:
    folder = project((SQL + IMPATIENT).replace("n < 2", "n < 0"))
    warehouse = Warehouse(folder)
    refreshed = warehouse.refresh()
    assert refreshed.ok, refreshed.failures
    assert warehouse.query("SELECT * FROM ticks").columns == ["offset"]
    assert warehouse.query("SELECT n FROM total").collect() == [(0,)]
    arrive(folder, 1)
    assert warehouse.refresh().ok
    assert warehouse.query("SELECT n FROM total").collect() == [(1,)]


def test_every_refresh_is_one_line_in_the_log(
    project: Any, caplog: pytest.LogCaptureFixture
) -> None:
    folder = project(SQL)
    arrive(folder, 1)
    with caplog.at_level(logging.INFO, "springhouse.refresh"):
        assert Warehouse(folder).refresh().ok
    lines = [each.message for each in caplog.records if each.name == "springhouse.refresh"]
    assert [line.partition(" way=")[0] for line in lines] == [
        "refreshed table=ticks",
        "refreshed table=total",
    ]
    assert re.fullmatch(
        r"refreshed table=total way=full rows_added=1 rows_removed=0 rows=1 "
        r"seconds=\d+\.\d{3} reason=.+",
        lines[1],
    )
