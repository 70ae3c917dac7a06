"""The command line from `init` to `query`, with the real Spark that the tests share."""

import csv
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from springhouse.cli import main


@dataclass(frozen=True)
class Answer:
    code: int | str | None
    out: str
    err: str


Springhouse = Callable[..., Answer]


@pytest.fixture
def springhouse(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch
) -> Springhouse:
    """Runs a command in the folder of a new project, `shop`."""

    def call(*arguments: str) -> Answer:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main(arguments)
        out, err = capsys.readouterr()
        return Answer(left.value.code, out, err)

    monkeypatch.chdir(tmp_path)
    assert call("init", "shop").code == 0
    monkeypatch.chdir("shop")
    return call


def without_times(lines: str) -> list[str]:
    """`12:03:07 orders +5 rows 0.41 s` as `orders +5 rows`."""
    return [line.split(" ", 1)[1].rsplit(" ", 2)[0] for line in lines.splitlines()[1:-1]]


def test_a_new_project_from_its_first_run_to_its_answers(springhouse: Springhouse):
    ran = springhouse("run", "--once")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0].endswith("running shop")
    assert without_times(ran.out)[1:] == ["orders +5 rows", "revenue_by_country +3 rows"]
    assert ran.out.splitlines()[-1].startswith("5 rows in, 0 quarantined, 2 refreshes, 0 failures")

    states = json.loads(springhouse("status", "--json").out)
    assert [(s["name"], s["state"], s["rows"]) for s in states] == [
        ("orders", "up to date", 5),
        ("revenue_by_country", "up to date", 3),
    ]
    assert springhouse("plan").out == "everything is up to date\n"

    (newest, *_) = json.loads(springhouse("history", "orders", "--limit", "1", "--json").out)
    assert (newest["kind"], newest["rows_added"]) == ("append", 5)
    assert "new records" in springhouse("history", "orders").out
    assert "reflects orders@" in springhouse("explain", "revenue_by_country").out

    sql = "SELECT country, revenue FROM revenue_by_country ORDER BY country"
    asked = springhouse("query", sql, "--format", "json", "--consistent")
    assert json.loads(asked.out) == [
        {"country": "Hungary", "revenue": "258.50"},
        {"country": "Nigeria", "revenue": "64.25"},
        {"country": "Norway", "revenue": "155.90"},
    ]
    asked = springhouse("query", sql, "--format", "csv", "--limit", "2")
    assert [row["country"] for row in csv.DictReader(io.StringIO(asked.out))] == [
        "Hungary",
        "Nigeria",
    ]
    assert asked.err == "only the first 2 rows are shown; --limit 0 shows all\n"

    shutil.copy("data/later.json", "data/orders/later.json")
    ran = springhouse("run", "--once", "-c", "springhouse.tracks=1")
    assert ran.out.splitlines()[-1].startswith("2 rows in")
    assert springhouse("query", sql, "--limit", "0").out.splitlines()[0].split() == [
        "country",
        "revenue",
    ]


def test_a_refresh_that_fails_is_exit_1_and_told_in_full(springhouse: Springhouse):
    Path("transformations/broken.sql").write_text(
        "CREATE MATERIALIZED VIEW broken AS SELECT raise_error(country) AS colour FROM orders;\n"
    )
    ran = springhouse("run", "--once")
    assert ran.code == 1
    assert "broken failed: transformations/broken.sql:1: " in ran.out
    assert "1 failure in" in ran.out.splitlines()[-1]
    assert ran.err.startswith("failing: broken: transformations/broken.sql:1: ")
    assert "USER_RAISED_EXCEPTION" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT * FROM order", 'error: this project declares no table or view "order"'),
        ("SELECT raise_error('no') FROM range(1)", "error: query:1: "),
        ("SELECT colour FROM range(1)", "error: query:1: "),
    ],
)
def test_a_wrong_query_is_exit_1(springhouse: Springhouse, sql: str, told: str):
    answer = springhouse("query", sql)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith(told)
    assert "Traceback" not in answer.err


def test_check_accepts_a_file_that_uses_spark_while_it_is_loaded(springhouse: Springhouse):
    Path("transformations/early.py").write_text(
        "from pyspark import pipelines as dp\n"
        "count = spark.range(3).count()\n"
        "@dp.materialized_view\n"
        "def early():\n"
        "    return spark.read.table('orders').limit(count)\n"
    )
    checked = springhouse("check")
    assert (checked.code, checked.err) == (0, "")
    ran = springhouse("run", "--once")
    assert (ran.code, ran.err) == (0, "")
