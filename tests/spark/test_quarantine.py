"""A record is in the table or in its quarantine, after any failure and any later declaration."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from springhouse.warehouse import Warehouse

APPEND = """
CREATE STREAMING TABLE orders (CONSTRAINT fair EXPECT (amount {sign} 0) ON VIOLATION QUARANTINE)
AS SELECT * FROM STREAM read_files('data', format => 'json', schema => 'id BIGINT, amount BIGINT');
"""
CHANGES = """
CREATE STREAMING TABLE orders (CONSTRAINT fair EXPECT (amount {sign} 0) ON VIOLATION QUARANTINE);
CREATE FLOW changes AS AUTO CDC INTO orders
FROM STREAM read_files('data', format => 'json', schema => 'id BIGINT, amount BIGINT')
KEYS (id) SEQUENCE BY amount STORED AS SCD TYPE 1;
"""
TOGETHER = (
    APPEND
    + """
CREATE STREAMING TABLE copies
AS SELECT * FROM STREAM read_files('data', format => 'json', schema => 'id BIGINT, amount BIGINT');
"""
)


def arrive(folder: Path, number: int, *amounts: int) -> None:
    (folder / "data").mkdir(exist_ok=True)
    records = [{"id": number * 10 + i, "amount": amount} for i, amount in enumerate(amounts)]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "data" / f"{number}.json").write_text(lines)


def ids(warehouse: Warehouse, table: str = "orders") -> list[int]:
    return sorted(row[0] for row in warehouse.query(f"SELECT id FROM {table}").collect())


def set_aside(warehouse: Warehouse) -> list[int]:
    records = warehouse.query("SELECT record FROM orders_quarantine").collect()
    return sorted(json.loads(row[0])["id"] for row in records)


@pytest.fixture
def fail_after(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let this number of commits to the warehouse's tables pass, and fail all later ones."""

    def begin(let_through: int) -> None:
        left = [let_through]
        write = DeltaTable.create_write_transaction

        def commit(self: DeltaTable, *given: Any, **more: Any) -> Any:
            if "/tables/orders" in self.table_uri:
                left[0] -= 1
                if left[0] < 0:
                    raise DeltaError("the disk is full")
            return write(self, *given, **more)

        monkeypatch.setattr(DeltaTable, "create_write_transaction", commit)

    return begin


@pytest.mark.parametrize("sql", [APPEND, CHANGES, TOGETHER], ids=["append", "cdc", "together"])
def test_what_was_decided_for_a_range_stays_decided(
    sql: str,
    project: Any,
    fail_after: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = project(sql.format(sign=">"))
    arrive(folder, 1, 5, -5)
    assert Warehouse(folder).refresh().ok
    arrive(folder, 2, 7, -7)
    with monkeypatch.context():
        fail_after(1)
        assert not Warehouse(folder).refresh().ok
        monkeypatch.undo()
    project(sql.format(sign="<"))
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    assert (ids(warehouse), set_aside(warehouse)) == ([10, 20], [11, 21])
    arrive(folder, 3, 9, -9)
    assert warehouse.refresh().ok
    assert (ids(warehouse), set_aside(warehouse)) == ([10, 20, 31], [11, 21, 30])


def test_vacuum_keeps_what_waits_for_the_quarantine(
    project: Any, fail_after: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(APPEND.format(sign=">"))
    arrive(folder, 1, 5, -5)
    assert Warehouse(folder).refresh().ok
    arrive(folder, 2, -7)
    fail_after(1)
    assert not Warehouse(folder).refresh().ok
    monkeypatch.undo()
    warehouse = Warehouse(folder)
    warehouse.vacuum(retention="0 seconds", grace_seconds=0.0)
    assert set_aside(warehouse) == [11, 20]
    assert warehouse.refresh().ok
    assert (ids(warehouse), set_aside(warehouse)) == ([10], [11, 20])


def test_a_quarantine_that_was_deleted_begins_anew(project: Any) -> None:
    folder = project(APPEND.format(sign=">"))
    arrive(folder, 1, 5, -5)
    assert Warehouse(folder).refresh().ok
    quarantine = folder / "storage" / "tables" / "orders_quarantine"
    for path in sorted(quarantine.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    quarantine.rmdir()
    arrive(folder, 2, 7, -7)
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    assert (ids(warehouse), set_aside(warehouse)) == ([10, 20], [21])
