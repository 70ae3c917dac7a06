"""What would come of it, how does FIFO fare, and what is the best that could be?

Three runs over the same pretend time with the same arrivals: the policy, first come first served,
and the one in which nothing waits for a track. Each is also cut into windows, so that one sees when
the tables were stale and not only how much.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from springhouse.refresh.policy import Policy
from springhouse.simulate.measures import ScheduleOutcome
from springhouse.simulate.policy_words import FIFO
from springhouse.simulate.pretend_schedule import PretendWarehouse, ScheduleConditions
from springhouse.simulate.workload import Workload

_WINDOWS = 100


@dataclass(frozen=True)
class Run:
    """What came of one run, and the weighted staleness in each window, under the window's end."""

    outcome: ScheduleOutcome
    curve: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class PolicyComparison:
    """The policy, and what it is compared with."""

    policy: Policy
    run: Run
    fifo: Run
    ideal: Run

    @property
    def relative_lateness(self) -> float:
        """How many times as stale as in the ideal the tables are."""
        return _ratio(self.run, self.ideal)

    @property
    def relative_lateness_of_fifo(self) -> float:
        return _ratio(self.fifo, self.ideal)

    @property
    def against_fifo(self) -> float:
        """How many times as stale as with FIFO the tables are."""
        return _ratio(self.run, self.fifo)


def what_if(
    workload: Workload, conditions: ScheduleConditions, policy: Policy, events: int
) -> PolicyComparison:
    """What comes of so many events under a policy."""
    warehouse = PretendWarehouse(workload, conditions, policy)
    seen = [(0.0, 0.0)]
    for number in range(_WINDOWS):
        warehouse.run(events * (number + 1) // _WINDOWS - events * number // _WINDOWS)
        seen.append((warehouse.now, warehouse.area()))
    ours = Run(warehouse.outcome(), _curve(seen, workload))
    ends = [at for at, _ in seen[1:]]
    return PolicyComparison(
        policy,
        ours,
        _same_time(PretendWarehouse(workload, conditions, FIFO), ends, workload),
        _same_time(PretendWarehouse(workload, conditions), ends, workload),
    )


def _same_time(warehouse: PretendWarehouse, ends: Sequence[float], workload: Workload) -> Run:
    seen = [(0.0, 0.0)]
    for end in ends:
        warehouse.run(until=end)
        seen.append((end, warehouse.area()))
    return Run(warehouse.outcome(), _curve(seen, workload))


def _curve(
    seen: Sequence[tuple[float, float]], workload: Workload
) -> tuple[tuple[float, float], ...]:
    weight = sum(table.priority for table in workload.tables) or 1.0
    return tuple(
        (end, (after - before) / (end - start) / weight)
        for (start, before), (end, after) in pairwise(seen)
        if end > start
    )


def _ratio(run: Run, other: Run) -> float:
    least = other.outcome.weighted_staleness
    return run.outcome.weighted_staleness / least if least > 0 else 1.0
