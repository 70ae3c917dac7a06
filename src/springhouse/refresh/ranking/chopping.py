"""How much is loaded at once?

A table that had to wait has much to load, and while it loads it blocks others. Chopping (001
section 3.4) lets one refresh load at most `c` periods of data; what is left waits for the next. As
the paper's introduction has it, data is loaded in multiples of its natural groupings: the cut lies
between two batches, and a single batch is never cut, however long it is.

Every part starts once more, and in an overload that time is missing: with parts of a fixed length
four tables of alpha 4 and beta 0.4 on two tracks fall behind without end, although they keep up if
each refresh takes all that waits. So, unless the paper's way is asked for (`fixed`), a cut has to
pay. A part of x seconds of data starts once per x, and blocks for E(x) those that are worth more,
W in sum per track; a second of a track is worth `price` elsewhere. What both cost per second of
data,

    (price × alpha  +  W × (alpha + beta x)² / 2) / x,

is least at x = sqrt(alpha² + 2 price alpha / W) / beta. If nothing is worth more, nothing is
cut. The starts of all parts together must fit into what loading the data leaves of the tracks:
then no backlog grows that would not grow without a cut.
"""

from dataclasses import dataclass
from math import inf, sqrt

from springhouse.refresh.table.load_cost import LoadCost
from springhouse.refresh.table.pending import PendingBatches
from springhouse.units import Instant

_SPARE = 8.0
"""The starts of parts take at most an eighth of the time that loading the data leaves."""

_AMPLE, _HOPELESS = 0.85, 1.15
"""Up to the first share there is time for more starts. From the second on there is none anyway: a
backlog grows whatever is done. In between, for shares are estimates, starts may take little.
"""

_SCARCE = 32.0
"""There the starts of a table's parts take at most this part of the time that its data takes. With
no cuts at all, a table of no weight that had waited for an hour blocked a track for half of one.
"""


@dataclass(frozen=True)
class Chopping:
    """Parts of so many periods, or what pays; `fixed` is the paper's way, which always cuts."""

    periods: float = 3.0
    fixed: bool = False

    def __str__(self) -> str:
        return f"{self.periods:g}{' fixed' * self.fixed}"

    def most(
        self, period: float, cost: LoadCost, allowance: float | None, pays: float = 0.0
    ) -> float:
        """How many seconds of data one refresh loads at most; `pays` is the least that pays.

        >>> Chopping(3.0).most(100.0, LoadCost(alpha=1.0, beta=0.1), None)
        300.0
        >>> Chopping(3.0).most(1.0, LoadCost(alpha=1.0, beta=0.1), None)
        10.0
        """
        if cost.beta <= 0.0:
            return inf
        rested = (allowance or 0.0) if self.fixed else 0.0
        return max(self.periods * period, cost.alpha / cost.beta, rested, pays)


def part_that_pays(cost: LoadCost, price: float, blocked: float, share: float) -> float:
    """How many seconds of data to load at once, so that starts and blocked tables cost least.

    `price` is what a second of a track brings elsewhere, `blocked` the priorities, per track, of
    those that may come while the refresh runs and are worth more, and `share` what loading the data
    of all tables takes of the tracks.

    >>> part_that_pays(LoadCost(1.0, 0.1), price=12.0, blocked=8.0, share=0.2)
    20.0
    >>> part_that_pays(LoadCost(1.0, 0.1), price=12.0, blocked=8.0, share=1.0)
    320.0
    >>> part_that_pays(LoadCost(1.0, 0.1), price=12.0, blocked=0.0, share=0.2)
    inf
    """
    if blocked <= 0.0 or not 0.0 < cost.beta < 1.0:
        return inf
    part = sqrt(cost.alpha**2 + 2.0 * price * cost.alpha / blocked) / cost.beta
    # More starts must leave time to load what comes, or a backlog grows that would not: on the
    # track of this table, and on all of them.
    part = max(part, _SPARE * cost.alpha / (1.0 - cost.beta))
    if share < _AMPLE:
        return max(part, _SPARE * cost.alpha / cost.beta * share / (1.0 - share))
    return part if share > _HOPELESS else max(part, _SCARCE * cost.alpha / cost.beta)


def chopped(pending: PendingBatches, freshness: float, most: float) -> Instant:
    """The time stamp up to which one refresh loads, if it loads at most so many seconds of data."""
    newest = pending.newest
    return newest if newest - freshness <= most else pending.reach(Instant(freshness + most))
