"""What exactly does one refresh do, and why?

A plan is one immutable value. The planner makes it, the scheduler orders it among others, the lake
carries out exactly what it says, and `plan`, `explain` and the commit tell the same value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from springhouse.planner.provenance import Provenance
from springhouse.units import Instant, Seconds


class OtherWay(NamedTuple):
    """A way that would have done the same, and what it was expected to take."""

    way: str
    seconds: float


@dataclass(frozen=True)
class RefreshPlan:
    """One refresh that is wanted.

    `since` is when the oldest data arrived that the table would reflect and does not. A view reads
    its inputs as of `versions`, and then `reaches` that provenance; with a `driver` it takes in
    the new rows of that input alone. `asked` are the pathways on which it is behind. `first` are
    tables that have to be refreshed before. A plan is `urgent` if another table's promise needs it,
    however much time its own promise leaves. If the way `is_settled`, no other way comes near it.
    """

    table: str
    reason: str
    since: Instant
    versions: Mapping[str, int] = field(default_factory=dict)
    way: str = "append"
    is_settled: bool = False
    driver: str | None = None
    seconds: Seconds | None = None
    reaches: Provenance = Provenance()
    asked: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    urgent: bool = False
    others: tuple[OtherWay, ...] = ()

    def __str__(self) -> str:
        return self.way + (f", driven by {self.driver}" if self.driver else "")
