"""The source reads a topic by exact offsets, and never skips a lost record in silence."""

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from springhouse.errors import SourceError
from springhouse.lake.sources.kafka_source import ReadKafka
from springhouse.lake.sources.source import BAD, ORIGIN, RECORD, Range, SourceContext

JSON = {"format": "json", "schema": "id BIGINT NOT NULL, name STRING"}

Open = Callable[..., ReadKafka]


@pytest.fixture
def topic(kafka: Any) -> str:
    name = f"orders-{uuid.uuid4().hex[:8]}"
    kafka.make(name, partitions=2)
    return name


@pytest.fixture
def open_topic(kafka: Any, topic: str, context: SourceContext) -> Open:
    """Open the source as after a commit that stored `memory`."""

    def opened(memory: dict[str, Any] | None = None, **options: str) -> ReadKafka:
        given = replace(context, memory=memory or {})
        return ReadKafka(topic, kafka.address, context=given, **options)

    return opened


def values(source: ReadKafka, spark: SparkSession, **ranges: Range) -> list[str]:
    read = source.read(spark, {name.strip("p"): given for name, given in ranges.items()})
    found = read.selectExpr("partition", "offset", "CAST(value AS STRING) AS value").collect()
    return [row.value for row in sorted(found, key=lambda r: (r.partition, r.offset))]


def test_a_range_is_exactly_its_offsets(
    kafka: Any, topic: str, open_topic: Open, spark: SparkSession
) -> None:
    source = open_topic()
    kafka.send(topic, "a", "b", "c", "d")
    kafka.send(topic, "x", "y", partition=1)
    assert source.latest() == {"0": 4, "1": 2}
    assert values(source, spark, p0=Range(1, 3), p1=Range(0, 2)) == ["b", "c", "x", "y"]
    assert values(source, spark, p0=Range(1, 3), p1=Range(0, 2)) == ["b", "c", "x", "y"]
    assert source.read(spark, {}).dtypes == source.read(spark, {"0": Range(0, 1)}).dtypes
    assert source.read(spark, {}).count() == 0


def test_a_partition_that_is_added_is_read_from_its_first_record(
    kafka: Any, topic: str, open_topic: Open, spark: SparkSession
) -> None:
    kafka.send(topic, "old")
    source = open_topic(startingOffsets="latest")
    assert source.latest() == {"0": 1, "1": 0}
    assert values(source, spark, p0=Range(0, 1)) == [], "latest: what was there is not asked for"
    kafka.widen(topic, 3)
    kafka.send(topic, "new", partition=2)
    again = open_topic(source.memory, startingOffsets="latest")
    assert again.latest() == {"0": 1, "1": 0, "2": 1}
    assert values(again, spark, p2=Range(0, 1)) == ["new"]


def test_json_that_does_not_fit_is_set_aside_with_its_offset(
    kafka: Any, topic: str, open_topic: Open, spark: SparkSession
) -> None:
    kafka.send(topic, '{"id": 1, "name": "Jo"}', '{"id": "x"}', "no json", '{"name": "Al"}')
    rows = open_topic(**JSON).read(spark, {"0": Range(0, 4)}).collect()
    assert [(row.id, row.name) for row in rows if row[BAD] is None] == [(1, "Jo")]
    assert [(row[BAD], row[RECORD], row[ORIGIN]) for row in rows if row[BAD] is not None] == [
        ("id: 'x' is not BIGINT", '{"id": "x"}', f"{topic}/0@1"),
        ("not a JSON object", "no json", f"{topic}/0@2"),
        ("id: missing", '{"name": "Al"}', f"{topic}/0@3"),
    ]


def test_a_transaction_that_was_given_up_is_not_read(
    kafka: Any, topic: str, open_topic: Open, spark: SparkSession
) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": topic})
    producer.init_transactions(30)
    for end in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        producer.produce(topic, f"{end.__name__}".encode(), partition=0)
        producer.flush(30)
        if end == producer.commit_transaction:
            assert open_topic().latest()["0"] == 2, "an open transaction is not there yet"
        end(30)
    source = open_topic()
    assert source.latest()["0"] == 4, "each mark at the end of a transaction has an offset"
    assert values(source, spark, p0=Range(0, 4)) == ["commit_transaction"]


class TestWhatIsGone:
    """The two choices: go on without the lost records, or start again from the beginning."""

    def test_before_the_first_read_is_not_missed(
        self, kafka: Any, topic: str, open_topic: Open, spark: SparkSession
    ) -> None:
        kafka.send(topic, "a", "b", "c")
        kafka.expire(topic, 0, before=2)
        source = open_topic()
        source.latest()
        assert values(source, spark, p0=Range(0, 3)) == ["c"]

    def test_unread_is_an_error_that_counts_it(
        self, kafka: Any, topic: str, open_topic: Open, spark: SparkSession
    ) -> None:
        kafka.send(topic, "a", "b", "c", "d")
        kafka.expire(topic, 0, before=3)
        with pytest.raises(SourceError) as error:
            open_topic().read(spark, {"0": Range(1, 4)})
        assert "partition 0 begins at 3, and was read up to 1: 2 offsets" in error.value.problem
        assert "failOnDataLoss => 'false'" in (error.value.hint or "")
        assert values(open_topic(failOnDataLoss="false"), spark, p0=Range(1, 4)) == ["d"]

    def test_a_topic_that_was_made_anew_is_another_topic(
        self, kafka: Any, topic: str, open_topic: Open, spark: SparkSession
    ) -> None:
        kafka.send(topic, "a", "b")
        source = open_topic()
        source.latest()
        source.read(spark, {"0": Range(0, 2)})
        kafka.remove(topic)
        kafka.make(topic, partitions=2)
        with pytest.raises(SourceError, match="deleted and created again"):
            open_topic(source.memory).latest()

    def test_a_partition_that_ends_before_what_was_read_was_truncated(
        self, kafka: Any, topic: str, open_topic: Open
    ) -> None:
        kafka.send(topic, "a")
        with pytest.raises(SourceError, match="ends at 1, and was read up to 5"):
            open_topic({"ends": {"0": 5}}).latest()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"format": "json"}, "read_kafka needs format => 'json' and a schema, or neither"),
        ({"format": "xml"}, "format => 'xml' is not raw or json"),
        ({"startingofsets": "latest"}, 'read_kafka has no option "startingofsets"'),
        ({"startingOffsets": "now"}, "startingOffsets => 'now' is not earliest, latest or"),
        ({"kafka.ssl.keystore.location": "k.jks"}, "kafka.ssl.keystore.location is a Java key"),
    ],
)
def test_options_that_can_not_be_meant(
    options: dict[str, str], problem: str, context: SourceContext
) -> None:
    with pytest.raises(SourceError) as error:
        ReadKafka("orders", "127.0.0.1:1", context=context, **options)
    assert problem in error.value.problem


def test_a_broker_that_is_not_there_is_named(context: SourceContext) -> None:
    nowhere = {"kafka.socket.connection.setup.timeout.ms": "1000"}
    source = ReadKafka("orders", "127.0.0.1:1", context=context, **nowhere)
    with pytest.raises(Exception, match=r"127\.0\.0\.1:1: the brokers"):
        source.latest()
