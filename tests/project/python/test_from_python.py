import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from springhouse.project.declarations.contents import Contents
from springhouse.project.declarations.declaration import (
    AppendFlow,
    CdcFlow,
    Place,
    Promise,
    PythonQuery,
    ReadMode,
    SqlQuery,
    Table,
    TemporaryView,
    View,
)
from springhouse.project.declarations.names import Names
from springhouse.project.python.from_python import read_python
from springhouse.units import Seconds

HEADER = "from pyspark import pipelines as dp\n"


class Spark:
    """Replaces a session that starts at its first use, and records whether that happens."""

    def __init__(self) -> None:
        self.used: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.used.append(name)
        return lambda *args, **kwargs: (name, args)


Read = Callable[[str], Contents]


@pytest.fixture
def spark() -> Spark:
    return Spark()


@pytest.fixture
def read(tmp_path: Path, spark: Spark) -> Read:
    def read_text(text: str) -> Contents:
        (tmp_path / "all").mkdir(exist_ok=True)
        path = tmp_path.resolve() / "all" / "a.py"
        path.write_text(HEADER + text, encoding="utf-8")
        return read_python(path, tmp_path.resolve(), Names("main", "shop"), spark)

    return read_text


def declared(contents: Contents) -> list[Any]:
    assert [str(error) for error in contents.errors] == []
    return list(contents.declarations)


def test_a_materialized_view(read: Read) -> None:
    (view,) = declared(
        read(
            "from pyspark.sql.types import StructType, StructField, LongType\n"
            "@dp.materialized_view(\n"
            "    name='shop.Sales', comment='c', partition_cols=['day'],\n"
            "    schema=StructType([StructField('id', LongType(), False)]),\n"
            "    table_properties={'springhouse.staleness': '1 minute', 'x': 'y'})\n"
            "def anything():\n"
            "    return spark.table('orders')\n"
        )
    )
    assert isinstance(view, View)
    assert (view.name, view.place, view.comment) == ("sales", Place("all/a.py", 3), "c")
    assert (view.partition_by, view.schema) == (("day",), "`id` bigint NOT NULL")
    assert (view.promise, view.properties) == (Promise(Seconds(60)), {"x": "y"})
    assert isinstance(view.query, PythonQuery)
    assert view.query.function() == ("table", ("orders",))


def test_tables_flows_and_temporary_views(read: Read) -> None:
    orders, big, known, own_flow, flow = declared(
        read(
            "@dp.table\n"
            "def orders(): return spark.readStream.table('raw')\n"
            "dp.create_streaming_table('big', schema='id BIGINT')\n"
            "@dp.append_flow(target='big', name='fill')\n"
            "def whatever(): return spark.readStream.table('orders')\n"
            "@dp.temporary_view\n"
            "def known(): return spark.table('orders')\n"
        )
    )
    assert isinstance(orders, Table)
    assert isinstance(big, Table)
    assert big.schema == "id BIGINT"
    assert isinstance(known, TemporaryView)
    assert isinstance(own_flow, AppendFlow)
    assert (own_flow.name, own_flow.target) == ("orders", "orders")
    assert (flow.name, flow.target, flow.place) == ("fill", "big", Place("all/a.py", 5))
    assert [(r.name, r.reading) for r in flow.query.references] == [("orders", ReadMode.STREAM)]


def test_a_function_that_only_calls_spark_sql_is_read_and_never_called(
    read: Read, spark: Spark
) -> None:
    text = (
        "from pyspark.sql import SparkSession\n"
        "session = SparkSession.active()\n"
        "@dp.materialized_view\n"
        "def by_day():\n"
        "    return session.sql('''\n"
        "        SELECT day, count(*) AS n FROM recent GROUP BY day''')\n"
        "@dp.temporary_view\n"
        "def recent(): return spark.sql('SELECT * FROM orders')\n"
        "@dp.table\n"
        "def copied(): return spark.sql('SELECT * FROM STREAM(orders)')\n"
    )
    by_day, recent, _, flow = declared(read(text))
    assert by_day.query.place == Place("all/a.py", 7)
    assert by_day.query.text == "SELECT day, count(*) AS n FROM recent GROUP BY day"
    assert [(r.name, r.reading) for r in recent.query.references] == [("orders", ReadMode.TABLE)]
    assert isinstance(recent.query, SqlQuery)
    # Structured Streaming runs the flows of Python files, and wants to call them.
    assert isinstance(flow.query, PythonQuery)
    assert spark.used == []
    # The file may define functions that the query calls: any change of it counts.
    other, *_ = declared(read(text + "x = 1\n"))
    assert other.query.text == by_day.query.text
    assert other.query.fingerprint != by_day.query.fingerprint


def test_a_function_of_an_imported_file_is_called(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queries_of_others.py").write_text(
        "from pyspark.sql import SparkSession\nspark = SparkSession.active()\n"
        "def q(): return spark.sql('SELECT 1 AS one')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "queries_of_others", raising=False)
    (view,) = declared(read("from queries_of_others import q\ndp.materialized_view(q)\n"))
    assert isinstance(view.query, PythonQuery)
    monkeypatch.delitem(sys.modules, "queries_of_others")


def test_auto_cdc_is_turned_back_into_sql(read: Read, spark: Spark) -> None:
    _, flow = declared(
        read(
            "from pyspark.sql.functions import col, expr\n"
            "dp.create_streaming_table('t')\n"
            "dp.create_auto_cdc_flow('t', 'shop.s', keys=['id', 'n'], sequence_by=col('ts'),\n"
            "    apply_as_deletes=expr(\"op = 'D'\"), except_column_list=['op'],\n"
            "    stored_as_scd_type='2')\n"
        )
    )
    assert isinstance(flow, CdcFlow)
    assert (flow.name, flow.target, flow.place) == ("t", "t", Place("all/a.py", 4))
    assert (flow.source.name, flow.source.reading) == ("s", ReadMode.STREAM)
    assert (flow.keys, flow.sequence_by, flow.delete_when) == (("id", "n"), "ts", "op = 'D'")
    assert (flow.columns, flow.except_columns, flow.scd_type) == (None, ("op",), 2)
    assert spark.used == []


def test_auto_cdc_is_of_type_1_unless_it_says_otherwise(read: Read) -> None:
    text = (
        "what = dict(keys=['id'], sequence_by='struct(a, b)', column_list=['id'])\n"
        "dp.create_auto_cdc_flow('t', 's', name='one', stored_as_scd_type=2, **what)\n"
        "dp.create_auto_cdc_flow('t', 's', name='two', **what)\n"
    )
    first, second = declared(read(text))
    assert (first.scd_type, second.scd_type) == (2, 1)
    assert (second.name, second.sequence_by, second.columns) == ("two", "struct(a, b)", ("id",))


def test_a_loop_declares_a_table_for_each_turn_and_its_variable_stays(read: Read) -> None:
    views = declared(
        read(
            "for region in ['eu', 'us']:\n"
            "    @dp.materialized_view(name=f'orders_{region}')\n"
            "    def regional():\n"
            "        return spark.table('orders', region)\n"
        )
    )
    assert [view.name for view in views] == ["orders_eu", "orders_us"]
    assert [view.query.function()[1] for view in views] == [("orders", "eu"), ("orders", "us")]
    assert len({view.query.fingerprint for view in views}) == 2


def test_every_way_to_a_session_leads_to_the_one_that_was_handed_in(
    read: Read, spark: Spark
) -> None:
    before = dict(SparkSession.__dict__)
    contents = read(
        "from pyspark.sql import SparkSession\n"
        "assert SparkSession.active() is spark\n"
        "assert SparkSession.getActiveSession() is spark\n"
        "assert SparkSession.builder.appName('x').config('a', 'b').getOrCreate() is spark\n"
    )
    assert contents.errors == []
    assert spark.used == []
    assert {key: SparkSession.__dict__[key] for key in before} == before


def test_a_file_runs_in_the_projects_folder_and_leaves_nothing_behind(
    read: Read, tmp_path: Path
) -> None:
    folder, modules = Path.cwd(), set(sys.modules)
    contents = read("import os\nassert os.getcwd() == os.path.dirname(os.path.dirname(__file__))\n")
    assert contents.errors == []
    assert Path.cwd() == folder
    assert set(sys.modules) - modules == set()
    assert [path.name for path in (tmp_path / "all").iterdir()] == ["a.py"]


def test_functions_of_spark_are_the_usual_ones_after_the_load(read: Read) -> None:
    from pyspark.sql import functions

    before = functions.col
    (view,) = declared(
        read(
            "from pyspark.sql.functions import col\n"
            "@dp.materialized_view\n"
            "def v(): return col('x')\n"
        )
    )
    assert functions.col is before
    # Without a session Spark's own `col` refuses; the session of the load would have answered.
    with pytest.raises(AssertionError):
        view.query.function()


NO_SESSION = (
    "\n  hint: There is no Spark session yet while files are loaded: use it inside the query "
    "function."
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n1 / 0", "all/a.py:3: ZeroDivisionError: division by zero"),
        ("def f():\n    raise ValueError('oh')\n\nf()", "all/a.py:3: ValueError: oh"),
        ("x = (", "all/a.py:2: this is not Python: '(' was never closed"),
        ("import nowhere", "all/a.py:2: ModuleNotFoundError: No module named 'nowhere'"),
        ("raise SystemExit(3)", "all/a.py:2: SystemExit: 3"),
        (
            "dp.create_sink('s', 'kafka')",
            (
                'all/a.py:2: the sink "s" is declared without a table, and a sink belongs to a '
                "table\n"
                "  hint: Send the changes of a table or view: give it the table property "
                "'springhouse.sink.<name>' = '<plug-in>'."
            ),
        ),
        (
            "dp.create_streaming_table(7)",
            (
                "all/a.py:2: PySparkTypeError: [NOT_EXPECTED_TYPE] Argument `name` should "
                "be str, got "
                "int."
            ),
        ),
        (
            "\ndp.create_auto_cdc_flow('t', 's', ['id'], 'a', stored_as_scd_type=3)",
            "all/a.py:3: stored_as_scd_type is 3, and can be 1 or 2",
        ),
        (
            (
                "from pyspark.sql.functions import col\n"
                "dp.create_auto_cdc_flow('t', 's', ['id'], col('a') + 1)"
            ),
            (
                "all/a.py:3: the column +(a, 1) can't be turned into SQL text\n"
                '  hint: Write it as SQL text: sequence_by="coalesce(changed_at, created_at)".'
            ),
        ),
        (
            "from pyspark.sql.functions import lit\nx = lit(1)",
            f"all/a.py:3: AssertionError{NO_SESSION}",
        ),
        (
            (
                "@dp.table(table_properties={'springhouse.refresh': 'full'})\n"
                "def t(): return spark.readStream.table('x')"
            ),
            (
                'all/a.py:2: "springhouse.refresh" belongs on a materialized view, and "t" is a '
                "streaming table\n  hint: The properties of a streaming table are "
                "springhouse.flows.pack-bytes, springhouse.flows.policy, "
                "springhouse.flows.queue-packs, "
                "springhouse.inconsistency, springhouse.lateness, springhouse.period, "
                "springhouse.priority, springhouse.recreated, springhouse.reread, "
                "springhouse.sink.<name>, springhouse.staleness, "
                "springhouse.timestamp."
            ),
        ),
    ],
)
def test_what_a_file_raises_is_told_with_its_line(read: Read, text: str, message: str) -> None:
    assert [str(error) for error in read(text).errors] == [message]


def test_what_was_declared_before_an_exception_counts(read: Read) -> None:
    contents = read("dp.create_streaming_table('t')\n1 / 0\n")
    assert [each.name for each in contents.named()] == ["t"]
    assert contents.unread


def test_without_a_session_a_file_is_read_all_the_same(tmp_path: Path) -> None:
    path = tmp_path.resolve() / "a.py"
    path.write_text(HEADER + "@dp.materialized_view\ndef v(): return spark.table('x')\n")
    assert [each.name for each in read_python(path, path.parent, Names()).named()] == ["v"]
    path.write_text("\nspark.range(3)\n")
    assert [str(error) for error in read_python(path, path.parent, Names()).errors] == [
        f"a.py:2: spark.range is used while the file is loaded{NO_SESSION}"
    ]
