"""Which threads run the refreshes?

The number of tracks is fixed. Each track is a thread with its own FAIR pool in Spark. A refresh is
never interrupted: it runs to its commit, or to its error. A stop lets running refreshes finish.
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
    """A refresh that ended: its commits, its error, or both if only some flows failed."""

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
"""A table, and its commits or its error."""


class Tracks:
    """Threads that run one job each: a refresh, or several that share a pass."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.running: dict[str, RunningRefresh] = {}
        self._ended: Queue[Ended] = Queue()
        self._threads: list[threading.Thread] = []

    def free(self) -> list[int]:
        """The tracks on which no refresh runs."""
        taken = {running.track for running in self.running.values()}
        return [track for track in range(1, self.count + 1) if track not in taken]

    def start(
        self, running: Sequence[RunningRefresh], work: Callable[[], Iterable[Outcome]]
    ) -> None:
        """Run `work` on the track of these tables; `wait` returns how each refresh ended."""
        self.running |= {each.table: each for each in running}
        track = running[0].track

        def run() -> None:
            left = [each.table for each in running]
            problem: Exception = RuntimeError("the refresh returned no result")
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

        # Not a daemon thread: the interpreter has to wait for a commit that is being written.
        thread = threading.Thread(target=run, name=f"track-{track}")
        self._threads = [t for t in self._threads if t.is_alive()] + [thread]
        thread.start()

    def wait(self, seconds: float) -> list[Ended]:
        """The refreshes that ended; waits for the first one, at most so many seconds."""
        found: list[Ended] = []
        with suppress(Empty):
            found.append(self._ended.get(block=seconds > 0, timeout=seconds))
            while True:
                found.append(self._ended.get_nowait())
        for ended in found:
            self.running.pop(ended.table, None)
        return found
