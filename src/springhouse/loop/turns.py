"""What happens in one turn of the loop?

    observe     ask the sources that are due, and look at the logs
    plan        plan the views again whose inputs moved
    schedule    pass plans to the scheduler; some start now, on free tracks
    note        once a second, how late each table is

`Turns` has no clock and no threads. Its caller carries out the orders and reports how they ended: a
warehouse on threads, a simulator by an event that ends later. The next turn follows after `pause`,
or as soon as a refresh ends.
"""

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from springhouse.loop.facts import Facts
from springhouse.loop.order import Order
from springhouse.loop.schedule import Schedule
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.refresh.policy import Policy
from springhouse.refresh.staleness import kept_share, lag
from springhouse.units import Instant, Seconds

_DAY = 86_400
_OBSERVED_EVERY = Seconds(1.0)
_SHORTEST_PAUSE = 0.02


@dataclass
class FreshnessRecord:
    """The lag and the staleness of one table while `run` ran, second by second, for the last day.

    Staleness counts from arrival: how long ago the newest data arrived that the table reflects.
    """

    lags: deque[Seconds] = field(default_factory=lambda: deque(maxlen=_DAY))
    staleness: deque[Seconds] = field(default_factory=lambda: deque(maxlen=_DAY))

    @property
    def worst(self) -> Seconds:
        """The longest lag."""
        return max(self.lags, default=Seconds(0.0))

    def share(self, promise: Seconds | None) -> float | None:
        """The share of time for which the lag was within a promise; None without a promise."""
        return None if promise is None else kept_share(promise, self.lags)


class Turns:
    """The loop of one warehouse."""

    def __init__(
        self,
        facts: Facts,
        policy: Policy,
        tracks: int,
        now: Instant,
        owns: Callable[[str], bool] = lambda table: True,
    ) -> None:
        self.schedule = Schedule(facts, policy, tracks, now)
        self.kept = {name: FreshnessRecord() for name in facts.graph.order}
        self.backlog = Seconds(0.0)
        self._facts = facts
        self._owns = owns
        self._observed = now

    def turn(
        self, now: Instant, running: Collection[str], free_tracks: Collection[int]
    ) -> list[Order]:
        """The refreshes to start now; they count as under way until they finish or fail."""
        self._facts.observing.poll(now)
        self.schedule.hear(self._wanted(now, running), now)
        orders = self.schedule.starts(free_tracks, now)
        if now - self._observed >= _OBSERVED_EVERY:
            self._observed = now
            self._observe(now)
        return orders

    def pause(self, now: Instant) -> Seconds:
        """The seconds until a source is due, or until a waiting refresh may have to start."""
        change = self.schedule.next_change(now)
        until_poll = self._facts.observing.next_poll(now)
        until_change = until_poll if change is None else change - now
        return Seconds(max(min(until_poll, until_change), _SHORTEST_PAUSE))

    def _wanted(self, now: Instant, running: Collection[str]) -> list[RefreshPlan]:
        """The plans for tables of this node that do not run; a unit waits for all its tables."""
        with self._facts.lock:
            self._facts.planning.look()
            plans = self._facts.planning.plans(now)
        plan_of = {p.table: p for p in plans if p.table not in running and self._owns(p.table)}
        return [plan for plan in plan_of.values() if all(each in plan_of for each in plan.needs)]

    def _observe(self, now: Instant) -> None:
        """Note how late every table is; a table that waits for its inputs makes them hurry."""
        waiting = self.schedule.order(now)
        self.backlog = Seconds(sum(w.expected_seconds for _, w in waiting if w.released <= now))
        for name, record in self.kept.items():
            waits = self._facts.planning.waits.waiting_since(name, now)
            # Observe views of other nodes, too: this node may own the inputs of such a view.
            self.schedule.observe(name, waits, now)
            if not self._owns(name):
                continue
            record.lags.append(lag(waits, now))
            known = self.schedule.known(name, now)
            if known is not None and known.freshness is not None:
                record.staleness.append(Seconds(max(now - known.freshness, 0.0)))
