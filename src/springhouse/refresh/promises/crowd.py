"""Several promises come due together: when must the first of their refreshes start?

Each job alone could start at its latest start, but the jobs can't all start at once. With N tracks,
the k-th job can start only after the jobs before it. So the first job has to start at

    wake  =  min over k of ( latest start of k  -  (E of the 1st + … + E of the (k-1)-th) / N )

When the first job has started, the same rule holds for the rest: a crowd starts job by job, the
last one at its latest start. No job hurries in the first half of the time that its promise leaves.
Otherwise, in an overload, every job would always be urgent, and none would start just in time.
"""

from bisect import bisect_left, insort
from math import inf

from springhouse.refresh.table.scheduled_table import ScheduledTable

_LOOKED_AT = 32
"""Only so many jobs of a crowd count; the later jobs count when the first have started."""


class Crowd:
    """The waiting jobs with a promise that are not urgent yet, by their latest start."""

    __slots__ = ("_due", "_tracks", "_wake")

    def __init__(self, tracks: int) -> None:
        self._due: list[tuple[float, int, ScheduledTable]] = []
        self._tracks = tracks
        self._wake: float | None = inf

    def resize(self, tracks: int) -> None:
        self._tracks, self._wake = tracks, None

    def put(self, table: ScheduledTable, latest: float) -> None:
        """Note that a job has to start by `latest`."""
        before = table.due
        if before is not None:
            if before[0] == latest:
                return
            self._remove(before)
        table.due = latest, table.order, table
        insort(self._due, table.due)
        self._wake = None

    def leave(self, table: ScheduledTable) -> None:
        """Remove a job that has started, is urgent already, or is no longer wanted."""
        if table.due is not None:
            self._remove(table.due)
            table.due = None
            self._wake = None

    def wake(self) -> float:
        """When the first job becomes urgent because of the jobs after it."""
        if self._wake is None:
            self._wake = self._found()
        return self._wake

    def hurried(self, now: float) -> list[ScheduledTable]:
        """The jobs that are urgent by now; they leave the crowd."""
        hurried = []
        while self.wake() <= now:
            table = self._due[0][2]
            self.leave(table)
            hurried.append(table)
        return hurried

    def _remove(self, entry: tuple[float, int, ScheduledTable]) -> None:
        del self._due[bisect_left(self._due, entry)]

    def _found(self) -> float:
        if not self._due:
            return inf
        wake, ahead = inf, 0.0
        for latest, _, table in self._due[:_LOOKED_AT]:
            wake = min(wake, latest - ahead)
            ahead += table.part_seconds / self._tracks
        first = self._due[0]
        return max(wake, (first[0] + first[2].pending.oldest.since) / 2)
