"""One running warehouse: the place where the rooms meet the world.

What others need of it is imported when they ask for it, as in `springhouse` itself: a node votes
before it has loaded Arrow and Spark, and `node`, `joining` and `owning` are all that takes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from springhouse.house.house import House, Refreshed, open  # noqa: A004  as in `springhouse`
    from springhouse.house.live import Event, Failed, Finished, Kept, SparkNeeded, Started, Warned
    from springhouse.house.report import PlannedRefresh, TableStatus
    from springhouse.lake.landing import Done
    from springhouse.lake.sinks.delivery import Delivered

__all__ = [
    "Delivered",
    "Done",
    "Event",
    "Failed",
    "Finished",
    "House",
    "Kept",
    "PlannedRefresh",
    "Refreshed",
    "SparkNeeded",
    "Started",
    "TableStatus",
    "Warned",
    "open",
]

_HOMES = {
    "springhouse.house.house": ("House", "Refreshed", "open"),
    "springhouse.house.live": (
        "Event",
        "Failed",
        "Finished",
        "Kept",
        "SparkNeeded",
        "Started",
        "Warned",
    ),
    "springhouse.house.report": ("PlannedRefresh", "TableStatus"),
    "springhouse.lake.landing": ("Done",),
    "springhouse.lake.sinks.delivery": ("Delivered",),
}


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
