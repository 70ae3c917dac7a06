"""Do flows on Spark give the rows of Spark's own SQL, and reach every table once?"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession

import springhouse
from springhouse.errors import ExpectationFailed, LakeError
from springhouse.flows.declare import Draft
from springhouse.flows.flow_graph import FlowError
from springhouse.flows.flow_settings import Settings
from springhouse.flows.policy_choice import PolicyName
from springhouse.flows.stages import divide_into_stages
from springhouse.lake.delta.log import TableLog
from springhouse.lake.delta.requirements import PermitHeld
from springhouse.lake.delta.tables import frame_of, open_table, read_arrow, spark_schema
from springhouse.lake.flows.arrivals import arrive_in_tasks
from springhouse.lake.flows.run_flow import run_flow
from springhouse.lake.flows.task import StageTask
from springhouse.lake.spark.quality import with_verdicts
from springhouse.lake.storage.storage import Storage
from springhouse.project.declarations.declaration import Expectation, OnViolation, Place

sys.path.append(str(Path(__file__).parents[1] / "flows"))

from archetypes import ARCHETYPES, random_tables

Rows = list[tuple[object, ...]]
SMALL = Settings(pack_bytes=2000, queue_packs=2)


def sorted_rows(table: pa.Table) -> Rows:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def stored(folder: Path) -> Rows:
    opened = open_table(Storage(str(folder)))
    assert opened is not None
    return sorted_rows(opened.to_arrow())


@pytest.fixture
def given(spark: SparkSession) -> Iterator[dict[str, DataFrame]]:
    """The archetypes' tables as DataFrames of three partitions, and as views for queries."""
    frames = {}
    for name, rows in random_tables(seed=3, rows=300).items():
        frames[name] = spark.createDataFrame(rows).repartition(3).cache()
        frames[name].createOrReplaceTempView(name)
    yield frames
    for name, frame in frames.items():
        frame.unpersist()
        spark.catalog.dropTempView(name)


@pytest.mark.parametrize("name", ARCHETYPES)
def test_every_archetype_is_what_sql_gives(
    name: str, spark: SparkSession, given: dict[str, DataFrame], tmp_path: Path
) -> None:
    archetype = ARCHETYPES[name]
    targets = {target: str(tmp_path / target) for target in archetype.queries}
    policy = PolicyName.MIXED if name == "butterfly" else PolicyName.LOCALITY
    chosen = Settings(policy=policy, pack_bytes=2000, queue_packs=2)
    run_flow(spark, archetype.flow, sources=given, targets=targets, settings=chosen)
    for target, query in archetype.queries.items():
        assert stored(tmp_path / target) == sorted_rows(spark.sql(query).toArrow()), target
        assert [path.name for path in (tmp_path / target).glob("_staging*")] == []


@pytest.mark.parametrize("name", ARCHETYPES)
def test_every_policy_on_one_thread_and_four_with_tiny_queues_and_large(
    name: str, spark: SparkSession, given: dict[str, DataFrame]
) -> None:
    archetype = ARCHETYPES[name]
    tables = random_tables(seed=3, rows=300)
    expected = {t: sorted_rows(spark.sql(q).toArrow()) for t, q in archetype.queries.items()}
    for policy, threads, packs in product(PolicyName, (1, 4), (1, 100)):
        made = archetype.flow.run(
            tables, policy=policy, threads=threads, queue_packs=packs, pack_bytes=1000
        )
        found = {target: sorted_rows(rows) for target, rows in made.items()}
        assert found == expected, (policy, threads, packs)


@pytest.mark.parametrize("name", ["primary flow", "tree", "fork"])
def test_tables_are_read_by_the_tasks_themselves(
    name: str, spark: SparkSession, given: dict[str, DataFrame], tmp_path: Path
) -> None:
    """Rows that stay in their task, tables that every task holds, and rows that tasks exchange."""
    archetype = ARCHETYPES[name]
    sources = {table: str(tmp_path / "sources" / table) for table in given}
    for table, rows in random_tables(seed=3, rows=300).items():
        write_deltalake(sources[table], rows.slice(0, 150))
        write_deltalake(sources[table], rows.slice(150), mode="append")
    targets = {target: str(tmp_path / target) for target in archetype.queries}
    run_flow(spark, archetype.flow, sources=sources, targets=targets, settings=SMALL)
    for target, query in archetype.queries.items():
        assert stored(tmp_path / target) == sorted_rows(spark.sql(query).toArrow()), target


def test_a_partitioned_table_with_old_files_is_read_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    @springhouse.flow
    def copied(flow: Draft) -> None:
        flow.read("given").write("copy")

    first = pa.table({"n": [1, 2], "kind": ["a", "b"]})
    second = pa.table({"n": [3], "kind": ["a"], "late": [0.5]})
    for number, keys in enumerate(([], ["kind"])):
        place, copy = str(tmp_path / f"given {number}"), tmp_path / f"copy {number}"
        write_deltalake(place, first, partition_by=keys)
        write_deltalake(place, second, mode="append", schema_mode="merge", partition_by=keys)
        got = run_flow(spark, copied, sources={"given": place}, targets={"copy": str(copy)})
        assert got == {"copy": 3}
        assert stored(copy) == [(1, "a", None), (2, "b", None), (3, "a", 0.5)]


def test_every_type_arrives_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    """Also a timestamp without a zone, in rows that tasks exchange and in rows that stay."""

    @springhouse.flow
    def passed(flow: Draft) -> None:
        given = flow.read("given").write("copy")
        given.aggregate("at", d="max(d)", noted="min(noted)").sort("at").write("groups")

    moment = datetime(2024, 2, 29, 12, 30, tzinfo=UTC)
    rows = pa.table(
        {
            "at": pa.array([moment.replace(tzinfo=None), None], pa.timestamp("us")),
            "noted": pa.array([moment, None], pa.timestamp("us", tz="UTC")),
            "d": pa.array([Decimal("1.50"), None], pa.decimal128(12, 2)),
            "b": pa.array([b"x", None], pa.binary()),
        }
    )
    write_deltalake(str(tmp_path / "given"), rows)
    targets = {name: str(tmp_path / name) for name in ("copy", "groups")}
    for source in (str(tmp_path / "given"), frame_of(spark, rows, spark_schema(rows.schema))):
        run_flow(spark, passed, sources={"given": source}, targets=targets)
    opened = open_table(Storage(targets["copy"]))
    assert opened is not None
    assert [f.dataType.simpleString() for f in opened.schema.fields] == [
        "timestamp_ntz",
        "timestamp",
        "decimal(12,2)",
        "binary",
    ]
    assert stored(tmp_path / "copy") == sorted(2 * sorted_rows(rows), key=repr)
    assert len(stored(tmp_path / "groups")) == 4


def test_a_source_that_is_no_table(spark: SparkSession, tmp_path: Path) -> None:
    targets = {name: str(tmp_path / name) for name in ("even", "odd", "total")}
    with pytest.raises(LakeError, match="there is no Delta table to read"):
        run_flow(spark, parted, sources={"numbers": str(tmp_path / "none")}, targets=targets)


@springhouse.flow
def parted(flow: Draft) -> None:
    even, odd = flow.read("numbers").split("n IN (0, 2, 4, 6, 8)")
    even.write("even")
    odd.write("odd")
    even.aggregate(total="sum(n)").write("total")


def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(0, 10, numPartitions=2).withColumnRenamed("id", "n")


def test_a_batch_reaches_each_table_once_though_it_is_run_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    targets = {name: str(tmp_path / name) for name in ("even", "odd", "total")}
    for expected in ({"even": 5, "odd": 5, "total": 1}, {"even": 0, "odd": 0, "total": 0}):
        given = {"numbers": numbers(spark)}
        assert run_flow(spark, parted, sources=given, targets=targets, batch=1) == expected
    assert stored(tmp_path / "even") == [(n,) for n in (0, 2, 4, 6, 8)]
    assert stored(tmp_path / "total") == [(20,)]
    run_flow(spark, parted, sources={"numbers": numbers(spark)}, targets=targets, batch=2)
    assert len(stored(tmp_path / "odd")) == 10


@springhouse.flow
def copied(flow: Draft) -> None:
    flow.read("given").write("one").where("n > 0").write("two")


def given_table(folder: Path, *values: int, mode: str = "append") -> None:
    write_deltalake(str(folder), pa.table({"n": pa.array(values, pa.int64())}), mode=mode)


def copied_into(folder: Path) -> dict[str, str]:
    return {name: str(folder / name) for name in ("one", "two")}


def test_a_gap_between_batches_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    given_table(tmp_path / "given", 1)
    sources, targets = {"given": str(tmp_path / "given")}, copied_into(tmp_path)
    with pytest.raises(FlowError, match='would leave a gap: "one" has no batch of it yet'):
        run_flow(spark, copied, sources=sources, targets=targets, batch=2)
    run_flow(spark, copied, sources=sources, targets=targets, batch=1)
    with pytest.raises(FlowError, match='would leave a gap: "one" has batch 1 of it last'):
        run_flow(spark, copied, sources=sources, targets=targets, batch=3)
    for number in (0, -1, True):
        with pytest.raises(FlowError, match="batches are numbered 1, 2, 3"):
            run_flow(spark, copied, sources=sources, targets=targets, batch=number)
    assert stored(tmp_path / "one") == [(1,)]


@pytest.mark.parametrize("commits", [2, 3])
def test_every_attempt_of_a_batch_reads_what_the_first_one_read(
    commits: int, spark: SparkSession, tmp_path: Path
) -> None:
    """The driver dies before its first target or between two, while the source grows."""
    given_table(tmp_path / "given", 1, 2)
    sources, targets = {"given": str(tmp_path / "given")}, copied_into(tmp_path)
    left = iter(range(commits))

    def die() -> None:
        if next(left, None) is None:
            raise ConnectionAbortedError

    required = [PermitHeld(die)]
    with pytest.raises(ConnectionAbortedError):
        run_flow(spark, copied, sources=sources, targets=targets, batch=1, requires=required)
    given_table(tmp_path / "given", 3)
    run_flow(spark, copied, sources=sources, targets=targets, batch=1)
    assert stored(tmp_path / "one") == stored(tmp_path / "two") == [(1,), (2,)]
    run_flow(spark, copied, sources=sources, targets=targets, batch=2)
    assert len(stored(tmp_path / "one")) == len(stored(tmp_path / "two")) == 5


def test_a_batch_is_not_repeated_with_a_table_that_was_made_anew(
    spark: SparkSession, tmp_path: Path
) -> None:
    given_table(tmp_path / "given", 1, 2)
    sources, targets = {"given": str(tmp_path / "given")}, copied_into(tmp_path)
    run_flow(spark, copied, sources=sources, targets=targets, batch=1)
    shutil.rmtree(tmp_path / "two")
    shutil.rmtree(tmp_path / "given")
    given_table(tmp_path / "given", 7, 8)
    with pytest.raises(FlowError, match='another table as its source "given"'):
        run_flow(spark, copied, sources=sources, targets=targets, batch=1)


def test_a_finished_batch_does_nothing(spark: SparkSession, tmp_path: Path) -> None:
    given_table(tmp_path / "given", 1, 2)
    sources, targets = {"given": str(tmp_path / "given")}, copied_into(tmp_path)
    run_flow(spark, copied, sources=sources, targets=targets, batch=1)

    def everything() -> list[str]:
        return sorted(str(path) for path in tmp_path.rglob("*"))

    before = everything()
    got = run_flow(spark, copied, sources=sources, targets=targets, batch=1)
    assert got == {"one": 0, "two": 0}
    assert everything() == before, "no file was written, no commit made"


def test_a_finished_batch_needs_its_sources_no_more(spark: SparkSession, tmp_path: Path) -> None:
    given_table(tmp_path / "given", 1, 2)
    sources, targets = {"given": str(tmp_path / "given")}, copied_into(tmp_path)
    run_flow(spark, copied, sources=sources, targets=targets, batch=1)
    run_flow(spark, copied, sources=sources, targets=targets, batch=2)
    shutil.rmtree(tmp_path / "given")
    for made_anew in (False, True):
        if made_anew:
            given_table(tmp_path / "given", 7)
        for number in (1, 2):
            got = run_flow(spark, copied, sources=sources, targets=targets, batch=number)
            assert got == {"one": 0, "two": 0}


@pytest.mark.parametrize("batch", [None, 1])
@pytest.mark.parametrize("spelling", ["{}", "{}/", "{}/../one", "file://{}"])
def test_two_targets_in_one_place_are_refused(
    spelling: str, batch: int | None, spark: SparkSession, tmp_path: Path
) -> None:
    """Both targets have the same batch number, so the flow would skip the second one."""
    given_table(tmp_path / "given", 1, 2)
    targets = {"one": str(tmp_path / "one"), "two": spelling.format(tmp_path / "one")}
    sources = {"given": str(tmp_path / "given")}
    with pytest.raises(FlowError, match='would write "one" and "two" to one place'):
        run_flow(spark, copied, sources=sources, targets=targets, batch=batch)
    assert not (tmp_path / "one").exists()


def test_a_source_that_lost_a_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    given_table(tmp_path / "given", 1, 2)
    given_table(tmp_path / "given", 3)
    sources, targets = {"given": str(tmp_path / "given")}, copied_into(tmp_path)
    left = iter(range(2))

    def die() -> None:
        if next(left, None) is None:
            raise ConnectionAbortedError

    required = [PermitHeld(die)]
    with pytest.raises(ConnectionAbortedError):
        run_flow(spark, copied, sources=sources, targets=targets, batch=1, requires=required)
    lost = next((tmp_path / "given").glob("*.parquet"))
    lost.unlink()
    with pytest.raises(LakeError, match=f'"{lost.name}" of the table "given" is missing'):
        run_flow(spark, copied, sources=sources, targets=copied_into(tmp_path / "other"))
    given_table(tmp_path / "given", 4)
    with pytest.raises(LakeError, match="version 1, which the first attempt of this batch read"):
        run_flow(spark, copied, sources=sources, targets=targets, batch=1)


def test_files_of_a_flow_that_died_are_removed_by_vacuum(
    spark: SparkSession, project: Callable[[str], Path], tmp_path: Path
) -> None:
    """The target is a table of a warehouse, so its vacuum removes files that no commit names."""
    given_table(tmp_path / "given", 1)
    sql = f"CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_delta('{tmp_path}/given');"
    warehouse = springhouse.open(str(project(sql)))
    warehouse.refresh()
    target = next(path.parent for path in tmp_path.rglob("orders/_delta_log"))
    places = {"one": str(target), "two": str(tmp_path / "two")}
    rows = pa.record_batch({"n": pa.array(range(10), pa.int64())})
    (stage,) = divide_into_stages(copied.graph({"given": rows.schema}))
    told = pa.Table.from_batches(StageTask(stage, places, {}, SMALL)([rows]))
    assert told.num_rows, "the tasks reported files; the driver dies here"
    (target / "_staging-0123" / "in between").mkdir(parents=True)
    (target / "_staging-0123" / "in between" / "rows.parquet").write_bytes(b"PAR1")
    assert len(list(target.rglob("*.parquet"))) == 3
    warehouse.vacuum("0 seconds", grace_seconds=-1)
    assert len(list(target.rglob("*.parquet"))) == 1
    assert stored(target) == [(1,)]


@pytest.mark.parametrize(
    ("deed", "sentence"),
    [
        ("kill", "a worker of Spark was killed while it ran the flow; no table was changed"),
        ("exit", 'activity "act" failed: SystemExit: 3'),
        ("interrupt", "the flow failed on Spark: KeyboardInterrupt"),
    ],
)
def test_a_worker_that_dies_is_one_sentence(
    deed: str, sentence: str, spark: SparkSession, tmp_path: Path
) -> None:
    @springhouse.flow
    def dying(flow: Draft) -> None:
        def act(pack: pa.RecordBatch) -> pa.RecordBatch:
            if deed == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if deed == "exit":
                raise SystemExit(3)
            raise KeyboardInterrupt

        flow.read("numbers").apply(act).write("out")

    with pytest.raises(FlowError) as raised:
        run_flow(
            spark, dying, sources={"numbers": numbers(spark)}, targets={"out": str(tmp_path / "o")}
        )
    assert raised.value.problem == sentence
    assert "\tat " not in str(raised.value)
    assert not (tmp_path / "o" / "_delta_log").exists()


def test_what_activities_did_stands_in_the_commit(spark: SparkSession, tmp_path: Path) -> None:
    targets = {name: str(tmp_path / name) for name in ("even", "odd", "total")}
    run_flow(spark, parted, sources={"numbers": numbers(spark)}, targets=targets, batch=1)
    newest = TableLog(Storage(targets["even"]), "even").newest()
    assert newest is not None
    assert newest.note is not None
    split = newest.note.activities["split"]
    assert (split["rows_in"], split["rows_out"]) == (10, 10)
    assert newest.note.activities["write odd"]["rows_in"] == 5


def test_an_aggregate_of_nothing_is_still_a_row(spark: SparkSession, tmp_path: Path) -> None:
    targets = {name: str(tmp_path / name) for name in ("even", "odd", "total")}
    nothing = numbers(spark).where("n > 100")
    run_flow(spark, parted, sources={"numbers": nothing}, targets=targets)
    assert stored(tmp_path / "total") == [(None,)]


def test_a_function_that_fails_leaves_no_file_and_no_commit(
    spark: SparkSession, tmp_path: Path
) -> None:
    @springhouse.flow
    def failing(flow: Draft) -> None:
        def refuse(pack: pa.RecordBatch) -> pa.RecordBatch:
            if 9 in pack.column("n").to_pylist():
                raise ValueError("not nine")
            return pack

        flow.read("numbers").write("before").apply(refuse).write("after")

    targets = {name: str(tmp_path / name) for name in ("before", "after")}
    given = {"numbers": numbers(spark)}
    with pytest.raises(Exception, match='activity "refuse" failed: ValueError: not nine'):
        run_flow(spark, failing, sources=given, targets=targets, settings=SMALL)
    assert not list(tmp_path.glob("*/_delta_log"))


def test_a_table_with_other_columns_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    targets = {name: str(tmp_path / name) for name in ("even", "odd", "total")}
    run_flow(spark, parted, sources={"numbers": numbers(spark)}, targets=targets)
    swapped = targets | {"even": targets["total"], "total": targets["even"]}
    with pytest.raises(LakeError, match='the flow makes "even" with the columns'):
        run_flow(spark, parted, sources={"numbers": numbers(spark)}, targets=swapped)


def test_a_target_without_a_place(spark: SparkSession, tmp_path: Path) -> None:
    given, targets = {"numbers": numbers(spark)}, {"even": str(tmp_path / "even")}
    with pytest.raises(FlowError, match='writes "odd", and no path is given for it'):
        run_flow(spark, parted, sources=given, targets=targets)


ORDERS = "SELECT id, id % 7 AS amount, timestamp_seconds(id) AS at FROM numbers"
EXPECTED = [
    Expectation("paid", "amount > 0", OnViolation.QUARANTINE, Place("orders.sql", 1)),
    Expectation("small", "amount < 6", OnViolation.DROP_ROW, Place("orders.sql", 2)),
    Expectation("even", "amount % 2 = 0", OnViolation.KEEP, Place("orders.sql", 3)),
]


def test_large_arrivals_are_judged_in_the_pass_that_writes_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.range(0, 70, numPartitions=3).createOrReplaceTempView("numbers")
    rows = with_verdicts(spark.sql(ORDERS), EXPECTED)
    place = Storage(str(tmp_path / "orders"))
    files, arrived = arrive_in_tasks(spark, rows, EXPECTED, "orders", "at", place, SMALL)
    kept = read_arrow(place, [file.path for file in files], ["id", "amount"]).to_pylist()
    assert sorted(r["id"] for r in kept) == [n for n in range(70) if n % 7 not in (0, 6)]
    assert sorted(json.loads(record)["id"] for _, record in arrived.set_aside) == list(
        range(0, 70, 7)
    )
    assert arrived.violations == {"paid": 10, "small": 10, "even": 30}
    assert arrived.newest == 68.0
    assert arrived.activities["expectations"]["rows_in"] == 70
    assert arrived.activities["write orders"]["rows_in"] == 50
    assert [path.name for path in (tmp_path / "orders").glob("_*")] == []


def test_large_arrivals_that_must_not_be(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 70, numPartitions=3).createOrReplaceTempView("numbers")
    never = [Expectation("paid", "amount > 0", OnViolation.FAIL_UPDATE, Place("orders.sql", 1))]
    rows = with_verdicts(spark.sql(ORDERS), never)
    place = Storage(str(tmp_path / "orders"))
    with pytest.raises(ExpectationFailed, match='10 rows for "orders" broke'):
        arrive_in_tasks(spark, rows, never, "orders", None, place, SMALL)


def test_an_attempt_that_nobody_counts_writes_files_that_nobody_sees(tmp_path: Path) -> None:
    """A speculative duplicate: two attempts of one task write, and each reports its own files."""
    rows = pa.record_batch({"n": pa.array(range(10), pa.int64())})
    first = divide_into_stages(parted.graph({"numbers": rows.schema}))[0]
    places = {n: str(tmp_path / n) for n in (*first.targets, *first.passed)}
    task = StageTask(first, places, {}, SMALL)
    told = [pa.Table.from_batches(task([rows])).to_pylist() for _ in range(2)]
    files = [
        {row["told"] for row in rows if (row["kind"], row["name"]) == ("files", "even")}
        for rows in told
    ]
    assert files[0].isdisjoint(files[1])
    assert len(list((tmp_path / "even").glob("*.parquet"))) == 2
