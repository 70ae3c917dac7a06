"""The contents of a project, tried on a real Spark: names, descriptions, commands that only read,
and the agreement of `check` and `run`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from springhouse.errors import ProjectErrors, SpringhouseError
from springhouse.lake.delta.alignment import parsed_schema
from springhouse.project.checks import rules
from springhouse.project.load import load
from springhouse.project.options import file_options
from springhouse.project.sql.schema_text import column_names
from springhouse.warehouse import Warehouse

Write = Callable[..., Path]

NAMES = [
    *("my orders", "orders-2", "straße", "select", "other.my  orders", "n" * 95),
]


def quoted(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))


def test_what_can_be_built_can_be_read(project: Write) -> None:
    folder = project(
        "".join(
            f"""
CREATE STREAMING TABLE {quoted(name)} (CONSTRAINT few EXPECT (n < 2) ON VIOLATION QUARANTINE) AS
  SELECT n FROM STREAM read_files('data', format => 'json', schema => 'n BIGINT');
CREATE STREAMING TABLE again_{at} AS SELECT n FROM STREAM({quoted(name)});
CREATE MATERIALIZED VIEW {quoted(f"{name} seen")}
  TBLPROPERTIES ('springhouse.staleness.{name}' = '1 day') AS
  SELECT {quoted(name.rpartition(".")[2])}.n FROM {quoted(name)};
"""
            for at, name in enumerate(NAMES)
        )
    )
    (folder / "data").mkdir()
    with Warehouse(folder) as warehouse:
        for round_ in (1, 2):
            (folder / "data" / f"{round_}.json").write_text('{"n": 1}\n{"n": 2}\n')
            assert warehouse.refresh().ok
            for at, name in enumerate(NAMES):
                for each in (quoted(name), quoted(f"{name} seen"), f"again_{at}"):
                    rows = warehouse.query(f"SELECT n FROM {each}").collect()
                    assert [row.n for row in rows] == [1] * round_
                assert (
                    warehouse.query(f"SELECT * FROM {quoted(f'{name}_quarantine')}").count()
                    == round_
                )
                assert warehouse.history(name)
                assert warehouse.explain(name)
        warehouse.vacuum("0s", grace_seconds=0.0)
    for name in NAMES:
        table = DeltaTable(str(folder / "storage" / "tables" / name))
        assert table.to_pyarrow_table().column("n").to_pylist() == [1, 1]


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
        with Warehouse(folder) as warehouse:
            assert warehouse.refresh().ok
            return [each.kind for each in warehouse.history("counted") if each.kind]

    refresh()
    ticks, columns = metadata("ticks")
    assert ticks.description == "every tick"
    assert columns["offset"] == {"comment": "how many"}
    assert ticks.configuration["owner"] == "ana"
    assert ticks.configuration["delta.logRetentionDuration"] == "interval 9 days"
    assert not [key for key in ticks.configuration if key.startswith("springhouse")]
    counted, columns = metadata("counted")
    assert (counted.description, columns["kind"]) == ("it's counted", {"comment": "which"})

    # There is no new data, so the refresh writes nothing.
    version = DeltaTable(str(folder / "storage" / "tables" / "ticks")).version()
    refresh()
    assert DeltaTable(str(folder / "storage" / "tables" / "ticks")).version() == version

    # A changed declaration changes the metadata without new rows. The next refresh is incremental.
    project(DESCRIBED.format(comment="all of them", owner="bo", limit=3))
    refresh()
    ticks, _ = metadata("ticks")
    assert (ticks.description, ticks.configuration["owner"]) == ("all of them", "bo")
    project(DESCRIBED.format(comment="all of them", owner="bo", limit=5))
    with Warehouse(folder) as warehouse:
        done = warehouse.refresh().done
        assert [each.kind for each in done if each.table == "counted"] == ["merge"]
        assert [row.n for row in warehouse.query("SELECT n FROM counted").collect()] == [5]
    stored = [path for path in (folder / "storage").rglob("*") if path.is_file()]
    assert not [path for path in stored if b"s3cr3t-place" in path.read_bytes()]


def tree(*folders: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder below these folders, with its size and time."""
    paths = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    return {str(p): (p.lstat().st_size, p.lstat().st_mtime_ns) for p in paths}


READ_ONLY: dict[str, Callable[[Warehouse], object]] = {
    "status": lambda warehouse: warehouse.status(),
    "plan": lambda warehouse: warehouse.plan(),
    "explain table": lambda warehouse: warehouse.explain("ticks"),
    "explain view": lambda warehouse: warehouse.explain("total"),
    "history": lambda warehouse: warehouse.history("ticks"),
    "query": lambda warehouse: warehouse.query("SELECT * FROM total").collect(),
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

    def untouched(commands: dict[str, Callable[[Warehouse], object]]) -> None:
        for name, command in commands.items():
            before = tree(folder)
            with Warehouse(folder) as warehouse:
                command(warehouse)
            assert tree(folder) == before, name

    load(folder)
    offline = {name: command for name, command in READ_ONLY.items() if name != "query"}
    untouched(offline)  # Before the first refresh.
    with Warehouse(folder) as warehouse:
        assert warehouse.refresh().ok
    untouched(READ_ONLY)
    (folder / "data" / "2.json").write_text('{"n": 2}\n')
    untouched(READ_ONLY)  # While data waits.
    with Warehouse(folder) as warehouse:
        assert [each.state for each in warehouse.status() if each.name == "ticks"] == ["waiting"]


# `check` and `run` agree


SOURCE = "STREAM read_files('data', format => 'json', schema => 'n BIGINT, t TIMESTAMP, s STRING')"
TABLE = f"CREATE STREAMING TABLE t AS SELECT * FROM {SOURCE};\n"


GOOD_VIEWS = [
    "SELECT n AS m, m + 1 AS k FROM t",  # an alias of the same SELECT
    "SELECT s, count(*) AS c FROM t GROUP BY ALL HAVING count(*) > 0 ORDER BY s",
    "SELECT a.n FROM t AS a JOIN t AS b USING (n) WHERE EXISTS (SELECT 1 FROM t WHERE n = a.n)",
    "SELECT transform(array(n), x -> x + 1) AS xs FROM t",
    "SELECT x.y FROM (SELECT named_struct('y', n) AS x FROM t)",
    "SELECT u FROM t LATERAL VIEW explode(array(n, n)) AS u",
    "SELECT * EXCEPT (n) FROM t",
    "WITH c AS (SELECT n AS q FROM t) SELECT c.q, current_date FROM c",
    "WITH c(q, r) AS (SELECT n, s FROM t) SELECT r FROM c AS d WHERE d.q > 1",
    "SELECT timestampdiff(MINUTE, t, t) AS d, extract(YEAR FROM t) AS y FROM t",
    "SELECT n, row_number() OVER w AS r FROM t WINDOW w AS (PARTITION BY s ORDER BY n)",
    "SELECT z.b FROM (SELECT n, s FROM t) AS z(a, b)",
    "SELECT b FROM t AS z(a, b, c)",
    "SELECT n FROM t UNION ALL SELECT size(array(n)) FROM t ORDER BY n",
    "SELECT * FROM t PIVOT (count(n) FOR s IN ('a', 'b'))",
    "SELECT t.t FROM t -- the column t of the table t",
    "SELECT N, `S` FROM T WHERE t.N > 0",
    "SELECT o.n FROM t AS o WHERE s IN (SELECT s FROM t AS u WHERE u.n = o.n)",
    "SELECT l.n FROM t, LATERAL (SELECT t.n + 1 AS n) AS l",
    "SELECT count(*) FILTER (WHERE n > 1) AS c, grouping_id() AS g FROM t GROUP BY CUBE (s)",
    "SELECT s, n FROM t ORDER BY n LIMIT 3",
    "SELECT * FROM (VALUES (1, 'a')) AS v(x, y) JOIN t ON t.n = v.x",
    "SELECT stack(2, n, n + 1) AS z FROM t",
    "SELECT date_trunc('DAY', t) AS d, DATE '2026-01-01' + INTERVAL 1 DAY AS e FROM t",
    "SELECT any_value(n) AS n FROM t",
    "SELECT * FROM t JOIN (SELECT n, s AS z FROM t) AS u USING (n)",
    "SELECT a FROM (SELECT n AS a, n AS b, s AS b FROM t)",
]
GOOD_CONDITIONS = [
    "n < 10), CONSTRAINT b EXPECT (n >= 1 AND n <> 3",
    "n >= 0 OR map('a', 1)['a'] <=> 1",
    "s NOT IN ('a,b', 'c;d', 'it''s', '--', '/*')",
    "CAST(array(n, n) AS ARRAY<INT>)[0] < 10), CONSTRAINT b EXPECT (s > '<,('",
    "exists(array(n), x -> x < 10)",
    "struct(n, s).n > 0 AND CAST(NULL AS MAP<STRING, STRUCT<a: INT, b: INT>>) IS NULL",
]
BAD_VIEWS = [
    "SELECT nn FROM t",
    "SELECT b.n FROM t AS a",
    "SELECT a.m FROM t AS a",
    "SELECT n FROM t WHERE missing > 1",
    "SELECT q FROM (SELECT n FROM t)",
    "SELECT n FROM t AS a WHERE EXISTS (SELECT 1 FROM t AS b WHERE b.n = a.nope)",
    "WITH c AS (SELECT n AS q FROM t) SELECT c.n FROM c",
    "SELECT n FROM t UNION ALL SELECT m FROM t",
    "SELECT z.n FROM (SELECT n, s FROM t) AS z(a, b)",
    "SELECT t.n FROM t AS z(a, b, c)",
    "SELECT s FROM t GROUP BY s HAVING max(k) > 1",
    "SELECT a.n FROM t AS a JOIN t AS b ON a.n = b.k",
    "SELECT n, s AS N FROM t",
    "SELECT s, n, s FROM t UNION ALL SELECT s, n, s FROM t",
]
BAD_TABLES = [
    f"(CONSTRAINT a EXPECT (m < 10)) AS SELECT * FROM {SOURCE}",
    f"AS SELECT m FROM {SOURCE}",
    f"AS SELECT * FROM {SOURCE}".replace("'json'", "'jsn'"),
    f"AS SELECT * FROM {SOURCE}".replace("format =>", "formt =>"),
    f"AS SELECT * FROM {SOURCE}".replace("n BIGINT", "n BIGNT"),
    f"AS SELECT * FROM {SOURCE}".replace("n BIGINT", "n DECIMAL(40, 2)"),
    f"AS SELECT * FROM {SOURCE}".replace("n BIGINT", "n CHAR(3)"),
    f"AS SELECT * FROM {SOURCE}".replace("'data',", "'data', multiLne => 'true',"),
    f"AS SELECT * FROM {SOURCE}".replace("'data',", "'data', header => 'true',"),
    f"AS SELECT * FROM {SOURCE}".replace("'data',", "'data', max_files => '0',"),
    f"AS SELECT * FROM {SOURCE}".replace("n BIGINT", "n TIME"),
    f"AS SELECT * FROM {SOURCE}".replace("'json'", "'csv'").replace("n BIGINT", "n ARRAY<INT>"),
    f"AS SELECT * FROM {SOURCE}".replace("'data',", "'data', allowComments => 'perhaps',"),
    f"AS SELECT n, s AS N FROM {SOURCE}",
    f"(n BIGNT) AS SELECT n FROM {SOURCE}",
    "AS SELECT * FROM STREAM sample(rate => 'fast')",
    "AS SELECT * FROM STREAM read_kafka('t')",
    "AS SELECT * FROM STREAM read_delta()",
]


def with_data(folder: Path) -> Path:
    (folder / "data").mkdir()
    (folder / "data" / "1.json").write_text('{"n": 5, "s": "x", "t": "2026-01-01 00:00:00"}\n')
    return folder


def test_check_accepts_what_runs(project: Write) -> None:
    views = (f"CREATE MATERIALIZED VIEW v{i} AS {q}\n;" for i, q in enumerate(GOOD_VIEWS))
    tables = (
        f"CREATE STREAMING TABLE t{i} (CONSTRAINT a EXPECT ({c}) ON VIOLATION FAIL UPDATE) "
        f"AS SELECT * FROM {SOURCE};"
        for i, c in enumerate(GOOD_CONDITIONS)
    )
    folder = with_data(
        project("\n".join(["SET spark.sql.ansi.enabled = true;", TABLE, *views, *tables]))
    )
    load(folder)
    with Warehouse(folder) as warehouse:
        assert warehouse.refresh().failures == {}


def test_what_check_refuses_would_not_run(project: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    views = [f"CREATE MATERIALIZED VIEW v{i} AS {q};" for i, q in enumerate(BAD_VIEWS)]
    tables = [f"CREATE STREAMING TABLE t{i} {rest};" for i, rest in enumerate(BAD_TABLES)]
    folder = with_data(project("\n".join([TABLE.strip(), *views, *tables])))
    with pytest.raises(ProjectErrors) as caught:
        load(folder)
    # The check reports each error at its own line, and reports no other errors.
    lines = {str(error.where) for error in caught.value.errors}
    wrong = len(views) + len(tables)
    assert lines == {f"transformations/all.sql:{line + 2}" for line in range(wrong)}
    # Without these rules every refresh fails, so the rules refuse nothing that works.
    left = tuple(r for r in rules.RULES if r not in (rules.calls_fit, rules.columns_exist))
    monkeypatch.setattr(rules, "RULES", left)
    with Warehouse(folder) as warehouse:
        failures = warehouse.refresh().failures
    expected = {f"v{i}" for i in range(len(views))} | {f"t{i}" for i in range(len(tables))}
    assert set(failures) == expected


# Options of readers


OPTIONS = {
    "csv": {
        "delimiter": ["", ";", "||", "\t", "\\t", "\\", "\\\\", "\\q", "a\\tb"],
        "quote": ["", "'", "''", "é"],
        "escape": ["", "\\", "ab"],
        "comment": ["#", "##"],
        "charToEscapeQuoteEscaping": ["\\", "ab"],
        "ignoreLeadingWhiteSpace": ["true", "FALSE", "yes", ""],
        "preferDate": ["false", "1"],
        "maxColumns": ["100", "-1", "many", "1.5"],
        "maxCharsPerColumn": ["-1", "x"],
        "unescapedQuoteHandling": ["raise_error", "SKIP", "STOP_AT_DELIMITER"],
        "lineSep": ["", "|"],
        "encoding": ["utf-8", "UTF-16LE", "ISO-8859-1", "latin1", "utf8", "windows-1252", "x", ""],
        "timeZone": [
            "UTC",
            "Europe/Oslo",
            "+01:00",
            "-8",
            "GMT+1",
            "Mars",
            "PST",
            "ABC",
            "+19:00",
            "",
            "Z",
        ],
        "enableDateTimeParsingFallback": ["true", "maybe"],
    },
    "json": {
        "allowComments": ["TRUE", "maybe"],
        "allowSingleQuotes": ["false", "no"],
        "primitivesAsString": ["true", "0"],
        "prefersDecimal": ["t"],
        "lineSep": ["", ";;"],
        "samplingRatio": ["0.5", "0", "-1", "x", "1"],
    },
    "parquet": {"datetimeRebaseMode": ["legacy", "x"], "int96RebaseMode": ["CORRECTED", ""]},
    "text": {"wholetext": ["true", "perhaps"], "lineSep": ["", "ab"]},
}


RECORDS = {"csv": "1,2024-01-01\n", "json": '{"value": "1"}\n', "text": "1\n"}


def test_an_option_is_read_as_spark_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    for form, text in RECORDS.items():
        (tmp_path / form).write_text(text)
    # Arrow writes this file, because Spark knows the rebase mode of its own files.
    moment = pa.scalar(0, pa.timestamp("us"))
    pq.write_table(pa.table({"value": [moment]}), tmp_path / "parquet")
    different = []
    cases = ((f, name, text) for f in OPTIONS for name in OPTIONS[f] for text in OPTIONS[f][name])
    for form, name, text in cases:
        try:
            file_options.read_file_options({"format": form, name: text})
            ours = True
        except SpringhouseError:
            ours = False
        reader = spark.read.option(name, text)
        if name != "samplingRatio":
            reader = reader.schema("value TIMESTAMP" if form == "parquet" else "value STRING")
        try:
            reader.format(form).load(str(tmp_path / form)).collect()
            theirs = True
        except (PySparkException, Py4JJavaError):
            theirs = False
        if ours != theirs:
            different.append((form, name, text, ours, theirs))
    assert not different, different


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
    *(
        "INT NOT NULL",
        "INT NULL",
        "INT COMMENT 'it''s'",
        "INT COMMENT",
        "INT DEFAULT 3",
        "1",
        "",
    ),
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
