"""Views of any query: one step replaces the rows, and the commit holds provenance and the delta."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from springhouse.lake.delta.changes import strong_delta
from springhouse.warehouse import Warehouse

TICKS = "STREAM sample(rate => '1', start => '2026-01-01 00:00:00', limit => '{limit}')"


def rows(warehouse: Warehouse, name: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in warehouse.query(f"SELECT * FROM {name}").collect()), key=str)


def ticks(limit: int) -> str:
    return f"CREATE STREAMING TABLE ticks AS SELECT offset FROM {TICKS.format(limit=limit)};"


def test_a_view_reads_a_delta_table_of_others(project: Any, tmp_path: Path) -> None:
    rates = tmp_path / "rates"
    write_deltalake(rates, pa.table({"code": ["NOK", "EUR"], "rate": [1.0, 11.5]}))
    folder = project(
        f"CREATE MATERIALIZED VIEW strong AS SELECT code FROM delta.`{rates}` WHERE rate > 1;"
    )
    warehouse = Warehouse(folder)
    warehouse.refresh()
    assert rows(warehouse, "strong") == [("EUR",)]
    DeltaTable(rates).update(updates={"rate": "2.0"}, predicate="code = 'NOK'")
    assert [p.reason for p in warehouse.plan()] == [f"new data in delta.`{rates}`"]
    warehouse.refresh()
    assert rows(warehouse, "strong") == [("EUR",), ("NOK",)]
    assert warehouse.plan() == []


def test_the_delta_of_a_replaced_view_holds_what_changed(project: Any) -> None:
    by_parity = (
        "CREATE MATERIALIZED VIEW by_parity AS "
        "SELECT offset % 2 AS parity, count(*) AS n FROM ticks GROUP BY 1;"
    )
    Warehouse(project(ticks(4) + by_parity)).refresh()
    warehouse = Warehouse(project(ticks(5) + by_parity))
    warehouse.refresh()
    log = warehouse.internals.lake.log("by_parity")
    delta = strong_delta(warehouse.internals.lake.spark.session(), log, 0, 1)
    assert sorted(map(tuple, delta.collect())) == [(0, 2, -1), (0, 3, 1)]
    note = log.commits()[-1].note
    assert note is not None
    assert (note.rows, note.rows_added, note.rows_removed) == (2, 1, 1)
    assert note.before.as_json() == {"ticks": [1]}
    assert note.after.as_json() == {"ticks": [2]}


def test_a_changed_definition_rebuilds_the_view(project: Any) -> None:
    view = "CREATE MATERIALIZED VIEW v AS SELECT {columns} FROM ticks;"
    Warehouse(project(ticks(2) + view.format(columns="offset"))).refresh()
    same = Warehouse(project(ticks(2) + view.format(columns="  offset\n")))
    assert same.plan() == []
    other = Warehouse(project(ticks(2) + view.format(columns="offset, offset * 10 AS tenfold")))
    assert [(p.table, p.reason) for p in other.plan()] == [("v", "its definition changed")]
    other.refresh()
    assert rows(other, "v") == [(0, 0), (1, 10)]
    assert DeltaTable(other.internals.lake.place("v").root).to_pyarrow_table().column_names == [
        "offset",
        "tenfold",
    ]


def test_the_temporary_view_that_it_reads_is_part_of_its_definition(project: Any) -> None:
    sql = (
        ticks(4)
        + "CREATE TEMPORARY VIEW few AS SELECT * FROM ticks WHERE offset < {n};"
        + "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM few;"
    )
    Warehouse(project(sql.format(n=2))).refresh()
    warehouse = Warehouse(project(sql.format(n=3)))
    warehouse.refresh()
    assert rows(warehouse, "v") == [(3,)]


def test_rows_changed_by_another_writer_are_rebuilt(project: Any) -> None:
    warehouse = Warehouse(
        project(ticks(3) + "CREATE MATERIALIZED VIEW v AS SELECT offset FROM ticks;")
    )
    warehouse.refresh()
    DeltaTable(warehouse.internals.lake.place("v").root).delete("offset = 1")
    assert [p.reason for p in warehouse.plan()] == ["its rows were changed by another writer"]
    warehouse.refresh()
    assert rows(warehouse, "v") == [(0,), (1,), (2,)]


def test_a_refresh_that_changes_no_row_rewrites_no_file(project: Any) -> None:
    view = "CREATE MATERIALIZED VIEW v AS SELECT offset FROM ticks WHERE offset < 2;"
    first = Warehouse(project(ticks(3) + view))
    first.refresh()
    files = DeltaTable(first.internals.lake.place("v").root).file_uris()
    warehouse = Warehouse(project(ticks(9) + view))
    warehouse.refresh()
    assert DeltaTable(warehouse.internals.lake.place("v").root).file_uris() == files
    assert warehouse.history("v")[0].reflects == {"ticks": (2,)}
    assert warehouse.plan() == []


def test_an_empty_view_is_a_table_with_columns(project: Any) -> None:
    warehouse = Warehouse(
        project(ticks(3) + "CREATE MATERIALIZED VIEW v AS SELECT offset FROM ticks WHERE false;")
    )
    warehouse.refresh()
    table = DeltaTable(warehouse.internals.lake.place("v").root).to_pyarrow_table()
    assert (table.num_rows, table.column_names) == (0, ["offset"])
    assert warehouse.plan() == []


def test_nested_and_odd_types_survive_and_their_changes_are_found(project: Any) -> None:
    view = (
        "CREATE MATERIALIZED VIEW v AS SELECT array(offset) AS a, named_struct('x', offset) AS s, "
        "map('k', offset) AS m, CAST(offset AS DECIMAL(20, 4)) AS d, DATE'2026-01-01' AS day, "
        "TIMESTAMP_NTZ'2026-01-01 00:00:00' AS t, X'0AFF' AS b FROM ticks;"
    )
    Warehouse(project(ticks(2) + view)).refresh()
    warehouse = Warehouse(project(ticks(3) + view))
    assert warehouse.refresh().ok
    assert warehouse.query("SELECT sum(s.x), sum(m['k']), sum(a[0]) FROM v").collect()[0] == (
        3,
        3,
        3,
    )
    assert warehouse.history("v")[0].rows_added >= 1


def test_declared_columns_name_and_type_the_query(project: Any) -> None:
    sql = ticks(2) + (
        "CREATE MATERIALIZED VIEW named (first, second) AS SELECT offset, 'x' FROM ticks;"
        "CREATE MATERIALIZED VIEW typed (n STRING, m DOUBLE) AS SELECT offset, 1 FROM ticks;"
    )
    warehouse = Warehouse(project(sql))
    assert warehouse.refresh().ok
    assert rows(warehouse, "named") == [(0, "x"), (1, "x")]
    assert rows(warehouse, "typed") == [("0", 1.0), ("1", 1.0)]


def test_braces_and_quotes_in_a_query_stay_what_they_are(project: Any) -> None:
    sql = ticks(1) + "CREATE MATERIALIZED VIEW v AS SELECT '{offset}' AS a, '{{' AS b FROM ticks;"
    warehouse = Warehouse(project(sql))
    assert warehouse.refresh().ok
    assert rows(warehouse, "v") == [("{offset}", "{{")]


def test_a_self_join_and_a_cte_named_like_a_table(project: Any) -> None:
    sql = ticks(3) + (
        "CREATE MATERIALIZED VIEW pairs AS SELECT a.offset AS x, b.offset AS y "
        "FROM ticks a JOIN ticks b ON b.offset = a.offset + 1;"
        "CREATE MATERIALIZED VIEW shadow AS WITH t AS (SELECT offset FROM ticks) "
        "SELECT max(t.offset) AS top FROM t WHERE offset IN (SELECT ticks.offset FROM ticks);"
    )
    warehouse = Warehouse(project(sql))
    assert warehouse.refresh().ok
    assert rows(warehouse, "pairs") == [(0, 1), (1, 2)]
    assert rows(warehouse, "shadow") == [(2,)]


PYTHON = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession, functions as sf

spark = SparkSession.active()

for parity in (0, 1):
    @dp.materialized_view(name=f"parity_{parity}")
    def of_parity(parity=parity):
        return spark.table("ticks").where(sf.col("offset") % 2 == parity)

@dp.materialized_view
def both():
    names = ["parity_0", "parity_1"]
    return spark.read.table(names[0]).unionAll(spark.sql("SELECT * FROM " + names[1]))

@dp.materialized_view
def constant():
    return spark.range(3)
"""


def test_python_views_read_tables_by_names_that_they_compute(project: Any) -> None:
    warehouse = Warehouse(project(ticks(5), PYTHON))
    refreshed = warehouse.refresh()
    assert refreshed.ok, refreshed.failures
    assert rows(warehouse, "parity_0") == [(0,), (2,), (4,)]
    assert rows(warehouse, "both") == [(0,), (1,), (2,), (3,), (4,)]
    assert rows(warehouse, "constant") == [(0,), (1,), (2,)]
    # The inputs that a function read at its last run now decide when it is refreshed.
    later = Warehouse(project(ticks(6), PYTHON))
    assert later.refresh().ok
    assert rows(later, "both") == [(0,), (1,), (2,), (3,), (4,), (5,)]


FAILING: list[tuple[str, str]] = [
    ("SELECT nonsense(offset) AS x FROM ticks", "UNRESOLVED_ROUTINE"),
    (
        "SELECT s.*, 1 AS b FROM (SELECT struct(offset AS b) AS s FROM ticks)",
        'has two columns named "b"',
    ),
    ("SELECT NULL AS nothing FROM ticks", 'the column "nothing" has no type'),
    ("SELECT assert_true(offset < 0) AS x FROM ticks", "is not true"),
]


@pytest.mark.parametrize(("query", "problem"), FAILING)
def test_a_view_that_fails_says_where_and_leaves_the_others(
    project: Any, query: str, problem: str
) -> None:
    sql = (
        ticks(2)
        + f"CREATE MATERIALIZED VIEW bad AS {query};\n"
        + ("CREATE MATERIALIZED VIEW good AS SELECT count(*) AS n FROM ticks;")
    )
    warehouse = Warehouse(project(sql))
    refreshed = warehouse.refresh()
    assert list(refreshed.failures) == ["bad"]
    assert problem in refreshed.failures["bad"].problem
    assert "transformations/all.sql:1" in refreshed.failures["bad"].problem
    assert rows(warehouse, "good") == [(2,)]
    failing = next(s for s in warehouse.status() if s.name == "bad")
    assert failing.state == "failing"


INCREMENTAL = "TBLPROPERTIES ('springhouse.refresh' = 'incremental')"


def test_a_view_that_must_be_incremental_says_why_it_can_not_be(project: Any) -> None:
    view = f"CREATE MATERIALIZED VIEW v {INCREMENTAL} AS\nSELECT offset,\n  rand() AS n FROM ticks;"
    problem = Warehouse(project(ticks(2) + view)).refresh().failures["v"].problem
    assert problem.startswith(
        'transformations/all.sql:3: the view "v" asks for incremental refreshes, and can\'t have '
        "them: `rand` gives another value each time\n"
    )


def test_a_view_that_must_be_incremental_is_from_its_second_refresh_on(project: Any) -> None:
    view = f"CREATE MATERIALIZED VIEW v {INCREMENTAL} AS SELECT count(*) AS n FROM ticks;"
    assert Warehouse(project(ticks(2) + view)).refresh().ok
    warehouse = Warehouse(project(ticks(5) + view))
    assert warehouse.refresh().ok
    assert [commit.way for commit in warehouse.history("v")] == ["incremental", "full"]
    assert rows(warehouse, "v") == [(5,)]
    assert warehouse.plan() == []


SQL_IN_PYTHON = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()
EVEN = "SELECT offset FROM ticks WHERE offset % 2 = 0"

@dp.temporary_view
def even():
    return spark.sql(EVEN)

@dp.materialized_view(table_properties={"springhouse.refresh": "incremental"})
def counted():
    return spark.sql(
        '''
        SELECT offset % 4 AS rest, count(*) AS n
        FROM even
        GROUP BY 1
        '''
    )
"""


def test_a_function_that_is_only_sql_is_refreshed_incrementally(project: Any) -> None:
    assert Warehouse(project(ticks(4), SQL_IN_PYTHON)).refresh().ok
    warehouse = Warehouse(project(ticks(7), SQL_IN_PYTHON))
    assert warehouse.refresh().ok
    assert [commit.way for commit in warehouse.history("counted")] == ["incremental", "full"]
    assert rows(warehouse, "counted") == [(0, 2), (2, 2)]
    changed = Warehouse(project(ticks(7), SQL_IN_PYTHON.replace("% 2 = 0", "% 2 = 1")))
    assert [p.reason for p in changed.plan()] == ["its definition changed"]
    assert changed.refresh().ok
    assert rows(changed, "counted") == [(1, 2), (3, 1)]


def test_the_oldest_input_is_read_as_the_view_beside_it_saw_it(
    project: Callable[..., Path],
) -> None:
    """A diamond: the view on top never mixes two states of the table at the bottom."""
    from springhouse.warehouse.running.execution import perform

    sql = (
        "CREATE STREAMING TABLE ticks AS SELECT offset FROM "
        "STREAM read_files('data', format => 'json', schema => 'offset BIGINT');"
        "CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM ticks;"
        "CREATE MATERIALIZED VIEW checked AS "
        "SELECT n, (SELECT count(*) FROM ticks) AS m FROM total;"
    )
    folder = project(sql)
    (folder / "data").mkdir()
    warehouse = Warehouse(folder)
    for number in range(3):
        (folder / "data" / f"{number}.json").write_text(f'{{"offset": {number}}}\n')
        perform(warehouse.internals.watch, warehouse.internals.watch.forced("ticks", "test"))
        if number != 1:
            perform(warehouse.internals.watch, warehouse.internals.watch.forced("total", "test"))
        perform(warehouse.internals.watch, warehouse.internals.watch.forced("checked", "test"))
        n, m = rows(warehouse, "checked")[0]
        assert n == m
    assert rows(warehouse, "checked") == [(3, 3)]
    explained = warehouse.explain("checked")
    assert explained.stored.consistent is True
    assert explained.pathways == ("ticks -> checked", "ticks -> total -> checked")
