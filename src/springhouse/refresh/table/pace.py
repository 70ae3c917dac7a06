"""How often does new data come?

The declared period of a base table says how often its source is asked. Data may come more seldom.
Then utilisation, deadlines and chopping depend on the real pace of the data. The pace is the mean
gap between arrivals. Old gaps fade, and a long silence (a night) counts only as a few gaps. The
pace is never faster than the declared period.
"""

from springhouse.units import Instant, Seconds

_WEIGHT = 0.1
_TRUSTED_AFTER = 3
_SILENCE = 4.0


class Pace:
    """The gaps between one table's arrivals."""

    __slots__ = ("_gap", "_gaps", "_last")

    def __init__(self) -> None:
        self._last: float | None = None
        self._gap = 0.0
        self._gaps = 0

    def arrived(self, now: float) -> None:
        last, self._last = self._last, now
        if last is not None and now > last:
            self.saw(now - last)

    def saw(self, gap: float) -> None:
        """Learn a gap between two arrivals, or between two past refreshes."""
        if self._gaps:
            gap = min(gap, _SILENCE * self._gap)
        self._gaps += 1
        self._gap += max(_WEIGHT, 1.0 / self._gaps) * (gap - self._gap)

    def period(self, declared: float) -> Seconds:
        """The declared period, or the mean gap if data comes more seldom."""
        if self._gaps < _TRUSTED_AFTER:
            return Seconds(declared)
        return Seconds(max(declared, self._gap))

    def interval(self, usual: float) -> float:
        """The mean gap; `usual` until it is known."""
        return usual if self._gaps < _TRUSTED_AFTER else self._gap

    def next_arrival(self, period: float) -> Instant | None:
        """When the next data is expected."""
        return None if self._last is None else Instant(self._last + period)
