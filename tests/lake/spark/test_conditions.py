"""Arrow decides some conditions, as Spark would; Spark decides all others."""

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from sqlglot import parse_one

from springhouse.lake.spark.conditions import decidable

ROWS = pa.table(
    {
        "n": pa.array([1, 2, 3, None], pa.int32()),
        "price": pa.array([Decimal("1.50"), Decimal("2.00"), None, Decimal("-3.25")]),
        "day": pa.array([date(2026, 1, 1), date(2026, 2, 1), None, date(2026, 3, 1)]),
        "word": pa.array(["apple", "pear", None, "APPLE pie"]),
        "ratio": pa.array([0.1, 0.2, None, float("nan")]),
    }
)


def kept(*conditions: str) -> list[int] | None:
    """The positions of the rows that are kept; None if Arrow can decide no condition."""
    trees = [parse_one(each, dialect="spark") for each in conditions]
    found = decidable(trees, ROWS.schema)
    if found is None:
        return None
    numbered = ROWS.append_column("place", pa.array(range(len(ROWS))))
    return list(numbered.filter(found)["place"].to_pylist())


@pytest.mark.parametrize(
    ("condition", "places"),
    [
        ("n = 2", [1]),
        ("n <> 2", [0, 2]),
        ("2 < n", [2]),
        ("(n >= -1)", [0, 1, 2]),
        ("n IN (1, 3)", [0, 2]),
        ("n BETWEEN 2 AND 3", [1, 2]),
        ("price > 1.5", [1]),
        ("price < -3", [3]),
        ("day >= DATE '2026-02-01'", [1, 3]),
        ("day < CAST('2026-02-01' AS DATE)", [0]),
        ("word = 'pear'", [1]),
        ("word LIKE 'app%'", [0]),
        ("word LIKE '%p%a%'", [1]),
    ],
)
def test_a_column_against_literals_of_its_kind_is_decided(
    condition: str, places: list[int]
) -> None:
    assert kept(condition) == places


@pytest.mark.parametrize(
    "condition",
    [
        "n NOT IN (1, 3)",
        "n NOT BETWEEN 2 AND 3",
        "word NOT LIKE 'app%'",
        "NOT n = 1",
        "word LIKE 'a_ple'",
        "word LIKE 'a!%' ESCAPE '!'",
        "word ILIKE 'apple'",
        "n = 1 OR n = 2",
        "n = '2'",
        "word = 2",
        "word > DATE '2026-01-01'",
        "day > '2026-01-01'",
        "day < DATE '2026-01-01' + INTERVAL '1' MONTH",
        "day < TRY_CAST('2026-01-01' AS DATE)",
        "day < DATE '2026-1'",
        "price > 1.555",
        "n > 1.5",
        "n = 99999999999",
        "ratio < 0.15",
        "n = price",
        "n <=> 1",
        "n = NULL",
        "n IN (1, NULL)",
        "n IN (SELECT 1)",
        "lower(word) = 'apple'",
        "other = 1",
        "t.n = 1",
    ],
)
def test_anything_else_is_left_to_spark(condition: str) -> None:
    assert kept(condition) is None


def test_of_several_conditions_those_that_can_be_decided_are() -> None:
    assert kept("n > 1", "lower(word) = 'pear'", "price > 0") == [1]
