"""How fresh were the tables of a pretend world, on average and at worst?

The sum of the staleness is exact (001 section 2.3): between two refreshes staleness is a straight
line. The lag is how long the oldest data that is not loaded has waited; it is 0 while no data
waits. A promise is kept while the lag is not above it.
"""

from dataclasses import dataclass

from springhouse.refresh.staleness import StalenessOverTime
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.units import Instant, Seconds


@dataclass(frozen=True)
class TableOutcome:
    """The measures of one table; `kept_share` is None without a promise."""

    name: str
    priority: float
    freshness: Instant
    average_staleness: Seconds
    worst_lag: Seconds
    promise_seconds: Seconds | None
    kept_share: float | None
    refreshes: int


@dataclass(frozen=True)
class ScheduleOutcome:
    """The outcome of one run; `work_seconds` is the time of all refreshes together."""

    seconds: float
    events: int
    work_seconds: Seconds
    tables: tuple[TableOutcome, ...]

    @property
    def weighted_staleness(self) -> float:
        """The average staleness of the tables, weighted by their priorities."""
        weight = sum(table.priority for table in self.tables) or 1.0
        return sum(table.priority * table.average_staleness for table in self.tables) / weight

    @property
    def refreshes(self) -> int:
        return sum(table.refreshes for table in self.tables)

    @property
    def kept_share(self) -> float | None:
        """The mean share of time in which tables with a promise kept it."""
        shares = [table.kept_share for table in self.tables if table.kept_share is not None]
        return sum(shares) / len(shares) if shares else None


class TableMeasures:
    """Measures one table while the world runs."""

    __slots__ = (
        "_allowed",
        "_at",
        "_curve",
        "_late",
        "_promise",
        "_table",
        "_worst",
        "freshness",
        "refreshes",
    )

    def __init__(self, table: TableProfile, freshness: Instant) -> None:
        self._table = table
        self._curve = StalenessOverTime(freshness, Instant(0.0))
        self._promise = table.promise_seconds
        self._at = 0.0
        self._worst = 0.0
        self._allowed = 0.0
        self._late = 0.0
        self.freshness = freshness
        self.refreshes = 0

    def allow(self, seconds: float) -> None:
        """Count only the staleness above this in the areas."""
        self._allowed = seconds
        self._curve = StalenessOverTime(Instant(self.freshness + seconds), Instant(0.0))

    def refreshed(self, now: Instant, freshness: Instant, since: Instant) -> None:
        """A refresh has loaded data up to `freshness`, of which the oldest arrived at `since`."""
        self._worst = max(self._worst, now - since)
        self._late += self._late_until(now, since)
        self._curve.refreshed(now, Instant(freshness + self._allowed))
        self._at = now
        self.freshness = freshness
        self.refreshes += 1

    def area(self, now: Instant) -> float:
        """The weighted staleness, integrated over time."""
        return self._table.priority * self._curve.area(now)

    def outcome_at(self, now: Instant, since: Instant | None) -> TableOutcome:
        """The measures until now; `since` is when the oldest waiting data arrived, if any waits."""
        late, worst = self._late, self._worst
        if since is not None:
            worst = max(worst, now - since)
            late += self._late_until(now, since)
        return TableOutcome(
            self._table.name,
            self._table.priority,
            self.freshness,
            Seconds(self._curve.average(now)),
            Seconds(worst),
            self._promise,
            None if self._promise is None else 1.0 - (late / now if now > 0 else 0.0),
            self.refreshes,
        )

    def _late_until(self, now: float, since: float) -> float:
        """The seconds since the last refresh in which the promise was broken."""
        if self._promise is None:
            return 0.0
        return max(now - max(self._at, since + self._promise), 0.0)
