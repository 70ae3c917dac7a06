"""How does a Kafka topic become a stream of exact ranges?

A partition of the topic is a partition of the source, and Kafka's offsets are its offsets. `read`
asks Spark's connector for exactly the offsets of the ranges, so a commit with their ends is all the
memory that is needed, and there is no consumer group. Partitions that are added while a warehouse
runs appear in `latest` like any other.

    startingOffsets   where to begin, the first time: 'earliest', 'latest', or '{"0": 23}'
    format            'raw' (key, value, offset, … as Spark has them) or 'json', with a `schema`
    failOnDataLoss    'false' to continue without records that are gone

A topic forgets. Records that are gone before they were read are an error, because nobody could tell
the table from a complete one: records that expired, a topic that was truncated, or one that was
deleted and created again under its name (its id differs). Gaps inside a partition are no loss:
transactions and compaction leave them.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from springhouse.errors import LakeError, SourceError
from springhouse.lake.delta.alignment import parsed_schema
from springhouse.lake.sources.json_files import json_grammar
from springhouse.lake.sources.kafka_client import Topic
from springhouse.lake.sources.records import VALUE, rows
from springhouse.lake.sources.source import ORIGIN, Range, Source, SourceContext
from springhouse.project.options import kafka_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BYTES_PER_RECORD = 256
"""An estimate: the brokers do not tell the size of a record."""


class ReadKafka(Source):
    """`read_kafka('orders', bootstrapServers => 'host:9092', format => 'json', schema => '…')`."""

    def __init__(
        self,
        topic: str,
        bootstrapServers: str | None = None,  # noqa: N803  as Spark and others call it in SQL
        format: str = "raw",  # noqa: A002  as read_files has it
        schema: str | None = None,
        startingOffsets: str = "earliest",  # noqa: N803
        failOnDataLoss: str = "true",  # noqa: N803
        maxOffsetsPerPartition: str = "1000000",  # noqa: N803
        *,
        context: SourceContext,
        **options: str,
    ) -> None:
        parsed = kafka_options.read_kafka(
            topic,
            bootstrapServers,
            format,
            schema,
            startingOffsets,
            failOnDataLoss,
            maxOffsetsPerPartition,
            **options,
        )
        self._options = parsed.connector
        self._topic = Topic(topic, self._options)
        self._schema_text = parsed.schema
        self._grammar = json_grammar(parsed.parser)
        self._begin = parsed.begin
        self._strict = parsed.strict
        self.reads_recreated = not parsed.strict
        self._where = f"{context.flow}: {topic}"
        self.largest_range = parsed.largest_range
        self.memory: dict[str, Any] = dict(context.memory)
        # The last answer of the cluster about the topic, until `latest` uses it.
        self._described: tuple[str, list[int]] | None = None

    def incarnation(self) -> str:
        """The id that the cluster gave the topic when it was created."""
        self._described = self._topic.describe()
        return self._described[0]

    def begin_anew(self) -> None:
        """Forget the memory of a topic that is gone."""
        if self._described is not None and self.memory.get("topic_id") != self._described[0]:
            self.memory.clear()

    def latest(self) -> Mapping[str, int]:
        """Where the partitions of the topic end now."""
        topic_id, partitions = self._described or self._topic.describe()
        self._described = None
        self._prove_same(topic_id)
        ends = self._topic.ends(partitions)
        known = self.memory.get("ends", {})
        for partition, end in ends.items():
            if end < known.get(str(partition), 0) and self._strict:
                raise self._lost(
                    f"partition {partition} ends at {end}, and was read up to "
                    f"{known[str(partition)]}: the topic was truncated"
                )
        self._settle_beginnings(ends)
        return {str(partition): end for partition, end in ends.items()}

    def size(self, ranges: Mapping[str, Range]) -> int:
        """About how many bytes the records have, from their number."""
        return sum(r.end - r.start for r in ranges.values()) * _BYTES_PER_RECORD

    def identity(self, ranges: Mapping[str, Range]) -> object:
        """The offsets and the memory: which topic it is, and where each table began."""
        return dict(ranges), self.memory

    def read(self, spark: "SparkSession", ranges: Mapping[str, Range]) -> "DataFrame":
        """Exactly the records at these offsets."""
        return self._rows(spark, ranges, why=True)

    def glance(self, spark: "SparkSession", ranges: Mapping[str, Range]) -> "DataFrame":
        """The same, but a bad record has no true reason."""
        return self._rows(spark, ranges, why=False)

    def _rows(
        self, spark: "SparkSession", ranges: Mapping[str, Range], *, why: bool
    ) -> "DataFrame":
        records = self._records(spark, self._existing(ranges))
        ends = {partition: offsets.end for partition, offsets in ranges.items()}
        self.memory["ends"] = {**self.memory.get("ends", {}), **ends}
        if self._schema_text is None:
            return records
        schema = self._schema(spark)
        place = sf.concat("topic", sf.lit("/"), "partition", sf.lit("@"), "offset")
        texts = records.select(sf.col("value").cast("string").alias(VALUE), place.alias(ORIGIN))
        return rows(texts, self._grammar, schema, schema, why=why)

    def _records(self, spark: "SparkSession", ranges: Mapping[int, Range]) -> "DataFrame":
        # With the topic and an empty range the connector returns the columns without rows.
        partitions = ranges or {0: Range(0, 0)}
        name = self._topic.name
        starts = {partition: offsets.start for partition, offsets in partitions.items()}
        ends = {partition: offsets.end for partition, offsets in partitions.items()}
        reader = (
            spark.read.format("kafka")
            .options(**self._options)
            .option("assign", json.dumps({name: list(partitions)}))
            .option("startingOffsets", json.dumps({name: starts}))
            .option("endingOffsets", json.dumps({name: ends}))
            .option("failOnDataLoss", str(self._strict).lower())
        )
        try:
            return reader.load()
        except PySparkException as error:
            if "kafka" not in str(error).lower() or "find" not in str(error).lower():
                raise
            raise SourceError(
                "Spark has no Kafka connector",
                where=self._where,
                hint="Set spark.jars in `configuration:`; `sh scripts/jars.sh kafka` fetches "
                "the jars, and prints what to set.",
            ) from error

    def _existing(self, ranges: Mapping[str, Range]) -> dict[int, Range]:
        """The part of the ranges that is in the topic; an error if records expired unread."""
        wanted = {int(partition): offsets for partition, offsets in ranges.items()}
        first = self._topic.ends(list(wanted), earliest=True)
        begins = self.memory.get("begins", {})
        existing: dict[int, Range] = {}
        for partition, offsets in wanted.items():
            # From 0 means from the first record that the topic still has.
            begin = max(begins.get(str(partition), 0), first[partition])
            if 0 < offsets.start < first[partition] and self._strict:
                gone = first[partition] - offsets.start
                raise self._lost(
                    f"partition {partition} begins at {first[partition]}, and was read up to "
                    f"{offsets.start}: {gone} offsets expired before they were read"
                )
            start = max(offsets.start, begin if offsets.start == 0 else first[partition])
            if start < offsets.end:
                existing[partition] = Range(start, offsets.end)
        return existing

    def _settle_beginnings(self, ends: Mapping[int, int]) -> None:
        """Decide once where each partition begins; the first commit remembers it."""
        if "begins" in self.memory:
            return  # A partition that was added later begins at its first record.
        if self._begin == "latest":
            self.memory["begins"] = {str(partition): end for partition, end in ends.items()}
        else:
            chosen = {} if isinstance(self._begin, str) else self._begin
            self.memory["begins"] = {
                partition: ends.get(int(partition), 0) if offset == -1 else max(offset, 0)
                for partition, offset in chosen.items()
            }

    def _prove_same(self, topic_id: str) -> None:
        before = self.memory.setdefault("topic_id", topic_id)
        if before != topic_id and self._strict:
            raise self._lost("the topic was deleted and created again")
        if before != topic_id:
            self.memory["topic_id"] = topic_id

    def _lost(self, problem: str) -> SourceError:
        return SourceError(
            problem,
            where=self._where,
            hint="Records are gone for good. To continue without them: failOnDataLoss => 'false'. "
            "To start again with the records that the topic has: give the flow another name, or "
            "make a new table. To have more time next time: a longer retention.ms of the topic.",
        )

    def _schema(self, spark: "SparkSession") -> StructType:
        assert self._schema_text is not None
        try:
            return parsed_schema(spark, self._schema_text, self._where)
        except LakeError as error:
            raise SourceError(error.problem, where=self._where, hint=error.hint) from error
