"""What did a flow take while it ran? (000 sections 6.2 and 7.2)

The paper's monitor looks at all queues in regular intervals. This one counts every pack that
comes or goes, so the average over time and the maximum are exact, and nothing has to look.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from springhouse.units import Instant, Seconds


@dataclass
class ActivityStatistics:
    """What one operator did. `selectivity` and `consumption_rate` are those of 000 section 3.1."""

    rows_in: int = 0
    rows_out: int = 0
    packs_in: int = 0
    packs_out: int = 0
    turns: int = 0
    seconds: float = 0.0
    most_waiting: int = 0

    @property
    def selectivity(self) -> float | None:
        """Rows out per row in; None before the first."""
        return self.rows_out / self.rows_in if self.rows_in else None

    @property
    def consumption_rate(self) -> float:
        """Rows that vanish from memory per second of its work; negative if it makes more."""
        return (self.rows_in - self.rows_out) / self.seconds if self.seconds > 0 else 0.0

    def as_json(self) -> dict[str, Any]:
        """For a commit's metadata."""
        return {
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "seconds": round(self.seconds, 6),
            "packs_in": self.packs_in,
            "most_waiting": self.most_waiting,
        }

    def add(self, other: "ActivityStatistics") -> None:
        """Join what the same operator did in another task."""
        self.rows_in += other.rows_in
        self.rows_out += other.rows_out
        self.packs_in += other.packs_in
        self.packs_out += other.packs_out
        self.turns += other.turns
        self.seconds += other.seconds
        self.most_waiting = max(self.most_waiting, other.most_waiting)


@dataclass(frozen=True)
class FlowMeasurements:
    """What a finished flow took: memory is what waited in its queues."""

    seconds: Seconds
    average_packs: float
    most_packs: int
    average_bytes: float
    most_bytes: int
    activities: Mapping[str, ActivityStatistics]


@dataclass
class Monitor:
    """Follows how many packs and bytes wait in a flow.

    With `curve` given, every change is kept as (moment, packs, bytes), and with `invoked` every
    turn as (moment, activity): Appendix A is drawn from them.
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
        """That many packs and bytes more, or fewer, wait since now."""
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
        """An activity was given a turn."""
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
