"""How do the changes of a table get into a Kafka topic, each once?

A range of versions is one Kafka transaction. The transaction also holds the position of the sink:
the end of the range, as the offset of a consumer group without consumers. So if the range comes
again, because a process died, the brokers know whether it was written, and it is skipped.

The transactional id belongs to the sink, and the brokers let only its newest holder write. So a
process that was taken for dead can't write any more when another process has opened the sink. The
ids of the warehouse and the table are part of the transactional id. So a table that was created
again, and a warehouse with the same name (development and production), have transactions and a
position of their own.

    without `key`   a message per changed row: the row and what happened to it, as JSON
    with `key`      the newest row of each key; a message without a value when the key is gone. Made
                    for compacted topics: applying a message twice changes nothing.

A consumer that reads only committed transactions (`isolation.level` = `read_committed`) sees every
change exactly once. Other consumers (Kafka's default) also see transactions that were aborted.
"""

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from springhouse.errors import SinkError
from springhouse.lake.sinks.sink import CHANGE_TYPE, DELETE, VERSION, Changes, Sink, SinkContext
from springhouse.lake.sources.json_rows import json_rows
from springhouse.lake.sources.kafka_client import LOGGER, KafkaFailed, Topic, client
from springhouse.lake.sources.source import Range
from springhouse.project.options.kafka_options import write_kafka

_SECONDS = 60.0
_PAUSE_SECONDS = 0.2
_TRANSACTION_MILLISECONDS = "600000"

Message = tuple[str | None, str | None]
"""Key and value."""


class KafkaSink(Sink):
    """`topic`, `bootstrapServers`, `key` (names of columns), and options of the client."""

    def __init__(
        self,
        topic: str,
        bootstrapServers: str | None = None,  # noqa: N803  as read_kafka has it
        key: str | None = None,
        *,
        context: SinkContext,
        **options: str,
    ) -> None:
        parsed = write_kafka(topic, bootstrapServers, key, **options)
        self._topic = Topic(topic, parsed.client)
        self._keys = parsed.keys
        older = f"springhouse/{context.project}/{context.table}/{context.name}"
        self._id = f"{older}/{context.identity}" if context.identity else older
        # An older release may have written this range under this id.
        self._older = older if context.identity else None
        self._settings = parsed.settings
        self._producer: Any = None
        self._group: Any = None

    def write(self, changes: Changes, versions: Range) -> None:
        """Write a message for each changed row, in one transaction, unless the topic has them."""
        try:
            self._open()
            position = self._position(versions)
            if position >= versions.end:
                return
            if versions.start < position:
                raise SinkError(
                    f"the topic has the changes up to version {position - 1}, and the sink is to "
                    f"write from version {versions.start} on: the position of the sink was lost",
                    where=self._topic.servers,
                    hint="Put back the folder `sinks` of the storage; or give the sink another "
                    "name and another topic, which gets the whole table first.",
                )
            self._producer.begin_transaction()
            try:
                self._send(changes)
                self._mark(versions.end)
            except BaseException:
                self._producer.abort_transaction(_SECONDS)
                raise
            self._producer.commit_transaction(_SECONDS)
        except client().KafkaException as error:
            self.close()
            raise self._failed(error) from error

    def close(self) -> None:
        """Close the connections."""
        if self._group is not None:
            self._group.close()
        self._producer = self._group = None

    def _open(self) -> None:
        if self._producer is not None:
            return
        kafka = client()
        self._topic.describe()  # The client would wait a minute for a topic that does not exist.
        self._producer = kafka.Producer(
            {
                **self._settings,
                "transactional.id": self._id,
                "transaction.timeout.ms": _TRANSACTION_MILLISECONDS,
                # A key goes to the same partition as from a Java program.
                "partitioner": "murmur2_random",
                "linger.ms": "20",
            },
            logger=LOGGER,
        )
        self._producer.init_transactions(_SECONDS)
        self._group = kafka.Consumer(
            {**self._settings, "group.id": self._id, "enable.auto.commit": "false"}, logger=LOGGER
        )

    def _position(self, versions: Range) -> int:
        """One above the last version in the topic.

        Also 0 if the brokers have forgotten the group, a week after its last commit: then the sink
        writes the range.
        """
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                return self._committed(versions)
            except client().KafkaException as error:
                # After the first start of a broker, no broker keeps the offsets of groups yet.
                is_early = error.args[0].code() in _coordinator_missing()
                if not is_early or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)

    def _committed(self, versions: Range) -> int:
        own = self._committed_by(self._group)
        if own or self._older is None or versions.start == 0:
            return own
        # This is not the first range, and nothing has this id: the sink began under the older id.
        settings = {**self._settings, "group.id": self._older, "enable.auto.commit": "false"}
        older = client().Consumer(settings, logger=LOGGER)
        try:
            return self._committed_by(older)
        finally:
            older.close()

    def _committed_by(self, group: Any) -> int:
        place = client().TopicPartition(self._topic.name, 0)
        (committed,) = group.committed([place], timeout=_SECONDS)
        if committed.error is not None:
            raise client().KafkaException(committed.error)
        return max(int(committed.offset), 0)

    def _mark(self, end: int) -> None:
        place = client().TopicPartition(self._topic.name, 0, end)
        group = self._group.consumer_group_metadata()
        self._producer.send_offsets_to_transaction([place], group, _SECONDS)

    def _send(self, changes: Changes) -> None:
        messages = _upserts(changes, self._keys) if self._keys else _all_changes(changes)
        for key, value in messages:
            while True:
                try:
                    self._producer.produce(
                        self._topic.name,
                        key=None if key is None else key.encode(),
                        value=None if value is None else value.encode(),
                    )
                except BufferError:
                    self._producer.poll(1.0)
                else:
                    break
        unsent = self._producer.flush(_SECONDS)
        if unsent:
            problem = f"the brokers did not take {unsent} messages in time"
            raise SinkError(problem, where=self._topic.servers)

    def _failed(self, error: Exception) -> SinkError:
        failure: KafkaFailed = self._topic.failed(error)
        return SinkError(failure.problem, where=failure.where, hint=failure.hint)


def _all_changes(changes: Changes) -> Iterator[Message]:
    for batch in changes.batches():
        for line in json_rows(batch):
            yield None, line


def _upserts(changes: Changes, keys: list[str]) -> Iterator[Message]:
    """The newest row of every key that changed; no value for a key that is gone."""
    names = changes.columns.names
    missing = [key for key in keys if key not in names]
    if missing:
        raise SinkError(
            f'the key "{missing[0]}" is not a column of the table',
            hint=f"The columns are {', '.join(names[:-3])}.",
        )
    gone: dict[str, None] = {}
    version: int | None = None
    for batch in changes.batches():
        now = batch[VERSION][0].as_py()
        if now != version:
            yield from ((key, None) for key in gone)
            gone, version = {}, now
        row_keys = json_rows(pa.RecordBatch.from_arrays([batch[key] for key in keys], names=keys))
        # Deletes of a version come first, so a key that is inserted again is not gone.
        if batch[CHANGE_TYPE][0].as_py() == DELETE:
            gone |= dict.fromkeys(row_keys)
            continue
        for key, line in zip(row_keys, json_rows(batch), strict=True):
            gone.pop(key, None)
            yield key, line
    yield from ((key, None) for key in gone)


def _coordinator_missing() -> set[int]:
    """The answers of a broker that does not know the coordinator of a group yet."""
    kinds = client().KafkaError
    return {
        kinds.NOT_COORDINATOR,
        kinds.COORDINATOR_NOT_AVAILABLE,
        kinds.COORDINATOR_LOAD_IN_PROGRESS,
    }
