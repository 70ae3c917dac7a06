"""How rows travel from this process to Spark, and back."""

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from springhouse.lake.delta.tables import frame_of


def test_rows_after_an_empty_batch_are_not_lost(spark: SparkSession) -> None:
    """PySpark takes an empty batch for the end of the table."""
    batches = [pa.record_batch({"n": pa.array(rows, pa.int64())}) for rows in ([1, 2], [], [3])]

    frame = frame_of(spark, pa.Table.from_batches(batches))

    assert sorted(row.n for row in frame.collect()) == [1, 2, 3]


def test_no_rows_are_a_frame_without_rows(spark: SparkSession) -> None:
    shape = StructType([StructField("n", LongType())])
    frame = frame_of(spark, pa.table({"n": pa.array([], pa.int64())}), shape)
    assert frame.schema == shape
    assert frame.count() == 0
