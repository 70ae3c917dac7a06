"""What does a running warehouse consist of?

This room joins the other rooms to the outside world: it owns the clock and the threads.

    warehouse            what a user can do with a warehouse
    internals            its parts: the project, the lake, and the watch over both
    watch                what the sources and the Delta logs say to the loop
    available_ways       how a table can be refreshed now, and at what cost
    retained_versions    the old versions that readers still need
    machine              how busy this machine is
    reports/             status, plan, history, explanation
    running/             how refreshes run
    node/                a warehouse as one node of a cluster

A name is imported when it is used, as in `springhouse` itself. So a node, which needs only the
modules of `node/` to vote, votes before it has loaded Arrow and Spark.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from springhouse.lake.landing.landing import Done
    from springhouse.lake.sinks.delivery import Delivered
    from springhouse.lake.upkeep.verification import Verified
    from springhouse.loop.turns import FreshnessRecord
    from springhouse.refresh.promises.feasible import UnkeepablePromise
    from springhouse.refresh.retry import Failure
    from springhouse.warehouse.reports.planned_refresh import PlannedRefresh
    from springhouse.warehouse.reports.table_explanation import TableExplanation, ViewExplanation
    from springhouse.warehouse.reports.table_history import CommitRecord
    from springhouse.warehouse.reports.table_status import TableStatus
    from springhouse.warehouse.running.refresh_events import (
        Event,
        Failed,
        Finished,
        SparkNeeded,
        Started,
        Warned,
    )
    from springhouse.warehouse.warehouse import (
        Refreshed,
        Warehouse,
        open,  # noqa: A004
    )

__all__ = [
    "CommitRecord",
    "Delivered",
    "Done",
    "Event",
    "Failed",
    "Failure",
    "Finished",
    "FreshnessRecord",
    "PlannedRefresh",
    "Refreshed",
    "SparkNeeded",
    "Started",
    "TableExplanation",
    "TableStatus",
    "UnkeepablePromise",
    "Verified",
    "ViewExplanation",
    "Warehouse",
    "Warned",
    "open",
]

_HOMES = {
    "springhouse.warehouse.warehouse": ("Refreshed", "Warehouse", "open"),
    "springhouse.warehouse.running.refresh_events": (
        *("Event", "Failed", "Finished", "SparkNeeded", "Started", "Warned"),
    ),
    "springhouse.loop.turns": ("FreshnessRecord",),
    "springhouse.warehouse.reports.planned_refresh": ("PlannedRefresh",),
    "springhouse.warehouse.reports.table_explanation": ("TableExplanation", "ViewExplanation"),
    "springhouse.warehouse.reports.table_history": ("CommitRecord",),
    "springhouse.warehouse.reports.table_status": ("TableStatus",),
    "springhouse.lake.landing.landing": ("Done",),
    "springhouse.lake.sinks.delivery": ("Delivered",),
    "springhouse.lake.upkeep.verification": ("Verified",),
    "springhouse.refresh.promises.feasible": ("UnkeepablePromise",),
    "springhouse.refresh.retry": ("Failure",),
}


def __getattr__(name: str) -> Any:
    """Import the module of a name when the name is used."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
