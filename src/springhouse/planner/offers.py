"""In which ways can each table of a project be refreshed, and at what cost?

The planner asks `Offers`. A warehouse answers from its compiler and from finished refreshes, a
simulator from what it recorded.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from springhouse.planner.refresh_plan import OtherWay
from springhouse.planner.search.invocation_costs import Costs
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.way.choose_way import Decision
from springhouse.units import Seconds


@dataclass(frozen=True)
class Offered:
    """In which variants a table can be refreshed, and from which inputs alone.

    Where one of those is `alone`, the others are not looked at. A table `grows` if new rows of its
    inputs only bring it new rows.
    """

    inputs: tuple[str, ...]
    variants: tuple[WidgetVariant, ...]
    drivers: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    grows: bool = False


@dataclass(frozen=True)
class Offer:
    """The cheapest way to bring a view to some versions of its inputs, and the other ways.

    Without `seconds` nothing was learned yet; the `decision` behind it is there if one was made.
    """

    way: str
    seconds: Seconds | None
    others: tuple[OtherWay, ...] = ()
    decision: Decision | None = None


class Offers(Costs, Protocol):
    """What can be done for each table of a project, and at what cost.

    `learned` is what a scheduler knows of a table from its past alone.
    """

    learned: Callable[[str], Seconds | None]

    def offered(self, name: str) -> Offered:
        """The variants that a table has now."""
        ...

    def cheapest(self, name: str, versions: Mapping[str, int]) -> Offer | None:
        """The cheapest way to take all changes in; None where nothing is known."""
        ...

    def last_seconds(self, name: str) -> Sequence[float]:
        """What the last refreshes of a table took, the newest last."""
        ...
