"""What exactly does one refresh do, and why?

A plan is one immutable value. The planner makes it, the scheduler orders it among others, and the
lake carries out exactly what it says. `plan`, `explain` and the commit show the same value.

Numbers of rows can't decide between ways that cost nearly the same. Such a plan gets its way
when it starts (`settle_plan`): by the same function, with a closer look at the changed keys.
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
"""The end of a plan's validity if only an event can change the plan."""


class OtherWay(NamedTuple):
    """Another way to the same result, and its expected seconds."""

    way: str
    seconds: float


@dataclass(frozen=True)
class OneScan:
    """A change of a table, between two versions, that is read once for several views.

    `saved` are the seconds that this should save in all (`planner.one_scan`).
    """

    table: str
    since: int
    until: int
    views: tuple[str, ...]
    saved: Seconds

    @property
    def saved_by_each(self) -> Seconds:
        """The seconds that one scan should save each view."""
        return Seconds(self.saved / len(self.views))


@dataclass(frozen=True)
class RefreshPlan:
    """One refresh that is wanted.

    `since` is the arrival of the oldest data that the refresh would bring. A view reads its inputs
    as of `versions`, and then reflects `reaches`. With a `driver` it reads only the new rows of
    that input. `asked` are the pathways on which the view is behind. `first` are the refreshes
    upstream that have to come before, in their order: together they are one unit. A plan is
    `urgent` if the promise of another table needs it, even if its own promise leaves more time. The
    `decision` gives the reason for the way. With a `scan` the plan is one job with other plans.
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
        """The same refresh, in the way of this decision."""
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
        """The expected seconds of each other way, for the record."""
        return {each.way: round(each.seconds, 3) for each in self.others}

    def whole(self) -> Self:
        """The same refresh from all inputs, with the way still undecided."""
        return replace(self, driver=None, decision=None)


def settle_plan(plan: RefreshPlan, facts: WayFacts, look: Look | None = None) -> RefreshPlan:
    """The plan, with its way chosen from these facts.

    A decision that is sure by numbers of rows alone stays, unless the facts rule it out.
    """
    known = plan.decision
    ways = {WidgetVariant.BATCH, *(each.way for each in facts.changes)}
    if known is not None and known.sure and facts.is_plain and known.way in ways:
        return plan
    return plan.by(choose_way(facts, look))
