"""Which refreshes may this warehouse run, and whose word is that?

A warehouse alone may run all of them. One that is a node of a cluster works by permits: the cluster
tells it which units to take and to let go, in the words of `cluster.messages`, and hears when it
has let go. A unit is a view, a base table, or one partition of the sources of a base table
(`clicks/3`), where the table takes in partitions independently of each other.

    a refresh starts only if something of its table is owned
    it commits only while the permit that it started with is valid, and a quorum is known of
    a unit is told as released when no refresh is under way that could still commit into it

So `let_go` waits for the running refresh, unless it is `at_once`: then the permit is taken back on
the spot. What comes too late all the same (between the look at the permit and the write) is refused
by the Delta transaction, as any second writer is.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from springhouse.cluster.messages import Event, Progressed, Released
from springhouse.errors import NotOwned


def unit_of(table: str, partition: str | None = None) -> str:
    """The name of a view or table as a unit, or of one partition of its sources.

    >>> unit_of("orders"), unit_of("clicks", "3")
    ('orders', 'clicks/3')
    """
    return table if partition is None else f"{table}/{partition}"


def table_of(unit: str) -> str:
    """The table or view that a unit belongs to."""
    return unit.partition("/")[0]


@dataclass
class Permit:
    """What a refresh was allowed when it started; it may be taken back."""

    table: str
    may_process: Callable[[], bool]
    taken_back: bool = False

    def prove(self) -> None:
        """Raise `NotOwned` if nothing may be committed by it any more."""
        if self.taken_back or not self.may_process():
            raise NotOwned(
                f"{self.table} is not this node's any more; what was computed is given up",
                hint="Its new owner goes on from the last commit; there is nothing to do.",
            )


@dataclass
class _UnitWork:
    """The refreshes of one table that run, and the units that are released when they have ended."""

    permits: list[Permit] = field(default_factory=list)
    leaving: list[str] = field(default_factory=list)


class Permits:
    """What one warehouse may do. Safe to use from several threads."""

    def __init__(self, *, everything: bool = True) -> None:
        self._everything = everything
        self._units: set[str] = set()
        self._tables: dict[str, int] = {}
        self._fresh: set[str] = set()
        self._work: dict[str, _UnitWork] = {}
        self._first: Mapping[str, str] = {}
        self._begun: set[str] = set()
        self._tell: Callable[[Event], None] = lambda event: None
        self._may_process: Callable[[], bool] = lambda: True
        self._lock = threading.Lock()
        self.tracks_busy = 0.0
        self.backlog_seconds = 0.0

    def report_to(self, tell: Callable[[Event], None], may_process: Callable[[], bool]) -> None:
        """Who is told what was let go, and who knows whether there is a quorum."""
        self._tell, self._may_process = tell, may_process

    # --- The cluster's side ---------------------------------------------------------------------

    def take(self, units: tuple[tuple[str, int], ...]) -> None:
        """Begin with these units."""
        with self._lock:
            for unit, _ in units:
                self._units.add(unit)
                self._fresh.add(table_of(unit))
            self._count()

    def let_go(self, units: tuple[str, ...], *, at_once: bool) -> None:
        """Begin nothing more in these; they are released when nothing can be committed to them."""
        released = []
        with self._lock:
            self._units.difference_update(units)
            self._count()
            for unit in units:
                work = self._work.get(table_of(unit))
                if work is None or at_once:
                    released.append(unit)
                elif unit not in work.leaving:
                    work.leaving.append(unit)
                if work is not None and at_once:
                    work.leaving = [each for each in work.leaving if each != unit]
                    for permit in work.permits:
                        permit.taken_back = True
        if released:
            self._tell(Released(tuple(released)))

    def _count(self) -> None:
        self._tables = {}
        for unit in self._units:
            table = table_of(unit)
            self._tables[table] = self._tables.get(table, 0) + 1

    # --- The warehouse's side
    # -----------------------------------------------------------------------

    @property
    def units(self) -> frozenset[str]:
        """What is owned now."""
        with self._lock:
            return frozenset(self._units)

    def owns(self, table: str) -> bool:
        """Whether anything of a table is this node's."""
        return self._everything or table in self._tables

    def owns_partition(self, table: str, partition: str) -> bool:
        """Whether this node takes in one partition of a table's sources.

        The first commit of a table writes down what its sources have to remember, so it has one
        author: who owns the first partition takes in all of them, and the others wait for it.
        """
        if self._everything or table in self._units:
            return True
        first = self._first.get(table)
        if first is not None and table not in self._begun:
            return unit_of(table, first) in self._units
        return unit_of(table, partition) in self._units

    def delivers(self, table: str) -> bool:
        """Whether this node brings the changes of a table to its sinks: one node does.

        Of a table whose partitions have several owners it is the owner of the first one.
        """
        if self._everything:
            return True
        first = self._first.get(table)
        unit = table if first is None else unit_of(table, first)
        return self._may_process() and (table in self._units or unit in self._units)

    def surveyed(self, first: Mapping[str, str], begun: Iterable[str]) -> None:
        """The first partition of each table with several, and which of those have a commit."""
        with self._lock:
            self._first, self._begun = first, set(begun)

    def newly_taken(self) -> set[str]:
        """The tables of which something was taken since this was last asked."""
        with self._lock:
            fresh, self._fresh = self._fresh, set()
        return fresh

    def begin(self, table: str) -> Permit:
        """A refresh of a table starts."""
        permit = Permit(table, self._may_process)
        with self._lock:
            permit.taken_back = not self.owns(table)
            self._work.setdefault(table, _UnitWork()).permits.append(permit)
        return permit

    def ended(self, table: str) -> None:
        """The refresh of a table has ended, however it did."""
        with self._lock:
            work = self._work.pop(table, None)
        if work is not None and work.leaving:
            self._tell(Released(tuple(work.leaving)))

    def progressed(self, offsets: Mapping[str, int]) -> None:
        """How far units got, as it stands in their tables."""
        if not self._everything:
            for unit, offset in offsets.items():
                self._tell(Progressed(unit, offset))
