"""Which class answers to `'springhouse.sink.<name>' = '<plugin>'`?

`lake/sources/plugins.py` finds it.
"""

from collections.abc import Mapping

from springhouse.errors import SinkError
from springhouse.lake.sinks.sink import Sink, SinkContext
from springhouse.lake.sources.plugins import Plugins
from springhouse.project.declarations.declaration import SinkCall

SINKS: Plugins[Sink] = Plugins(
    kind="sink",
    base=Sink,  # type: ignore[type-abstract]  # nobody calls it
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
    """The sink that a table or view names, opened with its options."""
    return SINKS.open(call, own, context)
