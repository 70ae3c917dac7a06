"""Append flows: every row once, bad rows set aside, added columns, expectations that hold."""

import json
from pathlib import Path
from typing import Any

import pytest

from springhouse.warehouse import Warehouse

FILES = "STREAM read_files('data', format => 'json'{schema})"


def orders(columns: str = "", options: str = ", schema => 'id BIGINT, amount DECIMAL(8,2)'") -> str:
    return f"CREATE STREAMING TABLE orders {columns} AS SELECT * FROM " + FILES.format(
        schema=options
    )


def arrive(folder: Path, number: int, *records: Any) -> None:
    (folder / "data").mkdir(exist_ok=True)
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    (folder / "data" / f"{number}.json").write_text("\n".join(lines) + "\n")


def rows(warehouse: Warehouse, name: str = "orders") -> list[tuple[Any, ...]]:
    found = warehouse.query(f"SELECT * FROM {name}").collect()
    return sorted((tuple(row) for row in found), key=str)


def test_records_that_do_not_fit_are_kept_with_reason_and_origin(project: Any) -> None:
    folder = project(orders())
    arrive(folder, 1, {"id": 1, "amount": 9.5}, "{broken", {"id": "two", "amount": 1})
    warehouse = Warehouse(folder)
    refreshed = warehouse.refresh()
    assert refreshed.ok
    assert [row[0] for row in rows(warehouse)] == [1]
    aside = warehouse.query("SELECT record, origin, flow FROM orders_quarantine").collect()
    assert sorted(r["record"] for r in aside) == ['{"id": "two", "amount": 1}', "{broken"]
    assert all(r["origin"].startswith("data/1.json") or "1.json" in r["origin"] for r in aside)
    assert {r["flow"] for r in aside} == {"orders"}
    assert next(s for s in warehouse.status() if s.name == "orders").quarantined_rows == 2


EXPECT = "(CONSTRAINT positive EXPECT (amount > 0) {on})"


@pytest.mark.parametrize(
    ("on", "kept", "aside"),
    [
        ("", [1, 2, 3], 0),
        ("ON VIOLATION DROP ROW", [1], 0),
        ("ON VIOLATION QUARANTINE", [1], 2),
    ],
)
def test_expectations(project: Any, on: str, kept: list[int], aside: int) -> None:
    folder = project(orders(EXPECT.format(on=on)))
    arrive(folder, 1, {"id": 1, "amount": 5}, {"id": 2, "amount": -5}, {"id": 3})
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    assert [row[0] for row in rows(warehouse)] == kept
    newest = warehouse.history("orders")[0]
    # NULL is not true: it breaks the expectation as false does.
    assert newest.violations == {"positive": 2}
    assert newest.quarantined_rows == aside
    if aside:
        reasons = {r[0] for r in warehouse.query("SELECT reason FROM orders_quarantine").collect()}
        assert reasons == {"expectation positive: amount > 0"}


def test_fail_update_writes_nothing_and_goes_on_when_mended(project: Any) -> None:
    folder = project(orders(EXPECT.format(on="ON VIOLATION FAIL UPDATE")))
    arrive(folder, 1, {"id": 1, "amount": -1})
    warehouse = Warehouse(folder)
    problem = warehouse.refresh().failures["orders"].problem
    assert '1 row for "orders" broke the expectation "positive": amount > 0' in problem
    assert "transformations/all.sql:1" in problem
    assert warehouse.internals.lake.log("orders").newest() is None or rows(warehouse) == []
    mended = Warehouse(project(orders(EXPECT.format(on="ON VIOLATION DROP ROW"))))
    assert mended.refresh().ok
    assert rows(mended) == []


def test_expectations_on_views(project: Any) -> None:
    sql = orders() + (
        "; CREATE MATERIALIZED VIEW large (CONSTRAINT known EXPECT (id < 10) "
        "ON VIOLATION QUARANTINE) AS SELECT id FROM orders"
    )
    folder = project(sql)
    arrive(folder, 1, {"id": 1, "amount": 1}, {"id": 11, "amount": 1})
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    assert rows(warehouse, "large") == [(1,)]
    arrive(folder, 2, {"id": 12, "amount": 1})
    assert warehouse.refresh().ok
    # A view's quarantine holds only the rows of its last refresh, so no row is there twice.
    aside = warehouse.query("SELECT record FROM large_quarantine").collect()
    assert sorted(r[0] for r in aside) == ['{"id":11}', '{"id":12}']


def test_new_columns_appear_and_are_null_before(project: Any) -> None:
    folder = project(orders(options=""))
    arrive(folder, 1, {"id": 1})
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    arrive(folder, 2, {"id": 2, "city": "Oslo"})
    assert warehouse.refresh().ok
    assert warehouse.query("SELECT id, city FROM orders ORDER BY id").collect() == [
        (1, None),
        (2, "Oslo"),
    ]


def test_an_incompatible_change_stops_that_flow_and_no_other(project: Any) -> None:
    narrow = ", schema => 'id BIGINT, amount DECIMAL(8,2)'"
    other = "; CREATE STREAMING TABLE ticks AS SELECT offset FROM STREAM sample(limit => '{n}', "
    other += "start => '2026-01-01 00:00:00')"
    folder = project(orders(options=narrow) + other.format(n=2))
    arrive(folder, 1, {"id": 1, "amount": 1})
    assert Warehouse(folder).refresh().ok
    project(orders(options=", schema => 'id STRING, amount DECIMAL(8,2)'") + other.format(n=3))
    arrive(folder, 2, {"id": 2, "amount": 1})
    warehouse = Warehouse(folder)
    refreshed = warehouse.refresh()
    assert refreshed.failures["orders"].problem == (
        'transformations/all.sql:1: the column "id" is BIGINT in the table and STRING in the new '
        "rows\n  hint: Cast it in the flow, CAST(id AS BIGINT), or send it to a new table."
    )
    assert rows(warehouse, "ticks") == [(0,), (1,), (2,)]
    # Nothing is lost: after the definition is corrected, the table reads the same files.
    mended = Warehouse(project(orders(options=narrow) + other.format(n=3)))
    assert mended.refresh().ok
    assert [row[0] for row in rows(mended)] == [1, 2]


def test_several_flows_into_one_table(project: Any) -> None:
    sql = """
CREATE STREAMING TABLE events (name STRING, number BIGINT);
CREATE FLOW one AS INSERT INTO events BY NAME
  SELECT offset AS number, 'one' AS name FROM STREAM sample(limit => '2', start => '2026-01-01');
CREATE FLOW two AS INSERT INTO events BY NAME
  SELECT 'two' AS name, offset AS number FROM STREAM sample(limit => '1', start => '2026-01-01');
"""
    warehouse = Warehouse(project(sql))
    refreshed = warehouse.refresh()
    assert refreshed.ok, refreshed.failures
    assert rows(warehouse, "events") == [("one", 0), ("one", 1), ("two", 0)]
    assert len(warehouse.explain("events").offsets) == 2


def test_a_union_of_streams_and_a_join_with_a_table(project: Any) -> None:
    sample = "STREAM sample(limit => '{n}', start => '2026-01-01', rate => '{rate}')"
    sql = f"""
CREATE STREAMING TABLE names AS
  SELECT offset, 'n' || offset AS name FROM {sample.format(n=3, rate=1)};
CREATE STREAMING TABLE named AS
  SELECT t.offset, n.name FROM (
    SELECT offset FROM {sample.format(n=2, rate=2)}
    UNION ALL SELECT offset + 1 FROM {sample.format(n=1, rate=3)}) t
  JOIN names n ON n.offset = t.offset;
"""
    warehouse = Warehouse(project(sql))
    refreshed = warehouse.refresh()
    assert refreshed.ok, refreshed.failures
    assert rows(warehouse, "named") == [(0, "n0"), (1, "n1"), (1, "n1")]


USER_SOURCE = """
import springhouse

@springhouse.source("countdown")
class Countdown:
    def __init__(self, start):
        self.start = int(start)
    def latest(self):
        return {"0": self.start}
    def read(self, spark, ranges):
        return spark.createDataFrame(
            [(self.start - o,) for r in ranges.values() for o in range(r.start, r.end)], "n INT")
"""


def test_a_source_of_the_users_own(project: Any) -> None:
    sql = "CREATE STREAMING TABLE t AS SELECT * FROM STREAM countdown('3')"
    warehouse = Warehouse(project(sql, USER_SOURCE))
    refreshed = warehouse.refresh()
    assert refreshed.ok, refreshed.failures
    assert rows(warehouse, "t") == [(1,), (2,), (3,)]
    assert warehouse.plan() == []


def test_a_late_record_does_not_set_the_freshness_back(project: Any) -> None:
    sql = """
CREATE STREAMING TABLE orders
  TBLPROPERTIES ('springhouse.timestamp' = 'at', 'springhouse.lateness' = '10 minutes')
  AS SELECT * FROM STREAM read_files('data', format => 'json', schema => 'id INT, at TIMESTAMP');
"""
    folder = project(sql)
    arrive(folder, 1, {"id": 1, "at": "2026-01-01T10:00:00Z"})
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    first = warehouse.internals.lake.log("orders").newest()
    arrive(folder, 2, {"id": 2, "at": "2026-01-01T09:55:00Z"})
    assert warehouse.refresh().ok
    second = warehouse.internals.lake.log("orders").newest()
    assert first is not None
    assert second is not None
    assert first.note is not None
    assert second.note is not None
    # The safe trailing edge: ten minutes before the latest record.
    assert first.note.freshness == second.note.freshness == 1767261000.0
