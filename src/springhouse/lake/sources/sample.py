"""What is a source whose every record can be checked?

The `SampleEventSource` of paper 003, section 4.4.1: events with a time, a rising offset, the node
that read them, and whether that node was the leader. It needs no data, and every record is known:

    event o of a partition happens at   anchor + o / rate
    latest                              floor((now - anchor) * rate), at most `limit`

The arithmetic is exact to the microsecond, so an offset always has the same time, on every node.
Only `node` and `leader` depend on the node that reads.
"""

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from springhouse.lake.sources.source import Range, Source, SourceContext
from springhouse.lake.storage.clock import CLOCK_TOLERANCE
from springhouse.project.options.built_in import sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MICROSECONDS = 1_000_000
_OFFSETS_PER_TASK = 1_000_000


class Sample(Source):
    """`sample(rate => '10', partitions => '1')`: events per second in each of the partitions."""

    def __init__(
        self,
        rate: str = "10",
        partitions: str = "1",
        start: str | None = None,
        limit: str | None = None,
        *,
        context: SourceContext,
    ) -> None:
        options = sample(rate, partitions, start, limit)
        self._rate, self._partitions = options.rate, options.partitions
        self._limit = options.limit
        self._context = context
        self.memory: dict[str, Any] = dict(context.memory)
        if options.start is not None:
            start_at = options.start
            self._anchor = int(start_at.timestamp()) * _MICROSECONDS + start_at.microsecond
        else:
            # The first commit holds the anchor, so it stays the same.
            now = self._now()
            anchor = int(self.memory.get("anchor_microseconds", now))
            # Unless the clock was wrong then: do not wait for an anchor far in the future.
            self._anchor = now if anchor > now + CLOCK_TOLERANCE * _MICROSECONDS else anchor
            self.memory["anchor_microseconds"] = self._anchor

    def latest(self) -> Mapping[str, int]:
        """The events of each partition that have happened by now."""
        passed = max(0, self._now() - self._anchor)
        count = int(passed * self._rate / _MICROSECONDS)
        end = count if self._limit is None else min(count, self._limit)
        return {str(partition): end for partition in range(self._partitions)}

    def identity(self, ranges: Mapping[str, Range]) -> object:
        """The offsets and the anchor: without a `start`, each table has its own anchor."""
        return dict(ranges), self._anchor

    def read(self, spark: "SparkSession", ranges: Mapping[str, Range]) -> DataFrame:
        """The events of these offsets."""
        parts = [
            self._events(spark, int(name), offsets) for name, offsets in sorted(ranges.items())
        ]
        return reduce(DataFrame.union, parts or [self._events(spark, 0, Range(0, 0))])

    def _events(self, spark: "SparkSession", partition: int, offsets: Range) -> DataFrame:
        tasks = 1 + (offsets.end - offsets.start) // _OFFSETS_PER_TASK
        events = spark.range(offsets.start, offsets.end, 1, tasks)
        # Decimals, because offset * denominator * 1,000,000 outgrows a BIGINT.
        passed = sf.expr(
            f"(CAST(id AS DECIMAL(19, 0)) * {self._rate.denominator * _MICROSECONDS}BD)"
            f" div {self._rate.numerator}BD"
        )
        return events.select(
            sf.timestamp_micros(sf.lit(self._anchor) + passed).alias("time"),
            sf.col("id").alias("offset"),
            sf.lit(partition).alias("partition"),
            sf.lit(self._context.node).alias("node"),
            sf.lit(self._context.leader).alias("leader"),
        )

    def _now(self) -> int:
        return round(self._context.now() * _MICROSECONDS)
