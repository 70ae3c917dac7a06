"""When does a definition count as unchanged?"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from springhouse.project.declarations.declaration import Project
from springhouse.project.lineage.fingerprint import fingerprint

Load = Callable[[str | Mapping[str, str]], Project]

ORDERS = "CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_files('x', format => 'csv');\n"
PYTHON = (
    "from pyspark import pipelines as dp\n"
    "{before}"
    "@dp.materialized_view\n"
    "def v(): return spark.sql('{query}')\n"
)


def of_sql(project: Load, query: str) -> str:
    loaded = project(f"{ORDERS}CREATE MATERIALIZED VIEW v AS {query};")
    return fingerprint(loaded, loaded.views["v"])


def of_python(project: Load, query: str, before: str = "") -> str:
    text = PYTHON.format(query=query, before=before)
    loaded = project({"all/a.sql": ORDERS, "all/b.py": text})
    return fingerprint(loaded, loaded.views["v"])


def test_layout_is_no_change_and_words_are(project: Load) -> None:
    one = of_sql(project, "SELECT id FROM orders")
    assert of_sql(project, "SELECT id\n  FROM orders") == one
    assert of_sql(project, "SELECT id AS n FROM orders") != one


def test_sql_in_a_python_file_changes_with_the_file(project: Load) -> None:
    one = of_python(project, "SELECT id FROM orders")
    assert of_python(project, "SELECT id FROM orders") == one
    assert of_python(project, "SELECT id AS n FROM orders") != one
    # The added code may define a function that the query calls.
    assert of_python(project, "SELECT id FROM orders", before="def half(x): return x / 2\n") != one


def test_settings_that_decide_what_a_query_gives(project: Load) -> None:
    loaded = project(f"{ORDERS}CREATE MATERIALIZED VIEW v AS SELECT id FROM orders;")

    def under(**settings: str) -> str:
        given = {key.replace("_", "."): value for key, value in settings.items()}
        return fingerprint(replace(loaded, configuration=given), loaded.views["v"])

    assert under(spark_sql_session_timeZone="Asia/Tokyo") != under()
    assert under(spark_sql_ansi_enabled="false") != under(spark_sql_ansi_enabled="true")
    assert under(spark_sql_shuffle_partitions="4", springhouse_tracks="3") == under()
