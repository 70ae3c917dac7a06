"""How does the scheduler learn what happens in a warehouse, and what does it make of it?

`refresh` decides, tracks act: a `Schedule` is what stands between. It declares every table to the
scheduler, with the costs that the logs tell; passes on which plans there are; and finds out up to
where a refresh goes that is to load only a part of what waits.

Times are times of arrival: data that was first seen at ten makes a base table fresh up to ten, and
a view is as fresh as the newest base version that it reflects.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from springhouse.loop.facts import Facts
from springhouse.planner.one_scan import pays_for_rest
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.project.declarations.declaration import Promise
from springhouse.project.lineage.channels import is_channel
from springhouse.refresh.job import Start
from springhouse.refresh.policy import Policy
from springhouse.refresh.promises.feasible import Finding
from springhouse.refresh.scheduler import Scheduler
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.refresh.waiting import Known, Waiting
from springhouse.units import Instant, RowCount, Seconds

_REMEMBERED = 20
"""How many of the last refreshes of a table tell what it costs."""

_LONG_AGO = Seconds(3600.0)
"""A refresh after a longer pause than this says nothing about how much it had to load."""


@dataclass(frozen=True)
class Order:
    """What the scheduler wants to be started, by which plan.

    With `until` only what had arrived by then is to be loaded. `along` are the plans of tables that
    read the same source and wait for the same records, or of views that read the same change.
    `first` are the refreshes upstream that the plan begins with.
    """

    plan: RefreshPlan
    start: Start
    until: Instant | None
    along: tuple[RefreshPlan, ...] = ()
    first: tuple[RefreshPlan, ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        """All tables that are refreshed by this order, in the order of their commits."""
        return tuple(each.table for each in (*self.first, self.plan, *self.along))


class Schedule:
    """The scheduler of one warehouse."""

    def __init__(self, facts: Facts, policy: Policy, tracks: int, now: Instant) -> None:
        self._facts = facts
        self._lock = facts.lock
        self._now = now
        self._scheduler = Scheduler(tracks, policy)
        self._wanted: dict[str, RefreshPlan] = {}
        self._reaches: dict[str, Instant] = {}
        # Of what the scheduler may think that data waits for it; what it has started, and how far
        # that goes; and what failed last.
        self._heard_of: set[str] = set()
        self._troubled: set[str] = set()
        self._under_way: dict[str, Instant] = {}
        # Base tables that others refreshed until now, and up to when. Nobody here has seen when
        # that came which waits for them.
        self._inherited: dict[str, Instant] = {}
        for name in facts.graph.order:
            self.take_over(name)
            self._remember(name)
        facts.offers.learned = self._learned

    def take_over(self, name: str) -> None:
        """A table is this warehouse's to refresh, and others did it until now: see how it stands.

        What waits for it in its sources is new to us, but may have come right after the last
        refresh. Its turn comes as if it had: counted from our first sight, a table whose owners
        die one after the other would be late for none of them, and starve.
        """
        with self._lock:
            reached = self._reached(name)
            self._scheduler.declare(self._table(name), reached)
            if reached is not None and name in self._facts.project.tables:
                self._inherited[name] = reached

    def hear(self, plans: Sequence[RefreshPlan], now: Instant) -> None:
        """Pass on which refreshes are wanted now, and which are not any more."""
        with self._lock:
            self._now = now
            # While one of its steps has to be tried again, a unit waits for that.
            plans = [plan for plan in plans if self._troubled.isdisjoint(plan.needs)]
            self._wanted = {plan.table: plan for plan in plans}
            # Where nothing waits, what comes from now on is seen when it comes.
            for name in self._inherited.keys() - self._wanted.keys() - self._under_way.keys():
                del self._inherited[name]
            for name in self._heard_of - self._wanted.keys() - self._under_way.keys():
                self._heard_of.discard(name)
                self._scheduler.withdrawn(name, now)
            for plan in plans:
                self._heard_of.add(plan.table)
                reach = self._reaches[plan.table] = self._reach(plan, now)
                since = self._since(plan, now)
                self._scheduler.arrived(
                    plan.table, now, freshness=reach, since=since, seconds=plan.seconds
                )

    def observe(self, name: str, waits: Sequence[Instant], now: Instant) -> None:
        """Pass on since when data waits for a table, also such as it can't have yet.

        A view reads its inputs as of one moment. So what has arrived may have to wait until all of
        them have come to the same, and then those that have not are to hurry. (Where some
        inconsistency is allowed, the planner says what is needed first.)
        """
        if not waits or name in self._under_way or self._is_relaxed(name):
            return
        with self._lock:
            oldest, plan = min(waits), self._wanted.get(name)
            if plan is None or oldest < self._since(plan, now):
                self._scheduler.held_up(name, oldest, now)

    def _since(self, plan: RefreshPlan, now: Instant) -> Instant:
        """Since when the data of a plan waits, as its promise counts."""
        promise = self._promise(plan.table)
        if plan.urgent:
            # Since when it would have to wait for the plan to be due now.
            return min(plan.since, Instant(now - (promise.strictest_seconds or 0.0)))
        if promise.staleness_by_pathway:
            # What may wait for longer than the rest counts from later on.
            return min(self._facts.planning.waits.waiting_since(plan.table, now), default=now)
        return min(plan.since, self._inherited.get(plan.table, plan.since))

    def _is_relaxed(self, name: str) -> bool:
        """Whether a view is allowed some inconsistency."""
        view = self._facts.project.views.get(name)
        return view is not None and view.promise.is_relaxed

    def _is_channel(self, name: str) -> bool:
        project = self._facts.project
        return name in project.tables and is_channel(project, name)

    def _promise(self, name: str) -> Promise:
        project = self._facts.project
        return (project.tables.get(name) or project.views[name]).promise

    def starts(self, free_tracks: Collection[int], now: Instant) -> list[Order]:
        """What to start now. It counts as under way until `finished` or `failed`."""
        with self._lock:
            orders: list[Order] = []
            for start in self._scheduler.starts(free_tracks, now, self._along):
                if orders and orders[-1].start.track == start.track:
                    orders[-1] = self._taken_along(orders[-1], start)
                else:
                    orders.append(self._ordered(start))
            return orders

    def _along(self, name: str) -> list[str]:
        """The tables to refresh together with another: its unit, or those that read the same.

        None if it, or one of them, failed last.
        """
        if name in self._troubled:
            return []
        unit = self._unit(name)
        if unit is not None:
            return [each for each in (*unit.needs, unit.table) if each != name]
        if name in self._facts.project.views:
            return self._from_one_scan(name)
        others = self._facts.observing.companions(name)
        return [each for each in others if each in self._wanted and each not in self._troubled]

    def _from_one_scan(self, name: str) -> list[str]:
        """The views that read the same change and are due too, where one scan of it pays.

        One that may still rest goes along if the scan saves it more than its rest is worth. So
        views with one promise stay together, which would drift apart.
        """
        planning, lead = self._facts.planning, self._wanted[name]
        others = (
            plan
            for plan in self._wanted.values()
            if plan.table not in {name, *self._troubled} and self._unit(plan.table) is None
        )
        job = planning.from_one_scan(lead, others)
        due = [each for each in job[1:] if pays_for_rest(each, self._rest_left(each))]
        return [each.table for each in planning.from_one_scan(lead, due)[1:]]

    def _rest_left(self, plan: RefreshPlan) -> float:
        """Which part of the time for which a refresh may wait is still left; all if none waits."""
        ready = self._scheduler.ready_at(plan.table)
        if ready is None:
            return 1.0
        return min(max(ready - self._now, 0.0) / max(ready - plan.since, 1e-6), 1.0)

    def _unit(self, name: str) -> RefreshPlan | None:
        """The plan that a table is refreshed for, or that begins with refreshes upstream."""
        own = self._wanted.get(name)
        if own is not None and own.first:
            return own
        return next((plan for plan in self._wanted.values() if name in plan.needs), None)

    def _taken_along(self, lead: Order, start: Start) -> Order:
        unit = lead.plan if lead.plan.first else self._unit(start.table)
        plan, reach = self._wanted.pop(start.table), self._reaches.pop(start.table)
        if unit is not None:
            self._under_way[start.table] = reach
            steps = {each.table: each for each in (*lead.first, lead.plan, plan)}
            last = steps.pop(unit.table if unit.table in steps else lead.plan.table)
            first = tuple(steps[each] for each in unit.needs if each in steps)
            return replace(lead, plan=last, first=first)
        if start.table in self._facts.project.tables or lead.until is not None:
            # It goes no further than the one that leads.
            reach = min(reach, self._under_way[lead.plan.table])
        self._under_way[start.table] = reach
        return replace(lead, along=(*lead.along, plan))

    def _ordered(self, start: Start) -> Order:
        unit = self._unit(start.table)
        reach, plan = self._reaches.pop(start.table), self._wanted.pop(start.table)
        if unit is not None:
            self._under_way[start.table] = reach
            return Order(plan, start, None)
        if start.until is None or start.until >= reach or not self._takes_parts(start.table):
            self._under_way[start.table] = reach
            return Order(plan, start, None)
        self._under_way[start.table] = start.until
        return Order(plan, start, start.until)

    def _takes_parts(self, name: str) -> bool:
        """Whether it saves work to load only a part: not where everything is computed anew.

        A refresh that failed is not cut either: perhaps the next data heals it. Nor is one that the
        planner cuts in its own way, by inputs.
        """
        if name in self._troubled or self._is_relaxed(name):
            return False
        newest = self._facts.logs.log(name).newest()
        by_change = newest is not None and newest.note is not None and newest.note.kind == "merge"
        return by_change or name in self._facts.project.tables

    def finished(
        self, name: str, now: Instant, seconds: Seconds | None, rows: int | None = None
    ) -> None:
        """A refresh ended well; without `seconds` nothing is learned from it."""
        count = None if rows is None else RowCount(rows)
        with self._lock:
            reached = self._under_way.pop(name, None)
            self._inherited.pop(name, None)
            self._troubled.discard(name)
            self._scheduler.finished(name, now, seconds=seconds, rows=count, freshness=reached)

    def failed(self, name: str, now: Instant, retry_at: Instant) -> None:
        """A refresh failed, and is tried again then."""
        with self._lock:
            self._under_way.pop(name, None)
            self._troubled.add(name)
            self._scheduler.failed(name, now, retry_at)

    def order(self, now: Instant) -> list[tuple[RefreshPlan, Waiting]]:
        """Everything that waits: first what may start, best first, then what may not yet."""
        with self._lock:
            waiting = self._scheduler.order(now)
            return [(self._wanted[w.table], w) for w in waiting if w.table in self._wanted]

    def known(self, name: str, now: Instant) -> Known | None:
        """What the scheduler knows of a table."""
        with self._lock:
            return self._scheduler.known(name, now)

    def unkeepable(self, now: Instant) -> list[Finding]:
        """The promises that can't be kept, as far as costs are known."""
        with self._lock:
            return self._scheduler.unkeepable(now)

    def next_change(self, now: Instant) -> Instant | None:
        """When something may start though nothing happens."""
        with self._lock:
            return self._scheduler.next_change(now)

    def _learned(self, name: str) -> Seconds | None:
        with self._lock:
            known = self._scheduler.known(name, self._now)
            return known.expected_seconds if known is not None else None

    # What a table is

    def _table(self, name: str) -> TableProfile:
        project, graph = self._facts.project, self._facts.graph
        known = {*project.tables, *project.views}
        upstream = tuple(each for each in graph.tables_read(name) if each in known and each != name)
        base = project.tables.get(name)
        period = base.period_seconds if base is not None and not upstream else None
        promise = self._promise(name)
        return TableProfile(
            name,
            upstream,
            period,
            promise.priority,
            promise.strictest_seconds,
            promise_by_input=self._facts.planning.waits.bounds(name, upstream),
            patience_by_input=self._facts.planning.waits.patience(name),
        )

    def _remember(self, name: str) -> None:
        """What the refreshes of a table took, as its Delta log tells."""
        refreshes = [
            (commit.at, commit.note)
            for commit in self._facts.logs.log(name).commits()
            if commit.note is not None and commit.note.kind in ("append", "replace", "merge")
        ]
        for (before, _), (at, note) in pairwise(refreshes[-_REMEMBERED - 1 :]):
            loaded = Seconds(max(at - before, 0.0))
            if note.seconds > 0.0 and loaded < _LONG_AGO:
                rows = RowCount(note.rows_added + note.rows_removed)
                self._scheduler.remember(name, loaded=loaded, seconds=note.seconds, rows=rows)

    # How far it goes

    def _reached(self, name: str) -> Instant | None:
        """Up to when what arrived is in a table."""
        newest = self._facts.logs.log(name).newest()
        if newest is None:
            return None
        if self._is_channel(name):
            return newest.at
        left, _ = newest.provenance.interval(self._facts.chooser.channels())
        return left if left > float("-inf") else newest.at

    def _reach(self, plan: RefreshPlan, now: Instant) -> Instant:
        """Up to when what arrived would be in a table after a refresh."""
        if plan.table in self._facts.project.tables:
            return self._facts.observing.seen_until(plan.table) or now
        left, _ = plan.reaches.interval(self._facts.chooser.channels())
        return left if left > float("-inf") else now
