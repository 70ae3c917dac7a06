"""Which class answers to `STREAM name(…)`? (How it is found: `lake/sources/plugins.py`.)"""

from collections.abc import Mapping

from springhouse.errors import SourceError
from springhouse.lake.sources.plugins import Plugins
from springhouse.lake.sources.source import Source, SourceContext
from springhouse.project.declarations.declaration import SourceCall

SOURCES = Plugins(
    kind="source",
    group="springhouse.sources",
    built_in={
        "read_delta": "springhouse.lake.sources.delta_source:ReadDelta",
        "read_files": "springhouse.lake.sources.read_files:ReadFiles",
        "read_kafka": "springhouse.lake.sources.kafka_source:ReadKafka",
        "sample": "springhouse.lake.sources.sample:Sample",
    },
    error=SourceError,
)


def known_sources(own: Mapping[str, type]) -> frozenset[str]:
    """The names of all sources that a project can call."""
    return SOURCES.known(own)


def open_source(call: SourceCall, own: Mapping[str, type], context: SourceContext) -> Source:
    """The source that a query calls, made with the options that it gives."""
    source: Source = SOURCES.open(call, own, context)
    return source


def source_class(call: SourceCall, own: Mapping[str, type]) -> type | None:
    """The class that answers to a call, unless it is one of ours, or there is none."""
    return SOURCES.foreign(call, own)
