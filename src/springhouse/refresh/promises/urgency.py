"""When must a refresh start so that a promise is kept?

A promise bounds the lag: data that arrived at `since` has to be reflected by `since + promise`. So

    latest start  =  since + allowance - expected seconds - error margin
    release       =  latest start - wait margin

A table with a promise is released just in time, so that one refresh loads as much data as can be.
Between its release and its latest start it competes by weighted staleness like any other table.
After its latest start its promise is about to break, and it goes first.

That counts for promises that can be kept (`feasible`), within the share of the tracks that they
need (`claims_again`). A promise that can't be kept still lets its table rest; then weight decides.

The margins are learned: how much longer refreshes took than expected, and how long released tables
waited for a track. The allowance is the promise less the time that tables downstream still need,
with their error margins: a source hurries for the strictest promise among its dependents. (Wait
margins do not count: sources that hurry make views wait, and then sources would hurry even more.)
Promises that come due together start earlier (`crowd`).
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

_UP, _DOWN = 0.5, 0.02
_SAFETY = 1.25


class Urgency(IntEnum):
    """How urgent a waiting refresh is because of its promise; the smaller starts first.

    A table that was never made comes first (`UNMADE`), because nobody can read it or its views. In
    an overload it would get no turn by benefit per second: its cost grows with its waiting data.

    A promise that can still be kept goes before a broken one. Else, in an overload, every promise
    would be broken by a little instead of a few by much. A promise that has time left, but not
    enough for all that come due with it (`CROWDED`), goes after those.
    """

    UNMADE = 0
    ABOUT_TO_BREAK = 1
    BROKEN = 2
    CROWDED = 3
    NONE = 4


class Margin:
    """An amount of time that is rarely exceeded: it rises fast and falls slowly."""

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

    `use` is the share of a track that it needs. It may claim twice as much, or half of the rest.

    >>> claims_again(began=100.0, ended=105.0, use=0.1)
    125.0
    >>> claims_again(began=100.0, ended=109.0, use=0.8)
    110.0
    """
    return began + (ended - began) / min(2.0 * use, (1.0 + min(use, 1.0)) / 2)


class Leeway(NamedTuple):
    """How long data may wait by all promises (`whole`), and by those of tables `below` alone."""

    whole: float | None = None
    below: float | None = None


class DownstreamReader(NamedTuple):
    """A reader of a table: its allowance, the seconds of its refresh, and their error margin."""

    allowance: float | None
    seconds: float
    margin: float = 0.0


def allowance(own: float | None, readers: Iterable[DownstreamReader]) -> float | None:
    """How long data may wait for a table, by its own promise and those of its readers.

    >>> allowance(60.0, [DownstreamReader(30.0, 4.0, margin=2.0), DownstreamReader(None, 9.0)])
    24.0
    """
    bounds = [left_upstream(each.allowance, each) for each in readers if each.allowance is not None]
    if own is not None:
        bounds.append(own)
    return min(bounds, default=None)


def left_upstream(seconds: float, reader: DownstreamReader) -> float:
    """How much of so many seconds a reader leaves for the tables that it reads.

    The error margin takes at most half: a few bad days must leave some time for the tables above.

    >>> left_upstream(10.0, DownstreamReader(10.0, 4.0, margin=60.0))
    3.0
    """
    left = max(seconds - reader.seconds, 0.0)
    return left - min(reader.margin, left / 2)
