"""The output of `explain` about a view's refreshes, from Delta logs alone: no Spark needed."""

import json
from pathlib import Path

import pytest
from pyspark.sql.types import DecimalType, LongType, StringType, StructField, StructType
from rich.console import Console

from springhouse.cli.explain import refresh_part
from springhouse.cli.options import open_warehouse
from springhouse.lake.delta.commits import ensure
from springhouse.lake.delta.note import Note
from springhouse.lake.storage.storage import Storage
from springhouse.units import Instant

ORDERS = StructType(
    [
        StructField("id", LongType()),
        StructField("country", StringType()),
        StructField("amount", DecimalType(12, 2)),
    ]
)
PYTHON = """from pyspark import pipelines as dp

@dp.materialized_view
def by_country():
    return spark.sql(
        "SELECT country, count(*) AS n FROM orders GROUP BY country")

@dp.materialized_view
def counted():
    return spark.table("orders").groupBy("country").count()
"""
REFUSED = "CREATE MATERIALIZED VIEW dice AS\n  SELECT id,\n    rand() AS n\n  FROM orders;\n"
FULL = (
    "CREATE MATERIALIZED VIEW whole TBLPROPERTIES ('springhouse.refresh' = 'full') AS\n"
    "  SELECT id FROM orders;\n"
)


@pytest.fixture
def filled_shop(shop: Path):
    """The new project with a table of orders, and with views of all sorts."""
    place = Storage.at(str(shop / "storage" / "tables" / "orders"))
    ensure(place, ORDERS, Note(kind="schema", at=Instant(1.0), channel=True))
    (shop / "transformations" / "more.py").write_text(PYTHON)
    (shop / "transformations" / "more.sql").write_text(REFUSED + FULL)
    yield shop
    assert not (shop / "storage" / "logs" / "spark.log").exists()


def asked(springhouse, shop: Path, view: str):
    answer = springhouse("explain", view, "-p", shop, "--json")
    assert (answer.code, answer.err) == (0, "")
    return json.loads(answer.out)


def fact(springhouse, shop: Path, view: str) -> str:
    lines = springhouse("explain", view, "-p", shop).out.splitlines()
    return next(line for line in lines if line.startswith("refresh   "))


def test_before_its_inputs_are_there_nothing_is_known(springhouse, shop):
    told = asked(springhouse, shop, "revenue_by_country")
    assert told["incremental"] is None
    assert told["why_not"]["reason"] == 'no refresh has made "orders" yet'
    assert told["incremental_refresh"] is None
    assert fact(springhouse, shop, "revenue_by_country").startswith(
        'refresh   auto: not known yet, no refresh has made "orders" yet (transformations/'
    )


def test_a_view_that_can_be_incremental_shows_its_state_and_its_statements(
    springhouse, filled_shop
):
    told = asked(springhouse, filled_shop, "revenue_by_country")
    assert told["incremental"] is True
    assert told["hidden_tables"] is None
    assert told["incremental_refresh"]["changed"] == ["orders"]
    (step,) = told["incremental_refresh"]["steps"]
    names = [statement["name"] for statement in step["statements"]]
    assert names == ["merge", "increments", "merge_given", "recompute", "build"]
    out = springhouse("explain", "revenue_by_country", "-p", filled_shop).out
    assert "refresh   auto: incremental where that is cheaper than full\n" in out
    assert "state     none yet; a refresh builds it" in out
    assert "          __springhouse_decimal_sum_2 holds SUM(amount)\n" in out
    assert "A refresh after a change of orders:\n" in out
    assert "  step 1 of 1 writes revenue_by_country, one row per country\n" in out
    assert "      orders_change  the rows of orders that changed, with " in out
    assert "and where they are needed: increments, merge_given, recompute, build (--json)\n" in out


def test_what_is_printed_is_what_is_in_the_json(springhouse, filled_shop):
    told = asked(springhouse, filled_shop, "revenue_by_country")
    merge = told["incremental_refresh"]["steps"][0]["statements"][0]
    out = springhouse("explain", "revenue_by_country", "-p", filled_shop).out
    for line in merge["sql"].splitlines():
        assert f"\n      {line}".rstrip() in out


def test_a_view_that_can_not_be_says_why_and_where(springhouse, filled_shop):
    assert fact(springhouse, filled_shop, "dice") == (
        "refresh   auto: always full, because `rand` gives another value each time "
        "(transformations/more.sql:3)"
    )
    assert fact(springhouse, filled_shop, "whole") == (
        "refresh   full: always full, because 'springhouse.refresh' = 'full' asks for it "
        "(transformations/more.sql:6)"
    )
    assert fact(springhouse, filled_shop, "counted") == (
        'refresh   auto: always full, because the Python function "counted" does more than call '
        "spark.sql (transformations/more.py:8)"
    )
    told = asked(springhouse, filled_shop, "dice")
    assert told["incremental"] is False
    assert told["why_not"]["place"] == "transformations/more.sql:3"


def test_a_python_function_that_is_only_sql_is_told_like_sql(springhouse, filled_shop):
    told = asked(springhouse, filled_shop, "by_country")
    assert told["incremental"] is True
    assert told["query"] == "SELECT country, count(*) AS n FROM orders GROUP BY country"


def test_on_a_narrow_screen_no_part_of_a_statement_is_lost(springhouse, filled_shop):
    with open_warehouse(filled_shop) as warehouse:
        refresh = warehouse.explain("revenue_by_country").incremental_refresh
    screen = Console(width=60, color_system=None)
    with screen.capture() as capture:
        screen.print(*refresh_part(refresh), sep="\n")
    shown = "".join(capture.get().split())
    assert "".join(refresh.steps[0].statements[0].sql.split()) in shown
