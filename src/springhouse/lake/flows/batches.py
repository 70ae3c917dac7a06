"""Which versions of its sources does a numbered batch read, and which targets have it?

Batches of a flow are numbered 1, 2, 3, …. Every target counts them in its own Delta log, as the
transaction `springhouse/<flow>`. Three rules:

    no gaps              batch n needs every target at n - 1 or later
    pins never change    the first attempt commits the versions of its sources into one of its
                         targets; every repeat reads these versions, even if newer ones exist
    no repeats           a batch that all targets have does nothing

So if a flow dies between the commits of two targets, a repeat gives both targets the same rows. The
pin is a commit without rows, because it must survive vacuum and must exist only once. If two
attempts begin at the same time, both use the pin that was committed first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.types import StructType

from springhouse.errors import CommitConflict, LakeError
from springhouse.flows.flow_graph import FlowError
from springhouse.lake.delta.commits import Change, commit, ensure
from springhouse.lake.delta.log import TableLog
from springhouse.lake.delta.note import FlowNote, Note
from springhouse.lake.delta.requirements import Requirement
from springhouse.lake.delta.tables import open_table
from springhouse.lake.flows.portions import TableSource
from springhouse.lake.storage.clock import steady_clock
from springhouse.lake.storage.storage import Storage

_TRIES = 10


@dataclass(frozen=True)
class Pin:
    """A version of a source; `table` is the identity of its Delta table."""

    table: str
    version: int


@dataclass(frozen=True)
class FlowBatch:
    """One numbered batch of a flow."""

    flow: str
    number: int

    def __post_init__(self) -> None:
        if type(self.number) is not int or self.number < 1:  # True is an int, too
            raise FlowError(
                f"batches are numbered 1, 2, 3, …; {self.number!r} is no such number",
                hint="Leave batch= out to run the flow without a number.",
            )

    @property
    def transaction(self) -> str:
        """The name of the transaction that counts the batches of a target."""
        return f"springhouse/{self.flow}"

    @property
    def _begun(self) -> str:
        return f"springhouse/{self.flow}/begun"

    def is_done(self, places: Mapping[str, Storage]) -> bool:
        """Whether all these targets have the batch."""
        opened = [open_table(place) for place in places.values()]
        return bool(opened) and all(
            table is not None and table.offset(self.transaction) >= self.number for table in opened
        )

    def missing(self, places: Mapping[str, Storage]) -> tuple[str, ...]:
        """The targets without this batch; an error if one of them lacks an earlier batch, too."""
        missing = []
        for name, place in places.items():
            opened = open_table(place)
            last = 0 if opened is None else opened.offset(self.transaction)
            if last < self.number - 1:
                has = f"has batch {last} of it last" if last else "has no batch of it yet"
                raise FlowError(
                    f'batch {self.number} of the flow "{self.flow}" would leave a gap: '
                    f'"{name}" {has}',
                    where=place.root,
                    hint=f"Run batch {last + 1} first. Targets that have it already get nothing.",
                )
            if last < self.number:
                missing.append(name)
        return tuple(missing)

    def pins(self, places: Mapping[str, Storage]) -> Mapping[str, Pin] | None:
        """The versions of the sources in the first attempt; None if this attempt is the first."""
        begun = False
        for name, place in places.items():
            opened = open_table(place)
            if opened is None or opened.offset(self._begun) < self.number:
                continue
            begun = True
            for result in reversed(TableLog(place, name).commits()):
                report = result.note.flows.get(self.flow) if result.note is not None else None
                if report is not None and report.memory.get("batch") == self.number:
                    return {n: Pin(*pin) for n, pin in report.memory["sources"].items()}
        if begun:
            raise LakeError(
                f'batch {self.number} of the flow "{self.flow}" was begun before, and the log that '
                "says which versions it read is gone",
                hint="Targets that lack it can't be given the same rows. Run the flow under "
                "another name, into new tables.",
            )
        return None

    def pin(
        self,
        places: Mapping[str, Storage],
        schemas: Mapping[str, StructType],
        sources: Mapping[str, TableSource],
        requires: Sequence[Requirement] = (),
    ) -> Mapping[str, Pin]:
        """Fix the versions of the sources for this and every later attempt."""
        mine = {name: Pin(source.identity, source.version) for name, source in sources.items()}
        name, place = next(iter(places.items()))
        report = {n: [pin.table, pin.version] for n, pin in mine.items()}
        memory = {"batch": self.number, "sources": report}
        for _ in range(_TRIES):
            ground = ensure(place, schemas[name], self._note({}), requires)
            if ground.offset(self._begun) >= self.number:
                break
            change = Change(
                self._note(memory, ground.rows), transactions={self._begun: self.number}
            )
            try:
                commit(ground, change, requires)
            except CommitConflict:
                continue
            return mine
        first = self.pins(places)
        assert first is not None, "another attempt pinned the batch, and its pin can't be found"
        return first

    def _note(self, memory: Mapping[str, object], rows: int = 0) -> Note:
        return Note(
            kind="append",
            at=steady_clock(),
            channel=True,
            variant="flow",
            reason=f"begins batch {self.number}" if memory else "",
            rows=rows,
            changes=(),
            flows={self.flow: FlowNote(memory=memory)} if memory else {},
        )

    def opened(self, location: str, source: str, pins: Mapping[str, Pin] | None) -> TableSource:
        """A source at its pinned version; at the newest version if none is pinned."""
        if pins is None:
            return TableSource(location)
        if source not in pins:
            raise FlowError(
                f'batch {self.number} of the flow "{self.flow}" was begun without the source '
                f'"{source}" as a Delta table',
                hint="Repeat a batch with the sources of its first attempt.",
            )
        pin = pins[source]
        newest = TableSource(location)
        if newest.identity != pin.table:
            raise FlowError(
                f'batch {self.number} of the flow "{self.flow}" was begun with another table as '
                f'its source "{source}"',
                where=location,
                hint="Repeat a batch with the sources of its first attempt. If this table was made "
                "anew, run the flow under another name, into new tables.",
            )
        return newest if newest.version == pin.version else TableSource(location, pin.version)
