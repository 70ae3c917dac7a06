"""How much staler are tables than they would be if nothing ever had to wait?

Relative lateness (001 section 4.1): the average weighted staleness of a run, divided by that of a
run with the same arrivals in which every refresh starts when it is released. The best value is 1. A
run may be slightly better, because a refresh that waited also loads the data that came meanwhile.
"""

from dataclasses import dataclass
from math import inf

from springhouse.refresh.policy import Policy
from springhouse.simulate.pretend_schedule import PretendWarehouse, ScheduleConditions
from springhouse.simulate.table_measures import ScheduleOutcome
from springhouse.simulate.workload import Workload


@dataclass(frozen=True)
class Compared:
    """A run, and the run without contention over the same time."""

    outcome: ScheduleOutcome
    ideal: ScheduleOutcome

    @property
    def relative_lateness(self) -> float:
        return self.outcome.weighted_staleness / self.ideal.weighted_staleness


def simulate(
    workload: Workload,
    conditions: ScheduleConditions,
    policy: Policy | None = None,
    events: float = inf,
    until: float = inf,
) -> ScheduleOutcome:
    """The outcome of a run of this many events; without a policy, nothing waits for a track."""
    warehouse = PretendWarehouse(workload, conditions, policy)
    warehouse.run(events, until)
    return warehouse.outcome()


def compared(
    workload: Workload, conditions: ScheduleConditions, policy: Policy, events: int
) -> Compared:
    """A run of this many events, beside the ideal."""
    outcome = simulate(workload, conditions, policy, events)
    return Compared(outcome, simulate(workload, conditions, until=outcome.seconds))
