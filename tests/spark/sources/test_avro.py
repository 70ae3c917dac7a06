"""Avro in both directions: one warehouse reads the other's files, and no bad record is lost."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

import springhouse
from springhouse.errors import SchemaError
from springhouse.lake.sources.read_files import ReadFiles
from springhouse.lake.sources.source import BAD, ORIGIN, RECORD, Range, SourceContext

NULL = "null"
FIELDS = [
    {"name": "id", "type": "long"},
    {
        "name": "amount",
        "type": [NULL, {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}],
    },
    {"name": "at", "type": [NULL, {"type": "long", "logicalType": "timestamp-micros"}]},
    {"name": "day", "type": [NULL, {"type": "int", "logicalType": "date"}]},
    {"name": "tags", "type": [NULL, {"type": "array", "items": "string"}]},
    {"name": "size", "type": {"type": "enum", "name": "Size", "symbols": ["S", "L"]}},
    {"name": "other", "type": [NULL, "Size"]},
]
ROW = {
    "id": 1,
    "amount": Decimal("12.50"),
    "at": datetime(2026, 1, 31, 12, 0, 0, 5, UTC),
    "day": date(2026, 1, 31),
    "tags": ["x", "y"],
    "size": "S",
    "other": "L",
}


def put(path: Path, rows: list[dict[str, Any]], fields: list[dict[str, Any]] = FIELDS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = {"type": "record", "name": "Order", "fields": fields}
    with path.open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema(schema), rows)


def read(spark: SparkSession, context: SourceContext, **options: str) -> list[Any]:
    source = ReadFiles("data", format="avro", context=context, **options)
    return source.read(spark, {"0": Range(0, source.latest()["0"])}).collect()


def test_files_say_what_their_columns_are(
    spark: SparkSession, context: SourceContext, tmp_path: Path
) -> None:
    put(tmp_path / "data" / "1.avro", [ROW])
    put(
        tmp_path / "data" / "2.avro",
        [{"ID": 2, "new": "n"}],
        [{"name": "ID", "type": "int"}, {"name": "new", "type": "string"}],
    )
    (row, second) = sorted(read(spark, context), key=lambda row: row.id)
    assert row.asDict() == {**ROW, "at": row.at, "new": None, BAD: None, RECORD: None, ORIGIN: None}
    assert row.at.timestamp() == ROW["at"].timestamp()
    assert (second.id, second.new, second.amount) == (2, "n", None)


def test_what_does_not_fit_is_set_aside_and_the_rest_is_not(
    spark: SparkSession, context: SourceContext, tmp_path: Path
) -> None:
    fields = [{"name": "id", "type": [NULL, "long", "string"]}]
    put(tmp_path / "data" / "1.avro", [{"id": 1}, {"id": "x"}, {"id": None}], fields)
    (tmp_path / "data" / "2.avro").write_text("this is not Avro")
    rows = read(spark, context, schema="id BIGINT NOT NULL")
    assert [row.id for row in rows if row[BAD] is None] == [1]
    bad = sorted((row[BAD], row[RECORD]) for row in rows if row[BAD] is not None)
    assert bad[:2] == [('id: "x" is not int64', '{"id":"x"}'), ("id: missing", '{"id":null}')]
    assert bad[2][0].startswith("not readable as Avro from here on: ")


def test_a_union_that_no_column_can_hold_is_told(
    spark: SparkSession, context: SourceContext, tmp_path: Path
) -> None:
    put(tmp_path / "data" / "1.avro", [{"id": 1}], [{"name": "id", "type": ["long", "string"]}])
    with pytest.raises(SchemaError, match="union of 2 types") as error:
        read(spark, context)
    assert (error.value.where or "").endswith("data/1.avro")


def test_the_changes_of_a_view_are_files_that_can_be_read_again(
    spark: SparkSession, project: Callable[..., Path], tmp_path: Path
) -> None:
    folder = project(
        """
        CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_files('in', format => 'avro');
        CREATE MATERIALIZED VIEW totals
          TBLPROPERTIES ('springhouse.sink.out' = 'avro', 'springhouse.sink.out.path' = 'out')
          AS SELECT size, sum(amount) AS total, max(at) AS newest FROM orders GROUP BY size;
        CREATE STREAMING TABLE copied AS SELECT * FROM STREAM read_files('out', format => 'avro');
        """
    )
    put(folder / "in" / "1.avro", [ROW])
    for _ in range(2):
        with springhouse.open(folder) as warehouse:
            assert not warehouse.refresh().failures
        put(folder / "in" / "2.avro", [{**ROW, "id": 2}])
    with springhouse.open(folder) as warehouse:
        assert not warehouse.refresh().failures
        changes = warehouse.query(
            "SELECT * FROM copied ORDER BY _commit_version, _change_type"
        ).collect()
        (now,) = warehouse.query("SELECT * FROM totals").collect()
    told = [(row["_change_type"], row.size, row.total) for row in changes]
    assert told == [
        ("insert", "S", Decimal("12.50")),
        ("delete", "S", Decimal("12.50")),
        ("insert", "S", Decimal("25.00")),
    ]
    assert (changes[-1].total, changes[-1].newest) == (now.total, now.newest)
    assert len(list((folder / "out").glob("*.avro"))) == 2
