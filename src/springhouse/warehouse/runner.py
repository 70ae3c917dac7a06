"""How does a warehouse run: once through everything, or on and on?

`Once` goes through the graph from the sources to the last view, and stops at the ends that the
sources had when it began. `Live` turns the loop (`loop.turns`) by the clock. Both run refreshes on
tracks, try again what failed, and tell what happens to whoever listens.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from springhouse.errors import CommitConflict, NotOwned, error_text
from springhouse.lake.delta.log import one_look
from springhouse.lake.delta.requirements import CommitPermit
from springhouse.lake.landing.inputs import NotThereYet
from springhouse.lake.landing.landing import Done
from springhouse.lake.sinks.delivery import Delivered
from springhouse.lake.storage.clock import SteadyClock
from springhouse.logs import passing
from springhouse.loop.order import Order
from springhouse.loop.schedule import Schedule
from springhouse.loop.turns import FreshnessRecord, Turns
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.refresh.policy import Policy
from springhouse.refresh.retry import Failure, failed
from springhouse.units import Instant, Seconds, span_text
from springhouse.warehouse.execution import (
    FlowsFailed,
    Permitted,
    flow_key,
    perform_in_order,
    perform_together,
    total,
)
from springhouse.warehouse.track_threads import Ended, Outcome, RunningRefresh, Tracks
from springhouse.warehouse.watch import Watch, is_streaming_function

__all__ = [
    "Delivered",
    "Event",
    "Failed",
    "Finished",
    "FreshnessRecord",
    "Listener",
    "Live",
    "Once",
    "SparkNeeded",
    "Started",
    "Warned",
]

LOG = logging.getLogger("springhouse.refresh")

_TICK = Seconds(0.25)


@dataclass(frozen=True)
class SparkNeeded:
    """Rows have to be computed for the first time: Spark starts, which takes seconds."""


@dataclass(frozen=True)
class Started:
    """A refresh began."""

    table: str
    track: int
    reason: str


@dataclass(frozen=True)
class Finished:
    """A refresh ended well. `gave_way` says so if another writer was faster."""

    table: str
    track: int
    done: Done | None
    gave_way: str | None = None


@dataclass(frozen=True)
class Failed:
    """A refresh ended with an error; it is tried again at `failure.retry_at`."""

    table: str
    track: int
    failure: Failure


@dataclass(frozen=True)
class Warned:
    """Something is odd, and stops nothing; an empty `table` means the machine."""

    table: str
    warning: str


Event = SparkNeeded | Started | Finished | Failed | Delivered | Warned
Listener = Callable[[Event], None]


@dataclass(frozen=True)
class RunnerSettings:
    """How many refreshes run at once, when a failed one is tried again, and so on."""

    tracks: int
    retry_seconds: Seconds
    compact_files: int
    policy: Policy = field(default_factory=Policy)


class Runner:
    """What `Once` and `Live` have in common: tracks, failures, and telling what happens."""

    def __init__(
        self,
        watch: Watch,
        clock: Callable[[], Instant],
        settings: RunnerSettings,
        listener: Listener,
    ) -> None:
        self.watch = watch
        self.tracks = Tracks(settings.tracks)
        self.failures: dict[str, Failure] = {}
        self.done: list[Done] = []
        self._clock = clock
        self._settings = settings
        self._listener = listener
        self._warned: dict[str, str] = {}
        watch.release()

    def _start(
        self,
        plan: RefreshPlan,
        track: int,
        until: Mapping[str, int] | None,
        along: Sequence[RefreshPlan] = (),
        first: Sequence[RefreshPlan] = (),
    ) -> None:
        """Start a refresh on a track, and `first` those upstream that it begins with.

        `along` are those that the same pass can serve.
        """
        permitted = [self._permitted(each) for each in (*first, plan, *along)]
        for each in (*first, plan, *along):
            self._listener(Started(each.table, track, each.reason))

        def work() -> Iterator[Outcome]:
            with self.watch.lake.spark.track(f"track-{track}"):
                most = self._settings.compact_files
                if first:
                    yield from perform_in_order(self.watch, permitted, most_files=most)
                else:
                    lead, *others = permitted
                    yield from perform_together(
                        self.watch, lead, others, until=until, most_files=most
                    )

        now = self._clock()
        running = [RunningRefresh(e.table, track, now, e.reason) for e in (*first, plan, *along)]
        self.tracks.start(running, work)

    def _permitted(self, plan: RefreshPlan) -> Permitted:
        """A plan that starts now, with the permit that it starts with."""
        return Permitted(plan, CommitPermit(self.watch.permits.begin(plan.table).prove))

    def _settle(self, ended: Ended) -> None:
        """Write down what a refresh did, or when it is tried again."""
        if isinstance(ended.error, FlowsFailed):
            self._settle_flows(ended, ended.error.errors)
            ended = replace(ended, error=None)
        elif ended.error is None:
            self._settle_flows(ended, {})
        now = self._clock()
        self.watch.permits.ended(ended.table)
        for done in ended.done:
            _log_refresh(done)
        self.done += [d for d in ended.done if d.committed]
        self.watch.ran(ended.table, now, found_something=bool(ended.done))
        if ended.error is None or isinstance(ended.error, CommitConflict | NotOwned):
            # A conflict is no failure: somebody else did the work, and we look again.
            self.failures.pop(ended.table, None)
            gave_way = None
            if ended.error is not None:
                self.watch.forget(ended.table)
                gave_way = ended.error.problem
                LOG.info("%s gave way to another writer: %s", ended.table, gave_way)
            else:
                self.watch.permits.progressed(self.watch.progress(ended.table))
            self._listener(Finished(ended.table, ended.track, total(ended.done), gave_way))
            return
        problem = error_text(ended.error)
        failure = failed(self.failures.get(ended.table), problem, now, self._settings.retry_seconds)
        self.failures[ended.table] = failure
        _log_failure(ended.table, failure)
        self._listener(Failed(ended.table, ended.track, failure))

    def _settle_flows(self, ended: Ended, errors: Mapping[str, Exception]) -> None:
        """Write down which of the flows into a table failed, each with a wait of its own."""
        for flow in self.watch.project.flows_into(ended.table):
            key, error = flow_key(ended.table, flow.name), errors.get(flow.name)
            if error is not None:
                before = self.failures.get(key)
                failure = failed(
                    before, error_text(error), self._clock(), self._settings.retry_seconds
                )
                self.failures[key] = failure
                _log_failure(key, failure)
                self.watch.hold(flow.name, self._held_until(failure))
                self._listener(Failed(key, ended.track, failure))
            elif not self.watch.is_held(flow):
                self.failures.pop(key, None)

    def _held_until(self, failure: Failure) -> Instant:
        return failure.retry_at

    def _warn(self) -> None:
        """Tell of what is odd, each once."""
        found = [(name, self.watch.warning(name)) for name in self.watch.graph.order]
        jumped = self._clock.jumped() if isinstance(self._clock, SteadyClock) else None
        if jumped is not None:
            way = "went on" if jumped > 0 else "went back"
            found.append(("", f"the clock of this machine {way} by {span_text(abs(jumped))}"))
        for name, warning in found:
            if warning is not None and (not name or self._warned.get(name) != warning):
                LOG.warning("%s: %s", name or "this machine", warning)
                self._listener(Warned(name, warning))
            if name and warning is not None:
                self._warned[name] = warning

    def finish(self) -> None:
        """Wait for the refreshes that still run: they end with their commits."""
        while self.tracks.running:
            for ended in self.tracks.wait(_TICK):
                self._settle(ended)


def _log_refresh(done: Done) -> None:
    """One line per refresh: table, way, rows, seconds, reason."""
    LOG.info(
        "refreshed table=%s way=%s rows_added=%d rows_removed=%d rows=%d seconds=%.3f%s reason=%s",
        done.table,
        done.way or done.kind,
        done.rows_added,
        done.rows_removed,
        done.rows,
        done.seconds,
        "" if done.committed else " unchanged",
        done.reason or "none",
    )


def _log_failure(key: str, failure: Failure) -> None:
    LOG.warning("failed table=%s times=%d problem=%s", key, failure.times, failure.problem)


class Once(Runner):
    """Brings everything up to date once."""

    def run(self, stop: threading.Event) -> None:
        """Go through the graph; a table starts when everything that it reads is through."""
        self._warn()
        self.watch.inspect()
        until = self.watch.horizon().ends
        self.watch.observing.poll(self._clock(), all_of_them=True)
        self._warn()
        pending = list(self.watch.graph.order)
        tried: set[str] = set()
        while (pending or self.tracks.running) and not stop.is_set():
            for name in [n for n in pending if self._ready(n, pending)]:
                if name not in pending:
                    continue  # Another one took it along.
                plan = self._wanted(name, tried)
                if plan is None:
                    pending.remove(name)
                elif self.tracks.free():
                    plan, *along = self._job(plan, pending, tried)
                    for each in (plan, *along):
                        pending.remove(each.table)
                    self._start(plan, self.tracks.free()[0], until, along)
            for ended in self.tracks.wait(_TICK if self.tracks.running else Seconds(0.0)):
                self._settle(ended)
                tried.add(ended.table)
                # Whoever beat us in a conflict may have known less than we do: look again.
                again = isinstance(ended.error, NotThereYet | CommitConflict)
                again = again or self._release(ended, pending)
                well = ended.error is None or isinstance(ended.error, FlowsFailed)
                if again or (well and self._behind(ended.table, until)):
                    self._put_back(ended, pending, tried)
        self.finish()

    def _held_until(self, failure: Failure) -> Instant:
        return Instant(float("inf"))  # What failed is tried again by the next one.

    def _release(self, ended: Ended, pending: list[str]) -> bool:
        """Try flows again that wait for a table which is being made; whether there are any."""
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
        """A refresh, and those that can be done in one pass with it, or from one scan."""
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
        plans = (each for n in ready if (each := planning.whole(n, self._clock())) is not None)
        return planning.from_one_scan(plan, plans) if is_view else [plan, *plans]

    def _put_back(self, ended: Ended, pending: list[str], tried: set[str]) -> None:
        """Try a table again: it has more to take in, or waits for what it turned out to read."""
        waits = ended.error
        if isinstance(waits, NotThereYet) and not self._is_coming(waits.key, pending):
            return
        tried.discard(ended.table)
        self.failures.pop(ended.table, None)
        pending.append(ended.table)

    def _is_coming(self, key: str, pending: list[str]) -> bool:
        """Whether a table that was missed is still to be made, being made, or there by now."""
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
            return planning.whole(name, now)
        return planning.whole(name, now) or planning.unwatched(name, now)

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


class Live(Runner):
    """Keeps everything fresh until it is told to stop."""

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
            for ended in self.tracks.wait(min(self._turns.pause(now), _TICK)):
                self._settle(ended)
        self.finish()
        self._warn()

    def _take_over(self) -> None:
        """Begin with what another node did until now."""
        for name in self.watch.permits.newly_taken():
            if name in self.kept:  # A unit may be of a table that this node's files lack.
                self.watch.take_over(name)
                self.schedule.take_over(name)

    def _obey(self, order: Order) -> None:
        """Start a refresh: of all that waits, or of the part that the order is for."""
        plan, moment, until = order.plan, order.until, None
        if moment is not None and plan.table in self.watch.project.tables:
            until = self.watch.observing.ends_at(plan.table, moment)
        self._start(plan, order.start.track, until, order.along, order.first)

    def _report(self) -> None:
        """Tell the cluster how busy this node is."""
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
