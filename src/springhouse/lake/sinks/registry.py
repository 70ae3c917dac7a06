"""Which class answers to `'springhouse.sink.<name>' = '<plugin>'`?

How it is found is told in `lake/plugins.py`.
"""

from collections.abc import Mapping

from springhouse.errors import SinkError
from springhouse.lake.plugins import Plugins
from springhouse.lake.sinks.contract import Sink, SinkContext
from springhouse.project.declaration import SinkCall

SINKS = Plugins(
    kind="sink",
    group="springhouse.sinks",
    built_in={
        "avro": "springhouse.lake.sinks.avro:AvroSink",
        "kafka": "springhouse.lake.sinks.kafka:KafkaSink",
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
