"""When must a refresh start so that a promise is kept?

A promise bounds the lag: data that arrived at `since` has to be reflected by `since + promise`. So

    latest start  =  since + allowance - expected seconds - error margin
    release       =  latest start - wait margin

A table with a promise is released then and not before: just in time, with as much data in one
refresh as can be. Between its release and its latest start it competes by weighted staleness like
any other; after that its promise is about to break, and it goes first.

That is so for promises that can be kept (`feasible`), within the share of the tracks that they need
(`claims_again`). One that can't be kept still lets its table rest, and then its weight decides.

The margins are learned: how much longer refreshes took than was expected, and how long released
ones waited for a track. The allowance is the promise less what tables further down still need, with
the margin for errors: a source hurries for the strictest promise among its dependents. (Not with
the one for waits: sources that hurry make views wait, which would make sources hurry more.)
Promises that come due together start earlier, see `crowd`.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

_UP, _DOWN = 0.5, 0.02
_SAFETY = 1.25


class Urgency(IntEnum):
    """What a waiting refresh is to its promise; the smaller starts first.

    What has never been made is nothing that anybody could read, nor could what is made of it. It
    needs its turn once, and in an overload it would not get it by benefit per second: what it costs
    grows with what waits for it.

    One that can still be kept goes before one that is broken already, or in an overload every
    promise would be broken by a little instead of a few by much. One that has time left, but not
    for all that come due with it, goes after those.
    """

    UNMADE = 0
    ABOUT_TO_BREAK = 1
    BROKEN = 2
    CROWDED = 3
    NONE = 4


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


def claims_again(began: float, ended: float, use: float) -> float:
    """When a promise may claim a track again, after a refresh that took from `began` to `ended`.

    `use` is the share of a track that it needs. It has twice as much, or half of what is left.

    >>> claims_again(began=100.0, ended=105.0, use=0.1)
    125.0
    >>> claims_again(began=100.0, ended=109.0, use=0.8)
    110.0
    """
    return began + (ended - began) / min(2.0 * use, (1.0 + min(use, 1.0)) / 2)


class Leeway(NamedTuple):
    """How long data may wait for a table (`whole`), and if only those `below` had promises."""

    whole: float | None = None
    below: float | None = None


class DownstreamReader(NamedTuple):
    """Who reads a table: its allowance, what its refresh needs, and how wrong that may be."""

    allowance: float | None
    seconds: float
    margin: float = 0.0


def allowance(own: float | None, readers: Iterable[DownstreamReader]) -> float | None:
    """How long data may wait for a table: for its own promise, and for those of its readers.

    >>> allowance(60.0, [DownstreamReader(30.0, 4.0, margin=2.0), DownstreamReader(None, 9.0)])
    24.0
    """
    bounds = [left_upstream(each.allowance, each) for each in readers if each.allowance is not None]
    if own is not None:
        bounds.append(own)
    return min(bounds, default=None)


def left_upstream(seconds: float, reader: DownstreamReader) -> float:
    """What is left of so much time for what a reader reads, when it took what it needs.

    The margin takes at most half: a few bad days must not leave nothing for the tables above.

    >>> left_upstream(10.0, DownstreamReader(10.0, 4.0, margin=60.0))
    3.0
    """
    left = max(seconds - reader.seconds, 0.0)
    return left - min(reader.margin, left / 2)
