"""How does a warehouse stay fresh?

`Live` runs the loop (`loop.turns`) by the clock, and starts the refreshes that the loop orders.
"""

import threading
from collections.abc import Callable, Mapping

from springhouse.lake.delta.log import one_look
from springhouse.loop.order import Order
from springhouse.loop.schedule import Schedule
from springhouse.loop.turns import FreshnessRecord, Turns
from springhouse.units import Instant, Seconds
from springhouse.warehouse.running.execution import (
    total,
)
from springhouse.warehouse.running.refresh_events import Listener
from springhouse.warehouse.running.runner import TICK_SECONDS, Runner, RunnerSettings
from springhouse.warehouse.running.track_threads import Ended
from springhouse.warehouse.watch import Watch


class Live(Runner):
    """Keeps everything fresh until `stop` is set."""

    def __init__(
        self,
        watch: Watch,
        clock: Callable[[], Instant],
        settings: RunnerSettings,
        listener: Listener,
    ) -> None:
        super().__init__(watch, clock, settings, listener)
        owns = watch.permits.owns
        self._turns = Turns(watch.facts, settings.policy, self.tracks.count, clock(), owns)

    @property
    def kept(self) -> Mapping[str, FreshnessRecord]:
        return self._turns.kept

    @property
    def schedule(self) -> Schedule:
        return self._turns.schedule

    def run(self, stop: threading.Event, seconds: Seconds | None = None) -> None:
        """Run for so many seconds, or until `stop` is set; running refreshes finish."""
        self.watch.inspect()
        began = self._clock()
        while not stop.is_set():
            now = self._clock()
            if seconds is not None and now - began >= seconds:
                break
            with one_look():
                self._take_over()
                for order in self._turns.turn(now, self.tracks.running, self.tracks.free()):
                    self._obey(order)
                self._warn()
            self._report()
            for ended in self.tracks.wait(min(self._turns.pause(now), TICK_SECONDS)):
                self._settle(ended)
        self.finish()
        self._warn()

    def _take_over(self) -> None:
        """Take over tables from the nodes that owned them before."""
        for name in self.watch.permits.newly_taken():
            if name in self.kept:  # The files of this node may lack the table.
                self.watch.take_over(name)
                self.schedule.take_over(name)

    def _obey(self, order: Order) -> None:
        """Start the ordered refresh, of all waiting data or of a part of it."""
        plan, moment, until = order.plan, order.until, None
        if moment is not None and plan.table in self.watch.project.tables:
            until = self.watch.observing.ends_at(plan.table, moment)
        self._start(plan, order.start.track, until, order.along, order.first)

    def _report(self) -> None:
        """Report to the cluster how busy this node is."""
        permits = self.watch.permits
        permits.tracks_busy = len(self.tracks.running) / self.tracks.count
        permits.backlog_seconds = self._turns.backlog

    def _settle(self, ended: Ended) -> None:
        super()._settle(ended)
        now, failure = self._clock(), self.failures.get(ended.table)
        if failure is not None:
            self.schedule.failed(ended.table, now, failure.retry_at)
            return
        done = total(ended.done)
        if done is None:
            self.schedule.finished(ended.table, now, None)
        else:
            rows = done.rows_added + done.rows_removed
            self.schedule.finished(ended.table, now, Seconds(done.seconds), rows)
