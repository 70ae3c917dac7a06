"""What would a user's project ask of the scheduler?

Its tables and views with their promises, priorities and who reads whom are declared. What they cost
and how often their data really comes is learned from past refreshes, if there were any: costs as in
a House; the period of a base table is the median time between refreshes that loaded something, and
never less than what is declared. Without a past a cost is a guess, as it is for the scheduler.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from springhouse.project.declaration import Project
from springhouse.project.graph import Graph
from springhouse.refresh.cost import Cost, LearnedCost, TypicalRefresh
from springhouse.refresh.table import Table
from springhouse.simulate.workload import Workload
from springhouse.units import Instant, RowCount, Seconds

UNWATCHED_PERIOD = Seconds(60.0)
"""How often a view is refreshed that reads nothing of which it is known when it changes."""

_ENOUGH = 3
_PAUSE = 10.0


@dataclass(frozen=True)
class PastRefresh:
    """A refresh that was committed at a moment, how long it took, and how many rows it changed."""

    at: Instant
    seconds: Seconds
    rows: RowCount


@dataclass(frozen=True)
class ProjectWorkload:
    """A workload, and the tables of which the cost is only a guess."""

    workload: Workload
    guessed: tuple[str, ...]


def project_workload(
    project: Project, past: Mapping[str, Sequence[PastRefresh]]
) -> ProjectWorkload:
    """A project's tables as a workload; `past` are their refreshes, oldest first."""
    graph = Graph(project)
    upstream: dict[str, list[str]] = {name: [] for name in graph.order}
    for name in graph.order:
        for reader in graph.dependents(name):
            if reader != name:
                upstream[reader].append(name)
    typical = TypicalRefresh()
    for refreshes in past.values():
        for refresh in refreshes:
            typical.observe(refresh.seconds)
    periods: dict[str, float] = {}
    tables, guessed = [], []
    for name in graph.order:
        declared = project.tables.get(name) or project.views[name]
        refreshes = past.get(name, ())
        if upstream[name]:
            periods[name] = max(periods[each] for each in upstream[name])
        else:
            base = project.tables.get(name)
            least = base.period_seconds if base is not None else UNWATCHED_PERIOD
            periods[name] = max(least, _usual_gap(refreshes) or 0.0)
        if len(refreshes) < _ENOUGH:
            guessed.append(name)
        promise = declared.promise
        tables.append(
            Table(
                name,
                tuple(upstream[name]),
                None if upstream[name] else Seconds(periods[name]),
                promise.priority,
                promise.strictest_seconds,
                _learned(refreshes, typical.cost()),
            )
        )
    return ProjectWorkload(Workload(tuple(tables)), tuple(guessed))


def _usual_gap(refreshes: Sequence[PastRefresh]) -> float | None:
    gaps = [later.at - earlier.at for earlier, later in pairwise(refreshes)]
    return median(gaps) if len(gaps) >= _ENOUGH - 1 else None


def _learned(refreshes: Sequence[PastRefresh], prior: Cost) -> Cost:
    """What refreshes cost, learned as the scheduler learns it."""
    usual = _usual_gap(refreshes)
    if usual is None:
        return prior
    learned = LearnedCost(prior)
    for earlier, later in pairwise(refreshes):
        # A longer pause is one in which nobody ran the House, and not much data that came.
        loaded = min(later.at - earlier.at, _PAUSE * usual)
        if loaded > 0 and later.seconds > 0:
            learned.observe(loaded, later.seconds, later.rows)
    return learned.cost if learned.cost.seconds(1.0) > 0 else prior
