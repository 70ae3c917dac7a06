"""How does this process talk to a Kafka cluster, without Spark?

Spark's connector reads the records. But the ends of partitions are needed every second, and a sink
writes in one transaction: both need a client in this process, `confluent-kafka`. A user writes
options once, in the words of the Java client as in Spark's documentation
(`kafka.security.protocol`); `project/options/kafka_options.py` translates them.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

from springhouse.errors import LakeError
from springhouse.project.options.kafka_options import SERVERS, client_settings

_SECONDS = 10.0
LOGGER = logging.getLogger("springhouse.kafka")
"""The client logs here; by default it would write to the user's terminal."""


class KafkaFailed(LakeError):
    """A broker refused, or did not answer."""


def client(part: str = "confluent_kafka") -> Any:
    """The module `confluent_kafka`, or a part of it."""
    try:
        return import_module(part)
    except ImportError as error:
        raise KafkaFailed(
            "the Kafka client is not installed", hint="pip install 'springhouse[kafka]'"
        ) from error


@dataclass(frozen=True)
class Topic:
    """A topic of a cluster; `options` are those of Spark's connector."""

    name: str
    options: Mapping[str, str] = field(hash=False, repr=False)

    @property
    def servers(self) -> str:
        return self.options[SERVERS]

    @cached_property
    def _admin(self) -> Any:
        settings = client_settings(self.options)
        # An administrator does not know the settings of a consumer or a producer.
        settings.pop("isolation.level", None)
        return client("confluent_kafka.admin").AdminClient(settings, logger=LOGGER)

    def describe(self) -> tuple[str, list[int]]:
        """The id that the cluster gave the topic when it was created, and its partitions."""
        topics = client().TopicCollection([self.name])
        futures = self._admin.describe_topics(topics, request_timeout=_SECONDS)
        described = self._result(futures[self.name])
        return str(described.topic_id), sorted(each.id for each in described.partitions)

    def ends(self, partitions: list[int], *, earliest: bool = False) -> dict[int, int]:
        """Where partitions end (or begin); records of open transactions do not count."""
        if not partitions:
            return {}
        kafka, specs = client(), client("confluent_kafka.admin").OffsetSpec
        spec = specs.earliest() if earliest else specs.latest()
        committed = self.options.get("kafka.isolation.level") == "read_committed"
        levels = kafka.IsolationLevel
        level = levels.READ_COMMITTED if committed else levels.READ_UNCOMMITTED
        wanted = {kafka.TopicPartition(self.name, each): spec for each in partitions}
        answers = self._admin.list_offsets(wanted, isolation_level=level, request_timeout=_SECONDS)
        return {each.partition: self._result(answer).offset for each, answer in answers.items()}

    def _result(self, future: Any) -> Any:
        try:
            return future.result(timeout=2 * _SECONDS)
        except client().KafkaException as error:
            raise self.failed(error) from error
        except TimeoutError as error:
            raise KafkaFailed("the brokers do not answer", where=self.servers) from error

    def failed(self, error: Exception) -> KafkaFailed:
        """The error of a broker, in one line and with a hint."""
        kafka = client()
        cause = error.args[0] if error.args else None
        code = cause.code() if isinstance(cause, kafka.KafkaError) else None
        if code == kafka.KafkaError.UNKNOWN_TOPIC_OR_PART:
            problem, hint = f'there is no topic "{self.name}"', "Create it, or correct its name."
            return KafkaFailed(problem, where=self.servers, hint=hint)
        text = cause.str() if isinstance(cause, kafka.KafkaError) else str(error)
        return KafkaFailed(
            f'the brokers do not answer about "{self.name}": {text}',
            where=self.servers,
            hint="Are they running, and is the address right?",
        )
