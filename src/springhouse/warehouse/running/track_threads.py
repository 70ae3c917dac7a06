"""Who runs the refreshes?

A bounded number of tracks, each a thread with a FAIR pool of its own in Spark. A refresh is never
preempted: it runs to its commit, or to its error. Stopping lets the running ones finish.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Queue

from springhouse.lake.landing.landing import Done
from springhouse.units import Instant
from springhouse.warehouse.running.execution import FlowsFailed


@dataclass(frozen=True)
class Ended:
    """A refresh that came to its end: what it did, or what it failed with; of flows, maybe both."""

    table: str
    track: int
    done: tuple[Done, ...] = ()
    error: Exception | None = None


@dataclass(frozen=True)
class RunningRefresh:
    """A refresh on its track."""

    table: str
    track: int
    began: Instant
    reason: str


Outcome = tuple[str, list[Done] | Exception]
"""What became of one table."""


class Tracks:
    """Threads that run at most one refresh each, with those that it takes along."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.running: dict[str, RunningRefresh] = {}
        self._ended: Queue[Ended] = Queue()
        self._threads: list[threading.Thread] = []

    def free(self) -> list[int]:
        """The tracks on which nothing runs."""
        taken = {running.track for running in self.running.values()}
        return [track for track in range(1, self.count + 1) if track not in taken]

    def start(
        self, running: Sequence[RunningRefresh], work: Callable[[], Iterable[Outcome]]
    ) -> None:
        """Run `work` on the track of these tables; their ends are told by `wait`, each apart."""
        self.running |= {each.table: each for each in running}
        track = running[0].track

        def run() -> None:
            left = [each.table for each in running]
            problem: Exception = RuntimeError("it came to no end")
            try:
                for table, outcome in work():
                    left.remove(table)
                    if isinstance(outcome, FlowsFailed):
                        self._ended.put(Ended(table, track, outcome.done, outcome))
                    elif isinstance(outcome, Exception):
                        self._ended.put(Ended(table, track, error=outcome))
                    else:
                        self._ended.put(Ended(table, track, tuple(outcome)))
            except Exception as error:  # noqa: BLE001  whatever it is, the warehouse reports it
                problem = error
            for table in left:
                self._ended.put(Ended(table, track, error=problem))

        # Not a daemon: the interpreter waits for a commit that is being written.
        thread = threading.Thread(target=run, name=f"track-{track}")
        self._threads = [t for t in self._threads if t.is_alive()] + [thread]
        thread.start()

    def wait(self, seconds: float) -> list[Ended]:
        """The refreshes that ended, after waiting for the first of them at most so long."""
        found: list[Ended] = []
        with suppress(Empty):
            found.append(self._ended.get(block=seconds > 0, timeout=seconds))
            while True:
                found.append(self._ended.get_nowait())
        for ended in found:
            self.running.pop(ended.table, None)
        return found
