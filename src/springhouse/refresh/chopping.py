"""How much is loaded at once?

A table that had to wait has much to load, and while it loads it blocks others. Chopping (001
section 3.4) lets one refresh load at most `c` periods of data; what is left waits for the next. As
the paper's introduction has it, data is loaded in multiples of its natural groupings: the cut lies
between two batches, and a single batch is never cut, however long it is.
"""

from springhouse.refresh.pending import Pending
from springhouse.units import Instant


def chopped(pending: Pending, freshness: float, period: float, periods: float | None) -> Instant:
    """The time stamp up to which one refresh loads."""
    newest = pending.newest
    if periods is None or newest - freshness <= periods * period:
        return newest
    return pending.reach(Instant(freshness + periods * period))
