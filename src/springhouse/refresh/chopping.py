"""How much is loaded at once?

A table that had to wait has much to load, and while it loads it blocks others. Chopping (001
section 3.4) lets one refresh load at most `c` periods of data; what is left waits for the next. As
the paper's introduction has it, data is loaded in multiples of its natural groupings: the cut lies
between two batches, and a single batch is never cut, however long it is.

The paper's jobs are long: loading three periods takes far longer than starting. Where it does not,
a cut would only start more often. So no part is shorter than what loads in the time of a start
(alpha / beta), nor than what a promise allows to wait.
"""

from math import inf

from springhouse.refresh.cost import Cost
from springhouse.refresh.pending import Pending
from springhouse.units import Instant


def chopped(pending: Pending, freshness: float, most: float) -> Instant:
    """The time stamp up to which one refresh loads, if it loads at most so many seconds of data."""
    newest = pending.newest
    return newest if newest - freshness <= most else pending.reach(Instant(freshness + most))


def most_at_once(
    periods: float | None, period: float, cost: Cost, allowance: float | None
) -> float:
    """How many seconds of data one refresh loads at most.

    >>> most_at_once(3.0, 100.0, Cost(alpha=1.0, beta=0.1), None)
    300.0
    >>> most_at_once(3.0, 1.0, Cost(alpha=1.0, beta=0.1), None)
    10.0
    """
    if periods is None or cost.beta <= 0.0:
        return inf
    return max(periods * period, cost.alpha / cost.beta, allowance or 0.0)
