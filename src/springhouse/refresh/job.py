"""What is a refresh that is wanted, and what is the order to start it?

A job says which table wants to be refreshed, since when data waits for it, and why. Nothing here
knows what a refresh does.
"""

from dataclasses import dataclass

from springhouse.units import Instant, Seconds


@dataclass(frozen=True)
class Job:
    """A refresh that is wanted: `since` is when the oldest data that it would reflect arrived.

    One that is `urgent` is needed by a promise of another table, however much time its own leaves.
    `seconds` are what it takes, where somebody knows better than from its past alone.
    """

    table: str
    since: Instant
    reason: str
    urgent: bool = False
    seconds: Seconds | None = None


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
