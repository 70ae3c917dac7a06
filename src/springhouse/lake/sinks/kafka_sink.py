"""How do the changes of a table get into a Kafka topic, each once?

A range of versions is one Kafka transaction. In it also goes how far the sink has got: the end of
the range, as the offset of a consumer group that has no consumers. So when the range comes again,
because a process died, the brokers know whether it was written, and it is skipped. A process that
was thought dead and is not can't write any more once another has opened the sink: the transactional
id is the sink's, and the brokers let the newest holder write. The ids of the warehouse and of the
table are part of it: one that was made anew, and another one of the same name (for development, and
for production), have transactions and a place of their own.

    without `key`   a message per changed row: the row and what happened to it, as JSON
    with `key`      the newest row of each key; a message without a value when the key is gone. Made
                    for compacted topics: applying a message twice changes nothing.

Exactly once is what a consumer sees that reads committed transactions only (`isolation.level` =
`read_committed`). One that does not, as is Kafka's default, also sees what was given up.
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
        asked = write_kafka(topic, bootstrapServers, key, **options)
        self._topic = Topic(topic, asked.client)
        self._keys = asked.keys
        older = f"springhouse/{context.project}/{context.table}/{context.name}"
        self._id = f"{older}/{context.identity}" if context.identity else older
        # Under this name an older release may have written the range that comes again.
        self._older = older if context.identity else None
        self._settings = asked.settings
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
                    f"the topic has the changes up to version {position - 1}, and those from "
                    f"version {versions.start} on are to be written: how far the sink had got was "
                    "forgotten",
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
        """Let the connections go."""
        if self._group is not None:
            self._group.close()
        self._producer = self._group = None

    def _open(self) -> None:
        if self._producer is not None:
            return
        kafka = client()
        self._topic.describe()  # The client would wait a minute for a topic that is not there.
        self._producer = kafka.Producer(
            {
                **self._settings,
                "transactional.id": self._id,
                "transaction.timeout.ms": _TRANSACTION_MILLISECONDS,
                # The same key goes to the same partition as from any Java program.
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

        0 also if the group was forgotten, as brokers do a week after its last commit: what the
        ledger says to write is then written.
        """
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                return self._committed(versions)
            except client().KafkaException as error:
                # Who keeps the offsets of groups is settled only after a broker's first start.
                if error.args[0].code() not in _unsettled() or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)

    def _committed(self, versions: Range) -> int:
        own = self._committed_by(self._group)
        if own or self._older is None or versions.start == 0:
            return own
        # Not the first range, and nothing under this id: it began under the older one.
        settings = {**self._settings, "group.id": self._older, "enable.auto.commit": "false"}
        older = client().Consumer(settings, logger=LOGGER)
        try:
            return self._committed_by(older)
        finally:
            older.close()

    def _committed_by(self, group: Any) -> int:
        place = client().TopicPartition(self._topic.name, 0)
        (found,) = group.committed([place], timeout=_SECONDS)
        if found.error is not None:
            raise client().KafkaException(found.error)
        return max(int(found.offset), 0)

    def _mark(self, end: int) -> None:
        place = client().TopicPartition(self._topic.name, 0, end)
        group = self._group.consumer_group_metadata()
        self._producer.send_offsets_to_transaction([place], group, _SECONDS)

    def _send(self, changes: Changes) -> None:
        sent = _upserts(changes, self._keys) if self._keys else _all_changes(changes)
        for key, value in sent:
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
        left = self._producer.flush(_SECONDS)
        if left:
            raise SinkError(f"{left} messages were not taken in time", where=self._topic.servers)

    def _failed(self, error: Exception) -> SinkError:
        told: KafkaFailed = self._topic.failed(error)
        return SinkError(told.problem, where=told.where, hint=told.hint)


def _all_changes(changes: Changes) -> Iterator[Message]:
    for batch in changes.batches():
        for line in json_rows(batch):
            yield None, line


def _upserts(changes: Changes, keys: list[str]) -> Iterator[Message]:
    """The newest row of every key that changed; of one that only went, no value."""
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
        own = json_rows(pa.RecordBatch.from_arrays([batch[key] for key in keys], names=keys))
        # Deletes of a version come first, so a key that is inserted again is not gone.
        if batch[CHANGE_TYPE][0].as_py() == DELETE:
            gone |= dict.fromkeys(own)
            continue
        for key, line in zip(own, json_rows(batch), strict=True):
            gone.pop(key, None)
            yield key, line
    yield from ((key, None) for key in gone)


def _unsettled() -> set[int]:
    """What a broker answers that does not know yet who keeps the offsets of a group."""
    kinds = client().KafkaError
    return {
        kinds.NOT_COORDINATOR,
        kinds.COORDINATOR_NOT_AVAILABLE,
        kinds.COORDINATOR_LOAD_IN_PROGRESS,
    }
