"""Which class answers to `STREAM name(…)`? (`lake/sources/plugins.py` finds it.)"""

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature

from springhouse.errors import SourceError
from springhouse.lake.sources.plugins import Plugins
from springhouse.lake.sources.source import Source, SourceContext
from springhouse.project.declarations.declaration import SourceCall

SOURCES: Plugins[Source] = Plugins(
    kind="source",
    base=Source,  # type: ignore[type-abstract]  # nobody calls it
    group="springhouse.sources",
    built_in={
        "read_delta": "springhouse.lake.sources.delta_source:ReadDelta",
        "read_files": "springhouse.lake.sources.read_files:ReadFiles",
        "read_kafka": "springhouse.lake.sources.kafka_source:ReadKafka",
        "sample": "springhouse.lake.sources.sample:Sample",
    },
    error=SourceError,
)


@dataclass(frozen=True)
class SourceSignature:
    """The arguments of a source that is not built in.

    `parameters` are their names in order, `fixed` those that say what it reads (None: all do).
    """

    parameters: tuple[str, ...] = ()
    fixed: tuple[str, ...] | None = ()


def known_sources(own: Mapping[str, type]) -> frozenset[str]:
    """The names of all sources that a project can call."""
    return SOURCES.known(own)


def open_source(call: SourceCall, own: Mapping[str, type], context: SourceContext) -> Source:
    """The source that a query calls, opened with the options of the call."""
    return SOURCES.open(call, own, context)


def signature_of(call: SourceCall, own: Mapping[str, type]) -> SourceSignature:
    """The arguments of the class that answers to a call; none for a built-in class."""
    plugin = SOURCES.foreign(call, own)
    if plugin is None:
        return SourceSignature()
    names = (name.lower() for name in signature(plugin).parameters if name != "context")
    # A class that is no subclass of `Source` may leave it out.
    fixed = getattr(plugin, "identified_by", Source.identified_by)
    return SourceSignature(tuple(names), None if fixed is None else tuple(n.lower() for n in fixed))
