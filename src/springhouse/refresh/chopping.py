"""How much is loaded at once?

A table that had to wait has much to load, and while it loads it blocks others. Chopping (001
section 3.4) lets one refresh load at most `c` periods of data; what is left waits for the next.
The cut is a time stamp, not a batch: whoever runs the refresh rounds it to what can be loaded, and
takes at least one batch, or nothing would move.
"""

from springhouse.units import Seconds


def chopped(delta: Seconds, period: Seconds, periods: float | None) -> Seconds:
    """The freshness delta of one refresh.

    >>> chopped(Seconds(500.0), period=Seconds(100.0), periods=3.0)
    300.0
    >>> chopped(Seconds(500.0), period=Seconds(100.0), periods=None)
    500.0
    """
    return delta if periods is None else Seconds(min(delta, periods * period))
