"""Added columns and wider types: all rows stay, and a failure leaves no trace."""

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from springhouse.warehouse import Warehouse

ORDERS = """
CREATE STREAMING TABLE orders {columns} AS SELECT * FROM STREAM read_files(
    'data', format => 'json', schema => '{schema}');
"""
READERS = """
CREATE STREAMING TABLE copies AS SELECT n FROM STREAM(orders);
CREATE MATERIALIZED VIEW total AS SELECT count(*) AS count, sum(n) AS n, sum(f) AS f FROM orders;
CREATE MATERIALIZED VIEW large AS SELECT id, n FROM orders WHERE id > 0;
"""
NARROW = "id INT, n INT, f FLOAT, d DECIMAL(6,2), day DATE"
WIDE = "id INT, n BIGINT, f DOUBLE, d DECIMAL(12,3), day TIMESTAMP_NTZ"


def arrive(folder: Path, number: int, *records: Any) -> None:
    (folder / "data").mkdir(exist_ok=True)
    text = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "data" / f"{number}.json").write_text(text)


def stored(folder: Path) -> dict[str, str]:
    table = DeltaTable(str(folder / "storage" / "tables" / "orders"))
    return {field.name: str(field.type.type) for field in table.schema().fields}


def test_a_wider_type_widens_the_column(project: Any) -> None:
    folder = project(ORDERS.format(columns="", schema=NARROW) + READERS)
    arrive(folder, 1, {"id": 1, "n": 1, "f": 0.5, "d": 1.25, "day": "2024-02-29"})
    refreshed = Warehouse(folder).refresh()
    assert refreshed.ok, refreshed.failures
    project(ORDERS.format(columns="", schema=WIDE) + READERS)
    second = {"id": 2, "n": 2**40, "f": 0.1, "d": 123456789.125, "day": "2024-03-01T12:30:00"}
    arrive(folder, 2, second)
    warehouse = Warehouse(folder)
    refreshed = warehouse.refresh()
    assert refreshed.ok, refreshed.failures
    found = warehouse.query("SELECT * FROM orders ORDER BY id").collect()
    assert [tuple(row) for row in found] == [
        (1, 1, 0.5, Decimal("1.250"), datetime(2024, 2, 29)),  # noqa: DTZ001  no time zone
        (2, 2**40, 0.1, Decimal("123456789.125"), datetime(2024, 3, 1, 12, 30)),  # noqa: DTZ001
    ]
    assert sorted(row[0] for row in warehouse.query("SELECT n FROM copies").collect()) == [1, 2**40]
    assert tuple(warehouse.query("SELECT count, n, f FROM total").collect()[0]) == (
        2,
        2**40 + 1,
        0.6,
    )
    large = warehouse.query("SELECT * FROM large ORDER BY id").collect()
    assert [tuple(row) for row in large] == [(1, 1), (2, 2**40)]
    everyone = DeltaTable(str(folder / "storage" / "tables" / "orders")).to_pyarrow_table()
    assert sorted(everyone["n"].to_pylist()) == [1, 2**40]


def test_a_declared_column_is_widened_too(project: Any) -> None:
    folder = project(ORDERS.format(columns="(id INT, n INT)", schema="id INT, n INT"))
    arrive(folder, 1, {"id": 1, "n": 1})
    assert Warehouse(folder).refresh().ok
    project(ORDERS.format(columns="(id INT, n BIGINT)", schema="id INT, n BIGINT"))
    arrive(folder, 2, {"id": 2, "n": 2**40})
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    found = warehouse.query("SELECT n FROM orders ORDER BY id").collect()
    assert [row[0] for row in found] == [1, 2**40]


def test_a_type_that_could_lose_a_value_stops_the_flow(project: Any) -> None:
    folder = project(ORDERS.format(columns="", schema="id INT, d DECIMAL(6,2)"))
    arrive(folder, 1, {"id": 1, "d": 1.25})
    assert Warehouse(folder).refresh().ok
    project(ORDERS.format(columns="", schema="id INT, d DECIMAL(6,3)"))
    arrive(folder, 2, {"id": 2, "d": 1.125})
    warehouse = Warehouse(folder)
    (failure,) = warehouse.refresh().failures.values()
    assert '"d" is DECIMAL(6,2) in the table and DECIMAL(6,3)' in failure.problem
    assert stored(folder) == {"id": "integer", "d": "decimal(6,2)"}


def test_a_refresh_that_fails_leaves_no_trace_in_the_schema(project: Any) -> None:
    fair = "(CONSTRAINT fair EXPECT (id > 0) ON VIOLATION FAIL UPDATE)"
    folder = project(ORDERS.format(columns=fair, schema="id STRING, note STRING"))
    arrive(folder, 1, {"id": "-1", "note": "x"})
    assert not Warehouse(folder).refresh().ok
    assert not (folder / "storage" / "tables" / "orders" / "_delta_log").exists()
    (folder / "data" / "1.json").unlink()
    arrive(folder, 2, {"id": 2})
    project(ORDERS.format(columns="", schema="id BIGINT"))
    (folder / "storage" / "files").rename(folder / "files")
    assert Warehouse(folder).refresh().ok
    assert stored(folder) == {"id": "long"}
    project(ORDERS.format(columns=fair, schema="id BIGINT, note STRING"))
    arrive(folder, 3, {"id": -3, "note": "y"})
    assert not Warehouse(folder).refresh().ok
    assert stored(folder) == {"id": "long"}


def test_what_a_flow_brings_beyond_the_declared_columns_is_kept(project: Any) -> None:
    schema = "id INT, n INT"
    folder = project(ORDERS.format(columns="(n BIGINT, late STRING)", schema=schema))
    arrive(folder, 1, {"id": 1, "n": 5})
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    arrive(folder, 2, {"id": 2, "n": 6})
    assert warehouse.refresh().ok
    found = warehouse.query("SELECT n, late, id FROM orders ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(5, None, 1), (6, None, 2)]


def test_a_column_that_is_declared_not_null_takes_no_null(project: Any) -> None:
    sql = ORDERS.format(columns="(id INT NOT NULL COMMENT 'who', n INT)", schema="id INT, n INT")
    sql += "CREATE MATERIALIZED VIEW some (m INT NOT NULL) AS SELECT n FROM orders;"
    folder = project(sql)
    arrive(folder, 1, {"id": 1, "n": 1})
    warehouse = Warehouse(folder)
    assert warehouse.refresh().ok
    arrive(folder, 2, {"id": 2})
    assert set(warehouse.refresh().failures) == {"some"}
    arrive(folder, 3, {"n": 3})
    (problem,) = (f.problem for name, f in warehouse.refresh().failures.items() if name == "orders")
    assert '"id NOT NULL"' in problem
    assert [tuple(row) for row in warehouse.query("SELECT m FROM some").collect()] == [(1,)]


UNKEPT: dict[str, Any] = {
    "VARIANT": 1,
    "VOID": None,
    "ARRAY<VARIANT>": [1],
    "STRUCT<a: STRUCT<>>": {"a": {}},
}


@pytest.mark.parametrize("kind", UNKEPT)
def test_a_type_that_no_table_can_keep_is_an_error(kind: str, project: Any) -> None:
    folder = project(ORDERS.format(columns="", schema=f"id INT, v {kind}"))
    arrive(folder, 1, {"id": 1, "v": UNKEPT[kind]})
    (failure,) = Warehouse(folder).refresh().failures.values()
    assert 'the column "v" has ' in failure.problem
    assert not (folder / "storage" / "tables" / "orders" / "_delta_log").exists()
