"""What exactly does one refresh do, and why?

A plan is one immutable value. The planner makes it, the scheduler orders it among others, the lake
carries out exactly what it says, and `plan`, `explain` and the commit tell the same value.

Between ways that nearly cost the same, numbers of rows can't tell. Then the plan is `settled` when
its turn has come: with the same function, and a closer look at the keys that changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from springhouse.planner.provenance import Provenance
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.way.choose_way import Decision, Look, WayFacts, choose_way
from springhouse.planner.way.refresh_cost import WAYS
from springhouse.units import Instant, Seconds

NEVER = Instant(float("inf"))
"""Until when a plan holds that only an event can change."""


class OtherWay(NamedTuple):
    """A way that would have done the same, and what it was expected to take."""

    way: str
    seconds: float


@dataclass(frozen=True)
class OneScan:
    """A change of a table, between two versions, that is read once for several views.

    `saved` are the seconds that it should save all of them together (`planner.one_scan`).
    """

    table: str
    since: int
    until: int
    views: tuple[str, ...]
    saved: Seconds

    @property
    def saved_by_each(self) -> Seconds:
        """What it should save each of them."""
        return Seconds(self.saved / len(self.views))


@dataclass(frozen=True)
class RefreshPlan:
    """One refresh that is wanted.

    `since` is when the oldest data arrived that the table would reflect and does not. A view reads
    its inputs as of `versions`, and then `reaches` that provenance; with a `driver` it takes in
    the new rows of that input alone. `asked` are the pathways on which it is behind. `first` are
    the refreshes upstream that have to come before, in their order: with them it is one unit. A
    plan is `urgent` if another table's promise needs it, however much time its own promise leaves.
    The `decision` says why it goes that way. With a `scan` it is one job with other plans.
    """

    table: str
    reason: str
    since: Instant
    versions: Mapping[str, int] = field(default_factory=dict)
    way: str = "append"
    driver: str | None = None
    seconds: Seconds | None = None
    reaches: Provenance = Provenance()
    asked: tuple[str, ...] = ()
    first: "tuple[RefreshPlan, ...]" = ()
    urgent: bool = False
    others: tuple[OtherWay, ...] = ()
    decision: Decision | None = None
    scan: OneScan | None = None

    def __str__(self) -> str:
        return self.way + (f", driven by {self.driver}" if self.driver else "")

    @property
    def needs(self) -> tuple[str, ...]:
        """The tables that have to be refreshed before."""
        return tuple(each.table for each in self.first)

    def by(self, decision: Decision) -> Self:
        """The same refresh, in the way that was decided."""
        others = tuple(OtherWay(WAYS[each.way], each.seconds) for each in decision.alternatives)
        return replace(
            self,
            way=WAYS[decision.way],
            seconds=Seconds(decision.seconds) if decision.teaches else self.seconds,
            others=others or self.others,
            decision=decision,
        )

    @property
    def other_seconds(self) -> dict[str, float]:
        """What each of the other ways should take, for the record."""
        return {each.way: round(each.seconds, 3) for each in self.others}

    def whole(self) -> Self:
        """The same refresh, with all inputs taken in and the way still to be decided."""
        return replace(self, driver=None, decision=None)


def settled(plan: RefreshPlan, facts: WayFacts, look: Look | None = None) -> RefreshPlan:
    """The plan with a way that was decided by what is really stored.

    What rows alone decided stands, unless something turns out to be in the way.
    """
    known = plan.decision
    ways = {WidgetVariant.BATCH, *(each.way for each in facts.changes)}
    if known is not None and known.sure and facts.is_plain and known.way in ways:
        return plan
    return plan.by(choose_way(facts, look))
