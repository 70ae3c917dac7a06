"""What would a warehouse do in which no refresh ever waits for a track?

This is the ideal against which a schedule is measured (001 sections 2.3 and 4.1). The arrivals and
the dice are the same, but every refresh starts when it is released. A refresh waits only for
another one of the same table, since two of them may not run at a time.
"""

from collections.abc import Collection

from springhouse.refresh.job import Start
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.refresh.waiting import Waiting
from springhouse.units import Instant, Seconds


class Uncontended:
    """Decider like a scheduler that has a track for every table."""

    tracks: tuple[int, ...] = ()

    def __init__(self) -> None:
        self._pending: dict[str, tuple[Instant, Instant]] = {}
        self._running: set[str] = set()

    def declare(self, table: TableProfile, freshness: Instant | None = None) -> None:
        """Do nothing: a refresh that starts at once needs no profile."""

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
        zero = Seconds(0.0)
        return [
            Waiting(name, since, now, zero, zero, 0.0, "", ())
            for name, (_, since) in self._pending.items()
        ]

    def next_change(self, now: Instant) -> Instant | None:
        return None
