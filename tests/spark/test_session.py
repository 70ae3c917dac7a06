"""A warehouse has its own session, with the settings of a lent session and of the project."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from springhouse.lake.spark.session import Spark
from springhouse.lake.spark.session_settings import LocalInput
from springhouse.warehouse import Warehouse

sys.path += [str(Path(__file__).parent)]

from base_table import BaseTable, declaration, refresh

ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
INCREMENTAL = "TBLPROPERTIES ('springhouse.refresh' = 'incremental')"


@contextmanager
def lent_with(spark: SparkSession, **settings: str) -> Iterator[None]:
    """Use the tests' session with other settings for a while."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


def every_session(spark: Spark) -> list[SparkSession]:
    sizes = [None, LocalInput(1, 1), LocalInput(9, 9), LocalInput(2, 9_000), LocalInput(2, 90_000)]
    return [spark.session(), *map(spark.quick, sizes)]


def test_every_session_has_the_settings_of_a_lent_one_and_those_of_the_project(
    spark: SparkSession,
) -> None:
    lent = {ZONE: "Asia/Tokyo", ANSI: "false", "spark.sql.caseSensitive": "true"}
    with lent_with(spark, **lent):
        opened = Spark({ANSI: "true", "spark.sql.mapKeyDedupPolicy": "LAST_WIN"}, "test")
        for session in every_session(opened):
            assert session.conf.get(ZONE) == "Asia/Tokyo"
            assert session.conf.get("spark.sql.caseSensitive") == "true"
            assert session.conf.get(ANSI) == "true"  # the project says so
            assert session.conf.get("spark.sql.mapKeyDedupPolicy") == "LAST_WIN"
        opened.stop()


def test_functions_views_and_later_settings_reach_every_session(spark: SparkSession) -> None:
    opened = Spark({}, "test")
    main = opened.session()
    opened.quick()
    main.udf.register("plus_one", lambda n: n + 1, "int")
    main.sql("SELECT 4 AS n").createOrReplaceTempView("four")
    main.conf.set(ZONE, "America/Lima")
    for session in every_session(opened):
        assert session.sql("SELECT plus_one(n) AS m FROM four").collect()[0].m == 5
        assert session.conf.get(ZONE) == "America/Lima"
    opened.stop()
    assert spark.conf.get(ZONE) != "America/Lima"


def test_rules_that_the_user_excluded_stay_excluded(spark: SparkSession) -> None:
    rule = "org.apache.spark.sql.catalyst.optimizer.PruneFilters"
    opened = Spark({"spark.sql.optimizer.excludedRules": rule}, "test")
    for session in every_session(opened):
        assert rule in str(session.conf.get("spark.sql.optimizer.excludedRules")).split(",")
    opened.stop()


def test_a_lent_session_is_not_changed_and_not_stopped(
    spark: SparkSession, project: Callable[..., Path]
) -> None:
    spark.sql("SELECT 1 AS one").createOrReplaceTempView("lent_view")
    before = spark.conf.getAll
    active = SparkSession.getActiveSession()
    views = [each.name for each in spark.catalog.listTables()]
    text = (
        declaration("t", "k INT") + f"CREATE MATERIALIZED VIEW v {INCREMENTAL} AS SELECT k FROM t"
    )
    folder = project(text, **{ZONE: "Asia/Tokyo", "spark.sql.shuffle.partitions": "3"})
    with Warehouse(folder) as warehouse:
        table = BaseTable(warehouse, "t", "k INT")
        table.load([(1,)])
        refresh(warehouse, "v")
        table.append([(2,)])
        refresh(warehouse, "v")
        assert warehouse.query("SELECT * FROM v").count() == 2
        assert SparkSession.getActiveSession() is active
    assert spark.conf.getAll == before
    assert [each.name for each in spark.catalog.listTables()] == views
    assert SparkSession.getActiveSession() is active
    assert SparkSession.builder.getOrCreate() is spark
    assert spark.range(3).count() == 3
    spark.catalog.dropTempView("lent_view")


@pytest.mark.parametrize("of", ["lent", "project"])
def test_dates_of_an_incremental_view_are_those_of_its_query(
    spark: SparkSession, project: Callable[..., Path], of: str
) -> None:
    settings = {ZONE: "Pacific/Auckland", ANSI: "false"}
    query = (
        "SELECT CAST(at AS DATE) AS day, count(*) AS n, max(CAST(s AS INT)) AS m FROM t GROUP BY 1"
    )
    text = declaration("t", "at TIMESTAMP, s STRING")
    text += f"CREATE MATERIALIZED VIEW v {INCREMENTAL} AS {query}"
    folder = project(text, **(settings if of == "project" else {}))
    with lent_with(spark, **(settings if of == "lent" else {})), Warehouse(folder) as warehouse:
        table = BaseTable(warehouse, "t", "at TIMESTAMP, s STRING")
        # In Auckland the next day begins at noon UTC. Without ANSI, text that is no number is NULL.
        table.load([(datetime(2024, 1, 1, 9, tzinfo=UTC), "1")])
        refresh(warehouse, "v")
        table.append([(datetime(2024, 1, 1, 13, tzinfo=UTC), "none")])
        refresh(warehouse, "v")
        newest = warehouse.internals.lake.log("v").newest()
        assert newest is not None and newest.note is not None  # noqa: PT018
        assert newest.note.variant == "incremental"
        found = sorted(map(tuple, warehouse.query("SELECT * FROM v").collect()))
        assert found == sorted(map(tuple, warehouse.query(query).collect()))
        assert len(found) == 2


PYTHON = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

@dp.materialized_view
def zones():
    session = SparkSession.getActiveSession()
    assert session is SparkSession.builder.config("spark.x", "1").getOrCreate()
    assert session is SparkSession.active()
    zone = session.conf.get("spark.sql.session.timeZone")
    return session.table("t").selectExpr(f"'{zone}' AS zone", "current_timezone() AS own", "k")
"""


def test_a_query_function_finds_the_session_that_runs_it(
    spark: SparkSession, project: Callable[..., Path]
) -> None:
    folder = project(declaration("t", "k INT"), PYTHON, **{ZONE: "Asia/Tokyo"})
    active = SparkSession.getActiveSession()
    with Warehouse(folder) as warehouse:
        BaseTable(warehouse, "t", "k INT").load([(1,)])
        refresh(warehouse, "zones")
        found = warehouse.query("SELECT * FROM zones").collect()
    assert [tuple(row) for row in found] == [("Asia/Tokyo", "Asia/Tokyo", 1)]
    assert SparkSession.getActiveSession() is active
    assert SparkSession.builder.getOrCreate() is spark


def test_a_spark_that_a_warehouse_started_serves_until_the_last_warehouse_is_closed(
    spark: SparkSession,
) -> None:
    # An earlier `Spark` of the tests started this session; two more use it and stop.
    first, second = Spark({}, "first"), Spark({}, "second")
    first.session()
    second.session()
    first.stop()
    assert second.session().range(2).count() == 2
    second.stop()
    assert spark.range(2).count() == 2
