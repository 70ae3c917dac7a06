"""Records that the client splits give the same rows as Spark's own functions."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from springhouse.lake.delta.alignment import parsed_schema
from springhouse.lake.sources import client_records
from springhouse.lake.sources.client_csv import csv_parser
from springhouse.lake.sources.client_json import json_parser, json_records
from springhouse.lake.sources.csv_files import CsvFiles
from springhouse.lake.sources.file_batch import FileBatch
from springhouse.lake.sources.json_files import JsonFiles
from springhouse.lake.sources.source import BAD
from springhouse.lake.storage.storage import Storage
from springhouse.project.options import file_options

ORDERS = (
    "id BIGINT, small TINYINT, amount DECIMAL(12,2), at TIMESTAMP, day DATE, share DOUBLE, "
    "paid BOOLEAN, note STRING NOT NULL"
)
# The record leaves out values that Spark itself changes: Spark reads the STRING 1.50 as "1.5".
JSON = r"""
{"note": "x"}
{"note": null}
{}
oops
null
[1]
{"id": 1
{"id": 1}{"id": 2}
{"note": "x", "id": 9223372036854775807}
{"note": "x", "id": 9223372036854775808}
{"note": "x", "id": 1.0}
{"note": "x", "id": "1"}
{"note": "x", "id": ""}
{"note": "x", "id": true}
{"note": "x", "id": {"a":1}}
{"note": "x", "small": 128}
{"note": "x", "share": "Infinity"}
{"note": "x", "day": "20240101"}
{"other": "x", "more": 1}
[{"note": "x", "id": 1}, {"note": "y", "id": 2}, {"id":3}]
{"note": "x", "small": 127, "amount": 12.345, "share": 1e3}
{"note": "x", "amount": "1,234.5", "share": 5}
{"note": "x", "amount": 12345678901}
{"note": "x", "amount": "abc"}
{"note": "x", "amount": ""}
{"note": "x", "amount": true}
{"note": "x", "share": "1.5"}
{"note": "x", "at": "2024-01-02T03:04:05Z", "day": "2024-02-29"}
{"note": "x", "at": "2024-01-02 03:04:05.678901+02:00"}
{"note": "x", "at": "2024-01-02"}
{"note": "x", "at": 86400}
{"note": "x", "at": "yesterday"}
{"note": "x", "at": ""}
{"note": "x", "day": "2023-02-29"}
{"note": "x", "paid": true}
{"note": "x", "paid": "true"}
{"note": 1.5}
{"note": "é \u00e9 \"q\" \\ \n"}
{"note": true, "unlisted": {"a": [1]}}
{"note": "x", "id": 1, "id": 2}
   {"note" :   "x" }
"""
CSV = """
id,amount,note,at,paid
1,2.5,x,2024-01-02T03:04:05Z,true
2,,,,
x,2.5,x,,
3,abc,x,,
4,"1,000.50","say ""hi"", you",2024-01-02,FALSE
5,1
6,1,x,,true,more
7,1.239,x,yesterday,true
8,1, x ,2024-01-02 03:04:05,yes
9223372036854775808,1,x,,
+9,-1,x,,
 10,1,x,,
"""


@pytest.fixture
def batch(tmp_path: Path) -> Callable[[str, str], FileBatch]:
    def write(name: str, text: str) -> FileBatch:
        (tmp_path / name).write_text(text)
        return FileBatch(Storage(str(tmp_path)), (name,))

    return write


def told(rows: DataFrame) -> list[str]:
    """The good rows, and the reason for each bad record, without the columns of bad records."""
    return sorted(repr(tuple(row) if row[BAD] is None else row[-3:]) for row in rows.collect())


def test_json(spark: SparkSession, batch: Callable[[str, str], FileBatch]) -> None:
    schema = parsed_schema(spark, ORDERS, "")
    files = batch("orders.json", JSON)
    by_spark = JsonFiles(file_options.read_file_options({"format": "json"})).rows(
        spark, files, schema, why=True
    )
    here = client_records.rows(
        spark,
        [record for line in client_records.lines(files, None) for record in json_records(line)],
        json_parser(schema),
        schema,
        "not a JSON object",
        why=True,
    )
    assert here.schema.fieldNames() == by_spark.schema.fieldNames()
    assert told(here) == told(by_spark)


def test_csv(spark: SparkSession, batch: Callable[[str, str], FileBatch]) -> None:
    columns = "id BIGINT, amount DECIMAL(12,2), note STRING, at TIMESTAMP, paid BOOLEAN"
    schema: StructType = parsed_schema(spark, columns, "")
    files = batch("orders.csv", CSV)
    by_spark = CsvFiles(file_options.read_file_options({"format": "csv", "header": "true"})).rows(
        spark, files, schema, why=True
    )
    header, *records = client_records.lines(files, None)
    here = client_records.rows(
        spark,
        records,
        csv_parser(schema, {}),
        schema,
        "not a row of 5 columns",
        why=True,
    )
    assert header.text.split(",") == schema.fieldNames()
    assert told(here) == told(by_spark)
