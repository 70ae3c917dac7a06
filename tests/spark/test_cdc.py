"""AUTO CDC through a warehouse: events by key in any order, compared with a simple replay."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from springhouse.warehouse import Warehouse

SQL = """
CREATE STREAMING TABLE customers;
CREATE FLOW customers_in AS AUTO CDC INTO customers
  FROM STREAM read_files('data', format => 'json',
    schema => 'id BIGINT, name STRING, city STRING, op STRING, seq BIGINT')
  KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq)
  STORED AS SCD TYPE {type};
"""

Event = dict[str, Any]


@pytest.fixture
def feed(tmp_path: Path, project: Callable[[str], Path]) -> Callable[[int], tuple[Warehouse, Any]]:
    def make(scd_type: int) -> tuple[Warehouse, Any]:
        folder = project(SQL.format(type=scd_type))
        (folder / "data").mkdir()
        warehouse = Warehouse(folder)
        count = 0

        def arrive(*events: Event) -> list[tuple[Any, ...]]:
            nonlocal count
            count += 1
            lines = "\n".join(json.dumps(event) for event in events)
            (folder / "data" / f"{count:04}.json").write_text(lines + "\n")
            refreshed = warehouse.refresh()
            assert refreshed.ok, refreshed.failures
            return sorted(map(tuple, warehouse.query("SELECT * FROM customers").collect()))

        return warehouse, arrive

    return make


def upsert(key: int, name: str, seq: int) -> Event:
    return {"id": key, "name": name, "city": "Oslo", "op": "U", "seq": seq}


def delete(key: int, seq: int) -> Event:
    return {"id": key, "op": "D", "seq": seq}


def test_type_1_keeps_the_last_state_of_each_key(feed: Any) -> None:
    _, arrive = feed(1)
    assert arrive(upsert(1, "Ada", 1), upsert(2, "Bob", 1)) == [
        (1, "Ada", "Oslo"),
        (2, "Bob", "Oslo"),
    ]
    assert arrive(upsert(1, "Ada L.", 3)) == [(1, "Ada L.", "Oslo"), (2, "Bob", "Oslo")]
    # Out of order: sequence 2 arrives after 3 and changes nothing.
    assert arrive(upsert(1, "Adah", 2)) == [(1, "Ada L.", "Oslo"), (2, "Bob", "Oslo")]
    assert arrive(delete(2, 5)) == [(1, "Ada L.", "Oslo")]
    # This event is older than the delete, so the row stays deleted.
    assert arrive(upsert(2, "Bobby", 4)) == [(1, "Ada L.", "Oslo")]
    assert arrive(upsert(2, "Bob again", 6)) == [(1, "Ada L.", "Oslo"), (2, "Bob again", "Oslo")]


def test_type_2_keeps_the_history_of_each_key(feed: Any) -> None:
    _, arrive = feed(2)
    assert arrive(upsert(1, "Ada", 1)) == [(1, "Ada", "Oslo", 1, None)]
    assert arrive(upsert(1, "Ada L.", 5)) == [
        (1, "Ada", "Oslo", 1, 5),
        (1, "Ada L.", "Oslo", 5, None),
    ]
    # A late event takes its place between earlier ones.
    assert arrive(upsert(1, "Adah", 3)) == [
        (1, "Ada", "Oslo", 1, 3),
        (1, "Ada L.", "Oslo", 5, None),
        (1, "Adah", "Oslo", 3, 5),
    ]
    assert arrive(delete(1, 4))[2] == (1, "Adah", "Oslo", 3, 4)
    # The delete arrives before the row that it deletes.
    arrive(delete(2, 9))
    assert arrive(upsert(2, "Bob", 7))[-1] == (2, "Bob", "Oslo", 7, 9)


def test_an_event_without_key_or_sequence_goes_to_quarantine(feed: Any) -> None:
    warehouse, arrive = feed(1)
    bad = {"id": None, "name": "nobody", "op": "U", "seq": 1}
    assert arrive(upsert(1, "Ada", 1), bad, {"id": 7, "name": "never", "op": "U"}) == [
        (1, "Ada", "Oslo")
    ]
    reasons = [r[0] for r in warehouse.query("SELECT reason FROM customers_quarantine").collect()]
    assert sorted(reasons) == [
        "expectation key id: `id` IS NOT NULL",
        "expectation sequence: __springhouse_sequence IS NOT NULL",
    ]


def test_the_strong_delta_holds_only_what_changed(feed: Any) -> None:
    warehouse, arrive = feed(1)
    arrive(upsert(1, "Ada", 1), upsert(2, "Bob", 1))
    arrive(upsert(1, "Ada L.", 2))
    row = warehouse.history("customers")[0]
    assert (row.kind, row.rows, row.rows_added, row.rows_removed) == ("merge", 2, 1, 1)
