"""What would a warehouse do in which nothing ever has to wait for a track?

The ideal against which a schedule is measured (001 sections 2.3 and 4.1): the same arrivals and the
same luck, but every refresh starts when it is released. Only a table that is being refreshed
already waits for that, since no two refreshes of one table may run at a time.
"""

from collections.abc import Collection

from springhouse.refresh.job import Start
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.refresh.waiting import Waiting
from springhouse.units import Instant, Seconds


class Uncontended:
    """Decides like a scheduler that has a track for every table."""

    tracks: tuple[int, ...] = ()

    def __init__(self) -> None:
        self._pending: dict[str, tuple[Instant, Instant]] = {}
        self._running: set[str] = set()

    def declare(self, table: TableProfile, freshness: Instant | None = None) -> None:
        """Nothing has to be known of a table to start it at once."""

    def arrived(
        self, name: str, now: Instant, *, freshness: Instant, since: Instant | None = None
    ) -> None:
        first = since if since is not None else now
        waiting = self._pending.get(name)
        self._pending[name] = freshness, first if waiting is None else waiting[1]

    def finished(self, name: str, now: Instant, *, seconds: float | None = None) -> None:
        self._running.discard(name)

    def starts(self, free_tracks: Collection[int], now: Instant) -> list[Start]:
        ready = [name for name in self._pending if name not in self._running]
        self._running.update(ready)
        return [Start(name, 0, *self._pending.pop(name)) for name in ready]

    def order(self, now: Instant) -> list[Waiting]:
        nothing = Seconds(0.0)
        return [
            Waiting(name, since, now, nothing, nothing, 0.0, "", ())
            for name, (_, since) in self._pending.items()
        ]

    def next_change(self, now: Instant) -> Instant | None:
        return None
