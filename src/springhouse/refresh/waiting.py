"""What does the scheduler report about tables and waiting jobs?

The answers are plain data for `springhouse plan`, `springhouse status` and simulators.
"""

from dataclasses import dataclass

from springhouse.refresh.table.load_cost import LoadCost
from springhouse.units import Instant, Seconds


@dataclass(frozen=True)
class Waiting:
    """A waiting job, and the number that decides when it starts.

    `released` is when the job may start; a promise may let it rest until then. `homes` are the home
    tracks of its lane.
    """

    table: str
    since: Instant
    released: Instant
    freshness_delta: Seconds
    expected_seconds: Seconds
    number: float
    why: str
    homes: tuple[int, ...]


@dataclass(frozen=True)
class Known:
    """What the scheduler knows of a table."""

    freshness: Instant | None
    priority: float
    period_seconds: Seconds
    cost: LoadCost
    expected_seconds: Seconds
    error_seconds: Seconds
    homes: tuple[int, ...]
    track: int | None
