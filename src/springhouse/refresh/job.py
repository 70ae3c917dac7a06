"""What is the order to start a refresh?

Nothing here knows what a refresh does.
"""

from dataclasses import dataclass

from springhouse.units import Instant, Seconds


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
