"""The client splits a record into fields, and knows which of them fit their types."""

import gzip
from pathlib import Path

import pytest
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from springhouse.errors import SourceError
from springhouse.lake.sources.client_csv import csv_parser
from springhouse.lake.sources.client_json import json_parser
from springhouse.lake.sources.client_records import FieldText, lines, prove_simple
from springhouse.lake.sources.file_batch import FileBatch
from springhouse.lake.storage.storage import Storage

ORDERS = StructType(
    [
        StructField("id", LongType()),
        StructField("amount", DecimalType(12, 2)),
        StructField("at", TimestampType()),
        StructField("share", DoubleType()),
        StructField("paid", BooleanType()),
        StructField("note", StringType()),
    ]
)


@pytest.mark.parametrize(
    "text",
    [
        "oops",
        "",
        "null",
        "5",
        '[{"id": 1}]',
        '{"id": 1',
        '{"id": 1}{"id": 2}',
        '{"id": 1} x',
        '{"id": 01}',
        '{"id": 1,}',
        '{"id" 1}',
        "{id: 1}",
        '{"note": "a\tb"}',
        '{"deep": ' + "[" * 100_000,
    ],
    ids=lambda text: text[:20],
)
def test_what_is_no_object_is_no_record(text: str) -> None:
    assert json_parser(ORDERS)(text) is None


@pytest.mark.parametrize(
    ("text", "field", "fits"),
    [
        ('{"id": 1}', "id", "1"),
        ('{"id": 12345678901234567890}', "id", "12345678901234567890"),  # the cast will refuse it
        ('{"id": 1.0}', "id", None),
        ('{"id": 1e3}', "id", None),
        ('{"id": "1"}', "id", None),
        ('{"id": true}', "id", None),
        ('{"id": {"x": 1}}', "id", None),
        ('{"amount": 1.50}', "amount", "1.50"),
        ('{"amount": "1,000.50"}', "amount", "1000.50"),
        ('{"amount": false}', "amount", None),
        ('{"share": 1e-3}', "share", "1e-3"),
        ('{"share": "NaN"}', "share", "NaN"),
        ('{"share": "1.5"}', "share", None),
        ('{"paid": false}', "paid", "false"),
        ('{"paid": "false"}', "paid", None),
        ('{"at": "2024-01-02T03:04:05Z"}', "at", "2024-01-02T03:04:05Z"),
        ('{"at": 60}', "at", "1970-01-01T00:01:00+00:00"),
        ('{"at": 99999999999999}', "at", None),
        ('{"at": 1.5}', "at", None),
        ('{"note": "a \\"b\\" \\u00e9"}', "note", 'a "b" é'),
        ('{"note": 1.50}', "note", "1.50"),
        ('{"note": {"x" : [1, 2.50]}}', "note", '{"x" : [1, 2.50]}'),
        (' { "id" : 1 , "id" : 2 } ', "id", "2"),
    ],
)
def test_a_field_of_json_fits_if_spark_would_take_it(text: str, field: str, fits: str) -> None:
    parsed = json_parser(ORDERS)(text)
    assert parsed is not None
    assert parsed[field].fitting == fits
    assert parsed[field].text is not None


def test_what_is_null_or_not_wanted_says_nothing() -> None:
    assert json_parser(ORDERS)('{"id": null, "other": [1, {}]}') == {"id": FieldText()}
    assert json_parser(ORDERS)(" {} ") == {}


@pytest.mark.parametrize(
    ("text", "options", "found"),
    [
        ("1,2.5,x", {}, ("1", "2.5", "x")),
        ('1,,"say ""hi"", you"', {}, ("1", None, 'say "hi", you')),
        ("x,,", {}, (None, None, None)),
        ("1|NA|NA", {"sep": "|", "nullvalue": "NA"}, ("1", None, None)),
        ("1,'1,000','it\\'s'", {"quote": "'", "escape": "\\"}, ("1", "1000", "it's")),
    ],
)
def test_a_line_of_csv(text: str, options: dict[str, str], found: tuple[str | None, ...]) -> None:
    layout = StructType([ORDERS["id"], ORDERS["amount"], ORDERS["note"]])
    parsed = csv_parser(layout, options)(text)
    assert parsed is not None
    assert tuple(parsed.get(name, FieldText()).fitting for name in layout.fieldNames()) == found


@pytest.mark.parametrize("text", ["1", "1,2,3,4", "1,2\r3,4"])
def test_a_line_with_other_fields_is_no_record(text: str) -> None:
    assert csv_parser(StructType([ORDERS["id"], ORDERS["amount"]]), {})(text) is None


def test_lines_are_split_as_spark_splits_them(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfid\r\n1\r2\n   \n\n\t\n3")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"4|5"))
    batch = FileBatch(Storage(str(tmp_path)), ("a.csv", "b.csv.gz"))
    assert [record.text for record in lines(batch, None)] == ["id", "1", "2", "\t", "3", "4|5"]
    assert [record.text for record in lines(batch, "|")][-2:] == ["4", "5"]
    assert {record.file for record in lines(batch, None)} == {
        batch.full(path) for path in batch.paths
    }


def test_what_only_spark_does_is_an_error_that_names_it() -> None:
    prove_simple(ORDERS, ["sep"], supported=["sep"])
    with pytest.raises(SourceError, match='the option "dateformat", "tags" as ARRAY<STRING>'):
        prove_simple(
            StructType([StructField("tags", ArrayType(StringType()))]), ["dateformat"], supported=[]
        )
