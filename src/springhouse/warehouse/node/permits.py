"""Which refreshes may this warehouse run?

A single warehouse may run all of them. A node of a cluster needs permits: the cluster gives it
units and takes them back, with the messages of `cluster.messages`, and the node reports each
release. A unit is a view, a base table, or one partition of the sources of a base table
(`clicks/3`), if the table ingests partitions independently of each other.

    a refresh starts only if this node owns a unit of its table
    it commits only while its permit is valid and the node knows of a quorum
    a unit is reported as released when no running refresh can commit into it any more

So `let_go` waits for the running refresh, unless it is `at_once`: then it revokes the permit
immediately. A commit may slip through between the check of the permit and the write. Then the Delta
transaction refuses it, as it refuses any second writer.
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
    """The right of a refresh to commit; the node may lose it while the refresh runs."""

    table: str
    may_process: Callable[[], bool]
    taken_back: bool = False

    def prove(self) -> None:
        """Raise `NotOwned` if the refresh may not commit any more."""
        if self.taken_back or not self.may_process():
            raise NotOwned(
                f"{self.table} belongs to another node by now; this refresh is dropped",
                hint="Its new owner goes on from the last commit; there is nothing to do.",
            )


@dataclass
class _UnitWork:
    """The running refreshes of one table, and the units to release when they end."""

    permits: list[Permit] = field(default_factory=list)
    leaving: list[str] = field(default_factory=list)


class Permits:
    """The units and permits of a warehouse. Safe to use from several threads."""

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
        """Set the function that receives reports, and the check whether this node may process."""
        self._tell, self._may_process = tell, may_process

    # --- For the cluster -------------------------------------------------------------------------

    def take(self, units: tuple[tuple[str, int], ...]) -> None:
        """Own these units from now on."""
        with self._lock:
            for unit, _ in units:
                self._units.add(unit)
                self._fresh.add(table_of(unit))
            self._count()

    def let_go(self, units: tuple[str, ...], *, at_once: bool) -> None:
        """Start no more refreshes in these units; release them when none can commit to them."""
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

    # --- For the warehouse -----------------------------------------------------------------------

    @property
    def units(self) -> frozenset[str]:
        """The units that this node owns now."""
        with self._lock:
            return frozenset(self._units)

    def owns(self, table: str) -> bool:
        """Whether this node owns a table, or any partition of its sources."""
        return self._everything or table in self._tables

    def owns_partition(self, table: str, partition: str) -> bool:
        """Whether this node ingests one partition of a table's sources.

        The first commit of a table stores the facts that its sources have to remember, so it needs
        one author: the owner of the first partition ingests all of them, and the others wait.
        """
        if self._everything or table in self._units:
            return True
        first = self._first.get(table)
        if first is not None and table not in self._begun:
            return unit_of(table, first) in self._units
        return unit_of(table, partition) in self._units

    def delivers(self, table: str) -> bool:
        """Whether this node delivers the changes of a table to its sinks; exactly one node does.

        If the partitions of a table have several owners, this is the owner of the first one.
        """
        if self._everything:
            return True
        first = self._first.get(table)
        unit = table if first is None else unit_of(table, first)
        return self._may_process() and (table in self._units or unit in self._units)

    def surveyed(self, first: Mapping[str, str], begun: Iterable[str]) -> None:
        """Note the first partition of every table that has several, and the tables with commits."""
        with self._lock:
            self._first, self._begun = first, set(begun)

    def newly_taken(self) -> set[str]:
        """The tables that this node has come to own since the last call."""
        with self._lock:
            fresh, self._fresh = self._fresh, set()
        return fresh

    def begin(self, table: str) -> Permit:
        """Issue the permit of a refresh that starts."""
        permit = Permit(table, self._may_process)
        with self._lock:
            permit.taken_back = not self.owns(table)
            self._work.setdefault(table, _UnitWork()).permits.append(permit)
        return permit

    def ended(self, table: str) -> None:
        """Release the units that waited for the end of a table's refresh."""
        with self._lock:
            work = self._work.pop(table, None)
        if work is not None and work.leaving:
            self._tell(Released(tuple(work.leaving)))

    def progressed(self, offsets: Mapping[str, int]) -> None:
        """Report the offsets that the tables of units have reached."""
        if not self._everything:
            for unit, offset in offsets.items():
                self._tell(Progressed(unit, offset))
