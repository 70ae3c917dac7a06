"""A reader of committed transactions finds every change of a table in the topic exactly once."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from springhouse.errors import SinkError
from springhouse.lake.sinks.kafka_sink import KafkaSink
from springhouse.lake.sinks.sink import SinkContext
from springhouse.lake.sources.source import Range
from springhouse.units import Instant


class Given:
    """Changes that a table would provide: version, kind, and rows of (id, total)."""

    def __init__(self, *changes: tuple[int, str, list[tuple[int, int]]]) -> None:
        self._changes = changes
        self.columns = pa.schema(
            [
                ("id", pa.int64()),
                ("total", pa.int64()),
                ("_change_type", pa.string()),
                ("_commit_version", pa.int64()),
            ]
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        for version, kind, rows in self._changes:
            columns = [[row[0] for row in rows], [row[1] for row in rows]]
            marks = [[kind] * len(rows), [version] * len(rows)]
            yield pa.RecordBatch.from_pydict(
                dict(zip(self.columns.names, columns + marks, strict=True)), schema=self.columns
            )


@pytest.fixture
def topic(kafka: Any) -> str:
    name = f"totals-{uuid.uuid4().hex[:8]}"
    kafka.make(name, partitions=2)
    return name


def opened(kafka: Any, topic: str, warehouse: str = "", **options: str) -> KafkaSink:
    now = lambda: Instant(0.0)  # noqa: E731  a clock that stands
    context = SinkContext("totals", "out", f"p-{topic}", Path(), now, "local", warehouse)
    return KafkaSink(topic, kafka.address, context=context, **options)


def seen(kafka: Any, topic: str, **settings: str) -> list[tuple[str, int, int]]:
    rows = [json.loads(message.value()) for message in kafka.received(topic, **settings)]
    return sorted((row["_change_type"], row["id"], row["total"]) for row in rows)


def test_every_change_is_a_message(kafka: Any, topic: str) -> None:
    sink = opened(kafka, topic)
    sink.write(Given((0, "insert", [(1, 10), (2, 20)])), Range(0, 1))
    sink.write(Given((1, "delete", [(1, 10)]), (1, "insert", [(1, 11)])), Range(1, 2))
    sink.close()
    assert seen(kafka, topic) == [
        ("delete", 1, 10),
        ("insert", 1, 10),
        ("insert", 1, 11),
        ("insert", 2, 20),
    ]


def test_a_range_that_comes_again_is_skipped_if_the_topic_has_it(kafka: Any, topic: str) -> None:
    first = opened(kafka, topic)
    first.write(Given((0, "insert", [(1, 10)])), Range(0, 1))
    again = opened(kafka, topic)
    again.write(Given((0, "insert", [(1, 10)])), Range(0, 1))
    again.write(Given((1, "insert", [(2, 20)])), Range(1, 2))
    assert seen(kafka, topic) == [("insert", 1, 10), ("insert", 2, 20)]


def test_what_a_process_did_not_commit_is_not_seen_and_it_can_not_go_on(
    kafka: Any, topic: str
) -> None:
    class Torn(Given):
        def batches(self) -> Iterator[pa.RecordBatch]:
            yield from super().batches()
            raise RuntimeError("here the process was thought dead")

    zombie = opened(kafka, topic)
    with pytest.raises(RuntimeError, match="thought dead"):
        zombie.write(Torn((0, "insert", [(1, 10)])), Range(0, 1))
    successor = opened(kafka, topic)
    successor.write(Given((0, "insert", [(1, 10)])), Range(0, 1))
    with pytest.raises(SinkError):
        zombie.write(Given((1, "insert", [(9, 90)])), Range(1, 2))
    assert seen(kafka, topic) == [("insert", 1, 10)]
    successor.close()


def test_with_a_key_the_topic_has_the_newest_row_of_each(kafka: Any, topic: str) -> None:
    sink = opened(kafka, topic, key="id")
    sink.write(Given((0, "insert", [(1, 10), (2, 20), (3, 30)])), Range(0, 1))
    change = Given((1, "delete", [(1, 10), (3, 30)]), (1, "insert", [(1, 11)]))
    sink.write(change, Range(1, 2))
    sink.close()
    newest: dict[str, Any] = {}
    for message in kafka.received(topic):
        value = message.value()
        newest[message.key().decode()] = value and json.loads(value)["total"]
    assert newest == {'{"id":1}': 11, '{"id":2}': 20, '{"id":3}': None}


def test_what_can_not_be_is_told(kafka: Any, topic: str) -> None:
    with pytest.raises(SinkError, match='the key "name" is not a column'):
        opened(kafka, topic, key="name").write(Given((0, "insert", [(1, 1)])), Range(0, 1))
    with pytest.raises(Exception, match='there is no topic "nowhere"'):
        opened(kafka, "nowhere").write(Given((0, "insert", [(1, 1)])), Range(0, 1))
    with pytest.raises(SinkError, match='has no option "topics"'):
        opened(kafka, topic, topics="x")


def test_warehouses_of_one_name_do_not_take_each_others_place(kafka: Any, topic: str) -> None:
    production, development = (opened(kafka, topic, each) for each in ("prod", "dev"))
    production.write(Given((0, "insert", [(1, 10)])), Range(0, 3))
    # The progress of the other warehouse must neither skip nor block this one.
    development.write(Given((0, "insert", [(2, 20)])), Range(0, 3))
    production.write(Given((3, "insert", [(3, 30)])), Range(3, 4))
    opened(kafka, topic, "made anew").write(Given((0, "insert", [(4, 40)])), Range(0, 1))
    assert [id for _, id, _ in seen(kafka, topic)] == [1, 2, 3, 4]
    for sink in (production, development):
        sink.close()


def test_a_range_that_an_older_release_wrote_is_not_written_again(kafka: Any, topic: str) -> None:
    older = opened(kafka, topic)
    older.write(Given((0, "insert", [(1, 10)])), Range(0, 1))
    older.write(Given((1, "insert", [(2, 20)])), Range(1, 2))
    newer = opened(kafka, topic, "w")
    newer.write(Given((1, "insert", [(2, 20)])), Range(1, 2))
    newer.write(Given((2, "insert", [(3, 30)])), Range(2, 3))
    assert [id for _, id, _ in seen(kafka, topic)] == [1, 2, 3]
    newer.close()


def test_a_topic_that_is_further_than_the_ledger_says_is_not_given_all_again(
    kafka: Any, topic: str
) -> None:
    sink = opened(kafka, topic, "w")
    sink.write(Given((0, "insert", [(1, 10)])), Range(0, 1))
    with pytest.raises(SinkError, match="the position of the sink was lost"):
        sink.write(Given((0, "insert", [(1, 10)]), (1, "insert", [(2, 20)])), Range(0, 2))
    assert [id for _, id, _ in seen(kafka, topic)] == [1]
    sink.close()
