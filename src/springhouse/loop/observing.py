"""What waits in the sources of base tables, and since when?

`Observing` asks each source once in its period (`Sources`) and remembers the answers: since when
data waits, and every end of the source at which it had grown. A refresh of a part of the data can
stop at one of these ends. Asking writes nothing. Data gets its offsets when a refresh loads it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from springhouse.project.declarations.declaration import Table
from springhouse.units import Instant, Seconds

STREAM_PATIENCE = Seconds(10.0)
"""The longest pause between two runs of a streaming function that found nothing new."""

_LONG_AGO = Instant(float("-inf"))
_MOST_ENDS = 256
"""The number of ends to remember per source; a refresh of a part may stop at each of them."""


@dataclass(frozen=True)
class SourceAnswer:
    """The new data in the sources of one table.

    The data lies between `begins` and `ends`, by transaction. `is_cut` says that one commit can't
    take all of it, and `calls` that there is other work to do. A source with a `problem` can't
    answer; one with a `warning` can.
    """

    begins: Mapping[str, int] = field(default_factory=dict)
    ends: Mapping[str, int] = field(default_factory=dict)
    is_cut: bool = False
    calls: bool = False
    problem: str | None = None
    warning: str | None = None


@dataclass(frozen=True)
class LastRun:
    """When this process last refreshed a table, and how long a stream pauses after that."""

    at: Instant | None = None
    pause: Seconds = Seconds(0.0)


class Sources(Protocol):
    """The sources of base tables, as the loop sees them."""

    def ask(self, table: str, last: LastRun, now: Instant) -> SourceAnswer:
        """The data that a table does not have yet."""
        ...

    def versions_read(self, table: str) -> Sequence[int]:
        """The newest versions of the warehouse's own tables that a table reads."""
        ...

    def has(self, table: str, ends: Mapping[str, int]) -> bool:
        """Whether a table has everything up to these ends."""
        ...

    def purpose(self, table: str) -> str:
        """The reason for a refresh of the table, if data waits for it."""
        ...

    def companions(self, table: str, others: Sequence[str]) -> list[str]:
        """The tables among `others` for which the same records wait as for this table."""
        ...


@dataclass
class _Seen:
    """The observations of the sources of one table."""

    asked: Instant = _LONG_AGO
    # The newest versions of the warehouse's own tables among the sources.
    read: Sequence[int] = ()
    waiting_since: Instant | None = None
    answer: SourceAnswer = field(default_factory=SourceAnswer)
    # Each end of the sources that is not loaded yet, and when it was first seen.
    ends: list[tuple[Instant, Mapping[str, int]]] = field(default_factory=list)
    last: LastRun = field(default_factory=LastRun)


class Observing:
    """The observations of the sources of one project's tables."""

    def __init__(
        self, tables: Mapping[str, Table], sources: Sources, owns: Callable[[str], bool]
    ) -> None:
        self._tables = tables
        self._sources = sources
        self._owns = owns
        self._seen = {name: _Seen() for name in tables}

    # --- Asking ----------------------------------------------------------------------------------

    def poll(self, now: Instant, *, all_of_them: bool = False) -> None:
        """Ask the sources that are due by their periods.

        A source that is a table of the warehouse is asked as soon as its log has a new version.
        """
        for name, table in self._owned():
            seen, versions = self._seen[name], self._sources.versions_read(name)
            if all_of_them or now - seen.asked >= table.period_seconds or versions != seen.read:
                seen.read = versions
                self._ask(name, seen, now)

    def next_poll(self, now: Instant) -> Seconds:
        """How long until some source is due."""
        dues = [self._seen[n].asked + table.period_seconds - now for n, table in self._owned()]
        return Seconds(max(min(dues, default=1.0), 0.0))

    def _owned(self) -> list[tuple[str, Table]]:
        return [each for each in self._tables.items() if self._owns(each[0])]

    def _ask(self, name: str, seen: _Seen, now: Instant) -> None:
        seen.asked = now
        answer = seen.answer = self._sources.ask(name, seen.last, now)
        seen.ends = [each for each in seen.ends if _is_beyond(each[1], answer.begins)]
        if answer.ends and (not seen.ends or seen.ends[-1][1] != answer.ends):
            seen.ends = [*seen.ends[-_MOST_ENDS:], (now, answer.ends)]
        # A table with a problem wants a refresh, too: it reports the problem, and is tried again.
        if not answer.ends and not answer.calls and answer.problem is None:
            seen.waiting_since = None
        elif seen.waiting_since is None:
            seen.waiting_since = now

    # --- What happens ----------------------------------------------------------------------------

    def take_over(self, table: str) -> None:
        """Forget the observations of a table's sources: until now another process refreshed it."""
        if table in self._seen:
            self._seen[table] = _Seen()

    def ran(self, table: str, now: Instant, *, found_something: bool) -> None:
        """A refresh of a table ended: from the next poll on, data may wait again.

        If the refresh left data that was known to wait, the next poll is at once. Data that came
        during the refresh waits for the period of the source. Otherwise a source that always has a
        little more data would be refreshed all the time.
        """
        seen = self._seen.get(table)
        if seen is None:
            return
        longer = min(max(seen.last.pause, 1.0) * 2, STREAM_PATIENCE)
        seen.last = LastRun(now, Seconds(0.0) if found_something else Seconds(longer))
        seen.waiting_since = None
        is_left = seen.answer.is_cut or not self._sources.has(table, seen.answer.ends)
        if not found_something or is_left:
            seen.asked = _LONG_AGO

    # --- What was seen ---------------------------------------------------------------------------

    def since(self, table: str) -> Instant | None:
        """Since when data waits for a table; None if no data waits, or if another node loads it."""
        return self._seen[table].waiting_since if self._owns(table) else None

    def reason(self, table: str) -> str:
        """Why a table is to be refreshed."""
        return self._sources.purpose(table)

    def answer(self, table: str) -> SourceAnswer:
        """The last answer of a table's sources."""
        seen = self._seen.get(table)
        return seen.answer if seen is not None else SourceAnswer()

    def seen_until(self, table: str) -> Instant | None:
        """When the newest data that waits in a table's sources was first seen; None without any."""
        ends = self._seen[table].ends
        return ends[-1][0] if ends else None

    def ends_at(self, table: str, moment: Instant) -> Mapping[str, int] | None:
        """Where the sources ended at a moment; None if they have not grown since."""
        ends = self._seen[table].ends
        if not ends or moment >= ends[-1][0]:
            return None
        return next((ends_then for at, ends_then in reversed(ends) if at <= moment), ends[0][1])

    def companions(self, table: str) -> list[str]:
        """The tables of this node for which the same records wait as for this table."""
        waiting = [
            name
            for name, seen in self._seen.items()
            if name != table
            and seen.waiting_since is not None
            and seen.answer.problem is None
            and self._owns(name)
        ]
        return self._sources.companions(table, waiting) if waiting else []


def _is_beyond(ends: Mapping[str, int], begins: Mapping[str, int]) -> bool:
    """Whether these ends lie beyond the loaded data."""
    return any(end > begins.get(transaction, end) for transaction, end in ends.items())
