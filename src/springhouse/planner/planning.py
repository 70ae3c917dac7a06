"""Which refreshes are wanted now, and what exactly would each one do?

`Planning` is the one place that decides. A base table wants a refresh when data waits in its
sources. A view that promises consistency wants one when an input has moved (`strict`). A view that
may be inconsistent wants one when a promise is about to break (`relaxed`). A view that can't build
on its stored rows wants one in any case. The answer is a list of `RefreshPlan`.

A plan depends on a few logs, and the moment when a promise breaks is known in advance. So `look`
notes which logs have moved, and `plans` computes new plans only for

    the views that depend on a log that has moved, and the views whose moment has come
"""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from heapq import heappop, heappush

from springhouse.errors import SpringhouseError
from springhouse.planner.data_waits import Arrivals, DataWaits
from springhouse.planner.delta_logs import Logs, newest_note, reflected_by
from springhouse.planner.moved_logs import MovedLogs
from springhouse.planner.offers import Offers
from springhouse.planner.one_scan import from_one_scan
from springhouse.planner.provenance import NOW, Provenance
from springhouse.planner.refresh_plan import NEVER, RefreshPlan
from springhouse.planner.relaxed.relaxed_views import RelaxedViews
from springhouse.planner.stored_rows import StoredRows
from springhouse.planner.strict.moment import Choice
from springhouse.planner.strict.strict_views import UNWATCHED, StrictViews, ViewAnswer
from springhouse.planner.strict.versions import Chooser
from springhouse.project.declarations.declaration import Project, View
from springhouse.project.lineage.graph import Graph
from springhouse.units import Instant


class Planning:
    """The plans of one project; with a `lock`, for several threads.

    `waits` tells since when data has waited for a table, and how long it may.
    """

    def __init__(
        self,
        project: Project,
        graph: Graph,
        logs: Logs,
        arrivals: Arrivals,
        chooser: Chooser,
        offers: Offers,
        lock: AbstractContextManager[object] | None = None,
    ) -> None:
        self._lock = lock or nullcontext()
        self._project = project
        self._graph = graph
        self._logs = logs
        self._arrivals = arrivals
        self._chooser = chooser
        self._relaxed = RelaxedViews(project, graph, logs, offers)
        self.waits = DataWaits(project, graph, logs, arrivals, chooser, self._relaxed, self._lock)
        self._stored = StoredRows(project, logs, chooser)
        self._strict = StrictViews(project, logs, chooser, offers, self._stored, self.waits)
        self._logs_seen = MovedLogs(project, graph, logs, chooser)
        self._answers: dict[str, ViewAnswer] = {}
        self._timers: list[tuple[Instant, str]] = []
        self._moved: set[str] = set(project.views)

    # --- Events ----------------------------------------------------------------------------------

    def look(self) -> None:
        """Find the logs that have moved since the last call."""
        with self._lock:
            self._moved |= self._logs_seen.moved_views()

    def refreshed(self, name: str, now: Instant, *, found_something: bool) -> None:
        """A refresh of a table or view ended."""
        with self._lock:
            self._strict.refreshed(name, now)
            if found_something:
                self._stored.forget_lost(name)
            if name in self._project.views:
                self._moved.add(name)

    def reveal(self, view: str, keys: Iterable[str]) -> None:
        """A call of the view's function read these tables; its source text may not name them."""
        with self._lock:
            before = self._chooser.inputs(view).keys
            self._chooser.reveal(view, list(keys))
            self._moved.add(view)
            if self._chooser.inputs(view).keys != before:
                self._logs_seen.forget_dependents()

    def note_lost(self, view: str, path: str) -> None:
        """A file of a view no longer exists."""
        with self._lock:
            self._stored.note_lost(view, path)
            self._moved.add(view)

    # --- Plans -----------------------------------------------------------------------------------

    def plans(self, now: Instant) -> list[RefreshPlan]:
        """All refreshes that are wanted now, in topological order."""
        with self._lock:
            self._update(now)
            known = {name: plan for name in self._graph.order if (plan := self._known(name))}
            needed = {step.table: (step, plan) for plan in known.values() for step in plan.first}
            for name, (step, reader) in needed.items():
                # The reader may need it sooner than its own promise does.
                reason = f"{reader.table} needs it"
                known[name] = replace(known.get(name, step), urgent=True, reason=reason)
            return [known[name] for name in self._graph.order if name in known]

    def plan(self, name: str, now: Instant) -> RefreshPlan | None:
        """The refresh that a table or view wants now, if any."""
        with self._lock:
            self._update(now)
            return self._known(name)

    def plan_whole(self, name: str, now: Instant) -> RefreshPlan | None:
        """The refresh that loads everything into a table or view; None if nothing waits.

        It goes to the newest moment, regardless of the moments of other views.
        """
        with self._lock:
            if name in self._project.tables:
                return self._known(name)
            return self._strict.answer(self._project.views[name], now, meet_siblings=False).plan

    def plan_unwatched(self, view: str, now: Instant) -> RefreshPlan | None:
        """The refresh of a view whose inputs can't be watched, whether they moved or not."""
        with self._lock:
            if not self._chooser.inputs(view).opaque or self._chooser.missing(view):
                return None
            choice = self._chooser.choose(view, meet_siblings=False) or Choice(NOW, {})
            return self._strict.plan_to(self._project.views[view], choice, UNWATCHED, now)

    def plan_forced(self, name: str, reason: str, now: Instant) -> RefreshPlan:
        """A refresh of a table or view, whether it is wanted or not."""
        with self._lock:
            if name in self._project.tables:
                return RefreshPlan(name, reason, now)
            self.look()
            planned = self.plan(name, now)
            if planned is not None and not planned.first and not self.damage(name):
                return replace(planned, reason=reason)
            choice = self._chooser.choose(name) or Choice(NOW, {})
            return self._strict.plan_to(self._project.views[name], choice, reason, now)

    def step(self, plan: RefreshPlan, now: Instant) -> RefreshPlan | None:
        """A step of a unit, planned again now that the steps before it are done.

        None if it is no longer wanted, or if it would reflect data too far apart in time.
        """
        with self._lock:
            self.look()
            self._update(now)
            plan_now = self._known(plan.table)
            if plan_now is not None and not plan_now.first:
                return plan_now
            if plan_now is None and plan.first:
                return None
            # Only the unit wants this step, or newer data came upstream meanwhile. The step must
            # not wait for newer data, or it would wait again and again.
            return self._over_what_was_made(plan)

    def _over_what_was_made(self, plan: RefreshPlan) -> RefreshPlan | None:
        """The step as it was planned, over the versions that the steps before it made."""
        view = self._project.views.get(plan.table)
        newest = self._logs.log(plan.table).newest()
        if view is None or newest is None:
            return replace(plan, first=())
        heads = {key: self._logs.log(key).newest() for key in self._chooser.inputs(view.name).keys}
        newest_versions = {key: head.version for key, head in heads.items() if head is not None}
        planned_versions = {
            key: each for key, each in plan.versions.items() if key not in plan.needs
        }
        versions = {**newest_versions, **planned_versions}
        reaches = self._would_reflect(view, plan.driver, versions)
        if view.promise.is_relaxed and not self._relaxed.allows(view.name, reaches):
            return None
        return replace(plan, first=(), versions=versions, reaches=reaches)

    def _would_reflect(
        self, view: View, driver: str | None, versions: Mapping[str, int]
    ) -> Provenance:
        """The provenance of a view after a refresh over these versions."""
        note, newest = newest_note(self._logs, view.name), self._logs.log(view.name).newest()
        end = reflected_by(self._logs, self._project, view, versions)
        if driver is None or note is None or newest is None:
            return end
        before = {**versions, driver: note.read.get(driver, versions[driver])}
        start = reflected_by(self._logs, self._project, view, before)
        return newest.provenance.converted(start, end)

    def part(self, plan: RefreshPlan, moment: Instant, now: Instant) -> RefreshPlan:
        """The same refresh, but no further than a moment, if that brings the view forward.

        A view that may be inconsistent stays whole: the search cuts its refresh by inputs.
        """
        with self._lock:
            view = self._project.views.get(plan.table)
            if view is None or view.promise.is_relaxed:
                return plan
            step = self._chooser.step(plan.table, moment)
            return plan if step is None else self._strict.plan_to(view, step, plan.reason, now)

    def from_one_scan(self, lead: RefreshPlan, others: Iterable[RefreshPlan]) -> list[RefreshPlan]:
        """A refresh, and the others that are best done with it from one scan."""
        with self._lock:
            return from_one_scan(self._logs, lead, others)

    def _known(self, name: str) -> RefreshPlan | None:
        if name in self._project.views:
            return self._answers[name].plan
        since = self._arrivals.since(name)
        return None if since is None else RefreshPlan(name, self._arrivals.reason(name), since)

    def _update(self, now: Instant) -> None:
        while self._timers and self._timers[0][0] <= now:
            at, name = heappop(self._timers)
            if self._answers[name].until == at:
                self._moved.add(name)
        moved, self._moved = self._moved, set()
        for name in moved:
            answer = self._answers[name] = self._answer(self._project.views[name], now)
            if answer.until < NEVER:
                heappush(self._timers, (answer.until, name))

    def _answer(self, view: View, now: Instant) -> ViewAnswer:
        if view.promise.is_relaxed and self._is_sound(view):
            return ViewAnswer(*self._relaxed.decide(view.name, now))
        return self._strict.answer(view, now, meet_siblings=True)

    def _is_sound(self, view: View) -> bool:
        """Whether the log of a view is readable, its inputs exist, and its rows are usable."""
        stored = self._stored
        return (
            stored.damage(view.name) is None
            and not self._chooser.missing(view.name)
            and not stored.why_anew(view)
        )

    def damage(self, name: str) -> SpringhouseError | None:
        """The damage in the log of a table or view, or in the log of an input; None if none."""
        return self._stored.damage(name)
