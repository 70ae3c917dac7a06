"""Which plans wait for their start, and which of them start together?

A plan that begins with upstream refreshes is a unit: all of it runs on one track. A base table
takes along the tables that wait for the same records of one source. A view takes along the views
that read the same change, if one scan for all of them pays.
"""

from collections.abc import Callable, Iterator, Sequence

from springhouse.loop.facts import Facts
from springhouse.planner.one_scan import pays_for_rest
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.units import Instant

ReadyAt = Callable[[str], Instant | None]
"""When a waiting refresh may start; None if none waits."""


class WantedPlans:
    """The plans that wait, by table."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._plans: dict[str, RefreshPlan] = {}

    def replace(self, plans: Sequence[RefreshPlan]) -> None:
        """Replace all waiting plans by these."""
        self._plans = {plan.table: plan for plan in plans}

    def __contains__(self, name: object) -> bool:
        return name in self._plans

    def __iter__(self) -> Iterator[str]:
        return iter(self._plans)

    def get(self, name: str) -> RefreshPlan | None:
        return self._plans.get(name)

    def pop(self, name: str) -> RefreshPlan:
        """Remove and return the plan of a table."""
        return self._plans.pop(name)

    def unit(self, name: str) -> RefreshPlan | None:
        """The unit that refreshes a table: its own plan, that of a reader, or None."""
        own = self._plans.get(name)
        if own is not None and own.first:
            return own
        return next((plan for plan in self._plans.values() if name in plan.needs), None)

    def along(self, name: str, troubled: set[str], now: Instant, ready_at: ReadyAt) -> list[str]:
        """The tables to refresh together with this one, except those whose last refresh failed."""
        if name in troubled:
            return []
        unit = self.unit(name)
        if unit is not None:
            return [each for each in (*unit.needs, unit.table) if each != name]
        if name in self._facts.project.views:
            return self._from_one_scan(name, troubled, now, ready_at)
        others = self._facts.observing.companions(name)
        return [each for each in others if each in self._plans and each not in troubled]

    def _from_one_scan(
        self, name: str, troubled: set[str], now: Instant, ready_at: ReadyAt
    ) -> list[str]:
        """The views that read the same change and are also due, if one scan of the change pays.

        A view that may still rest goes along if the scan saves more than the rest is worth. So
        views with the same promise stay together; otherwise they would drift apart.
        """
        planning, lead = self._facts.planning, self._plans[name]
        others = (
            plan
            for plan in self._plans.values()
            if plan.table not in {name, *troubled} and self.unit(plan.table) is None
        )
        job = planning.from_one_scan(lead, others)
        due = [
            plan
            for plan in job[1:]
            if pays_for_rest(plan, _rest_left(plan, ready_at(plan.table), now))
        ]
        return [plan.table for plan in planning.from_one_scan(lead, due)[1:]]


def _rest_left(plan: RefreshPlan, ready: Instant | None, now: Instant) -> float:
    """The share of a refresh's rest that is still left; 1 if no refresh waits."""
    if ready is None:
        return 1.0
    return min(max(ready - now, 0.0) / max(ready - plan.since, 1e-6), 1.0)
