"""The strong delta between any two versions: of our own tables, and of tables that others write."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from springhouse.errors import LakeError
from springhouse.lake.delta.changes import WEIGHT, difference, only_appended, strong_delta, weights
from springhouse.lake.delta.log import TableLog
from springhouse.lake.delta.tables import open_table
from springhouse.lake.storage.storage import Storage


@pytest.fixture
def foreign(tmp_path: Path) -> Storage:
    return Storage.at(str(tmp_path / "foreign"))


def write(place: Storage, **columns: list[Any]) -> None:
    write_deltalake(place.root, pa.table(columns), mode="append", schema_mode="merge")


def told(delta: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in delta.collect()), key=str)


def test_appends_by_others_are_their_rows(spark: SparkSession, foreign: Storage) -> None:
    write(foreign, id=[1, 2])
    write(foreign, id=[2])
    log = TableLog(foreign, "foreign")
    assert told(strong_delta(spark, log, None, 0)) == [(1, 1), (2, 1)]
    assert told(strong_delta(spark, log, 0, 1)) == [(2, 1)]
    assert only_appended(log, 0, 1)


def test_updates_and_deletes_by_others_are_netted(spark: SparkSession, foreign: Storage) -> None:
    write(foreign, id=[1, 2, 3], city=["Oslo", "Bergen", "Oslo"])
    DeltaTable(foreign.root).update(updates={"city": "'Moss'"}, predicate="id = 2")
    DeltaTable(foreign.root).delete("id = 3")
    log = TableLog(foreign, "foreign")
    assert told(strong_delta(spark, log, 0, 1)) == [(2, "Bergen", -1), (2, "Moss", 1)]
    assert told(strong_delta(spark, log, 0, 2)) == [
        (2, "Bergen", -1),
        (2, "Moss", 1),
        (3, "Oslo", -1),
    ]
    assert not only_appended(log, 0, 2)


def test_a_merge_and_an_overwrite_by_others(spark: SparkSession, foreign: Storage) -> None:
    write(foreign, id=[1, 2], city=["Oslo", "Bergen"])
    source = pa.table({"id": [2, 3], "city": ["Moss", "Ålesund"]})
    (
        DeltaTable(foreign.root)
        .merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    write_deltalake(foreign.root, pa.table({"id": [1], "city": ["Oslo"]}), mode="overwrite")
    log = TableLog(foreign, "foreign")
    assert told(strong_delta(spark, log, 0, 1)) == [
        (2, "Bergen", -1),
        (2, "Moss", 1),
        (3, "Ålesund", 1),
    ]
    assert told(strong_delta(spark, log, 0, 2)) == [(2, "Bergen", -1)]


def test_a_compaction_by_others_changes_nothing(spark: SparkSession, foreign: Storage) -> None:
    write(foreign, id=[1])
    write(foreign, id=[2])
    DeltaTable(foreign.root).optimize.compact()
    write(foreign, id=[3])
    log = TableLog(foreign, "foreign")
    assert told(strong_delta(spark, log, 0, 3)) == [(2, 1), (3, 1)]


def test_partitioned_tables(spark: SparkSession, foreign: Storage) -> None:
    table = pa.table({"id": [1, 2, 3], "day": ["a/b", "c d", None]})
    write_deltalake(foreign.root, table, partition_by=["day"])
    DeltaTable(foreign.root).delete("id = 1")
    more = pa.table({"id": [4], "day": ["c d"]})
    write_deltalake(foreign.root, more, mode="append")
    log = TableLog(foreign, "foreign")
    opened = open_table(foreign)
    assert opened is not None
    assert told(opened.read(spark)) == [(2, "c d"), (3, None), (4, "c d")]
    assert told(strong_delta(spark, log, 0, 2)) == [(1, "a/b", -1), (4, "c d", 1)]


def test_new_columns_in_between(spark: SparkSession, foreign: Storage) -> None:
    write(foreign, id=[1])
    write(foreign, id=[2], city=["Oslo"])
    log = TableLog(foreign, "foreign")
    assert told(strong_delta(spark, log, 0, 1)) == [(2, "Oslo", 1)]


def test_when_the_log_was_cut_off_the_files_tell(spark: SparkSession, foreign: Storage) -> None:
    write(foreign, id=[1])
    write(foreign, id=[2])
    write(foreign, id=[3])
    DeltaTable(foreign.root).create_checkpoint()
    for version in (0, 1):
        (Path(foreign.root) / "_delta_log" / f"{version:020}.json").unlink()
    log = TableLog(foreign, "foreign")
    assert [c.version for c in log.commits()] == [2]
    assert told(strong_delta(spark, log, None, 2)) == [(1, 1), (2, 1), (3, 1)]


@pytest.mark.parametrize(
    ("properties", "feature"),
    [
        ({"delta.enableDeletionVectors": "true"}, "deletionVectors"),
        ({"delta.columnMapping.mode": "name"}, "columnMapping"),
    ],
)
def test_a_feature_that_can_not_be_read_is_named(
    spark: SparkSession, foreign: Storage, properties: dict[str, str], feature: str
) -> None:
    write(foreign, id=list(range(40)))
    _claim_feature(foreign, feature, properties)
    opened = open_table(foreign)
    assert opened is not None
    with pytest.raises(LakeError, match=f'the table feature "{feature}"') as caught:
        opened.read(spark)
    assert caught.value.where == foreign.root


def _claim_feature(place: Storage, feature: str, properties: dict[str, str]) -> None:
    """Write the log entry of a writer with that feature. delta-rs itself supports neither."""
    opened = DeltaTable(place.root)
    log = Path(place.root) / "_delta_log"
    first = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    metadata = next(action["metaData"] for action in first if "metaData" in action)
    metadata["configuration"] |= properties
    actions: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
                      "readerFeatures": [feature], "writerFeatures": [feature]}},
    ]  # fmt: skip
    if feature == "columnMapping":
        schema = json.loads(metadata["schemaString"])
        for number, column in enumerate(schema["fields"], 1):
            column["metadata"] = {
                "delta.columnMapping.id": number,
                "delta.columnMapping.physicalName": column["name"],
            }
        metadata["schemaString"] = json.dumps(schema)
        metadata["configuration"]["delta.columnMapping.maxColumnId"] = "1"
    else:
        add = next(action["add"] for action in first if "add" in action)
        # The vector deletes six rows. It is the example of the Delta protocol.
        inline = {
            "storageType": "i",
            "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
            "sizeInBytes": 40,
            "cardinality": 6,
        }
        actions.append({"remove": {"path": add["path"], "dataChange": True,
                                   "deletionTimestamp": 1, "size": add["size"]}})  # fmt: skip
        actions.append({"add": add | {"deletionVector": inline, "dataChange": True}})
    actions.append({"metaData": metadata})
    text = "\n".join(json.dumps(action) for action in actions)
    (log / f"{opened.version() + 1:020}.json").write_text(text + "\n")


def test_difference_counts_duplicates_and_nulls() -> None:
    old = pa.table({"id": [1, 1, 2, None], "x": [0.5, 0.5, None, 1.0]})
    new = pa.table({"id": [1, 2, 2, None], "x": [0.5, None, None, 1.0]})
    delta = difference(old, new)
    assert delta is not None
    assert sorted(map(tuple, (r.values() for r in delta.to_pylist())), key=str) == [
        (1, 0.5, -1),
        (2, None, 1),
    ]
    assert weights(delta) == (1, 1)
    assert delta.schema.field(WEIGHT).type == pa.int64()


def test_rows_that_arrow_can_not_compare_are_left_to_spark() -> None:
    nested = pa.table({"tags": [["a"], ["b"]]})
    assert difference(nested, nested) is None
