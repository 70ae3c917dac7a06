"""Which class answers to `'springhouse.sink.<name>' = '<plugin>'`?

How it is found is told in `lake/sources/plugins.py`.
"""

from collections.abc import Mapping

from springhouse.errors import SinkError
from springhouse.lake.sinks.sink import Sink, SinkContext
from springhouse.lake.sources.plugins import Plugins
from springhouse.project.declarations.declaration import SinkCall

SINKS = Plugins(
    kind="sink",
    group="springhouse.sinks",
    built_in={
        "avro": "springhouse.lake.sinks.avro_sink:AvroSink",
        "kafka": "springhouse.lake.sinks.kafka_sink:KafkaSink",
        "positioned_file": "springhouse.lake.sinks.lines:PositionedFileSink",
    },
    error=SinkError,
)


def known_sinks(own: Mapping[str, type]) -> frozenset[str]:
    """The names of all kinds of sinks that a project can use."""
    return SINKS.known(own)


def open_sink(call: SinkCall, own: Mapping[str, type], context: SinkContext) -> Sink:
    """The sink that a table or view names, made with the options that it gives."""
    sink: Sink = SINKS.open(call, own, context)
    return sink
