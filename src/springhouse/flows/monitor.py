"""How much time and memory did a flow use while it ran? (000 sections 6.2 and 7.2)

The paper's monitor looks at all queues in regular intervals. This monitor counts every pack that
enters or leaves a queue. So the average over time and the maximum are exact, without polling.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from springhouse.units import Instant, Seconds


@dataclass
class ActivityStatistics:
    """The work of one operator. 000 section 3.1 defines `selectivity` and `consumption_rate`."""

    rows_in: int = 0
    rows_out: int = 0
    packs_in: int = 0
    packs_out: int = 0
    turns: int = 0
    seconds: float = 0.0
    most_waiting: int = 0

    @property
    def selectivity(self) -> float | None:
        """Rows out per row in; None before the first row."""
        return self.rows_out / self.rows_in if self.rows_in else None

    @property
    def consumption_rate(self) -> float:
        """Rows that it removes from memory per second of work; negative if it adds rows."""
        return (self.rows_in - self.rows_out) / self.seconds if self.seconds > 0 else 0.0

    def as_json(self) -> dict[str, Any]:
        """The statistics for a commit's metadata."""
        return {
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "seconds": round(self.seconds, 6),
            "packs_in": self.packs_in,
            "most_waiting": self.most_waiting,
        }

    def add(self, other: "ActivityStatistics") -> None:
        """Add the statistics of the same operator in another task."""
        self.rows_in += other.rows_in
        self.rows_out += other.rows_out
        self.packs_in += other.packs_in
        self.packs_out += other.packs_out
        self.turns += other.turns
        self.seconds += other.seconds
        self.most_waiting = max(self.most_waiting, other.most_waiting)


@dataclass(frozen=True)
class FlowMeasurements:
    """The time and memory that a finished flow used. Memory is the packs in its queues."""

    seconds: Seconds
    average_packs: float
    most_packs: int
    average_bytes: float
    most_bytes: int
    activities: Mapping[str, ActivityStatistics]


@dataclass
class Monitor:
    """Counts how many packs and bytes wait in a flow.

    If there is a `curve`, the monitor adds every change to it as (moment, packs, bytes). If there
    is `invoked`, it adds every turn as (moment, activity). Appendix A is drawn from both.
    """

    began: Instant
    packs: int = 0
    size: int = 0
    most_packs: int = 0
    most_bytes: int = 0
    curve: list[tuple[Instant, int, int]] | None = None
    invoked: list[tuple[Instant, str]] | None = None
    _last: Instant = field(init=False)
    _pack_seconds: float = 0.0
    _byte_seconds: float = 0.0

    def __post_init__(self) -> None:
        self._last = self.began

    def count_packs(self, now: Instant, packs: int, size: int) -> None:
        """Record that this many packs and bytes more wait from now on; fewer if negative."""
        if now > self._last:
            past = now - self._last
            self._pack_seconds += past * self.packs
            self._byte_seconds += past * self.size
            self._last = now
        self.packs += packs
        self.size += size
        if self.packs > self.most_packs:
            self.most_packs = self.packs
        if self.size > self.most_bytes:
            self.most_bytes = self.size
        if self.curve is not None:
            self.curve.append((now, self.packs, self.size))

    def record_turn(self, now: Instant, activity: str) -> None:
        """Record that an activity began a turn."""
        if self.invoked is not None:
            self.invoked.append((now, activity))

    def measured(
        self, now: Instant, activities: Mapping[str, ActivityStatistics]
    ) -> FlowMeasurements:
        """The averages and maxima until now."""
        self.count_packs(now, 0, 0)
        seconds = max(now - self.began, 1e-9)
        return FlowMeasurements(
            Seconds(now - self.began),
            self._pack_seconds / seconds,
            self.most_packs,
            self._byte_seconds / seconds,
            self.most_bytes,
            activities,
        )
