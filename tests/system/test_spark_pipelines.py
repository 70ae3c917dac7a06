"""A project for `spark-pipelines` runs here unchanged, with the same rows.

Spark's own command runs one copy of the files, and `springhouse run --once` runs the other. The
test compares every table as a bag of rows. Springhouse starts in another folder, because the path
"data/events" in a project file is relative to the project's folder.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from deltalake import DeltaTable

from patience import patience
from springhouse.lake.spark.java import find_java

SOURCE = Path(__file__).parents[2] / "src"
HOME = Path(pyspark.__file__).parent
SECONDS = 240.0

# Without a metastore, Spark's second run does not know the tables of the first. In the pipeline
# file this setting would stop Spark, because Spark sets all settings of that file repeatedly.
KEEP_TABLES = ("--conf", "spark.sql.catalogImplementation=hive")

PIPELINE = """
name: events
storage: file://{storage}
configuration:
  spark.sql.session.timeZone: UTC
  spark.sql.shuffle.partitions: "2"
libraries:
  - glob:
      include: transformations/**
"""

PYTHON = """
import json
from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

spark = SparkSession.active()
KINDS = json.loads(Path("kinds.json").read_text())


@dp.table(comment="As they come")
def events() -> DataFrame:
    columns = "id BIGINT, kind STRING, amount DECIMAL(12, 2), at TIMESTAMP"
    return spark.readStream.format("json").schema(columns).load("data/events")


dp.create_streaming_table("odd")
dp.create_streaming_table("both")


@dp.append_flow(target="odd")
def odd_events() -> DataFrame:
    return spark.readStream.table("events").where("id % 2 = 1").select("id", "at")


@dp.append_flow(target="both", name="both_from_python")
def even() -> DataFrame:
    return spark.readStream.table("events").where("id % 2 = 0").select("id")


# Spark reads a temporary view in Python as of the start of a run: over `events` it would lack the
# events of this run, which ours has.
@dp.temporary_view
def named() -> DataFrame:
    prices = spark.read.schema("kind STRING, factor DECIMAL(4, 2)").json("data/prices")
    names = sf.from_json(sf.lit(Path("kinds.json").read_text()), "MAP<STRING, STRING>")
    return prices.withColumn("name", names[sf.col("kind")])


@dp.materialized_view
def spent() -> DataFrame:
    known = spark.table("events").join(spark.read.table("named"), "kind")
    return known.groupBy("name").agg(sf.sum(sf.expr("amount * factor")).alias("amount"))


@dp.materialized_view
def priced() -> DataFrame:
    dearest = spark.read.table("named").agg(sf.max("factor").alias("factor"))
    return spark.sql("SELECT id, amount FROM large").crossJoin(dearest)


for kind in KINDS:

    @dp.materialized_view(name=f"only_{kind}")
    def only() -> DataFrame:
        return spark.table("events").where(sf.col("kind") == kind).select("id", "at")
"""

SQL = """
CREATE STREAMING TABLE large AS SELECT id, amount, at FROM STREAM(events) WHERE amount >= 10;

CREATE STREAMING TABLE tagged (id BIGINT, tag STRING, amount DECIMAL(12, 2));
CREATE FLOW tagged_large AS INSERT INTO tagged BY NAME
  SELECT amount, 'large' AS tag, id FROM STREAM large;
CREATE FLOW both_from_sql AS INSERT INTO both BY NAME SELECT id FROM STREAM(odd);

CREATE TEMPORARY VIEW counted AS SELECT kind, count(*) AS many FROM events GROUP BY kind;

CREATE MATERIALIZED VIEW kinds COMMENT 'Through two temporary views' AS
  SELECT c.kind, c.many, max(n.name) AS name
  FROM counted c JOIN named n ON n.kind = c.kind GROUP BY c.kind, c.many;

CREATE MATERIALIZED VIEW totals AS
  SELECT t.tag, count(*) AS many, sum(t.amount) AS amount,
         (SELECT sum(amount) FROM spent) AS spent
  FROM tagged t GROUP BY t.tag;
"""

TABLES = (
    *("events", "odd", "large", "tagged"),
    *("spent", "priced", "only_a", "only_b", "kinds", "totals"),
)

Bag = Counter[tuple[tuple[str, object], ...]]


def test_the_project_that_init_writes(tmp_path: Path) -> None:
    spark_pipelines(tmp_path, "init", "--name", "theirs")
    ours = shutil.copytree(tmp_path / "theirs", tmp_path / "ours")
    spark_pipelines(tmp_path / "theirs", "run")
    springhouse(tmp_path, ours)
    tables = ("example_python_materialized_view", "example_sql_materialized_view")
    assert differences(tmp_path / "theirs", tmp_path / "theirs" / "pipeline-storage", tables) == {}
    assert count(stored(tmp_path / "theirs" / "pipeline-storage", tables[1])) == 5


def test_streams_flows_and_views_in_sql_and_python(tmp_path: Path) -> None:
    theirs, storage = tmp_path / "theirs", tmp_path / "storage"
    write_project(theirs, storage)
    arrive(theirs, 1, range(12))
    ours = shutil.copytree(theirs, tmp_path / "ours")
    spark_pipelines(theirs, "run", *KEEP_TABLES)
    springhouse(tmp_path, ours)
    assert differences(theirs, storage, TABLES) == {}
    assert count(stored(storage, "events")) == 12

    for folder in (theirs, ours):
        arrive(folder, 2, range(12, 20))
    spark_pipelines(theirs, "run", *KEEP_TABLES)
    springhouse(tmp_path, ours)
    assert differences(theirs, storage, TABLES) == {}
    assert [count(stored(storage, name)) for name in ("events", "odd", "kinds")] == [20, 10, 2]

    # Two flows into one table. Spark's file sink counts their batches as if they were one flow's,
    # and drops the batches of the slower flow; our table gets all rows.
    expected, have = in_spark(theirs, "both"), stored(storage, "both")
    assert not expected - have
    assert have == Counter({(("id", id),): 1 for id in range(20)})


# The projects


def write_project(folder: Path, storage: Path) -> None:
    storage.mkdir()
    (folder / "transformations").mkdir(parents=True)
    (folder / "spark-pipeline.yml").write_text(PIPELINE.format(storage=storage))
    (folder / "transformations" / "python.py").write_text(PYTHON)
    (folder / "transformations" / "statements.sql").write_text(SQL)
    (folder / "kinds.json").write_text('{"a": "apple", "b": "bean"}')
    (folder / "data" / "prices").mkdir(parents=True)
    (folder / "data" / "prices" / "1.json").write_text(
        '{"kind": "a", "factor": 1.25}\n{"kind": "b", "factor": 0.5}\n'
    )


def arrive(folder: Path, number: int, ids: Sequence[int]) -> None:
    events = [
        {"id": i, "kind": "ab"[i % 2], "amount": i * 1.1, "at": f"2024-02-{i + 1:02}T03:04:05.678Z"}
        for i in ids
    ]
    (folder / "data" / "events").mkdir(exist_ok=True)
    lines = "".join(json.dumps(event) + "\n" for event in events)
    (folder / "data" / "events" / f"{number}.json").write_text(lines)


# The two programs


def spark_pipelines(folder: Path, *arguments: str) -> None:
    run([str(Path(sys.executable).with_name("spark-pipelines")), *arguments], folder)


def springhouse(elsewhere: Path, project: Path) -> None:
    master = ["-c", "springhouse.spark.master=local[2]", "-c", "spark.driver.memory=700m"]
    run(
        [sys.executable, "-m", "springhouse", "run", "--once", "-p", str(project), *master],
        elsewhere,
    )


def run(command: Sequence[str], folder: Path) -> None:
    """Run a command to its end; all of its processes end with it, even after a time-out."""
    find_java()
    surroundings = {
        **os.environ,
        "SPARK_HOME": str(HOME),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(SOURCE),
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
    }
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=surroundings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=patience(SECONDS))
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=patience(20))
    assert process.returncode == 0, said[-6000:]


# Their tables


def differences(
    theirs: Path, storage: Path, tables: Sequence[str]
) -> Mapping[str, tuple[Bag, Bag]]:
    """The tables that differ, with the rows that only Spark has and the rows that only we have."""
    found = {}
    for name in tables:
        expected, have = in_spark(theirs, name), stored(storage, name)
        assert expected, f"{name} is empty, and shows nothing"
        if expected != have:
            found[name] = (expected - have, have - expected)
    return found


def in_spark(theirs: Path, table: str) -> Bag:
    return bag(pq.read_table(theirs / "spark-warehouse" / table))


def stored(storage: Path, table: str) -> Bag:
    return bag(DeltaTable(storage / "tables" / table).to_pyarrow_table())


def bag(rows: pa.Table) -> Bag:
    return Counter(
        tuple(sorted((name, plain(value)) for name, value in row.items()))
        for row in rows.to_pylist()
    )


def count(rows: Bag) -> int:
    return sum(rows.values())


def plain(value: object) -> object:
    # Spark's own tables have the old INT96 timestamps, which have no zone and are UTC.
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value
