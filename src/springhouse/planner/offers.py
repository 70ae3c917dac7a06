"""In which ways can each table of a project be refreshed, and at what cost?

The planner asks `Offers`. A warehouse answers from its compiler and from finished refreshes, a
simulator from its records.
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
    """The variants in which a table can be refreshed, and the inputs that can drive a refresh.

    If a driver is `alone`, its refresh does not read the other inputs. A table `grows` if new rows
    of its inputs only add rows to it.
    """

    inputs: tuple[str, ...]
    variants: tuple[WidgetVariant, ...]
    drivers: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    grows: bool = False


@dataclass(frozen=True)
class Offer:
    """The cheapest way to bring a view to some versions of its inputs, and the other ways.

    `seconds` is None if no refresh has taught the cost yet. The `decision` is None if none was
    made.
    """

    way: str
    seconds: Seconds | None
    others: tuple[OtherWay, ...] = ()
    decision: Decision | None = None


class Offers(Costs, Protocol):
    """The possible refreshes of each table of a project, and their costs.

    `learned` is the knowledge of a scheduler about a table from its past alone.
    """

    learned: Callable[[str], Seconds | None]

    def offered(self, name: str) -> Offered:
        """The variants that a table has now."""
        ...

    def cheapest(self, name: str, versions: Mapping[str, int]) -> Offer | None:
        """The cheapest way to apply all changes; None if nothing is known."""
        ...

    def last_seconds(self, name: str) -> Sequence[float]:
        """The seconds of the last refreshes of a table, the newest last."""
        ...
