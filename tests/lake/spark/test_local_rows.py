"""Small relations travel to Spark as one row of lists."""

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType

from springhouse.lake.spark.local_rows import LocalRows, empty_relation, send_together, unfold

ORDERS = pa.table({"id": [7, 9], "state": ["open", None]})
LINES = pa.table({"id": pa.array([], pa.int64())})


def test_each_relation_is_a_list_of_its_rows() -> None:
    every = send_together(
        {"orders": LocalRows.of(ORDERS, None), "lines": LocalRows.of(LINES, None)}
    )
    assert every.rows.to_pylist() == [
        {"orders": [{"id": 7, "state": "open"}, {"id": 9, "state": None}], "lines": []}
    ]


def test_the_rows_keep_their_types() -> None:
    shape = StructType([StructField("id", LongType()), StructField("state", StringType())])
    every = send_together({"orders": LocalRows.of(ORDERS, shape)})
    assert every.shape["orders"].dataType.elementType == shape


def test_rows_in_several_chunks_are_one_list() -> None:
    both = pa.concat_tables([ORDERS, ORDERS])
    (row,) = send_together({"orders": LocalRows.of(both, None)}).rows.to_pylist()
    assert [each["id"] for each in row["orders"]] == [7, 9, 7, 9]


def test_a_relation_is_unfolded_where_it_is_named() -> None:
    assert unfold("orders", whole=False) == "(SELECT INLINE(`orders`) FROM {given})"
    assert "COALESCE(1)" in unfold("orders", whole=True)


def test_a_relation_without_rows_is_written_as_a_query_that_gives_none() -> None:
    shape = StructType([StructField("id", LongType()), StructField("a {b}", StringType())])
    assert empty_relation(shape) == (
        "(SELECT CAST(NULL AS bigint) AS `id`, CAST(NULL AS string) AS `a {{b}}` WHERE FALSE)"
    )
