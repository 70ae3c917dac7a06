"""Plans go in, orders come out: how do the planner's plans become refreshes on tracks?

A `Schedule` stands between the planner and the scheduler (`refresh.scheduler`). It declares every
table to the scheduler, with costs from the logs, and reports the plans that wait. When the
scheduler starts a table, the schedule makes an order. The order names the plans to carry out, cut
to the part to load, and the data that they read together.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from springhouse.loop.facts import Facts
from springhouse.loop.order import Order
from springhouse.loop.scheduler_facts import SchedulerFacts
from springhouse.loop.wanted_plans import WantedPlans
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.refresh.job import Start
from springhouse.refresh.policy import Policy
from springhouse.refresh.promises.feasible import UnkeepablePromise
from springhouse.refresh.scheduler import Scheduler
from springhouse.refresh.waiting import Known, Waiting
from springhouse.units import Instant, RowCount, Seconds


class Schedule:
    """The scheduler of one warehouse, and the plans that wait for it."""

    def __init__(self, facts: Facts, policy: Policy, tracks: int, now: Instant) -> None:
        self._facts = facts
        self._lock = facts.lock
        self._now = now
        self._tables = SchedulerFacts(facts)
        self._scheduler = Scheduler(tracks, policy)
        self._wanted = WantedPlans(facts)
        # The moment up to which the plan of each table loads, while it waits and while it runs.
        self._reaches: dict[str, Instant] = {}
        self._under_way: dict[str, Instant] = {}
        # Tables with waiting data, as the scheduler knows; and tables whose last refresh failed.
        self._heard_of: set[str] = set()
        self._troubled: set[str] = set()
        # Base tables that others refreshed until now, and the moment that they reached. This
        # process did not see when the waiting data came.
        self._inherited: dict[str, Instant] = {}
        for name in facts.graph.order:
            self.take_over(name)
            self._remember(name)
        facts.offers.learned = self._learned

    # --- What happens ----------------------------------------------------------------------------

    def take_over(self, name: str) -> None:
        """From now on this warehouse refreshes the table; until now others may have done so.

        The data that waits in its sources may have come right after its last refresh, long before
        this process sees it first. So its wait counts from that refresh. If the wait counted from
        the first sight, a table whose owners die one after the other would starve: it would
        never be late.
        """
        with self._lock:
            reached = self._tables.reached(name)
            self._scheduler.declare(self._tables.profile(name), reached)
            if reached is not None and name in self._facts.project.tables:
                self._inherited[name] = reached

    def _remember(self, name: str) -> None:
        """Teach the scheduler from past refreshes."""
        for past in self._tables.past_loads(name):
            self._scheduler.remember(name, loaded=past.loaded, seconds=past.seconds, rows=past.rows)

    def hear(self, plans: Sequence[RefreshPlan], now: Instant) -> None:
        """Tell the scheduler which refreshes are wanted now, and which no longer are."""
        with self._lock:
            self._now = now
            # While a step of a unit waits for its retry, the unit waits, too.
            plans = [plan for plan in plans if self._troubled.isdisjoint(plan.needs)]
            self._wanted.replace(plans)
            idle = {*self._wanted, *self._under_way}
            # If no data waits for a table, this process will see when new data comes.
            for name in self._inherited.keys() - idle:
                del self._inherited[name]
            for name in self._heard_of - idle:
                self._heard_of.discard(name)
                self._scheduler.withdrawn(name, now)
            for plan in plans:
                self._heard_of.add(plan.table)
                reach = self._reaches[plan.table] = self._tables.would_reach(plan, now)
                since = self._since(plan, now)
                self._scheduler.arrived(
                    plan.table, now, freshness=reach, since=since, seconds=plan.seconds
                )

    def _since(self, plan: RefreshPlan, now: Instant) -> Instant:
        """Since when the data of a plan waits, for the promise of its table."""
        promise = self._tables.promise(plan.table)
        if plan.urgent:
            # With this wait the plan is due now.
            return min(plan.since, Instant(now - (promise.strictest_seconds or 0.0)))
        if promise.staleness_by_pathway:
            # The wait of data that may wait longer than the rest begins later.
            return min(self._facts.planning.waits.waiting_since(plan.table, now), default=now)
        return min(plan.since, self._inherited.get(plan.table, plan.since))

    def observe(self, name: str, waits: Sequence[Instant], now: Instant) -> None:
        """Tell the scheduler since when data waits for a table, even if it can't load the data yet.

        A view reads its inputs as of one moment. So data of one input may have to wait until the
        other inputs have reached the same moment, and then these inputs have to hurry. (For a view
        that may be inconsistent, the planner says which input is needed first.)
        """
        if not waits or name in self._under_way or self._tables.is_relaxed(name):
            return
        with self._lock:
            oldest, plan = min(waits), self._wanted.get(name)
            if plan is None or oldest < self._since(plan, now):
                self._scheduler.held_up(name, oldest, now)

    def finished(
        self, name: str, now: Instant, seconds: Seconds | None, rows: int | None = None
    ) -> None:
        """A refresh ended well; without `seconds` the scheduler does not learn from it."""
        count = None if rows is None else RowCount(rows)
        with self._lock:
            reached = self._under_way.pop(name, None)
            self._inherited.pop(name, None)
            self._troubled.discard(name)
            self._scheduler.finished(name, now, seconds=seconds, rows=count, freshness=reached)

    def failed(self, name: str, now: Instant, retry_at: Instant) -> None:
        """A refresh failed, and is tried again at `retry_at`."""
        with self._lock:
            self._under_way.pop(name, None)
            self._troubled.add(name)
            self._scheduler.failed(name, now, retry_at)

    # --- What to start ---------------------------------------------------------------------------

    def starts(self, free_tracks: Collection[int], now: Instant) -> list[Order]:
        """The refreshes to start now. They count as under way until `finished` or `failed`."""
        with self._lock:
            orders: list[Order] = []
            for start in self._scheduler.starts(free_tracks, now, self._along):
                if orders and orders[-1].start.track == start.track:
                    orders[-1] = self._with_companion(orders[-1], start)
                else:
                    orders.append(self._ordered(start))
        return [self._cut(order, now) for order in orders]

    def _along(self, name: str) -> list[str]:
        return self._wanted.along(name, self._troubled, self._now, self._scheduler.ready_at)

    def _ordered(self, start: Start) -> Order:
        """The order to refresh a table, up to the moment that the scheduler chose."""
        is_unit = self._wanted.unit(start.table) is not None
        reach, plan = self._reaches.pop(start.table), self._wanted.pop(start.table)
        if (
            is_unit
            or start.until is None
            or start.until >= reach
            or not self._takes_parts(start.table)
        ):
            self._under_way[start.table] = reach
            return Order(plan, start, None)
        self._under_way[start.table] = start.until
        return Order(plan, start, start.until)

    def _takes_parts(self, name: str) -> bool:
        # A table that failed is loaded as a whole, because newer data may solve its problem.
        return name not in self._troubled and self._tables.takes_parts(name)

    def _with_companion(self, lead: Order, start: Start) -> Order:
        """The order with one more table, which goes along on the same track."""
        unit = lead.plan if lead.plan.first else self._wanted.unit(start.table)
        plan, reach = self._wanted.pop(start.table), self._reaches.pop(start.table)
        if unit is not None:
            self._under_way[start.table] = reach
            steps = {each.table: each for each in (*lead.first, lead.plan, plan)}
            last = steps.pop(unit.table if unit.table in steps else lead.plan.table)
            first = tuple(steps[each] for each in unit.needs if each in steps)
            return replace(lead, plan=last, first=first)
        if start.table in self._facts.project.tables or lead.until is not None:
            # The companion loads no further than the lead.
            reach = min(reach, self._under_way[lead.plan.table])
        self._under_way[start.table] = reach
        return replace(lead, along=(*lead.along, plan))

    def _cut(self, order: Order, now: Instant) -> Order:
        """The order with its plans cut at `until`; the plans also name what they share."""
        planning, plans = self._facts.planning, [order.plan, *order.along]
        if order.first or order.plan.table in self._facts.project.tables:
            return order
        if order.until is not None:
            plans = [planning.part(plan, order.until, now) for plan in plans]
        shared = {each.table: each for each in planning.from_one_scan(plans[0], plans[1:])}
        plan, *along = (shared.get(each.table, each) for each in plans)
        return replace(order, plan=plan, along=tuple(along))

    # --- What is known ---------------------------------------------------------------------------

    def order(self, now: Instant) -> list[tuple[RefreshPlan, Waiting]]:
        """All waiting plans: those that may start, best first, then those that may not yet."""
        with self._lock:
            waiting = [(self._wanted.get(w.table), w) for w in self._scheduler.order(now)]
            return [(plan, w) for plan, w in waiting if plan is not None]

    def known(self, name: str, now: Instant) -> Known | None:
        """What the scheduler knows of a table."""
        with self._lock:
            return self._scheduler.known(name, now)

    def unkeepable(self, now: Instant) -> list[UnkeepablePromise]:
        """The promises that can't be kept by the known costs."""
        with self._lock:
            return self._scheduler.unkeepable(now)

    def next_change(self, now: Instant) -> Instant | None:
        """When something may start although no event happens."""
        with self._lock:
            return self._scheduler.next_change(now)

    def _learned(self, name: str) -> Seconds | None:
        with self._lock:
            known = self._scheduler.known(name, self._now)
            return known.expected_seconds if known is not None else None
