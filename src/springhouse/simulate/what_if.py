"""How fresh are tables under a policy, compared with FIFO and with the best that is possible?

There are three runs over the same pretend time with the same arrivals: with the policy, with first
come first served, and without contention, where no refresh waits for a track. Each run is divided
into windows, which show when the tables were stale and not only how much.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from springhouse.refresh.policy import Policy
from springhouse.simulate.policy_words import FIFO
from springhouse.simulate.pretend_schedule import PretendWarehouse, ScheduleConditions
from springhouse.simulate.table_measures import ScheduleOutcome
from springhouse.simulate.workload import Workload

_WINDOWS = 100


@dataclass(frozen=True)
class Run:
    """The outcome of one run, and the weighted staleness of each window with the window's end."""

    outcome: ScheduleOutcome
    curve: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class PolicyComparison:
    """A policy, its run, and the runs that it is compared with."""

    policy: Policy
    run: Run
    fifo: Run
    ideal: Run

    @property
    def relative_lateness(self) -> float:
        """The staleness of the tables, as a multiple of that in the ideal run."""
        return _ratio(self.run, self.ideal)

    @property
    def relative_lateness_of_fifo(self) -> float:
        return _ratio(self.fifo, self.ideal)


def what_if(
    workload: Workload, conditions: ScheduleConditions, policy: Policy, events: int
) -> PolicyComparison:
    """Simulate so many events under a policy, and compare it."""
    warehouse = PretendWarehouse(workload, conditions, policy)
    points = [(0.0, 0.0)]
    for number in range(_WINDOWS):
        warehouse.run(events * (number + 1) // _WINDOWS - events * number // _WINDOWS)
        points.append((warehouse.now, warehouse.area()))
    run = Run(warehouse.outcome(), _curve(points, workload))
    ends = [at for at, _ in points[1:]]
    return PolicyComparison(
        policy,
        run,
        _same_time(PretendWarehouse(workload, conditions, FIFO), ends, workload),
        _same_time(PretendWarehouse(workload, conditions), ends, workload),
    )


def _same_time(warehouse: PretendWarehouse, ends: Sequence[float], workload: Workload) -> Run:
    points = [(0.0, 0.0)]
    for end in ends:
        warehouse.run(until=end)
        points.append((end, warehouse.area()))
    return Run(warehouse.outcome(), _curve(points, workload))


def _curve(
    points: Sequence[tuple[float, float]], workload: Workload
) -> tuple[tuple[float, float], ...]:
    weight = sum(table.priority for table in workload.tables) or 1.0
    return tuple(
        (end, (after - before) / (end - start) / weight)
        for (start, before), (end, after) in pairwise(points)
        if end > start
    )


def _ratio(run: Run, other: Run) -> float:
    least = other.outcome.weighted_staleness
    return run.outcome.weighted_staleness / least if least > 0 else 1.0
