"""Which refreshes does the scheduler want to start, and by which plans?

A start of the scheduler names a table and a track. An order also names the plans: of the table, of
the upstream refreshes that come first, and of the tables that go along on the same track.
"""

from dataclasses import dataclass

from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.refresh.job import Start
from springhouse.units import Instant


@dataclass(frozen=True)
class Order:
    """A start of the scheduler, with its plans.

    With `until`, a refresh loads only data that arrived by then. `along` are the plans of tables
    that read the same source and wait for the same records, or of views that read the same change.
    `first` are the upstream refreshes with which the plan begins.
    """

    plan: RefreshPlan
    start: Start
    until: Instant | None
    along: tuple[RefreshPlan, ...] = ()
    first: tuple[RefreshPlan, ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        """All tables that this order refreshes, in the order of their commits."""
        return tuple(each.table for each in (*self.first, self.plan, *self.along))
