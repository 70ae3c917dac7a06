"""Which refreshes are wanted now, in which order, and why?"""

from collections.abc import Mapping
from dataclasses import dataclass

from springhouse.loop.schedule import Schedule
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.refresh.waiting import Waiting
from springhouse.units import Instant, Seconds
from springhouse.warehouse.reports.result import Result
from springhouse.warehouse.watch import Watch


@dataclass(frozen=True)
class AlternativeWay:
    """Another way of the same refresh, and how long it was expected to take."""

    way: str
    expected_seconds: float


@dataclass(frozen=True)
class PathwayBound:
    """How long data that comes along a pathway may wait; 0 means as fresh as possible."""

    pathway: str
    staleness_seconds: float


@dataclass(frozen=True)
class PlannedRefresh(Result):
    """A refresh that is wanted. A plan lists refreshes in the order in which they would start.

    `waited_seconds` is how long the oldest data has waited. `input_versions` are the versions that
    the refresh reads, and `reaches` are those that the table reflects afterwards, by pathway. The
    `score` decided the order; `score_meaning` says what it measures. The refresh starts on one of
    `tracks`, in `starts_in_seconds` at the earliest. `expected_seconds` is the scheduler's estimate
    and `planned_seconds` the planner's. Of a view, `bounds` are the promises that asked for it.
    """

    table: str
    reason: str
    way: str
    driver: str | None
    waited_seconds: float
    input_versions: Mapping[str, int]
    reaches: Mapping[str, tuple[int, ...]]
    bounds: tuple[PathwayBound, ...]
    score: float
    score_meaning: str
    starts_in_seconds: float
    tracks: tuple[int, ...]
    expected_seconds: float
    planned_seconds: float | None
    alternatives: tuple[AlternativeWay, ...]


def planned_refreshes(watch: Watch, schedule: Schedule, now: Instant) -> list[PlannedRefresh]:
    """The refreshes that are wanted now, in the order in which they would start."""
    return [_planned(watch, plan, waiting, now) for plan, waiting in schedule.order(now)]


def _planned(watch: Watch, plan: RefreshPlan, waiting: Waiting, now: Instant) -> PlannedRefresh:
    return PlannedRefresh(
        table=plan.table,
        reason=plan.reason,
        way=plan.way,
        driver=plan.driver,
        waited_seconds=max(now - plan.since, 0.0),
        input_versions=dict(plan.versions),
        reaches={key: tuple(versions) for key, versions in plan.reaches.as_json().items()},
        bounds=_bounds(watch, plan),
        score=waiting.number,
        score_meaning=waiting.why,
        starts_in_seconds=max(waiting.released - now, 0.0),
        tracks=waiting.homes,
        expected_seconds=waiting.expected_seconds,
        planned_seconds=plan.seconds,
        alternatives=tuple(AlternativeWay(each.way, each.seconds) for each in plan.others),
    )


def _bounds(watch: Watch, plan: RefreshPlan) -> tuple[PathwayBound, ...]:
    """The bounds on the pathways along which a view is behind."""
    view = watch.project.views.get(plan.table)
    if view is None:
        return ()
    bounds: dict[str, Seconds] = {}
    for pathway in sorted(plan.asked):
        # Pathways through one input that have the same bound are named once, by the input.
        bound, through = watch.planning.waits.bound(view.name, pathway), pathway.rpartition(">")[2]
        bounds[through if bounds.get(through, bound) == bound else pathway] = bound
    return tuple(PathwayBound(pathway, bound) for pathway, bound in bounds.items())
