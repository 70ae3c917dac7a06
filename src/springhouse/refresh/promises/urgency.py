"""When must a refresh start to keep a promise?

A promise bounds the lag: a table has to reflect data from `since` by `since + promise`. So

    latest start  =  since + allowance - expected seconds - error margin
    release       =  latest start - wait margin

A table with a promise is released just in time, so that one refresh loads as much data as possible.
Between its release and its latest start it competes by weighted staleness like any other table.
After its latest start its promise is about to break, and the table goes first.

This holds for promises that can be kept (`feasible`), within the share of the tracks that they need
(`claims_again`). A table with a promise that can't be kept rests, too; then its weight decides.

The margins are learned: by how much refreshes exceeded the expected time, and how long released
tables waited for a track. The allowance is the promise less the time that tables downstream still
need, with their error margins: a source hurries for the strictest promise among its dependents.
(Wait margins do not count. Otherwise sources that hurry would make views wait, and views that wait
would make sources hurry even more.) Promises that come due together start earlier (`crowd`).
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

_UP, _DOWN = 0.5, 0.02
_SAFETY = 1.25


class Urgency(IntEnum):
    """How urgent its promise makes a waiting refresh; the smallest value starts first.

    An empty table comes first (`UNMADE`), because nobody can read it or its views. By benefit per
    second it would get no turn in an overload, because its cost grows with its waiting data.

    A promise that can still be kept goes before a broken one. Otherwise, in an overload, every
    promise would break by a little instead of a few by much. After both comes a promise that has
    time left, but not enough for all promises that come due with it (`CROWDED`).
    """

    UNMADE = 0
    ABOUT_TO_BREAK = 1
    BROKEN = 2
    CROWDED = 3
    NONE = 4


class Margin:
    """An estimate that observations rarely exceed: it rises fast and falls slowly."""

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
    """When a promise may claim a track again, after a refresh from `began` to `ended`.

    `use` is the share of a track that the promise needs. It may claim twice as much, but at most
    its need and half of the rest.

    >>> claims_again(began=100.0, ended=105.0, use=0.1)
    125.0
    >>> claims_again(began=100.0, ended=109.0, use=0.8)
    110.0
    """
    return began + (ended - began) / min(2.0 * use, (1.0 + min(use, 1.0)) / 2)


class Leeway(NamedTuple):
    """How long data may wait by all promises (`whole`), and by promises of tables `below` alone."""

    whole: float | None = None
    below: float | None = None


class DownstreamReader(NamedTuple):
    """A reader of a table: its allowance, the seconds of its refresh, and its error margin."""

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
    """How many of these seconds a reader leaves for its inputs.

    The error margin takes at most half: some time must remain for the tables upstream.

    >>> left_upstream(10.0, DownstreamReader(10.0, 4.0, margin=60.0))
    3.0
    """
    left = max(seconds - reader.seconds, 0.0)
    return left - min(reader.margin, left / 2)
