"""How does a warehouse bring everything up to date once?

`Once` goes through the graph from the sources to the last view. It reads up to the ends that the
sources had at its beginning.
"""

import logging
import threading
from collections.abc import Mapping

from springhouse.errors import CommitConflict
from springhouse.lake.landing.inputs import NotThereYet
from springhouse.logged_errors import passing
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.refresh.retry import Failure
from springhouse.units import Instant, Seconds
from springhouse.warehouse.running.execution import (
    FlowsFailed,
    flow_key,
)
from springhouse.warehouse.running.runner import TICK_SECONDS, Runner
from springhouse.warehouse.running.track_threads import Ended
from springhouse.warehouse.watch import is_streaming_function

LOG = logging.getLogger("springhouse.refresh")


class Once(Runner):
    """Brings everything up to date once."""

    def run(self, stop: threading.Event) -> None:
        """Go through the graph; a table starts when all of its inputs are done."""
        self._warn()
        self.watch.inspect()
        until = self.watch.horizon().ends
        self.watch.observing.poll(self._clock(), all_of_them=True)
        self._warn()
        pending = list(self.watch.graph.order)
        tried: set[str] = set()
        while (pending or self.tracks.running) and not stop.is_set():
            self._start_ready(pending, tried, until)
            for ended in self.tracks.wait(TICK_SECONDS if self.tracks.running else Seconds(0.0)):
                self._settle(ended)
                tried.add(ended.table)
                if self._needs_another(ended, pending, until):
                    self._put_back(ended, pending, tried)
        self.finish()

    def _start_ready(self, pending: list[str], tried: set[str], until: Mapping[str, int]) -> None:
        """Start the tables whose inputs are done, as long as tracks are free."""
        for name in [n for n in pending if self._ready(n, pending)]:
            if name not in pending:
                continue  # The refresh of another table includes this one.
            plan = self._wanted(name, tried)
            if plan is None:
                pending.remove(name)
            elif self.tracks.free():
                plan, *along = self._job(plan, pending, tried)
                for each in (plan, *along):
                    pending.remove(each.table)
                self._start(plan, self.tracks.free()[0], until, along)

    def _needs_another(self, ended: Ended, pending: list[str], until: Mapping[str, int]) -> bool:
        """Whether a table needs one more refresh after the one that ended."""
        # The writer that won a conflict may have known of less data than this process: look again.
        if isinstance(ended.error, NotThereYet | CommitConflict) or self._release(ended, pending):
            return True
        went_well = ended.error is None or isinstance(ended.error, FlowsFailed)
        return went_well and self._behind(ended.table, until)

    def _held_until(self, failure: Failure) -> Instant:
        return Instant(float("inf"))  # Only the next `refresh` tries it again.

    def _release(self, ended: Ended, pending: list[str]) -> bool:
        """Retry flows that wait for a table which is being made; returns whether any do."""
        errors = ended.error.errors if isinstance(ended.error, FlowsFailed) else {}
        waiting = [
            flow
            for flow, error in errors.items()
            if isinstance(error, NotThereYet) and self._is_coming(error.key, pending)
        ]
        for flow in waiting:
            self.watch.release(flow)
            self.failures.pop(flow_key(ended.table, flow), None)
        return bool(waiting)

    def _job(self, plan: RefreshPlan, pending: list[str], tried: set[str]) -> list[RefreshPlan]:
        """A refresh, and the refreshes that can share its pass or its scan."""
        name, planning = plan.table, self.watch.planning
        if name in self.failures:
            return [plan]
        is_view = name in self.watch.project.views
        others = pending if is_view else self.watch.observing.companions(name)
        ready = (
            n
            for n in others
            if n in pending and n not in {name, *self.failures, *tried} and self._ready(n, pending)
        )
        plans = (each for n in ready if (each := planning.plan_whole(n, self._clock())) is not None)
        return planning.from_one_scan(plan, plans) if is_view else [plan, *plans]

    def _put_back(self, ended: Ended, pending: list[str], tried: set[str]) -> None:
        """Try a table again, because more data waits or because a missing input is coming."""
        waits = ended.error
        if isinstance(waits, NotThereYet) and not self._is_coming(waits.key, pending):
            return
        tried.discard(ended.table)
        self.failures.pop(ended.table, None)
        pending.append(ended.table)

    def _is_coming(self, key: str, pending: list[str]) -> bool:
        """Whether a missing table is pending, is being refreshed, or exists by now."""
        waited_for = {*pending, *self.tracks.running}
        return key in waited_for or self.watch.lake.log(key).newest() is not None

    def _ready(self, name: str, pending: list[str]) -> bool:
        upstream = {*self.watch.graph.upstream(name)}
        if name in self.watch.project.views:
            upstream.update(self.watch.chooser.inputs(name).keys)
        upstream.discard(name)
        return not upstream & {*pending, *self.tracks.running}

    def _wanted(self, name: str, tried: set[str]) -> RefreshPlan | None:
        if name in tried:
            return None
        now, planning = self._clock(), self.watch.planning
        if name in self.watch.project.tables:
            self.watch.observing.poll(now, all_of_them=True)
            return planning.plan_whole(name, now)
        return planning.plan_whole(name, now) or planning.plan_unwatched(name, now)

    def _behind(self, name: str, until: Mapping[str, int]) -> bool:
        if name not in self.watch.project.tables:
            return False
        with passing(LOG, "the refresh of the table reports it", Exception):
            stored = self.watch.stored(name)
            for flow in self.watch.project.flows_into(name):
                if is_streaming_function(flow) or self.watch.is_held(flow):
                    continue
                if self.watch.feed(flow).behind(stored, until):
                    return True
        return False
