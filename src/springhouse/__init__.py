"""Springhouse: a streaming warehouse on Spark, whose tables and views stay as fresh as promised."""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from springhouse.errors import SpringhouseError

if TYPE_CHECKING:
    from springhouse.flows.declare import flow
    from springhouse.lake.flows.run_flow import run_flow
    from springhouse.lake.sinks.sink import Changes, Sink, SinkContext
    from springhouse.lake.sources.source import Range, Source, SourceContext
    from springhouse.project.python.plugin_decorators import sink, source
    from springhouse.warehouse import Warehouse, open  # noqa: A004  `springhouse.open` is what it's called

__version__ = "0.1.0"

# Who wants to read the log adds a handler; the command line does so for `--log-level`.
logging.getLogger("springhouse").addHandler(logging.NullHandler())

__all__ = [
    "Changes",
    "Range",
    "Sink",
    "SinkContext",
    "Source",
    "SourceContext",
    "SpringhouseError",
    "Warehouse",
    "flow",
    "open",
    "run_flow",
    "sink",
    "source",
]

_HOMES = {
    "Warehouse": "springhouse.warehouse",
    "Changes": "springhouse.lake.sinks.sink",
    "Range": "springhouse.lake.sources.source",
    "Sink": "springhouse.lake.sinks.sink",
    "SinkContext": "springhouse.lake.sinks.sink",
    "Source": "springhouse.lake.sources.source",
    "SourceContext": "springhouse.lake.sources.source",
    "flow": "springhouse.flows.declare",
    "open": "springhouse.warehouse",
    "run_flow": "springhouse.lake.flows.run_flow",
    "sink": "springhouse.project.python.plugin_decorators",
    "source": "springhouse.project.python.plugin_decorators",
}


def __getattr__(name: str) -> Any:
    """Import a room when it is asked for: Arrow and Spark would make `springhouse --help` slow."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
