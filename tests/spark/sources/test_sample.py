"""Paper 003, section 4.4.1: the values of the stream let us verify that no event was dropped."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from springhouse.lake.sources.sample import Sample
from springhouse.lake.sources.source import Range, SourceContext
from springhouse.units import Instant


def at(context: SourceContext, now: float, **more: object) -> SourceContext:
    return replace(context, now=lambda: Instant(now), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rate", "seconds", "limit", "events"),
    [
        ("10", 0.0, None, 0),
        ("10", 0.0999, None, 0),
        ("10", 0.1, None, 1),
        ("10", 60.0, None, 600),
        ("0.5", 3.0, None, 1),
        ("3", 1 / 3 + 1e-6, None, 1),
        ("10", 60.0, "7", 7),
        ("10", -5.0, None, 0),
    ],
)
def test_latest_counts_the_periods_that_have_passed(
    rate: str, seconds: float, limit: str | None, events: int, context: SourceContext
) -> None:
    start = "1970-01-01T00:16:40Z"
    later = at(context, 1_000.0 + seconds)
    source = Sample(rate, start=start, limit=limit, context=later)
    assert source.latest() == {"0": events}


def test_every_partition_of_the_papers_setup_has_its_own_offsets(
    spark: SparkSession, context: SourceContext
) -> None:
    start = datetime.fromtimestamp(1_000, UTC).isoformat()
    node = at(context, 1_060.0, node="BN4SCH102031924", leader=False)
    source = Sample("10", "10", start, context=node)
    assert source.latest() == {str(partition): 600 for partition in range(10)}

    rows = source.read(spark, {"5": Range(3, 6), "9": Range(599, 600)})
    assert rows.dtypes == [
        ("time", "timestamp"),
        ("offset", "bigint"),
        ("partition", "int"),
        ("node", "string"),
        ("leader", "boolean"),
    ]
    read = rows.selectExpr("unix_micros(time)", "offset", "partition", "node", "leader").collect()
    assert sorted(tuple(row) for row in read) == [
        (1_000_300_000, 3, 5, "BN4SCH102031924", False),
        (1_000_400_000, 4, 5, "BN4SCH102031924", False),
        (1_000_500_000, 5, 5, "BN4SCH102031924", False),
        (1_059_900_000, 599, 9, "BN4SCH102031924", False),
    ]


def test_the_anchor_is_kept_from_the_first_use(spark: SparkSession, context: SourceContext) -> None:
    first = Sample("2", context=at(context, 1_000.0))
    assert first.latest() == {"0": 0}
    restarted = Sample("2", context=at(context, 1_005.0, memory=first.memory))
    assert restarted.latest() == {"0": 10}
    ranges = {"0": Range(4, 9)}
    assert restarted.read(spark, ranges).collect() == first.read(spark, ranges).collect()


def test_times_are_exact_where_a_double_is_not(spark: SparkSession, context: SourceContext) -> None:
    source = Sample("3.000001", start="2026-01-01 00:00:00", context=context)
    offset = 3_000_001 * 10_000  # after exactly 10,000 million seconds
    ranges = {"0": Range(offset, offset + 2)}
    read = source.read(spark, ranges).selectExpr("unix_micros(time) AS time").collect()
    start = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
    passed = 10_000 * 1_000_000 * 1_000_000
    assert [row.time - start for row in read] == [passed, passed + 333_333]


def test_without_ranges_there_are_no_events(spark: SparkSession, context: SourceContext) -> None:
    assert Sample(context=context).read(spark, {}).count() == 0
