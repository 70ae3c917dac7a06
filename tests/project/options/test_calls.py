"""Calls of sources, sinks and queries are checked against existing ones before Spark starts."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from springhouse.errors import ProjectErrors, SpringhouseError, error_text, without_secrets
from springhouse.project.declarations.declaration import Project
from springhouse.project.declarations.secrets import Configuration, resolve
from springhouse.project.lineage.fingerprint import fingerprint
from springhouse.project.load import load

Errors = Callable[..., list[str]]
Load = Callable[..., Project]


def table(source: str, properties: str = "", name: str = "t") -> str:
    said = f"\nTBLPROPERTIES ({properties})" if properties else "\n"
    return f"CREATE STREAMING TABLE {name}{said}\nAS SELECT * FROM STREAM {source};\n"


SAMPLE = "sample()"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("read_files('d')", "read_files needs a format"),
        ("read_files('d', format => 'jsn')", "format => 'jsn' is not one of json, csv, parquet"),
        ("read_files('d', format => 'csv', heder => 'true')", 'no option "heder" for the format'),
        ("read_files('d', format => 'csv', header => 'ja')", "header => 'ja' is not true or false"),
        (
            "read_files('d', format => 'json', schema => 'a BIGNT')",
            'expected a type, found "BIGNT"',
        ),
        ("read_files('d', format => 'json', schema => 'a INT b INT')", "can't be read"),
        (
            "read_files('d', format => 'json', schema => 'a INT, A INT')",
            'column "A" is there twice',
        ),
        ("read_files('d', format => 'json', schema => 'a DECIMAL(39,2)')", "at most 38 digits"),
        ("read_files('', format => 'json')", "the path is empty"),
        ("read_files(format => 'json')", 'the source "read_files" needs "path"'),
        ("read_delta('a', 'b')", '2 arguments are too many for "read_delta"'),
        ("read_delta('a', version => '3')", 'the source "read_delta" has no option "version"'),
        ("sample(rate => 'fast')", "rate => 'fast' is not a number above 0"),
        ("sample(rte => '1')", 'the source "sample" has no option "rte"'),
        ("read_kafka('t')", "read_kafka needs the address of a broker"),
        ("read_kafka('a b', bootstrapServers => 'h:1')", "can't be the name of a Kafka topic"),
        ("read_kafka('t', bootstrapServers => 'h:1', grup => 'x')", 'has no option "grup"'),
        (
            "read_kafka('t', bootstrapServers => 'h:1', format => 'json')",
            "and a schema, or neither",
        ),
        ("read_files('d', format => 'json', schema => '${env:NOPE_NOPE}')", "NOPE_NOPE is not set"),
    ],
)
def test_options_of_sources(errors: Errors, source: str, message: str) -> None:
    (found,) = errors(table(source))
    assert found.startswith("all/a.sql:3: ")
    assert message in found


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ("'avro'", 'the sink "avro" needs "path"'),
        ("'avro', 'springhouse.sink.s.pth' = 'out'", 'the sink "avro" has no option "pth"'),
        ("'avro', 'springhouse.sink.s.path' = ''", "the path is empty"),
        (
            "'avro', 'springhouse.sink.s.path' = 'o', 'springhouse.sink.s.codec' = 'zip'",
            '"zip" is not a codec of the sink avro',
        ),
        ("'positioned_file', 'springhouse.sink.s.path' = 's3://b/o'", "is not a file that can be"),
        ("'kafka'", 'the sink "kafka" needs "topic"'),
        ("'kafka', 'springhouse.sink.s.topic' = 't'", "the sink kafka needs bootstrapServers"),
        (
            (
                "'kafka', 'springhouse.sink.s.topics' = 't', "
                "'springhouse.sink.s.bootstrapServers' = 'h:1'"
            ),
            'Is "topics" a misspelling?',
        ),
        (
            (
                "'kafka', 'springhouse.sink.s.topic' = 't', "
                "'springhouse.sink.s.bootstrapServers' = 'h:1', 'springhouse.sink.s.key' = 'ofset'"
            ),
            'the table "t" names the column "ofset", which does not exist',
        ),
        (
            "'avro', 'springhouse.sink.s.path' = 'storage/tables/x'",
            "writes into the storage of this project",
        ),
    ],
)
def test_options_of_sinks(errors: Errors, properties: str, message: str) -> None:
    (found,) = errors(table(SAMPLE, f"'springhouse.sink.s' = {properties}"))
    assert found.startswith("all/a.sql:2: ")
    assert message in found


def to(path: str, plugin: str = "avro") -> str:
    return f"'springhouse.sink.s' = '{plugin}', 'springhouse.sink.s.path' = '{path}'"


def test_two_sinks_with_one_path_are_an_error(
    errors: Errors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHERE_TO", "out")
    (tmp_path / "link").symlink_to("out")
    same = ["out", "./out", "out/", "x/../out", str(tmp_path / "out"), "${env:WHERE_TO}", "link"]
    for path in (*same, f"file://{tmp_path}/out"):
        text = table(SAMPLE, to("out"), "a") + table(SAMPLE, to(path, "positioned_file"), "b")
        if path.startswith("file:"):
            text = text.replace("positioned_file", "avro")
        (found,) = errors(text)
        assert found == (
            f'all/a.sql:5: the sinks "s" and "s" have one path, "{path}"\n'
            "  hint: Give each a path of its own; the first is at all/a.sql:2."
        )
    assert errors(table(SAMPLE, to("out"), "a") + table(SAMPLE, to("out2"), "b")) == []
    buckets = table(SAMPLE, to("s3://b/o"), "a") + table(SAMPLE, to("s3a://b/o/"), "b")
    assert "have one path" in errors(buckets)[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            table(SAMPLE) + "CREATE MATERIALIZED VIEW v AS\nSELECT ofset\nFROM t;",
            (
                'all/a.sql:5: view "v" names the column "ofset", which does not exist\n'
                '  hint: Did you mean "offset"?'
            ),
        ),
        (
            table(SAMPLE).replace("*", "offset AS id")
            + "CREATE MATERIALIZED VIEW v AS\nSELECT id,\noffset FROM t;",
            'all/a.sql:6: view "v" names the column "offset", which does not exist',
        ),
        (
            table(SAMPLE, "'springhouse.timestamp' = 'tme'"),
            'all/a.sql:1: the table "t" names the column "tme", which does not exist',
        ),
        (
            (
                "CREATE STREAMING TABLE t (\nCONSTRAINT c EXPECT (a < 1)) AS SELECT time FROM "
                "STREAM sample();"
            ),
            'all/a.sql:2: the table "t" names the column "a", which does not exist',
        ),
        (
            "CREATE STREAMING TABLE t PARTITIONED BY (day) AS SELECT time FROM STREAM sample();",
            'all/a.sql:1: the table "t" names the column "day", which does not exist',
        ),
        (
            (
                "CREATE STREAMING TABLE t;\nCREATE FLOW f AS AUTO CDC INTO t FROM STREAM sample()\n"
                "KEYS (id) SEQUENCE BY time;"
            ),
            'all/a.sql:2: the flow "f" names the column "id", which does not exist',
        ),
    ],
)
def test_columns_that_nothing_has(errors: Errors, text: str, message: str) -> None:
    (found,) = errors(text)
    assert found.startswith(message)


def test_a_column_that_is_named_again_is_told_once(errors: Errors) -> None:
    view = "CREATE MATERIALIZED VIEW v AS SELECT t.x, t.x + 1 AS y FROM t GROUP BY t.x;"
    (told_once,) = errors(table(SAMPLE) + view)
    assert 'names the column "t.x"' in told_once


def test_columns_that_something_unknown_could_explain_are_not_told(errors: Errors) -> None:
    unknown = table("read_files('d', format => 'json')")
    assert errors(unknown + "CREATE MATERIALIZED VIEW v AS SELECT anything, t.x.y FROM t;") == []


# Globs


def test_a_glob_that_matches_no_file_is_told_every_time(write: Callable[..., Path]) -> None:
    pipeline = "name: shop\nstorage: storage\nlibraries:\n  - glob:\n      include: {}\n"
    for glob in ("gone/**", "empty/**", "only_folders/**"):
        folder = write({"spark-pipeline.yml": pipeline.format(glob)})
        (folder / "empty").mkdir(exist_ok=True)
        (folder / "only_folders" / "x").mkdir(parents=True, exist_ok=True)
        for _ in range(2):
            with pytest.raises(ProjectErrors) as caught:
                load(folder)
            (error,) = caught.value.errors
            assert str(error).startswith(f'spark-pipeline.yml:5: "{glob}" matches no file')


# Secrets


def test_a_secret_is_used_and_never_shown(
    project: Load, errors: Errors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "s3cr3t-token")
    (tmp_path / "pass.txt").write_text("p4ss-word\n")
    pipeline = (
        "name: shop\nstorage: storage\nlibraries:\n  - glob:\n      include: all/**\n"
        "configuration:\n  spark.x.token: a-${env:TOKEN}\n  spark.x.pass: ${file:pass.txt}\n"
    )
    sql = table(
        "read_files('${env:TOKEN}', format => 'json', schema => 'a INT')", to("${env:TOKEN}")
    )
    view = "CREATE MATERIALIZED VIEW v AS SELECT a FROM t;"
    loaded = project({"spark-pipeline.yml": pipeline, "all/a.sql": sql + view})
    assert loaded.configuration["spark.x.token"] == "a-s3cr3t-token"
    assert loaded.configuration["spark.x.pass"] == "p4ss-word"
    shown = repr(loaded) + fingerprint(loaded, loaded.views["v"])
    assert "s3cr3t" not in shown
    assert "p4ss" not in shown
    before = fingerprint(loaded, loaded.views["v"])
    monkeypatch.setenv("TOKEN", "an0ther-token")
    assert fingerprint(load(tmp_path), loaded.views["v"]) == before  # A new password is no change.

    # An error that quotes the value shows the reference instead.
    failure = RuntimeError("can't log in as s3cr3t-token with p4ss-word")
    assert error_text(failure) == "RuntimeError: can't log in as ${env:TOKEN} with ${file:pass.txt}"
    assert str(SpringhouseError("x: p4ss-word", where="s3cr3t-token:1")) == (
        "${env:TOKEN}:1: x: ${file:pass.txt}"
    )
    monkeypatch.setenv("TOKEN", "s3cr3t-schema,")
    bad = table("read_files('d', format => 'json', schema => '${env:TOKEN}')")
    (error,) = errors(bad)
    assert error.startswith("all/a.sql:3: ")
    assert "s3cr3t" not in error


def test_a_reference_to_nothing_is_told_with_its_line(errors: Errors, tmp_path: Path) -> None:
    assert "NOPE_NOPE" not in os.environ
    for value, problem in (
        ("${env:NOPE_NOPE}", "the environment variable NOPE_NOPE is not set"),
        ("${file:gone.txt}", "${file:gone.txt} can't be read: No such file or directory"),
        ("${file:.}", "${file:.} can't be read: Is a directory"),
    ):
        pipeline = f"name: shop\nstorage: storage\nconfiguration:\n  spark.x: a${value[1:]}b\n"
        (found,) = errors({"spark-pipeline.yml": pipeline})
        assert found.startswith(f"spark-pipeline.yml:4: {problem}")
        (found,) = errors({"all/a.sql": f"SET spark.x = {value};"})
        assert found.startswith(f"all/a.sql:1: {problem}")


def test_what_must_stand_on_a_command_line_takes_no_secret(errors: Errors) -> None:
    for key in ("spark.driver.extraJavaOptions", "springhouse.spark.master"):
        pipeline = f"name: shop\nstorage: storage\nconfiguration:\n  {key}: ${{env:PATH}}\n"
        (found,) = errors({"spark-pipeline.yml": pipeline})
        assert found.startswith(f'spark-pipeline.yml:4: "{key}" can\'t hold a secret')


def test_an_override_may_refer_to_a_secret_and_does_not_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "s3cr3t-token")
    given = Configuration({"spark.x": "plain"}, tmp_path).overridden({"spark.x": "${env:TOKEN}"})
    assert given["spark.x"] == "s3cr3t-token"
    assert repr(given) == "Configuration({'spark.x': '${env:TOKEN}'})"
    assert without_secrets(resolve("x=${env:TOKEN}", tmp_path)) == "x=${env:TOKEN}"


def test_an_option_that_is_given_twice_is_an_error(errors: Errors) -> None:
    for twice in ("format => 'csv', FORMAT => 'json'", "format => 'csv', sep => ';', sep => ','"):
        text = f"CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('d', {twice});"
        (found,) = errors({"all/a.sql": text})
        assert "is given twice" in found
    text = "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('d', format => 'csv', {});"
    (found,) = errors({"all/a.sql": text.format("sep => ';', delimiter => ','")})
    assert "delimiter and sep are one option" in found


def test_a_property_of_ours_in_another_case_is_no_property_of_others(errors: Errors) -> None:
    text = "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('{}' = 'true') AS SELECT 1 AS a;"
    for name in ("Springhouse.Staleness", "SPRINGHOUSE.priority", "Delta.appendOnly"):
        (found,) = errors({"all/a.sql": text.format(name)})
        assert f'"{name}"' in found
