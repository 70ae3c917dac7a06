"""A user can run the SQL that `explain` prints, and gets the rows that the refresh will write."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from springhouse.lake.delta.changes import one_by_one, strong_delta
from springhouse.views.explanation import StatementExplanation
from springhouse.warehouse import Warehouse
from springhouse.warehouse.reports.table_explanation import StoredTable
from springhouse.warehouse.running.execution import perform

SQL = """
CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_files('data/orders',
  format => 'json', schema => 'id BIGINT, customer BIGINT, amount DECIMAL(12,2)');
CREATE STREAMING TABLE customers AS SELECT * FROM STREAM read_files('data/customers',
  format => 'json', schema => 'id BIGINT, country STRING');
CREATE MATERIALIZED VIEW revenue TBLPROPERTIES ('springhouse.refresh' = 'incremental')
  AS SELECT c.country, sum(o.amount) AS revenue, count(*) AS orders
  FROM orders o JOIN customers c ON o.customer = c.id
  GROUP BY c.country;
CREATE MATERIALIZED VIEW spenders TBLPROPERTIES ('springhouse.refresh' = 'incremental')
  AS SELECT c.country, count(*) AS spenders
  FROM (SELECT customer, sum(amount) AS total FROM orders GROUP BY customer) t
  JOIN customers c ON c.id = t.customer
  WHERE total > 10 GROUP BY c.country;
"""
FIRST = {
    "customers": ['{"id": 1, "country": "Norway"}', '{"id": 2, "country": "Kenya"}'],
    "orders": [
        '{"id": 1, "customer": 1, "amount": 10.00}',
        '{"id": 2, "customer": 2, "amount": 25.50}',
        '{"id": 3, "customer": 3, "amount": 7.00}',
    ],
}
# The second change: an order of a known customer, and the customer of a known order.
SECOND = {
    "customers": ['{"id": 3, "country": "Peru"}'],
    "orders": ['{"id": 4, "customer": 1, "amount": 5.25}'],
}


def arrive(folder: Path, number: int, records: dict[str, list[str]]) -> None:
    for table, lines in records.items():
        (folder / "data" / table).mkdir(parents=True, exist_ok=True)
        (folder / "data" / table / f"{number}.json").write_text("\n".join(lines))


@pytest.fixture
def warehouse(project: Callable[..., Path]) -> Warehouse:
    """A warehouse whose views have not seen one change of both tables."""
    folder = project(SQL)
    arrive(folder, 1, FIRST)
    assert Warehouse(folder).refresh().ok
    arrive(folder, 2, SECOND)
    warehouse = Warehouse(folder)
    for table in ("orders", "customers"):
        perform(warehouse.internals.watch, warehouse.internals.watch.forced(table, "test"))
    return warehouse


def relations(warehouse: Warehouse, view: str) -> Iterator[tuple[str, DataFrame]]:
    """The relations of a refresh, each with the name that `explain` gives it."""
    session = warehouse.internals.lake.spark.session()
    note = warehouse.internals.lake.log(view).newest().note
    for table in ("orders", "customers"):
        before, after = (
            warehouse.internals.lake.open(table, note.read[table]),
            warehouse.internals.lake.open(table),
        )
        log = warehouse.internals.lake.log(table)
        yield f"{table}_before", before.read(session)
        yield f"{table}_after", after.read(session)
        yield (
            f"{table}_change",
            one_by_one(strong_delta(session, log, before.version, after.version)),
        )
    root = warehouse.internals.lake.place(view).root
    files = [f"{root}/{file.path}" for file in warehouse.internals.lake.open(view).files]
    yield "stored_groups", session.read.parquet(*files)


def told(warehouse: Warehouse, view: str, name: str) -> StatementExplanation:
    (step,) = warehouse.explain(view).incremental_refresh.steps
    return next(each for each in step.statements if each.name == name)


def test_the_merge_that_is_told_gives_the_groups_that_will_be_stored(warehouse: Warehouse) -> None:
    merge, session = told(warehouse, "revenue", "merge"), warehouse.internals.lake.spark.session()
    known = dict(relations(warehouse, "revenue"))
    for relation in merge.reads:
        known[relation.name].createOrReplaceTempView(relation.name)
    try:
        merged = session.sql(merge.sql).where("NOT __springhouse_stale")
        groups = sorted(map(tuple, merged.select("country", "revenue", "orders").collect()))
    finally:
        for relation in merge.reads:
            session.catalog.dropTempView(relation.name)
    assert groups == [("Norway", Decimal("15.25"), 2), ("Peru", Decimal("7.00"), 1)]
    assert warehouse.refresh().ok
    stored = warehouse.query("SELECT country, revenue, orders FROM revenue").collect()
    assert sorted(map(tuple, stored)) == [("Kenya", Decimal("25.50"), 1), *groups]


def test_what_is_stored_for_the_next_refresh_is_told_with_its_size(warehouse: Warehouse) -> None:
    explained = warehouse.explain("spenders")
    state = explained.incremental_refresh.state
    (table,) = state.tables
    assert (table.name, table.keys) == ("orders_by_customer", ("customer",))
    assert explained.hidden_tables == (StoredTable("orders_by_customer", files=1, rows=3),)
    assert [column.name for column in state.hidden_columns] == ["__springhouse_count"]


def test_the_last_refresh_is_told_with_its_variant_and_the_reason_for_it(
    warehouse: Warehouse,
) -> None:
    first = warehouse.explain("revenue").stored.last_refresh
    assert (first.way, first.way_reason) == ("full", "its first refresh")
    assert warehouse.refresh().ok
    last = Warehouse(warehouse.project.folder).explain("revenue").stored.last_refresh
    assert last.way == "incremental"
    assert ", against full: 1 query, " in last.way_reason
    assert last.duration_seconds > 0


def test_nothing_of_it_starts_spark(warehouse: Warehouse) -> None:
    asked = Warehouse(warehouse.project.folder)
    assert asked.explain("spenders").incremental is True
    assert not asked.internals.lake.spark.started
