"""Which facts about its warehouse does a loop know?

It knows the declaration, the logs, the data that waits in sources, and the plans that follow from
them. A warehouse puts these parts together over real logs and sources, a simulator over pretend
ones.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from springhouse.loop.observing import Observing, Sources
from springhouse.planner.delta_logs import Logs
from springhouse.planner.offers import Offers
from springhouse.planner.planning import Planning
from springhouse.planner.strict.versions import Chooser
from springhouse.project.declarations.declaration import Project
from springhouse.project.lineage.graph import Graph

OffersOf = Callable[[Graph, Chooser], Offers]


@dataclass(frozen=True)
class Facts:
    """The parts of one warehouse that decisions depend on; `lock` is held while they change."""

    project: Project
    graph: Graph
    logs: Logs
    chooser: Chooser
    offers: Offers
    observing: Observing
    planning: Planning
    lock: AbstractContextManager[object]


def facts_of(
    project: Project,
    logs: Logs,
    sources: Sources,
    offers_of: OffersOf,
    owns: Callable[[str], bool] = lambda table: True,
    lock: AbstractContextManager[object] | None = None,
) -> Facts:
    """The parts of a warehouse over its logs and sources; several threads need a `lock`."""
    graph = Graph(project)
    chooser = Chooser(project, graph, logs)
    offers = offers_of(graph, chooser)
    observing = Observing(project.tables, sources, owns)
    lock = lock or nullcontext()
    planning = Planning(project, graph, logs, observing, chooser, offers, lock)
    return Facts(project, graph, logs, chooser, offers, observing, planning, lock)
