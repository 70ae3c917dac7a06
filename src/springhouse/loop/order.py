"""What does the scheduler want to be started, and by which plans?

A start of the scheduler names a table and a track. An order names the plans, too: of the table, of
the refreshes upstream that it begins with, and of the tables that go along on the same track.
"""

from dataclasses import dataclass

from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.refresh.job import Start
from springhouse.units import Instant


@dataclass(frozen=True)
class Order:
    """What the scheduler wants to be started, by which plan.

    With `until` only data that had arrived by then is loaded. `along` are the plans of tables that
    read the same source and wait for the same records, or of views that read the same change.
    `first` are the refreshes upstream that the plan begins with.
    """

    plan: RefreshPlan
    start: Start
    until: Instant | None
    along: tuple[RefreshPlan, ...] = ()
    first: tuple[RefreshPlan, ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        """All tables that are refreshed by this order, in the order of their commits."""
        return tuple(each.table for each in (*self.first, self.plan, *self.along))
