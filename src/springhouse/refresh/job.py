"""The order to start a refresh, as data. The scheduler does not know what a refresh does."""

from dataclasses import dataclass

from springhouse.units import Instant, Seconds


@dataclass(frozen=True, slots=True)
class Start:
    """An order: start the refresh of `table` on `track`.

    The refresh loads data up to the time stamp `until` (None: all). The oldest of this data arrived
    at `since`. `number` decided that this table starts, and `why` is the meaning of that number.
    """

    table: str
    track: int
    until: Instant | None = None
    since: Instant | None = None
    expected_seconds: Seconds = Seconds(0.0)
    number: float = 0.0
    why: str = ""
