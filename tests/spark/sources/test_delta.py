"""A Delta table as a stream: first all of its rows, then the rows that each version appended."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from springhouse.errors import LakeError, SourceError
from springhouse.lake.sources.delta_source import ReadDelta
from springhouse.lake.sources.source import Range, SourceContext


def append(folder: Path, *ids: int, **more: object) -> None:
    columns = {"id": list(ids)} | {name: [value] * len(ids) for name, value in more.items()}
    write_deltalake(folder, pa.table(columns), mode="append", schema_mode="merge")


def ids(source: ReadDelta, spark: SparkSession, start: int, end: int) -> list[int]:
    return sorted(row.id for row in source.read(spark, {"0": Range(start, end)}).collect())


def test_a_table_is_read_whole_and_then_by_what_was_appended(
    spark: SparkSession, context: SourceContext, tmp_path: Path
) -> None:
    source = ReadDelta("orders", context=context)
    assert source.latest() == {"0": 0}
    assert source.warning is not None

    append(tmp_path / "orders", 1, 2)
    append(tmp_path / "orders", 3)
    assert source.warning is None
    assert source.latest() == {"0": 2}
    assert ids(source, spark, 0, 2) == [1, 2, 3]
    assert ids(source, spark, 0, 1) == [1, 2]

    append(tmp_path / "orders", 4, note="new column")
    append(tmp_path / "orders", 4)
    assert source.latest() == {"0": 4}
    assert ids(source, spark, 2, 4) == [4, 4]
    assert ids(ReadDelta("orders", context=context), spark, 2, 4) == [4, 4]
    assert source.read(spark, {"0": Range(2, 4)}).columns == ["id", "note"]
    assert source.size({"0": Range(2, 4)}) > source.size({"0": Range(3, 4)}) > 0
    assert source.size({}) == 0


def test_without_ranges_the_columns_are_there_and_no_rows(
    spark: SparkSession, context: SourceContext, tmp_path: Path
) -> None:
    append(tmp_path / "orders", 1)
    rows = ReadDelta("orders", context=context).read(spark, {})
    assert (rows.columns, rows.count()) == (["id"], 0)


def test_a_compaction_is_nothing_to_read(
    spark: SparkSession, context: SourceContext, tmp_path: Path
) -> None:
    source = ReadDelta("orders", context=context)
    append(tmp_path / "orders", 1)
    append(tmp_path / "orders", 2)
    DeltaTable(tmp_path / "orders").optimize.compact()
    assert source.latest() == {"0": 2}
    DeltaTable(tmp_path / "orders").vacuum(
        retention_hours=0, enforce_retention_duration=False, dry_run=False
    )
    # The files of version 1 are gone; version 2 has the same rows.
    assert ids(source, spark, 0, 2) == [1, 2]
    append(tmp_path / "orders", 3)
    # Versions 2 to 4 are the compaction, the start of the vacuum and its end.
    assert source.latest() == {"0": 6}
    assert ids(source, spark, 2, 6) == [3]


def test_changed_rows_are_an_error_that_says_what_to_do(
    spark: SparkSession, context: SourceContext, tmp_path: Path
) -> None:
    source = ReadDelta("orders", context=context)
    append(tmp_path / "orders", 1, 2)
    DeltaTable(tmp_path / "orders").delete("id = 1")
    append(tmp_path / "orders", 3)
    assert ids(source, spark, 0, 3) == [2, 3]
    assert ids(source, spark, 2, 3) == [3]
    with pytest.raises(SourceError) as raised:
        source.read(spark, {"0": Range(1, 3)})
    assert raised.value.problem == (
        "rows of the Delta table were changed or deleted between its versions 0 and 2; "
        "a stream can only be appended to"
    )
    assert raised.value.where == str(tmp_path / "orders")
    assert raised.value.hint is not None
    assert f"FROM delta.`{tmp_path / 'orders'}`" in raised.value.hint
    assert "AUTO CDC" in raised.value.hint


def test_versions_that_the_log_has_lost_are_an_error(
    spark: SparkSession, context: SourceContext, tmp_path: Path
) -> None:
    for number in range(4):
        append(tmp_path / "orders", number)
    DeltaTable(tmp_path / "orders").create_checkpoint()
    for number in range(3):
        (tmp_path / "orders" / "_delta_log" / f"{number:020}.json").unlink()
    source = ReadDelta("orders", context=context)
    assert ids(source, spark, 0, 4) == [0, 1, 2, 3]
    with pytest.raises(SourceError, match="no longer has all of its versions 1 to 3"):
        source.read(spark, {"0": Range(1, 4)})


def test_a_table_that_cant_be_read_as_plain_parquet_is_refused(
    spark: SparkSession, context: SourceContext, tmp_path: Path
) -> None:
    append(tmp_path / "orders", 1)
    log = tmp_path / "orders" / "_delta_log" / f"{0:020}.json"
    protocol = '{"protocol":{"minReaderVersion":2,"minWriterVersion":5}}'
    lines = [line for line in log.read_text().splitlines() if '"protocol"' not in line]
    lines = [
        line.replace('"configuration":{}', '"configuration":{"delta.columnMapping.mode":"name"}')
        for line in lines
    ]
    log.write_text("\n".join([protocol, *lines]) + "\n")
    with pytest.raises(LakeError, match="columnMapping"):
        ReadDelta("orders", context=context).read(spark, {"0": Range(0, 1)})
