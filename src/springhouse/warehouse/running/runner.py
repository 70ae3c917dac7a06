"""What do `Once` and `Live` have in common?

A `Runner` starts refreshes on tracks, notes their results, tries failed refreshes again, and
reports events. `Once` and `Live` decide which refresh starts when.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from springhouse.errors import CommitConflict, NotOwned, error_text
from springhouse.lake.delta.requirements import CommitPermit
from springhouse.lake.landing.landing import Done
from springhouse.lake.storage.clock import SteadyClock
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.refresh.policy import Policy
from springhouse.refresh.retry import Failure, add_failure
from springhouse.units import Instant, Seconds, span_text
from springhouse.warehouse.running.execution import (
    FlowsFailed,
    Permitted,
    flow_key,
    perform_in_order,
    perform_together,
    total,
)
from springhouse.warehouse.running.refresh_events import (
    Failed,
    Finished,
    Listener,
    Started,
    Warned,
)
from springhouse.warehouse.running.track_threads import Ended, Outcome, RunningRefresh, Tracks
from springhouse.warehouse.watch import Watch

LOG = logging.getLogger("springhouse.refresh")

TICK_SECONDS = Seconds(0.25)
"""How long a runner waits for the end of a refresh before it looks for other work."""


@dataclass(frozen=True)
class RunnerSettings:
    """How a runner works: its tracks, the first pause before a retry, and so on."""

    tracks: int
    retry_seconds: Seconds
    compact_files: int
    policy: Policy = field(default_factory=Policy)


class Runner:
    """The part that `Once` and `Live` share: tracks, failures, events and the log."""

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
        """Start a refresh on a track; it begins with the upstream refreshes in `first`.

        `along` are the refreshes that the same pass can serve.
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
        """A plan that starts now, with its permit."""
        return Permitted(plan, CommitPermit(self.watch.permits.begin(plan.table).prove))

    def _settle(self, ended: Ended) -> None:
        """Note the result of a refresh, or the time of its next try."""
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
            # A conflict is no failure: another process did the work, and this one looks again.
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
        failure = add_failure(
            self.failures.get(ended.table), problem, now, self._settings.retry_seconds
        )
        self.failures[ended.table] = failure
        _log_failure(ended.table, failure)
        self._listener(Failed(ended.table, ended.track, failure))

    def _settle_flows(self, ended: Ended, errors: Mapping[str, Exception]) -> None:
        """Note which flows into a table failed; each flow has its own pause."""
        for flow in self.watch.project.flows_into(ended.table):
            key, error = flow_key(ended.table, flow.name), errors.get(flow.name)
            if error is not None:
                before = self.failures.get(key)
                failure = add_failure(
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
        """Report every warning once."""
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
        """Wait until the running refreshes have ended with their commits."""
        while self.tracks.running:
            for ended in self.tracks.wait(TICK_SECONDS):
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
