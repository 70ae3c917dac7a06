"""What is a refresh that is wanted, and what is the order to start it?

A job says which table wants to be refreshed, since when data waits for it, and from when it may
start (a refresh that failed has to wait). Decisions are made from jobs alone: nothing here knows
what a refresh does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from springhouse.units import Instant, Seconds


@dataclass(frozen=True)
class Job:
    """A refresh that is wanted: `since` is when the oldest data that it would reflect arrived."""

    table: str
    since: Instant
    reason: str
    priority: float = 1.0
    released: Instant = Instant(0.0)


@dataclass(frozen=True, slots=True)
class Start:
    """An order: start the refresh of `table` on `track`.

    It is to load what is there up to the time stamp `until` (None: all), of which the oldest
    arrived at `since`. `number` is what decided, and `why` what that number is.
    """

    table: str
    track: int
    until: Instant | None = None
    since: Instant | None = None
    expected_seconds: Seconds = Seconds(0.0)
    number: float = 0.0
    why: str = ""


class Decide(Protocol):
    """Which of the waiting jobs start now, and where; at most one for each free track."""

    def __call__(
        self, waiting: Sequence[Job], free_tracks: Sequence[int], now: Instant
    ) -> list[Start]: ...
