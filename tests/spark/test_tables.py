"""How rows come from this process to Spark, and back."""

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from springhouse.lake.tables import frame_of


def test_rows_after_an_empty_batch_are_not_lost(spark: SparkSession) -> None:
    """PySpark takes an empty batch for the end of the table."""
    parts = [pa.table({"n": range(start, start + 100)}) for start in range(0, 500, 100)]
    rows = pa.concat_tables(parts)
    left = rows.filter(pc.or_(pc.less(rows["n"], 150), pc.greater_equal(rows["n"], 450)))
    assert any(not batch.num_rows for batch in left.to_batches())

    frame = frame_of(spark, left)

    assert sorted(row.n for row in frame.collect()) == [*range(150), *range(450, 500)]


def test_no_rows_are_a_frame_without_rows(spark: SparkSession) -> None:
    shape = StructType([StructField("n", LongType())])
    frame = frame_of(spark, pa.table({"n": pa.array([], pa.int64())}), shape)
    assert frame.schema == shape
    assert frame.count() == 0
