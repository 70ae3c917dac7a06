"""How stale is a table, and how long has new data waited for it?

There are two measures. Staleness is that of paper 001 (section 2.3): now less the freshness of the
table. It grows even when no new data arrives. Lag is that of paper 004: for how long the oldest
data has waited that arrived and that the table does not reflect. It is 0 when the table is up to
date. Promises bound the lag.

The scheduler minimises the weighted staleness over time, `S = Σ p ∫ S(t) dt`. Between two refreshes
the curve is a straight line, so the area is exact: `((b - F)² - (a - F)²) / 2`.
"""

from collections.abc import Iterable

from springhouse.units import Instant, Seconds


def staleness(freshness: Instant | None, now: Instant) -> Seconds | None:
    """`S(t) = t - F(t)`; None for a table that holds nothing yet."""
    return None if freshness is None else Seconds(max(now - freshness, 0.0))


def trailing_edge(freshness: Iterable[Instant | None]) -> Instant | None:
    """The freshness of the least fresh table; tables that hold nothing yet do not count."""
    return min((instant for instant in freshness if instant is not None), default=None)


def lag(waiting_since: Iterable[Instant], now: Instant) -> Seconds:
    """How long the oldest waiting data has waited."""
    return Seconds(max((now - since for since in waiting_since), default=0.0))


def kept_share(promise: Seconds, lags: Iterable[Seconds]) -> float:
    """The share of observations at which the promise was kept; 1 without any.

    >>> kept_share(Seconds(10.0), [Seconds(1.0), Seconds(12.0), Seconds(9.0), Seconds(10.0)])
    0.75
    """
    observations = [lag <= promise for lag in lags]
    return sum(observations) / len(observations) if observations else 1.0


class StalenessOverTime:
    """The weighted area under one table's staleness, refresh by refresh.

    >>> table = StalenessOverTime(freshness=Instant(0.0), since=Instant(0.0))
    >>> table.refreshed(Instant(5.0), freshness=Instant(3.0))
    >>> table.at(Instant(5.0)), table.area(Instant(5.0))
    (2.0, 12.5)
    """

    __slots__ = ("_area", "_from", "freshness", "priority", "since")

    def __init__(self, freshness: Instant, since: Instant, priority: float = 1.0) -> None:
        self.freshness = freshness
        self.since = since
        self.priority = priority
        self._from = since
        self._area = 0.0

    def refreshed(self, now: Instant, freshness: Instant) -> None:
        """Note that the table became fresher; it never becomes less fresh."""
        self._area += self._since_refreshed(now)
        self._from = now
        self.freshness = max(self.freshness, freshness)

    def at(self, now: Instant) -> Seconds:
        return Seconds(max(now - self.freshness, 0.0))

    def area(self, now: Instant) -> float:
        """`p ∫ S(t) dt` from the beginning until now."""
        return self.priority * (self._area + self._since_refreshed(now))

    def average(self, now: Instant) -> float:
        """The weighted staleness, averaged over time."""
        return self.area(now) / (now - self.since) if now > self.since else 0.0

    def _since_refreshed(self, now: Instant) -> float:
        before, after = max(self._from - self.freshness, 0.0), max(now - self.freshness, 0.0)
        return (after * after - before * before) / 2


def share_outside(
    intervals: Iterable[tuple[float, float]], begin: float, end: float
) -> float | None:
    """The share of the time from `begin` to `end` that lies in none of the intervals.

    >>> share_outside([(1.0, 3.0), (2.0, 4.0), (9.0, 30.0)], 0.0, 10.0)
    0.6
    """
    if end <= begin:
        return None
    inside, reached = 0.0, begin
    for first, last in sorted(intervals):
        first, last = max(first, reached), min(last, end)
        if last > first:
            inside += last - first
            reached = last
    return 1.0 - inside / (end - begin)
