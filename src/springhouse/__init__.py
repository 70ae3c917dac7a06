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
    from springhouse.warehouse import (
        CommitRecord,
        Delivered,
        Done,
        Event,
        Failed,
        Failure,
        Finished,
        FreshnessRecord,
        PlannedRefresh,
        Refreshed,
        SparkNeeded,
        Started,
        TableExplanation,
        TableStatus,
        UnkeepablePromise,
        Verified,
        ViewExplanation,
        Warehouse,
        Warned,
        open,  # noqa: A004  `springhouse.open` is what it's called
    )

__version__ = "0.1.0"

# Who wants to read the log adds a handler; the command line does so for `--log-level`.
logging.getLogger("springhouse").addHandler(logging.NullHandler())

__all__ = [
    "Changes",
    "CommitRecord",
    "Delivered",
    "Done",
    "Event",
    "Failed",
    "Failure",
    "Finished",
    "FreshnessRecord",
    "PlannedRefresh",
    "Range",
    "Refreshed",
    "Sink",
    "SinkContext",
    "Source",
    "SourceContext",
    "SparkNeeded",
    "SpringhouseError",
    "Started",
    "TableExplanation",
    "TableStatus",
    "UnkeepablePromise",
    "Verified",
    "ViewExplanation",
    "Warehouse",
    "Warned",
    "flow",
    "open",
    "run_flow",
    "sink",
    "source",
]

_HOMES = {
    "springhouse.flows.declare": ("flow",),
    "springhouse.lake.flows.run_flow": ("run_flow",),
    "springhouse.lake.sinks.sink": ("Changes", "Sink", "SinkContext"),
    "springhouse.lake.sources.source": ("Range", "Source", "SourceContext"),
    "springhouse.project.python.plugin_decorators": ("sink", "source"),
}


def __getattr__(name: str) -> Any:
    """Import a room when one of its names is used: `--help` need not wait for Arrow and Spark."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = next((home for home, names in _HOMES.items() if name in names), "springhouse.warehouse")
    return getattr(import_module(home), name)
