"""What would it cost to refresh a view in one way or another?

Seconds, from what would be read and what has changed:

    full          START + rows × ROW
    other ways    queries × QUERY + rows read × LOOKED_AT
                  + (changed rows × relations + rows that those meet) × CHANGED
                  + rows of the view that come and go beyond them × MADE

The rates are those of two cores. Queries differ by more than machines do, so each view corrects
them by what its own refreshes took against what was expected of them: those that were expected to
take about as long, because what is wrong for a small change need not be wrong for a large one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.lake.incremental import Work
from springhouse.lake.note import Note
from springhouse.lake.stores import ROWS_PER_FILE, Store
from springhouse.lake.tables import read_arrow
from springhouse.views.aggregate import COUNT
from springhouse.views.explain import usual_statements
from springhouse.views.spread import spread
from springhouse.views.statement import Kind, Reading, Refresh, Statement
from springhouse.views.variants import Variant, Way

STATE_ROWS = 150_000
"""Inputs of more rows than this are worth building state for, before anything is known."""

BUILDING = "building"
"""What a recomputation that also builds state teaches about."""

_TELLING = 1.0
"""A build that was expected to take less says nothing about rows: it is all fixed costs."""

_COUNTABLE = 100_000
"""In a hidden table of up to so many groups it is counted how many rows were gathered."""

_START = 0.25
_ROW = 0.6e-6
_QUERY = 0.12
_LOOKED_AT = 0.15e-6
_CHANGED = 1.5e-6
_MADE = 4.5e-6
_LESSONS = 5
_ALIKE = 3.0
"""By what factor estimates may differ that teach about each other."""
_MOST = (4.0, 4.0, 20.0)
"""How far so many lessons may correct an estimate: a first refresh in a cold process says little.

More of them are believed whatever they say: a function of the user's may take any time.
"""


@dataclass(frozen=True)
class Cost:
    """What one way of refreshing a view would take now."""

    way: Way
    queries: int
    rows_read: int
    rows_changed: int = 0
    relations: int = 0
    # Rows of other tables that touched groups meet, and rows of the view that come and go beyond
    # those that changed, as far as that can be guessed.
    rows_met: int = 0
    rows_made: int = 0
    # What refreshes of this view took, against what was expected of them.
    correction: float = 1.0

    @property
    def estimate(self) -> float:
        """Seconds, as far as they can be told without the past of the view."""
        if self.way is Way.BATCH:
            return _START + self.rows_read * _ROW
        changed = (self.rows_changed * self.relations + self.rows_met) * _CHANGED
        made = self.rows_made * _MADE
        return self.queries * _QUERY + self.rows_read * _LOOKED_AT + changed + made

    @property
    def seconds(self) -> float:
        return self.estimate * self.correction

    def __str__(self) -> str:
        queries = f"{self.queries} quer{'y' if self.queries == 1 else 'ies'}"
        changed = f", {self.rows_changed:,} changed" if self.rows_changed else ""
        become = self.rows_changed + self.rows_made
        made = f", which become {become:,}" if self.rows_made else ""
        rows = f"{self.rows_read:,} rows read{changed}{made}"
        return f"{self.way.value}: {queries}, {rows}, about {self.seconds:.1f} s"


@dataclass(frozen=True)
class Lesson:
    """A refresh that took so many times what was expected of it."""

    way: str
    expected: float
    wrong: float


@dataclass(frozen=True)
class Past:
    """What the refreshes of a view have taught, the newest last."""

    lessons: tuple[Lesson, ...] = ()

    def correction(self, way: Way, estimate: float) -> float:
        """By what to correct an estimate: the median of what was wrong, and of nothing being so.

        A way that was never tried is like the others. A recomputation need not be: the others may
        be wrong about what a change becomes. It takes no longer than one that also builds state.
        """
        own = [each for each in self.lessons if each.way == way.value]
        built = [each for each in self.lessons if each.way == BUILDING]
        untried = way is Way.BATCH and not own
        telling = [each.wrong for each in built if each.expected >= _TELLING]
        if untried and telling:
            return min(1.0, *telling)
        own = own or [each for each in self.lessons if each.way != BUILDING]
        longest = min((each.wrong for each in built), default=inf) if untried else inf
        low, high = estimate / _ALIKE, estimate * _ALIKE
        alike = [each for each in own if low <= each.expected <= high]
        taught = [each.wrong for each in (alike or own)[-_LESSONS:]]
        most = _MOST[len(alike)] if len(alike) < len(_MOST) else inf
        return min(max(median([1.0, *taught]), 1 / most), most, longest)


def lessons(notes: Iterable[Note], *, foreseen: bool = False) -> Past:
    """What these refreshes teach about estimates; or about `foreseen` ones, that read nothing."""
    expected = [
        (note, note.foreseen if foreseen and note.foreseen > 0.0 else note.expected)
        for note in notes
    ]
    return Past(
        tuple(
            Lesson(_taught(note), seconds, note.seconds / seconds)
            for note, seconds in expected
            # Under a clock that stands, as a test may have one, nothing takes any time.
            if seconds > 0.0 and note.seconds > 0.0
        )
    )


def _taught(note: Note) -> str:
    return BUILDING if note.stateful and note.variant == Way.BATCH.value else note.variant


def cost_of(work: Work, variant: Variant, past: Past) -> Cost:
    """What a variant would read; files that the keys of the change rule out are not counted."""
    if variant.refresh is None:
        rows = sum(version.rows for version in work.after.values())
        return corrected(Cost(variant.way, 1, rows), past)
    asked = [each for step in variant.refresh.steps for each in usual_statements(step)]
    least = _without_reading(work, variant)
    rows, met = 0, 0
    for statement in asked:
        read, meets = _rows_read(work, statement, least.rows_changed)
        rows, met = rows + read, met + meets
    return corrected(replace(least, rows_read=rows, rows_met=least.rows_met + met), past)


def least_cost(work: Work, variant: Variant, past: Past) -> Cost:
    """What a variant takes at least: told from the numbers of changed rows, without reading any."""
    return corrected(_without_reading(work, variant), past)


def foreseen(work: Work, variant: Variant) -> float:
    """What was to be expected of a variant before anything was read, and before it was corrected.

    It is what the planner and the scheduler go by, who look at many views and can't read for each.
    """
    return _without_reading(work, variant).estimate


def corrected(cost: Cost, past: Past) -> Cost:
    """A cost, as the past of the view sees it."""
    return replace(cost, correction=past.correction(cost.way, cost.estimate))


def _without_reading(work: Work, variant: Variant) -> Cost:
    assert variant.refresh is not None
    changed = {name: work.changes[name].rows for name in variant.refresh.changed}
    return unread_cost(variant.way, variant.refresh, changed, work.sizes)


def unread_cost(
    way: Way, refresh: Refresh, changed: Mapping[str, float], rows: Mapping[str, float]
) -> Cost:
    """What a refresh takes as far as numbers of rows tell, `changed` ones and all `rows`."""
    asked = [each for step in refresh.steps for each in usual_statements(step)]
    relations = sum(len(statement.reads) for statement in asked)
    beyond = spread(refresh, changed, rows)
    total = int(sum(changed.values()))
    return Cost(way, len(asked), 0, total, relations, beyond.met, beyond.made)


def _rows_read(work: Work, statement: Statement, changed: int) -> tuple[int, int]:
    """The rows in the files that a statement would read, and how many of them groups meet."""
    tables: dict[str, pa.Table | None] = {}
    for reading in statement.reads:
        known = reading.kind is Kind.CHANGE and reading.of in work.changes
        tables[reading.name] = work.changes[reading.of].arrow if known else None
    rows, met = 0, 0
    for reading in statement.reads:
        if reading.kind not in (Kind.BEFORE, Kind.AFTER, Kind.STORED):
            continue
        near = work.near(reading, tables)
        found = sum(file.rows for file in work.files(reading, near))
        share = _share_of_groups(work, statement, reading, changed)
        if share is not None:
            rows, met = rows + found, met + int(found * share)
            continue
        # Keys that are not known before the statement runs: a guess is that they lie together.
        guessed = len(near) < len(reading.near) or reading.kind is Kind.STORED
        rows += min(found, 2 * ROWS_PER_FILE) if guessed else found
    return rows, met


def _share_of_groups(
    work: Work, statement: Statement, reading: Reading, changed: int
) -> float | None:
    """Which part of a table belongs to groups of a hidden table that a change touches.

    None if it is not looked up by those groups. They are scattered, as far as anybody knows.
    """
    if reading.kind is Kind.STORED:
        return None
    hidden = {
        each.name: work.stores[each.of]
        for each in statement.reads
        if each.kind is Kind.CHANGE and each.of in work.stores
    }
    stores = [
        hidden[relation]
        for near in reading.near
        if len(near.among) == 1
        for relation, _ in near.among
        if relation in hidden and hidden[relation].rows
    ]
    return min((_share(work, store, changed) for store in stores), default=None)


def _share(work: Work, store: Store, changed: int) -> float:
    """Which part of all rows belongs to groups of a hidden table that changed rows touch."""
    rows = sum(work.after[name].rows for name in work.changes)
    # Only few rows may be gathered there at all: then few of the changed ones are, too.
    gathered = min(_gathered(store) / max(rows, 1), 1.0)
    return gathered * min(changed * gathered / store.rows, 1.0)


def _gathered(store: Store) -> float:
    """How many rows the groups of a hidden table were gathered from, as far as it is easily told.

    Unlimited, if it is not.
    """
    if store.rows > _COUNTABLE or COUNT not in store.schema.names:
        return float("inf")
    counts = read_arrow(store.storage, [file.path for file in store.files], [COUNT])
    return float(pc.sum(counts[COUNT]).as_py() or 0)
