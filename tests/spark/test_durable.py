"""Files that Spark wrote are on the disk before a commit names them."""

from pathlib import Path

from pyspark.sql import SparkSession

from disk import Disk
from springhouse.lake.delta.commits import Change, commit, ensure
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.writing import write_with_spark
from springhouse.lake.storage.storage import Storage
from springhouse.units import Instant


def test_files_of_tasks_are_synced_before_the_commit(spark: SparkSession, tmp_path, monkeypatch):
    place = Storage.at(str(tmp_path / "orders"))
    rows = spark.range(100).repartition(3)
    ground = ensure(place, rows.schema, Note("schema", Instant(1.0)))
    adds = write_with_spark(place, rows)
    disk = Disk(Path(place.root), monkeypatch)
    commit(ground, Change(Note("append", Instant(2.0)), adds))
    assert {add.path for add in adds} <= disk.before(1)
    assert {str(Path(add.path).parent) for add in adds} <= disk.before(1)
    assert disk.before(2) == {f"_delta_log/{1:020}.json", "_delta_log"}
