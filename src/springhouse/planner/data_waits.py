"""Since when has data waited for a table, and how long may it wait?

Data waits from its arrival in a base table, or in the source of a base table, until the table
reflects it. A promise may allow the data of one pathway to wait longer than other data. Then its
wait starts later, by the difference between its bound and the strictest bound.
"""

from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Protocol

from springhouse.planner.delta_logs import Logs
from springhouse.planner.provenance import Provenance, source_of
from springhouse.planner.refresh_plan import NEVER
from springhouse.planner.relaxed.relaxed_views import RelaxedViews
from springhouse.planner.strict.versions import Chooser
from springhouse.project.declarations.declaration import Project
from springhouse.project.lineage.channels import is_channel
from springhouse.project.lineage.graph import Graph
from springhouse.units import Instant, Seconds


class Arrivals(Protocol):
    """The data that waits in the sources of base tables."""

    def since(self, table: str) -> Instant | None:
        """Since when data waits for a table; None if no data waits, or if it is unknown."""
        ...

    def reason(self, table: str) -> str:
        """Why the table is to be refreshed."""
        ...


class DataWaits:
    """The waits of one project's tables, and the bounds on them."""

    def __init__(
        self,
        project: Project,
        graph: Graph,
        logs: Logs,
        arrivals: Arrivals,
        chooser: Chooser,
        relaxed: RelaxedViews,
        lock: AbstractContextManager[object],
    ) -> None:
        self._project = project
        self._graph = graph
        self._logs = logs
        self._arrivals = arrivals
        self._chooser = chooser
        self._relaxed = relaxed
        self._lock = lock

    def arrived(self, reflected: Provenance, target: Provenance) -> list[Instant]:
        """For each pathway on which `target` is ahead, the arrival of its first new data."""
        channels = self._chooser.channels()
        arrivals = []
        for pathway in reflected.channels_ahead(target):
            oldest = reflected.oldest(pathway)
            versions = channels[source_of(pathway)]
            if oldest is not None:
                arrivals.append(versions.until(oldest))
            elif versions.timestamps:
                arrivals.append(versions.timestamps[0])
        return arrivals

    def waiting_since(self, name: str, now: Instant) -> list[Instant]:
        """The arrivals of data that `name` does not reflect, in base tables or their sources."""
        with self._lock:
            bases = self._base_tables(name)
            waits = [since for each in bases if (since := self._arrivals.since(each)) is not None]
            if name in self._project.tables:
                return waits
            return waits + self._waits_in_logs(name, bases, now)

    def _base_tables(self, name: str) -> list[str]:
        """The base tables that a table is made from; a base table is made from itself."""
        above = [*self._graph.upstream(name), name]
        return [each for each in above if each in self._project.tables]

    def _waits_in_logs(self, view: str, bases: Collection[str], now: Instant) -> list[Instant]:
        """The arrivals in base tables that a view does not reflect, delayed as promises allow."""
        reflected = self._reflected(view)
        sources = {source_of(pathway) for pathway in reflected.reflected}
        pathways = {*reflected.reflected, *(each for each in bases if self._is_new(each, sources))}
        heads: dict[Seconds, dict[str, frozenset[int]]] = {}
        for pathway in pathways:
            head = self._logs.log(source_of(pathway)).newest()
            if head is not None:
                longer = self.allowed(view, pathway)
                heads.setdefault(longer, {})[pathway] = frozenset({head.made})
        waits: list[Instant] = []
        for longer, versions in heads.items():
            # The wait of data that may wait longer than other data starts later.
            arrived = self.arrived(reflected, Provenance(versions))
            waits += [Instant(at + longer) for at in arrived if at + longer <= now]
        return waits

    def _reflected(self, view: str) -> Provenance:
        """The provenance of a view, in the pathways that its present promises distinguish."""
        newest = self._logs.log(view).newest()
        if newest is not None and self._project.views[view].promise.named:
            return self._relaxed.held(view) or newest.provenance
        return newest.provenance if newest is not None else Provenance()

    def _is_new(self, table: str, sources: Collection[str]) -> bool:
        return table not in sources and is_channel(self._project, table)

    def allowed(self, name: str, pathway: str) -> Seconds:
        """How much longer the data of one pathway may wait than other data."""
        usual = self._project.views[name].promise.strictest_seconds or Seconds(0.0)
        return Seconds(max(self.bound(name, pathway) - usual, 0.0))

    def bound(self, view: str, pathway: str) -> Seconds:
        """How long the data of a pathway may wait for a view."""
        promise = self._project.views[view].promise
        bounds = self._relaxed.bounds(view) if promise.staleness_by_pathway else {}
        if pathway in bounds:
            return Seconds(bounds[pathway])
        return promise.staleness_along(pathway.split(">"), self._graph.tables_read(view))

    def bounds(self, name: str, inputs: Collection[str]) -> dict[str, Seconds]:
        """The strictest bound on the data of each input, if any input has a bound of its own."""
        declared = self._project.views.get(name) or self._project.tables[name]
        promise = declared.promise
        if not promise.staleness_by_pathway:
            return {}
        strictest = {each: promise.staleness_along([each], inputs) for each in inputs}
        for pathway, seconds in self._relaxed.bounds(name).items():
            through = pathway.rpartition(">")[2]
            strictest[through] = Seconds(min(strictest.get(through, seconds), seconds))
        return strictest

    def patience(self, name: str) -> dict[str, Seconds]:
        """How much longer the data of each input may wait than the data with the strictest bound.

        This covers the table and all tables made from it. Empty if it is unknown.
        """
        bounds = self._relaxed.bounds_by_input(name)
        least = min(bounds.values(), default=NEVER)
        if least == NEVER:
            return {}
        return {each: Seconds(seconds - least) for each, seconds in bounds.items()}
