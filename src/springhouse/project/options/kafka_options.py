"""What do the options of Kafka mean, for a source and for a sink?

Users write the options in the words of the Java client, as in Spark's documentation
(`kafka.security.protocol`). `client_settings` translates them into the words of librdkafka. The
check of a project and the lake read the options here, so they agree.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from springhouse.errors import SinkError, SourceError, SpringhouseError
from springhouse.project.declarations.names import did_you_mean
from springhouse.project.options.file_options import JSON_PARSER_OPTIONS
from springhouse.project.options.option_values import flag, whole_number, wrong_option
from springhouse.project.options.reader_values import check_value
from springhouse.project.sql.schema_text import column_names

PREFIX = "kafka."
SERVERS = "kafka.bootstrap.servers"

_SPARK_OPTIONS = (
    "minPartitions",
    "maxRecordsPerPartition",
    "includeHeaders",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
)
_JAAS = re.compile(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
_PEM = {
    "ssl.truststore.location": ("ssl.ca.location",),
    # The Java client wants the key and the certificate in one file.
    "ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
}
_STORES = ("ssl.truststore.type", "ssl.keystore.type")
_JAVA_ONLY = (*_STORES, "sasl.jaas.config", "ssl.truststore.password", "ssl.keystore.password")


@dataclass(frozen=True)
class TopicToRead:
    """The options of one `read_kafka`.

    `connector` has the options of Spark's connector and of the clients, `parser` those of the JSON
    parser.
    """

    connector: dict[str, str] = field(repr=False)
    parser: dict[str, str]
    schema: str | None
    columns: tuple[str, ...] | None  # of the schema
    begin: str | Mapping[str, int]
    strict: bool
    largest_range: int


@dataclass(frozen=True)
class TopicToWrite:
    """The options of one Kafka sink."""

    client: dict[str, str] = field(repr=False)  # in the words of Spark's connector
    settings: dict[str, str] = field(repr=False)  # in the words of librdkafka
    keys: list[str]


def read_kafka(
    topic: str,
    bootstrapServers: str | None = None,  # noqa: N803  as Spark and others call it in SQL
    format: str = "raw",  # noqa: A002  as read_files has it
    schema: str | None = None,
    startingOffsets: str = "earliest",  # noqa: N803
    failOnDataLoss: str = "true",  # noqa: N803
    maxOffsetsPerPartition: str = "1000000",  # noqa: N803
    **options: str,
) -> TopicToRead:
    """The values of the options of the source `read_kafka`, or the error in them."""
    check_topic(topic, SourceError)
    connector, parser = _split_options(options, bootstrapServers)
    text = _schema_of(format, schema)
    return TopicToRead(
        connector,
        parser,
        text,
        None if text is None else column_names(text),
        _beginning(startingOffsets),
        flag("failOnDataLoss", failOnDataLoss),
        whole_number("maxOffsetsPerPartition", maxOffsetsPerPartition, 1),
    )


def write_kafka(
    topic: str,
    bootstrapServers: str | None = None,  # noqa: N803
    key: str | None = None,
    **options: str,
) -> TopicToWrite:
    """The values of the options of the sink `kafka`, or the error in them."""
    check_topic(topic, SinkError)
    client = dict(options) | ({SERVERS: bootstrapServers} if bootstrapServers else {})
    for name in client:
        if not name.startswith(PREFIX):
            raise SinkError(
                f'the sink kafka has no option "{name}"',
                hint=did_you_mean(name, ("topic", "bootstrapServers", "key"))
                or "It has topic, bootstrapServers, key, and kafka.… for the client.",
            )
    if SERVERS not in client:
        raise SinkError("the sink kafka needs bootstrapServers", hint="Give it host:9092.")
    try:
        settings = client_settings(client)
    except SpringhouseError as error:
        raise SinkError(error.problem, hint=error.hint) from error
    return TopicToWrite(
        client, settings, [column.strip() for column in key.split(",")] if key else []
    )


def check_topic(topic: str, error: type[SpringhouseError]) -> None:
    """Raise an error for a name that no topic of Kafka can have."""
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic) or topic in (".", ".."):
        hint = "Kafka takes up to 249 of the letters a to z, digits, ., _ and -."
        raise error(f'"{topic}" can\'t be the name of a Kafka topic', hint=hint)


def client_settings(options: Mapping[str, str]) -> dict[str, str]:
    """The options `kafka.…` of Spark's connector, translated into the words of librdkafka.

    >>> client_settings({"kafka.bootstrap.servers": "a:9092", "kafka.sasl.jaas.config":
    ...     'x.PlainLoginModule required username="jo" password="s3";'})
    {'bootstrap.servers': 'a:9092', 'sasl.username': 'jo', 'sasl.password': 's3'}
    """
    java = {
        key.removeprefix(PREFIX): value for key, value in options.items() if key.startswith(PREFIX)
    }
    for store in _STORES:
        location = store.replace(".type", ".location")
        if location in java and java.get(store, "").upper() != "PEM":
            raise SpringhouseError(
                f"{PREFIX}{location} is a Java key store",
                hint=f"Give a PEM file, and {PREFIX}{store} = 'PEM': both clients can read that.",
            )
    settings = {key: value for key, value in java.items() if key not in (*_PEM, *_JAVA_ONLY)}
    for key, names in _PEM.items():
        settings |= dict.fromkeys(names, java[key]) if key in java else {}
    for word, value in _JAAS.findall(java.get("sasl.jaas.config", "")):
        settings[f"sasl.{word}"] = re.sub(r"\\(.)", r"\1", value)
    return settings


def _split_options(
    options: Mapping[str, str], servers: str | None
) -> tuple[dict[str, str], dict[str, str]]:
    """The options of the connector and the clients, and those of the JSON parser."""
    spark = {name.lower(): name for name in _SPARK_OPTIONS}
    parser = {name.lower(): name for name in JSON_PARSER_OPTIONS.split()}
    # A record of an aborted transaction must not be read.
    connector = {"kafka.isolation.level": "read_committed"}
    parsing = {}
    for name, text in options.items():
        if name.startswith(PREFIX):
            connector[name] = text
        elif name in spark:
            connector[spark[name]] = text
        elif name in parser:
            check_value(parser[name], text)
            parsing[parser[name]] = text
        else:
            known = [*_SPARK_OPTIONS, *parser.values(), SERVERS]
            raise SourceError(
                f'read_kafka has no option "{name}"',
                hint=did_you_mean(name, known) or "Options of the client are `kafka.…`.",
            )
    if servers is not None:
        connector[SERVERS] = servers
    if SERVERS not in connector:
        raise SourceError(
            "read_kafka needs the address of a broker", hint="bootstrapServers => 'host:9092'"
        )
    try:
        client_settings(connector)
    except SpringhouseError as error:
        raise SourceError(error.problem, hint=error.hint) from error
    return connector, parsing


def _schema_of(file_format: str, schema: str | None) -> str | None:
    if file_format.lower() not in ("raw", "json"):
        raise wrong_option("format", file_format, "raw or json")
    if (schema is None) != (file_format.lower() == "raw"):
        raise SourceError(
            "read_kafka needs format => 'json' and a schema, or neither",
            hint="format => 'json', schema => 'id BIGINT, …'; without, a row is key, value, ….",
        )
    return schema


def _beginning(text: str) -> str | Mapping[str, int]:
    if text.lower() in ("earliest", "latest"):
        return text.lower()
    try:
        return {str(int(partition)): int(offset) for partition, offset in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError):
        raise wrong_option("startingOffsets", text, 'earliest, latest or {"0": 23, …}') from None
