"""The values of a table become Avro, and come back unchanged."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from springhouse.errors import SchemaError
from springhouse.lake.sinks.avro_sink import AvroSink
from springhouse.lake.sinks.sink import SinkContext
from springhouse.lake.sources.avro_types import avro_schema, spark_schema
from springhouse.lake.sources.source import Range
from springhouse.units import Instant

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int32()),
        ("amount", pa.decimal128(12, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
        ("ratio", pa.float64()),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("city", pa.string()), ("floor", pa.int32())])),
        ("counts", pa.map_(pa.string(), pa.int64())),
    ]
)
ROW = {
    "id": 1,
    "small": 2,
    "amount": Decimal("12.50"),
    "at": datetime(2026, 1, 31, 12, 0, 0, 5, UTC),
    "local": datetime(2026, 1, 31, 12, 0, 0, 5),  # noqa: DTZ001  that is its point
    "day": date(2026, 1, 31),
    "ratio": 0.1,
    "raw": b"hi",
    "tags": ["x", None],
    "place": {"city": "Oslo", "floor": None},
    "counts": {"a": 1},
}
NOTHING = dict.fromkeys(ROW)


class Given:
    """Changes of two rows, one of them without any value."""

    columns = COLUMNS

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pylist([ROW, NOTHING], schema=COLUMNS)


class Nothing(Given):
    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from ()


def sink(folder: Path) -> AvroSink:
    return AvroSink("out", context=SinkContext("t", "out", "p", folder, lambda: Instant(0.0)))


def test_every_type_comes_back_as_it_was(tmp_path: Path) -> None:
    sink(tmp_path).write(Given(), Range(0, 3))
    (path,) = (tmp_path / "out").iterdir()
    assert path.name == f"{0:020}-{3:020}.avro"
    with path.open("rb") as file:
        assert list(fastavro.reader(file)) == [ROW, NOTHING]
    assert spark_schema(avro_schema(COLUMNS, "t")) == from_arrow_schema(COLUMNS)


def test_a_range_that_comes_again_replaces_its_own_file(tmp_path: Path) -> None:
    for _ in range(2):
        sink(tmp_path).write(Given(), Range(0, 3))
        sink(tmp_path).write(Nothing(), Range(3, 4))
    assert len(list((tmp_path / "out").iterdir())) == 1, "no change is no file"


def test_a_type_that_has_a_name_is_known_by_it_from_then_on() -> None:
    size = {"type": "enum", "name": "Size", "symbols": ["S", "L"]}
    fields = [{"name": "size", "type": size}, {"name": "other", "type": ["null", "Size"]}]
    parsed = fastavro.parse_schema({"type": "record", "name": "Row", "fields": fields})
    assert spark_schema(parsed).simpleString() == "struct<size:string,other:string>"


@pytest.mark.parametrize(
    ("avro", "problem"),
    [
        ("string", "is not a record"),
        (
            {"type": "record", "name": "r", "fields": [{"name": "a", "type": ["int", "string"]}]},
            "union of 2",
        ),
        (
            {"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "r"]}]},
            "holds itself",
        ),
    ],
)
def test_what_no_table_can_hold_is_told(avro: object, problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        spark_schema(avro)
