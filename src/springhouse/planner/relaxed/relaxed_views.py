"""How is a view that may be inconsistent refreshed: from all inputs, or from one?

This is the door to Algorithm 1 of paper 004 for the views of a project. A refresh is wanted when
the promise of a view is about to break. Then

    view_groups        says which views are planned together
    view_workflow      states them as a workflow with bounds
    situation_in_logs  reads blocks and versions from the logs
    search             finds the cheapest plan
    planned_refreshes  turns the plan into refreshes

A refresh may begin with refreshes of tables upstream. They are part of its plan, with their
versions and ways, and the executor runs all of them as a unit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from springhouse.planner.bounds import NO_LIMITS, Times
from springhouse.planner.delta_logs import Channels, Logs
from springhouse.planner.offers import Offered, Offers
from springhouse.planner.provenance import Provenance
from springhouse.planner.refresh_plan import NEVER, RefreshPlan
from springhouse.planner.relaxed.planned_refreshes import PlannedRefreshes
from springhouse.planner.relaxed.situation_in_logs import LogSituations
from springhouse.planner.relaxed.view_groups import ViewGroup, ViewGroups
from springhouse.planner.relaxed.view_workflow import planner_of
from springhouse.planner.search.planner import Planner
from springhouse.project.declarations.declaration import Project
from springhouse.project.lineage.graph import Graph
from springhouse.units import Instant, Seconds

_MARGIN = 0.05
"""The part of a promise kept in reserve, in addition to the expected seconds of a refresh."""


class RelaxedViews:
    """Plans refreshes of the views of one project that may be inconsistent."""

    def __init__(self, project: Project, graph: Graph, logs: Logs, offers: Offers) -> None:
        self._project = project
        self._graph = graph
        self._logs = logs
        self._offers = offers
        self._groups = ViewGroups(project, graph)
        self._situations = LogSituations(logs)
        self._planners: dict[ViewGroup, tuple[Mapping[str, Offered], Planner]] = {}
        self._planned: dict[ViewGroup, _GroupPlan] = {}
        # For each bound on a pathway: the seconds of the last refresh for it, steps included.
        self._took: dict[tuple[str, str], float] = {}

    def decide(self, name: str, now: Instant) -> tuple[RefreshPlan | None, Instant]:
        """How to bring a view within its promises, and until when that answer holds.

        There is no plan if all promises are kept for now.
        """
        group = self._groups.group_of(name)
        assert group is not None, f"{name} promises strict consistency"
        planner, channels = self._planner(group), Channels(self._logs)
        until = NEVER
        if self._logs.log(name).newest() is not None:
            starts = self._latest_starts(name, planner, Times(channels, now))
            until = Instant(min((at for at, _ in starts if at > now), default=NEVER))
            if all(at > now for at, _ in starts):
                return None, until
        refresh = self._plan(group, planner, channels, now).refreshes.refresh_of(name, now)
        if refresh is not None:
            took = sum(each.seconds or 0.0 for each in (*refresh.first, refresh))
            self._took |= {(name, pathway): took for pathway in refresh.asked}
        return refresh, until

    def _plan(
        self, group: ViewGroup, planner: Planner, channels: Channels, now: Instant
    ) -> "_GroupPlan":
        """The plan for all due views of a group, made once for each moment."""
        known = self._planned.get(group)
        versions = self._situations.newest_versions(planner.workflow)
        if known is not None and known.now == now and known.versions == versions:
            return known
        times, due, latest = Times(channels, now), [], 0.0
        for view in group:
            starts = self._latest_starts(view, planner, times)
            ahead = [seconds for at, seconds in starts if at <= now]
            if ahead:
                due.append(view)
                latest = max(latest, *ahead)
        situation = self._situations.situation(planner.workflow, channels, Instant(now + latest))
        plan = planner.plan(situation, self._offers, due)
        refreshes = PlannedRefreshes(self._logs, self._project.tables, situation, plan)
        self._planned[group] = _GroupPlan(now, versions, refreshes)
        return self._planned[group]

    def _latest_starts(
        self, name: str, planner: Planner, times: Times
    ) -> list[tuple[Instant, Seconds]]:
        """For each bound of a view: when a refresh must start, and how long before the break."""
        held = self._situations.held(planner.workflow, name)
        if held is None or not self._groups.is_relaxed(name) or name not in planner.outputs:
            return []
        starts = []
        for pathway, seconds in planner.limits.get(name, NO_LIMITS).staleness.items():
            ahead = self._ahead(name, pathway, seconds)
            versions = held.reflected.get(pathway)
            at = times.stale_at(pathway, versions) + seconds - ahead if versions else times.now
            starts.append((Instant(at), ahead))
        return starts

    def _ahead(self, name: str, pathway: str, bound: float) -> Seconds:
        """How long before the break of a bound its refresh must start.

        This includes the time of the steps upstream, which differs from pathway to pathway.
        """
        promise = self._project.views[name].promise
        bounds = [promise.staleness_seconds, *promise.staleness_by_pathway.values()]
        shortest = min((each for each in bounds if each), default=Seconds(0.0))
        own = max(self._offers.last_seconds(name)[-3:], default=0.0)
        expected = max(own, self._took.get((name, pathway), 0.0))
        return Seconds(min(expected * 1.5 + _MARGIN * shortest, bound / 2))

    def _planner(self, group: ViewGroup) -> Planner:
        """The planner of a group of views; a new one if the views have other ways now."""
        offered = {each: self._offers.offered(each) for each in self._groups.tables_made_in(group)}
        known = self._planners.get(group)
        if known is None or known[0] != offered:
            known = self._planners[group] = offered, planner_of(self._project, offered)
        return known[1]

    # --- What the promises allow ------------------------------------------------------------------

    def allows(self, name: str, reflects: Provenance) -> bool:
        """Whether this provenance of a view lies within the bound on its inconsistency."""
        group = self._groups.group_of(name)
        assert group is not None, f"{name} promises strict consistency"
        planner = self._planner(group)
        # Time never breaks this bound, so the moment does not matter.
        times = Times(Channels(self._logs), NEVER)
        held = planner.workflow.recast(name, reflects)
        return times.within_inconsistency(planner.limits.get(name, NO_LIMITS), held)

    def bounds(self, name: str) -> Mapping[str, float]:
        """How long data may wait on each pathway of a view; empty for a strict view."""
        group = self._groups.group_of(name)
        return self._planner(group).limits.get(name, NO_LIMITS).staleness if group else {}

    def bounds_by_input(self, name: str) -> Mapping[str, float]:
        """How long the data of each input may wait, for a table and for all tables made from it.

        Empty if not all of these are planned together.
        """
        bounds: dict[str, float] = {}
        for group in self._groups.groups_making(name):
            planner = self._planner(group)
            whole = planner.workflow
            if not {*self._graph.downstream(name)} <= {*whole.order}:
                return {}
            for read in whole.reads[name]:
                for key in whole.through_input(name, read):
                    seconds = planner.asked[name].get(key, inf)
                    bounds[read] = min(bounds.get(read, inf), seconds)
        return bounds

    def held(self, name: str) -> Provenance | None:
        """The provenance of a view, in its present pathways; None for a strict view."""
        group = self._groups.group_of(name)
        return self._situations.held(self._planner(group).workflow, name) if group else None


@dataclass(frozen=True)
class _GroupPlan:
    """A plan for a group of views, and the moment and the versions that it was made for."""

    now: Instant
    versions: tuple[object, ...]
    refreshes: PlannedRefreshes
