"""Which options do the built-in sources and sinks take?

Each source and sink has one function. The signature of the function says which options exist and
which are required, its result says what they mean, and its error says what is wrong. The check of a
project and the lake, which opens the source or sink, call the same function: so they agree.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any
from urllib.parse import urlsplit

from springhouse.errors import SinkError, SourceError, SpringhouseError
from springhouse.project.declarations.names import did_you_mean
from springhouse.project.options import file_options, kafka_options
from springhouse.project.options.option_values import positive_number, timestamp_value, whole_number

_CODECS = ("deflate", "null")


@dataclass(frozen=True)
class SampleOptions:
    """The options of one `sample`."""

    rate: Fraction
    partitions: int
    start: datetime | None
    limit: int | None


def read_files(path: str, **options: str) -> file_options.FileOptions:
    """`read_files('folder', format => 'json', …)`."""
    check_path(path, SourceError)
    return file_options.read_file_options(options)


def read_delta(path: str) -> None:
    """`read_delta('path')`."""
    check_path(path, SourceError)


def sample(
    rate: str = "10", partitions: str = "1", start: str | None = None, limit: str | None = None
) -> SampleOptions:
    """`sample(rate => '10', partitions => '1')`."""
    return SampleOptions(
        positive_number("rate", rate),
        whole_number("partitions", partitions, least=1),
        None if start is None else timestamp_value("start", start),
        None if limit is None else whole_number("limit", limit, least=0),
    )


def write_avro(path: str, codec: str = "deflate") -> None:
    """The sink `avro`."""
    check_path(path, SinkError)
    if codec not in _CODECS:
        raise SinkError(
            f'"{codec}" is not a codec of the sink avro',
            hint=did_you_mean(codec, _CODECS) or f"The codecs are {', '.join(_CODECS)}.",
        )


def write_lines(path: str) -> None:
    """The sink `positioned_file`."""
    check_path(path, SinkError)
    if len(urlsplit(path).scheme) > 1:
        raise SinkError(
            f'"{path}" is not a file that can be cut',
            hint="Give a path of a file system; for an object store, use the sink avro.",
        )


def check_path(path: str, error: type[SpringhouseError]) -> None:
    """Raise an error for a text that names no file and no folder."""
    if not path.strip() or "\0" in path:
        raise error("the path is empty" if not path.strip() else "the path has a NUL character")


Reader = Callable[..., Any]

SOURCES: Mapping[str, Reader] = {
    "read_files": read_files,
    "read_delta": read_delta,
    "read_kafka": kafka_options.read_kafka,
    "sample": sample,
}
SINKS: Mapping[str, Reader] = {
    "avro": write_avro,
    "kafka": kafka_options.write_kafka,
    "positioned_file": write_lines,
}

_KAFKA_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


def columns_of_source(name: str, options: Any) -> tuple[str, ...] | None:
    """The columns of the rows of a built-in source, if its options show them."""
    if name == "sample":
        return ("time", "offset", "partition", "node", "leader")
    schema = getattr(options, "columns", None)
    if schema is not None:
        return tuple(schema)
    if isinstance(options, kafka_options.TopicToRead) and options.schema is None:
        headers = options.connector.get("includeHeaders", "false").lower() == "true"
        return (*_KAFKA_COLUMNS, "headers") if headers else _KAFKA_COLUMNS
    return None
