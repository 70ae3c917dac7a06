"""Servers that tests share: each starts when a test first needs it, and ends with the run."""

import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from patience import patience

# The duration of an example depends on the load of the machine: other tests run beside it.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

SCRIPTS = Path(__file__).parents[1] / "scripts"
NO_JARS = 3


@dataclass(frozen=True)
class Kafka:
    """A broker, and the actions of tests on it."""

    address: str

    @cached_property
    def admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def make(self, topic: str, partitions: int = 1, **settings: str) -> None:
        from confluent_kafka.admin import NewTopic

        config = {key.replace("_", "."): value for key, value in settings.items()}
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=config)
        self._await(self.admin.create_topics([new]))
        # The broker answers before it knows the topic itself.
        deadline = time.monotonic() + patience(30)
        while self.admin.list_topics(topic, timeout=patience(20)).topics[topic].error is not None:
            assert time.monotonic() < deadline, "the topic does not appear"

    def remove(self, topic: str) -> None:
        self._await(self.admin.delete_topics([topic]))

    def widen(self, topic: str, partitions: int) -> None:
        from confluent_kafka.admin import NewPartitions

        self._await(self.admin.create_partitions([NewPartitions(topic, partitions)]))

    def expire(self, topic: str, partition: int, before: int) -> None:
        """Act like retention: delete the records below an offset."""
        from confluent_kafka import TopicPartition

        self._await(self.admin.delete_records([TopicPartition(topic, partition, before)]))

    def send(self, topic: str, *values: str, partition: int = 0, **settings: Any) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.address, "log_level": 0, **settings})
        for value in values:
            producer.produce(topic, value.encode(), partition=partition)
            producer.poll(0)
        assert producer.flush(patience(60)) == 0

    def received(self, topic: str, **settings: Any) -> list[Any]:
        """All committed messages of a topic, in order of their partitions."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": "tests",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                **settings,
            }
        )
        there = sorted(consumer.list_topics(topic, timeout=patience(20)).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in there])
        messages, open_ends = [], set(there)
        while open_ends:
            message = consumer.poll(patience(20))
            assert message is not None, "the broker does not answer"
            if message.error() is None:
                messages.append(message)
            elif message.error().name() == "_PARTITION_EOF":
                open_ends.discard(message.partition())
            else:
                raise AssertionError(message.error())
        consumer.close()
        return sorted(messages, key=lambda message: (message.partition(), message.offset()))

    def _await(self, futures: dict[Any, Any]) -> None:
        for future in futures.values():
            future.result(timeout=patience(30))


@pytest.fixture(scope="session")
def kafka_jars() -> str:
    """The jars of Spark's Kafka connector, for `spark.jars`; empty if they are not available."""
    return fetched("kafka")


@pytest.fixture(scope="session")
def s3_jars() -> str:
    """The jars with which Spark reads s3://, for `spark.jars`; empty if they are not available."""
    return fetched("s3")


def fetched(what: str) -> str:
    done = subprocess.run(
        ["sh", str(SCRIPTS / "jars.sh"), what],
        capture_output=True,
        text=True,
        timeout=patience(600),
        check=False,
    )
    return done.stdout.strip()


@pytest.fixture(scope="session")
def kafka(kafka_jars: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A Kafka broker on this machine."""
    if not kafka_jars:
        pytest.skip("NOT TESTED: the jars of the Kafka connector can't be had (scripts/jars.sh)")
    folder = tmp_path_factory.mktemp("kafka")
    process = subprocess.Popen(
        [sys.executable, str(SCRIPTS / "kafka_broker.py"), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    if not address:
        assert process.wait(timeout=patience(60)) == NO_JARS, "the broker does not start"
        pytest.skip("NOT TESTED: the jars of a Kafka broker can't be had (scripts/jars.sh)")
    yield Kafka(address)
    process.stdin.close()
    process.wait(timeout=patience(60))


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an S3 server in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # In a thread here the server would wait for the lock that delta-rs holds while waiting for it.
    with (tmp_path_factory.mktemp("s3") / "log.txt").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=log,
            stderr=log,
        )
    deadline = time.monotonic() + patience(120)
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=patience(1)).close()
            break
        except OSError:
            assert server.poll() is None, "the S3 server ended"
            assert time.monotonic() < deadline, "the S3 server does not answer"
            time.sleep(0.1)
    yield f"http://127.0.0.1:{port}"
    server.kill()
    server.wait(timeout=patience(20))


@pytest.fixture
def bucket(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty bucket; the environment holds its credentials."""
    import boto3

    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(key, "test")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    name = f"lake-{uuid.uuid4().hex[:8]}"
    boto3.client("s3", endpoint_url=s3_server, region_name="us-east-1").create_bucket(Bucket=name)
    return f"s3://{name}"
