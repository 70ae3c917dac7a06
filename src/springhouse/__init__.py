"""Springhouse: a streaming warehouse on Spark, whose tables and views stay as fresh as promised."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from springhouse.errors import SpringhouseError

if TYPE_CHECKING:
    from springhouse.flows.declare import flow
    from springhouse.house import House, open  # noqa: A004  `springhouse.open` is what it's called
    from springhouse.lake.flows.run_flow import run_flow
    from springhouse.lake.sources.contract import Range, SourceContext
    from springhouse.project.sources import sink, source

__version__ = "0.1.0"

__all__ = [
    "House",
    "Range",
    "SourceContext",
    "SpringhouseError",
    "flow",
    "open",
    "run_flow",
    "sink",
    "source",
]

_HOMES = {
    "House": "springhouse.house",
    "Range": "springhouse.lake.sources.contract",
    "SourceContext": "springhouse.lake.sources.contract",
    "flow": "springhouse.flows.declare",
    "open": "springhouse.house",
    "run_flow": "springhouse.lake.flows.run_flow",
    "sink": "springhouse.project.sources",
    "source": "springhouse.project.sources",
}


def __getattr__(name: str) -> Any:
    """Import a room when it is asked for: Arrow and Spark would make `springhouse --help` slow."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
