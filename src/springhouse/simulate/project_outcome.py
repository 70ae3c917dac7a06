"""How fresh are the tables of a project in a pretend world, under this policy and under others?

The measures are those of a warehouse: every second the run records the lag of each table, and a
promise is kept in the seconds in which the lag is within it. There are three runs over the same
arrivals: with the project's policy, with first come first served, and with a track for every table.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from springhouse.loop.turns import FreshnessRecord
from springhouse.planner.offers import Offered
from springhouse.project.declarations.declaration import Project, Promise
from springhouse.refresh.policy import Policy
from springhouse.simulate.policy_words import FIFO
from springhouse.simulate.pretend_project import PretendProject, WhatIf
from springhouse.simulate.project_record import ProjectRecord
from springhouse.units import Seconds

_WINDOWS = 100


@dataclass(frozen=True)
class SimulatedTable:
    """The measures of one table; times are in seconds, and None if there is no value."""

    name: str
    priority: float
    promise_seconds: float | None
    refreshes: int
    refresh_seconds: float | None
    mean_staleness: float
    mean_lag: float
    worst_lag: float
    kept_share: float | None


@dataclass(frozen=True)
class ProjectOutcome:
    """The outcome of one run."""

    seconds: float
    busy_share: float
    tables: tuple[SimulatedTable, ...]
    curve: tuple[tuple[float, float], ...] = ()
    """The weighted staleness of each window of time, with the window's end."""

    @property
    def weighted_staleness(self) -> float:
        """The mean staleness of the tables, weighted by their priorities."""
        weight = sum(each.priority for each in self.tables) or 1.0
        return sum(each.priority * each.mean_staleness for each in self.tables) / weight

    @property
    def kept_share(self) -> float | None:
        """The mean share of time in which tables with a promise kept it."""
        shares = [each.kept_share for each in self.tables if each.kept_share is not None]
        return sum(shares) / len(shares) if shares else None

    @property
    def refreshes(self) -> int:
        return sum(each.refreshes for each in self.tables)


@dataclass(frozen=True)
class ProjectComparison:
    """A policy, its run, and the runs that it is compared with."""

    policy: Policy
    ours: ProjectOutcome
    fifo: ProjectOutcome
    uncontended: ProjectOutcome


def compare_policies(
    project: Project,
    recorded: ProjectRecord,
    offered: Mapping[str, Offered],
    policy: Policy,
    what_if: WhatIf,
    seconds: float,
) -> ProjectComparison:
    """Simulate a project for so long, under its policy, under FIFO, and without contention."""
    enough = replace(what_if, tracks=len(project.tables) + len(project.views))

    def run(policy: Policy, what_if: WhatIf) -> ProjectOutcome:
        return simulate_run(project, recorded, offered, policy, what_if, seconds)

    return ProjectComparison(policy, run(policy, what_if), run(FIFO, what_if), run(policy, enough))


def simulate_run(
    project: Project,
    recorded: ProjectRecord,
    offered: Mapping[str, Offered],
    policy: Policy,
    what_if: WhatIf,
    seconds: float,
) -> ProjectOutcome:
    """Simulate a project for so long in a pretend world."""
    world = PretendProject(project, recorded, offered, policy, what_if, seconds)
    world.run(seconds)
    tables = tuple(
        _table(name, promise_of(project, name), world, kept) for name, kept in world.kept.items()
    )
    busy = world.work_seconds / seconds / what_if.tracks
    return ProjectOutcome(seconds, busy, tables, _curve(project, world.kept, seconds))


def _curve(
    project: Project, kept: Mapping[str, FreshnessRecord], seconds: float
) -> tuple[tuple[float, float], ...]:
    weighted = [(promise_of(project, name).priority, each) for name, each in kept.items()]
    weight = sum(priority for priority, _ in weighted) or 1.0
    length = min((len(each.staleness) for _, each in weighted), default=0)
    size = max(length // _WINDOWS, 1)
    sums = [0.0] * length
    for priority, each in weighted:
        for second, staleness in zip(range(length), each.staleness, strict=False):
            sums[second] += priority * staleness / weight
    ends = range(size, length + 1, size)
    return tuple((end / length * seconds, _mean(sums[end - size : end])) for end in ends)


def promise_of(project: Project, name: str) -> Promise:
    """The promise of a table or view."""
    return (project.tables.get(name) or project.views[name]).promise


def _table(
    name: str, promise: Promise, world: PretendProject, kept: FreshnessRecord
) -> SimulatedTable:
    bound = promise.strictest_seconds
    return SimulatedTable(
        name,
        promise.priority,
        bound,
        world.refreshes[name],
        world.mean_seconds(name),
        _mean(kept.staleness),
        _mean(kept.lags),
        kept.worst,
        kept.share(None if bound is None else Seconds(bound)),
    )


def _mean(values: Collection[float]) -> float:
    return sum(values) / len(values) if values else 0.0
