"""How old is what a table shows, and how long has new data waited for it?

Two measures, both shown. Staleness is 001 section 2.3: now less the freshness of the table, so it
grows even when nothing new arrives. Lag is 004's: how long the oldest data has waited that arrived
and is not reflected; 0 when the table is up to date. Promises bound the lag.
"""

from collections.abc import Iterable

from springhouse.units import Instant, Seconds


def staleness(freshness: Instant | None, now: Instant) -> Seconds | None:
    """`S(t) = t - F(t)`; None for a table that holds nothing yet."""
    return None if freshness is None else Seconds(max(now - freshness, 0.0))


def trailing_edge(freshness: Iterable[Instant | None]) -> Instant | None:
    """The freshness of what is derived from several tables: that of the least fresh one."""
    known = [instant for instant in freshness if instant is not None]
    return min(known, default=None)


def lag(waiting_since: Iterable[Instant], now: Instant) -> Seconds:
    """How long the oldest of the data that arrived then has waited."""
    return Seconds(max((now - since for since in waiting_since), default=0.0))


def kept_share(promise: Seconds, lags: Iterable[Seconds]) -> float:
    """The share of observations at which the promise was kept; 1 if there were none.

    >>> kept_share(Seconds(10.0), [Seconds(1.0), Seconds(12.0), Seconds(9.0), Seconds(10.0)])
    0.75
    """
    seen = [lag <= promise for lag in lags]
    return sum(seen) / len(seen) if seen else 1.0
