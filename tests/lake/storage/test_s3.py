"""A bucket is a storage like any other: one of two commits of the same work wins there too."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from springhouse.errors import CommitConflict
from springhouse.lake.delta.commits import Change, commit, create, ensure
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.tables import TableVersion, open_table
from springhouse.lake.delta.writing import write_arrow
from springhouse.lake.storage import s3
from springhouse.lake.storage.storage import Storage
from springhouse.units import Instant

IDS = StructType([StructField("id", LongType())])
NOTE = Note("append", Instant(1.0))
WRITERS = 4


def attempt(ground: TableVersion, work: str, number: int) -> bool:
    """Add a row under this name of the work; whether this attempt was the first one."""
    add = write_arrow(ground.storage, pa.table({"id": pa.array([number], pa.int64())}))
    try:
        commit(ground, Change(NOTE, [add], transactions={work: 1}))
    except CommitConflict:
        return False
    return True


@pytest.mark.parametrize("same", [True, False])
def test_of_writers_at_once_each_work_is_committed_once(bucket: str, same: bool) -> None:
    table = Storage.at(f"{bucket}/t")
    create(table, IDS, Change(NOTE))
    grounds = [open_table(table) for _ in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS) as pool:
        works = [("work" if same else f"work {n}", n) for n in range(WRITERS)]
        won = list(pool.map(lambda g, w: g is not None and attempt(g, *w), grounds, works))
    assert won.count(True) == (1 if same else WRITERS)
    after = open_table(table)
    assert after is not None
    assert after.version == won.count(True), "every version was written by one"
    assert after.rows == won.count(True)
    if not same:
        assert sorted(after.to_arrow()["id"].to_pylist()) == list(range(WRITERS))


def test_a_bucket_lists_reads_and_forgets_like_a_folder(bucket: str) -> None:
    storage = Storage.at(f"s3a://{bucket.removeprefix('s3://')}/warehouse/")
    assert storage.root == f"{bucket}/warehouse"
    assert not storage.exists()
    ensure(storage.inside("tables", "a"), IDS, NOTE)
    ensure(storage.inside("tables", "b"), IDS, NOTE)
    assert storage.inside("tables").folders() == ["a", "b"]
    log = storage.inside("tables", "a", "_delta_log")
    assert '"protocol"' in (log.read_text(f"{0:020}.json") or "")
    assert log.read_text(f"{1:020}.json") is None
    storage.inside("tables", "a").remove()
    assert open_table(storage.inside("tables", "a")) is None


def test_all_three_are_told_the_same_by_the_usual_variables() -> None:
    given = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9000", "AWS_DEFAULT_REGION": "eu-north-1"}
    assert s3.delta_options(given) == {
        "aws_conditional_put": "etag",
        "aws_region": "eu-north-1",
        "aws_endpoint": "http://127.0.0.1:9000",
        "aws_allow_http": "true",
    }
    spark = s3.spark_settings(given)
    assert spark["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:9000"
    assert spark["spark.hadoop.fs.s3a.endpoint.region"] == "eu-north-1"
    assert s3.delta_options({}) == {"aws_conditional_put": "etag"}, "Amazon's own needs no words"
