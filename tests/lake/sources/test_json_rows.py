"""A row becomes the JSON that Spark would write, and Spark reads the same row back."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from springhouse.lake.sources.json_rows import json_rows


def test_every_type_of_a_table_has_a_text() -> None:
    rows = pa.record_batch(
        {
            "amount": pa.array([Decimal("12.50")], pa.decimal128(12, 2)),
            "placed_at": pa.array(
                [datetime(2026, 1, 31, 12, 0, 0, 5, UTC)], pa.timestamp("us", "UTC")
            ),
            "day": pa.array([date(2026, 1, 31)]),
            "ratio": pa.array([0.1]),
            "open": pa.array([True]),
            "name": pa.array(['a "quoted"\nname, ü']),
            "tags": pa.array([["x", None]]),
            "where": pa.array([{"city": "Oslo", "at": None}]),
            "counts": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
            "raw": pa.array([b"hi"]),
            "nothing": pa.array([None], pa.int64()),
        }
    )
    (text,) = json_rows(rows)
    assert "\n" not in text
    assert '"amount":12.50,' in text, "a decimal keeps its digits"
    assert json.loads(text) == {
        "amount": 12.5,
        "placed_at": "2026-01-31T12:00:00.000005Z",
        "day": "2026-01-31",
        "ratio": 0.1,
        "open": True,
        "name": 'a "quoted"\nname, ü',
        "tags": ["x", None],
        "where": {"city": "Oslo", "at": None},
        "counts": {"a": 1},
        "raw": "aGk=",
        "nothing": None,
    }


def test_no_rows_are_no_lines() -> None:
    assert json_rows(pa.record_batch({"id": pa.array([], pa.int64())})) == []
