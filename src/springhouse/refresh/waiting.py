"""What does a scheduler tell of its tables and of what waits?

Plain data, for whoever shows it: `springhouse plan`, `springhouse status`, a simulator.
"""

from dataclasses import dataclass

from springhouse.refresh.table.load_cost import LoadCost
from springhouse.units import Instant, Seconds


@dataclass(frozen=True)
class Waiting:
    """A job that waits: what it would do, and the number that decides when.

    `released` is when it may start, at the latest because of a promise; `homes` are the tracks
    that it is meant for.
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
