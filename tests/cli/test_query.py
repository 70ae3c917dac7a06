"""Rows in three formats; printing them needs no Spark."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from springhouse.cli.query import OutputFormat, print_rows

ROWS = pa.table(
    {
        "country": ["Norway", None],
        "revenue": [Decimal("155.90"), Decimal("64.25")],
        "share": [0.5, float("nan")],
        "at": [datetime(2026, 11, 9, 8, 12, tzinfo=UTC)] * 2,
        "[tags]": [["a", "b"], []],
    }
)


def printed(capsys, form):
    print_rows(ROWS, form)
    return capsys.readouterr().out


def test_a_table_aligns_numbers_right_and_shows_nulls(capsys):
    header, first, second = printed(capsys, OutputFormat.TABLE).splitlines()
    assert header.split() == ["country", "revenue", "share", "at", "[tags]"]
    assert first.index("155.90") + len("155.90") == header.index("revenue") + len("revenue")
    assert second.startswith("NULL ")


def test_json_is_valid_and_loses_no_digit(capsys):
    first, second = json.loads(printed(capsys, OutputFormat.JSON))
    assert first["revenue"] == "155.90"
    assert first["at"] == "2026-11-09T08:12:00+00:00"
    assert first["[tags]"] == ["a", "b"]
    assert second["country"] is None
    assert second["share"] is None


def test_csv(capsys):
    lines = printed(capsys, OutputFormat.CSV).splitlines()
    assert lines[0] == "country,revenue,share,at,[tags]"
    assert lines[1].startswith("Norway,155.90,0.5,2026-11-09T08:12:00+00:00,")
    assert lines[2].startswith(",64.25,")


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (OutputFormat.TABLE, "country  revenue  share  at  [tags]\n"),
        (OutputFormat.JSON, "[]\n"),
        (OutputFormat.CSV, "country,revenue,share,at,[tags]\n"),
    ],
)
def test_no_rows(capsys, form, expected):
    print_rows(ROWS.slice(0, 0), form)
    assert capsys.readouterr().out == expected
