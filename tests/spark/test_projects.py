"""What a project may say, held against a real Spark: names, descriptions, commands that only read,
and that `check` and `run` agree."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from springhouse.errors import ProjectErrors, SpringhouseError
from springhouse.house import House
from springhouse.lake.alignment import parsed_schema
from springhouse.project.load import load
from springhouse.project.schema_text import column_names

Write = Callable[..., Path]

NAMES = ["orders", "orders-2", "straße", "订单", "select", "2024_orders", "other.orders", "n" * 100]


@pytest.mark.parametrize("name", NAMES)
def test_what_can_be_built_can_be_read(project: Write, name: str) -> None:
    quoted = ".".join(f"`{part}`" for part in name.split("."))
    folder = project(
        f"""
CREATE STREAMING TABLE {quoted} (CONSTRAINT few EXPECT (n < 2) ON VIOLATION QUARANTINE) AS
  SELECT n FROM STREAM read_files('data', format => 'json', schema => 'n BIGINT');
CREATE STREAMING TABLE again AS SELECT n FROM STREAM({quoted});
CREATE MATERIALIZED VIEW seen TBLPROPERTIES ('springhouse.staleness.{name}' = '1 day') AS
  SELECT {quoted.rpartition(".")[2]}.n FROM {quoted};
"""
    )
    (folder / "data").mkdir()
    (folder / "data" / "1.json").write_text('{"n": 1}\n{"n": 2}\n')
    with House(folder) as house:
        assert house.refresh().ok
        assert [row.n for row in house.query(f"SELECT n FROM {quoted}").collect()] == [1]
        assert [row.n for row in house.query("SELECT n FROM seen").collect()] == [1]
        assert [row.n for row in house.query("SELECT n FROM again").collect()] == [1]
        *before, last = name.split(".")
        aside = ".".join(f"`{part}`" for part in (*before, f"{last}_quarantine"))
        assert house.query(f"SELECT * FROM {aside}").count() == 1
        assert house.history(name)
        assert house.explain(name)
    table = DeltaTable(str(folder / "storage" / "tables" / name))
    assert table.to_pyarrow_table().column("n").to_pylist() == [1]


DESCRIBED = """
CREATE STREAMING TABLE ticks (offset BIGINT COMMENT 'how many', kind STRING) COMMENT '{comment}'
  TBLPROPERTIES ('owner' = '{owner}', 'delta.logRetentionDuration' = 'interval 9 days',
                 'springhouse.sink.out' = 'positioned_file',
                 'springhouse.sink.out.path' = '${{env:OUT}}')
  AS SELECT offset, 'a' AS kind FROM STREAM sample(limit => '{limit}', start => '2026-01-01');
CREATE MATERIALIZED VIEW counted (kind COMMENT 'which', n) COMMENT 'it''s counted'
  TBLPROPERTIES ('springhouse.refresh' = 'incremental')
  AS SELECT kind, count(*) FROM ticks GROUP BY kind;
"""


def test_comments_and_properties_reach_the_delta_table(
    project: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = str(tmp_path / "s3cr3t-place")
    monkeypatch.setenv("OUT", secret)
    folder = project(DESCRIBED.format(comment="every tick", owner="ana", limit=3))

    def metadata(name: str) -> Any:
        table = DeltaTable(str(folder / "storage" / "tables" / name))
        comments = {
            f["name"]: f["metadata"] for f in json.loads(table.schema().to_json())["fields"]
        }
        return table.metadata(), comments

    def refresh() -> list[str]:
        with House(folder) as house:
            assert house.refresh().ok
            return [each["kind"] for each in house.history("counted") if each.get("kind")]

    refresh()
    ticks, columns = metadata("ticks")
    assert ticks.description == "every tick"
    assert columns["offset"] == {"comment": "how many"}
    assert ticks.configuration["owner"] == "ana"
    assert ticks.configuration["delta.logRetentionDuration"] == "interval 9 days"
    assert not [key for key in ticks.configuration if key.startswith("springhouse")]
    counted, columns = metadata("counted")
    assert (counted.description, columns["kind"]) == ("it's counted", {"comment": "which"})

    # Nothing to do: nothing is written.
    version = DeltaTable(str(folder / "storage" / "tables" / "ticks")).version()
    refresh()
    assert DeltaTable(str(folder / "storage" / "tables" / "ticks")).version() == version

    # A changed declaration changes the metadata, though no row came; a change stays incremental.
    project(DESCRIBED.format(comment="all of them", owner="bo", limit=3))
    refresh()
    ticks, _ = metadata("ticks")
    assert (ticks.description, ticks.configuration["owner"]) == ("all of them", "bo")
    project(DESCRIBED.format(comment="all of them", owner="bo", limit=5))
    with House(folder) as house:
        done = house.refresh().done
        assert [each.kind for each in done if each.table == "counted"] == ["merge"]
        assert [row.n for row in house.query("SELECT n FROM counted").collect()] == [5]
    stored = [path for path in (folder / "storage").rglob("*") if path.is_file()]
    assert not [path for path in stored if b"s3cr3t-place" in path.read_bytes()]


def tree(*folders: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder below, with its size and time."""
    paths = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    return {str(p): (p.lstat().st_size, p.lstat().st_mtime_ns) for p in paths}


READ_ONLY: dict[str, Callable[[House], object]] = {
    "status": lambda house: house.status(),
    "plan": lambda house: house.plan(),
    "explain table": lambda house: house.explain("ticks"),
    "explain view": lambda house: house.explain("total"),
    "history": lambda house: house.history("ticks"),
    "query": lambda house: house.query("SELECT * FROM total").collect(),
}


def test_commands_that_read_write_nothing(project: Write) -> None:
    folder = project(
        "CREATE STREAMING TABLE ticks AS SELECT n FROM STREAM "
        "read_files('data', format => 'json', schema => 'n BIGINT');\n"
        "CREATE STREAMING TABLE events AS SELECT offset FROM STREAM sample(limit => '5');\n"
        "CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM ticks;"
    )
    (folder / "data").mkdir()
    (folder / "data" / "1.json").write_text('{"n": 1}\n')

    def untouched(commands: dict[str, Callable[[House], object]]) -> None:
        for name, command in commands.items():
            before = tree(folder)
            with House(folder) as house:
                command(house)
            assert tree(folder) == before, name

    load(folder)
    offline = {name: command for name, command in READ_ONLY.items() if name != "query"}
    untouched(offline)  # Before the first refresh.
    with House(folder) as house:
        assert house.refresh().ok
    untouched(READ_ONLY)
    (folder / "data" / "2.json").write_text('{"n": 2}\n')
    untouched(READ_ONLY)  # While data waits.
    with House(folder) as house:
        assert [each.state for each in house.status() if each.name == "ticks"] == ["waiting"]


# `check` and `run` agree


SOURCE = "STREAM read_files('data', format => 'json', schema => 'n BIGINT, t TIMESTAMP, s STRING')"
TABLE = f"CREATE STREAMING TABLE t AS SELECT * FROM {SOURCE};\n"


def view(query: str) -> str:
    return TABLE + f"CREATE MATERIALIZED VIEW v AS {query};"


GOOD = [
    view("SELECT n AS m, m + 1 AS k FROM t"),  # an alias of the same SELECT
    view("SELECT s, count(*) FROM t GROUP BY ALL HAVING count(*) > 0 ORDER BY s"),
    view(
        "SELECT a.n FROM t AS a JOIN t AS b USING (n) WHERE EXISTS (SELECT 1 FROM t WHERE n = a.n)"
    ),
    view("SELECT transform(array(n), x -> x + 1) AS xs FROM t"),
    view("SELECT x.y FROM (SELECT named_struct('y', n) AS x FROM t)"),
    view("SELECT u FROM t LATERAL VIEW explode(array(n, n)) AS u"),
    view("SELECT * EXCEPT (n) FROM t"),
    view("WITH c AS (SELECT n AS q FROM t) SELECT c.q, current_date FROM c"),
    view("SELECT timestampdiff(MINUTE, t, t) AS d, extract(YEAR FROM t) AS y FROM t"),
    view("SELECT n, row_number() OVER w AS r FROM t WINDOW w AS (PARTITION BY s ORDER BY n)"),
    view("SELECT z.b FROM (SELECT n, s FROM t) AS z(a, b)"),
    view("SELECT n FROM t UNION ALL SELECT size(array(n)) FROM t ORDER BY n"),
    view("SELECT * FROM t PIVOT (count(n) FOR s IN ('a', 'b'))"),
    view("SELECT t.t FROM t -- the column t of the table t"),
    (
        "CREATE STREAMING TABLE t (CONSTRAINT a EXPECT (n < 10), CONSTRAINT b EXPECT (n >= 1 AND "
        "n <> 3), CONSTRAINT c EXPECT (n >= 0 OR map('a', 1)['a'] <=> 1)) "
        f"AS SELECT * FROM {SOURCE}"
    ),
    (
        "CREATE STREAMING TABLE t (CONSTRAINT a EXPECT (s NOT IN ('a,b', 'c;d', 'it''s', '--', "
        f"'/*'))) AS SELECT * FROM {SOURCE}"
    ),
    f"SET spark.sql.session.timeZone = UTC;\n{TABLE}",
]
BAD = [
    view("SELECT nn FROM t"),
    view("SELECT b.n FROM t AS a"),
    view("SELECT a.m FROM t AS a"),
    view("SELECT n FROM t WHERE missing > 1"),
    view("SELECT q FROM (SELECT n FROM t)"),
    view("SELECT n FROM t AS a WHERE EXISTS (SELECT 1 FROM t AS b WHERE b.n = a.nope)"),
    view("WITH c AS (SELECT n AS q FROM t) SELECT c.n FROM c"),
    f"CREATE STREAMING TABLE t (CONSTRAINT a EXPECT (m < 10)) AS SELECT * FROM {SOURCE}",
    f"CREATE STREAMING TABLE t AS SELECT m FROM {SOURCE}",
    TABLE.replace("'json'", "'jsn'"),
    TABLE.replace("format =>", "formt =>"),
    TABLE.replace("n BIGINT", "n BIGNT"),
    TABLE.replace("n BIGINT", "n DECIMAL(40, 2)"),
    TABLE.replace("'data',", "'data', multiLne => 'true',"),
    TABLE.replace("'data',", "'data', header => 'true',"),
    TABLE.replace("'data',", "'data', max_files => '0',"),
    "CREATE STREAMING TABLE t AS SELECT * FROM STREAM sample(rate => 'fast');",
    "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_kafka('t');",
]


def refreshed(folder: Path) -> bool:
    """Whether a project runs, without asking `check` anything."""
    with House(folder) as house:
        return house.refresh().ok


@pytest.mark.parametrize("sql", GOOD)
def test_check_accepts_what_runs(project: Write, sql: str) -> None:
    folder = project(sql)
    (folder / "data").mkdir()
    (folder / "data" / "1.json").write_text('{"n": 5, "s": "x", "t": "2026-01-01 00:00:00"}\n')
    load(folder)
    assert refreshed(folder)


@pytest.mark.parametrize("sql", BAD)
def test_what_check_refuses_would_not_run(
    project: Write, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(sql)
    (folder / "data").mkdir()
    (folder / "data" / "1.json").write_text('{"n": 5, "s": "x", "t": "2026-01-01 00:00:00"}\n')
    with pytest.raises(ProjectErrors) as caught:
        load(folder)
    assert all(str(e.where).startswith("transformations/all.sql:") for e in caught.value.errors)
    # Without these rules the refresh fails: they refuse nothing that works.
    from springhouse.project import check as rules

    left = tuple(r for r in rules.RULES if r not in (rules.calls_fit, rules.columns_exist))
    monkeypatch.setattr(rules, "RULES", left)
    assert not refreshed(folder)


# Schemas


TYPES = [
    *("BOOLEAN", "tinyint", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG"),
    *("FLOAT", "REAL", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "STRING"),
    *("BINARY", "VOID", "VARIANT", "DECIMAL", "DEC(3)", "NUMERIC(38, 38)", "DECIMAL(39,1)"),
    *("DECIMAL(2,3)", "DECIMAL(-1)", "DECIMAL()", "CHAR(3)", "CHAR", "VARCHAR(10)", "VARCHAR"),
    *("CHARACTER(2)", "TEXT", "NUMBER", "DATETIME", "UUID", "JSON", "INT(11)", "STRING(5)"),
    *("ARRAY<INT>", "ARRAY<ARRAY<INT>>", "ARRAY", "ARRAY<>", "MAP<STRING,INT>", "MAP<STRING>"),
    *("STRUCT<a: INT, b STRING NOT NULL COMMENT 'x, y'>", "STRUCT<>", "STRUCT", "STRUCT<a>"),
    *("MAP<STRING, ARRAY<STRUCT<a: DECIMAL(3,1)>>>", "INTERVAL", "INTERVAL DAY TO SECOND"),
    *(
        "INTERVAL YEAR",
        "INTERVAL SECOND TO DAY",
        "INTERVAL YEAR TO DAY",
        "STRING COLLATE UTF8_BINARY",
    ),
    *("INT NOT NULL", "INT NULL", "INT COMMENT 'it''s'", "INT COMMENT", "INT DEFAULT 3", "1", ""),
]
SCHEMAS = [
    *(f"a {each}" for each in TYPES),
    *(
        "a INT, b",
        "a: INT, b: STRING",
        "a INT,",
        "a INT b INT",
        "`a b` INT",
        "`a``b` INT",
        "a.b INT",
    ),
    *("STRUCT<a: INT, b: STRING>", "a-b INT", "1a INT", "order INT, select INT", "a INT; b INT"),
    *("a INT -- b", "a INT /* x */, b INT", "(a INT)", "'a' INT", "straße INT", "列 INT", "\0 INT"),
]


def test_a_schema_is_read_as_spark_reads_it(spark: SparkSession) -> None:
    different = []
    for text in SCHEMAS:
        try:
            ours: list[str] | None = list(column_names(text))
        except SpringhouseError:
            ours = None
        try:
            theirs: list[str] | None = parsed_schema(spark, text, "here").fieldNames()
        except (SpringhouseError, Py4JJavaError):
            theirs = None
        if ours != theirs:
            different.append((text, ours, theirs))
    assert not different, different
