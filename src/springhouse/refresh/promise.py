"""When must a refresh start so that a promise is kept?

A promise bounds the lag: data that arrived at `since` has to be reflected by `since + promise`. So

    latest start  =  since + allowance - expected seconds - error margin
    release       =  latest start - wait margin

A table with a promise is released then and not before: just in time, with as much data in one
refresh as can be. Between its release and its latest start it competes by weighted staleness like
any other; after that its promise is about to break, and it outranks them.

The margins are learned: how much longer refreshes took than was expected, and how long released
ones waited for a track. The allowance is the promise less what tables further down still need: a
source hurries for the strictest promise among its dependents.
"""

from collections.abc import Iterable
from enum import IntEnum

from springhouse.units import Seconds

_UP, _DOWN = 0.5, 0.02
_SAFETY = 1.25


class Urgency(IntEnum):
    """What a waiting refresh is to its promise; the smaller starts first.

    One that can still be kept goes before one that is broken already, or in an overload every
    promise would be broken by a little instead of a few by much.
    """

    ABOUT_TO_BREAK = 0
    BROKEN = 1
    NONE = 2


class Margin:
    """An amount of time that was rarely exceeded: it rises fast and falls slowly."""

    __slots__ = ("_level",)

    def __init__(self) -> None:
        self._level = 0.0

    def observe(self, seconds: float) -> None:
        gap = max(seconds, 0.0) - self._level
        self._level += (_UP if gap > 0 else _DOWN) * gap

    @property
    def seconds(self) -> float:
        return _SAFETY * self._level


def allowance(own: Seconds | None, readers: Iterable[tuple[Seconds | None, float]]) -> float | None:
    """How long data may wait for a table: for its own promise, and for those of its readers.

    Each reader comes with its own allowance and the seconds that its refresh needs.

    >>> allowance(Seconds(60.0), [(Seconds(30.0), 4.0), (None, 9.0)])
    26.0
    """
    bounds = [max(bound - seconds, 0.0) for bound, seconds in readers if bound is not None]
    if own is not None:
        bounds.append(own)
    return min(bounds, default=None)
