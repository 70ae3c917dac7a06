"""How much data does one refresh load?

A table that had to wait has much data to load, and its long refresh blocks other tables. Chopping
(paper 001, section 3.4) lets one refresh load at most `c` periods of data; the rest waits for the
next refresh. Data is loaded in its natural groupings, as the paper's introduction says: a cut lies
between two batches, and a single batch is never cut, however long it is.

Every part needs a start of its own, and in an overload this time is missing. With parts of a fixed
length, four tables of alpha 4 and beta 0.4 on two tracks fall behind without end, although they
keep up if each refresh loads everything. So a cut has to pay, unless the user chooses the paper's
rule (`fixed`). A part of x seconds of data starts once per x seconds. For E(x) seconds it blocks
better tables, whose priorities add up to W per track. A second of a track is worth `price`
elsewhere. Both costs per second of data,

    (price × alpha  +  W × (alpha + beta x)² / 2) / x,

are least at x = sqrt(alpha² + 2 price alpha / W) / beta. If no table is better, nothing is cut.
The starts of all parts together have to fit into the time that is left after loading the data. So
cuts never cause a backlog.
"""

from dataclasses import dataclass
from math import inf, sqrt

from springhouse.refresh.table.load_cost import LoadCost
from springhouse.refresh.table.pending import PendingBatches
from springhouse.units import Instant

_SPARE = 8.0
"""The starts of parts take at most an eighth of the time that is left after loading the data."""

_AMPLE, _HOPELESS = 0.85, 1.15
"""Below the first share of the tracks there is time for more starts. Above the second share there
is none in any case, because a backlog grows. In between, starts may take little time, because
shares are estimates.
"""

_SCARCE = 32.0
"""In between, the starts of a table's parts take at most 1 / `_SCARCE` of the time to load its
data. Without any cuts, a table of no weight that had waited for an hour blocked a track for half an
hour.
"""


@dataclass(frozen=True)
class Chopping:
    """Parts of so many periods, or longer if that pays; `fixed` always cuts, as in the paper."""

    periods: float = 3.0
    fixed: bool = False

    def __str__(self) -> str:
        return f"{self.periods:g}{' fixed' * self.fixed}"

    def most(
        self, period: float, cost: LoadCost, allowance: float | None, pays: float = 0.0
    ) -> float:
        """The most seconds of data that one refresh loads; `pays` is the shortest part that pays.

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
    """The seconds of data to load at once so that starts and blocked tables cost least.

    `price` is the benefit of a second of a track elsewhere. `blocked` are the priorities, per
    track, of better tables that may come while the refresh runs. `share` is the share of the tracks
    that loading the data of all tables takes.

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
    # The starts must leave time to load new data, on the track of this table and on all tracks.
    # Otherwise the cuts cause a backlog.
    part = max(part, _SPARE * cost.alpha / (1.0 - cost.beta))
    if share < _AMPLE:
        return max(part, _SPARE * cost.alpha / cost.beta * share / (1.0 - share))
    return part if share > _HOPELESS else max(part, _SCARCE * cost.alpha / cost.beta)


def chop(pending: PendingBatches, freshness: float, most: float) -> Instant:
    """The time stamp up to which one refresh loads, if it loads at most so many seconds of data."""
    newest = pending.newest
    return newest if newest - freshness <= most else pending.reach(Instant(freshness + most))
