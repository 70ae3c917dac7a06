"""What would it cost to refresh a view in one way or another?

Seconds, from what would be read and what has changed:

    full          START + rows × ROW
    other ways    queries × QUERY + rows read × LOOKED_AT + changed rows × relations × CHANGED

The rates are those of two cores. Queries differ by more than machines do, so each view corrects
them by what its own refreshes took against what was expected of them. A planner that knows more
will do better, from the same variants.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

import pyarrow as pa

from springhouse.lake.incremental import Work
from springhouse.lake.note import Note
from springhouse.lake.stores import ROWS_PER_FILE
from springhouse.views.explain import usual_statements
from springhouse.views.statement import Kind, Statement
from springhouse.views.variants import Variant, Way

STATE_ROWS = 150_000
"""Inputs of more rows than this are worth building state for, before anything is known."""

_WORTH_STATE = 0.2
_RELUCTANCE = 4.0

_START = 0.25
_ROW = 0.6e-6
_QUERY = 0.12
_LOOKED_AT = 0.15e-6
_CHANGED = 1.5e-6
_LESSONS = 5
_MOST = 4.0
"""How far the past may correct an estimate: a first refresh in a cold process says little."""


@dataclass(frozen=True)
class Cost:
    """What one way of refreshing a view would take now."""

    way: Way
    queries: int
    rows_read: int
    rows_changed: int = 0
    relations: int = 0
    # What refreshes of this view took, against what was expected of them.
    correction: float = 1.0

    @property
    def estimate(self) -> float:
        """Seconds, as far as they can be told without the past of the view."""
        if self.way is Way.BATCH:
            return _START + self.rows_read * _ROW
        changed = self.rows_changed * self.relations * _CHANGED
        return self.queries * _QUERY + self.rows_read * _LOOKED_AT + changed

    @property
    def seconds(self) -> float:
        return self.estimate * self.correction

    def __str__(self) -> str:
        queries = f"{self.queries} quer{'y' if self.queries == 1 else 'ies'}"
        changed = f", {self.rows_changed:,} changed" if self.rows_changed else ""
        rows = f"{self.rows_read:,} rows read{changed}"
        return f"{self.way.value}: {queries}, {rows}, about {self.seconds:.1f} s"


def cost_of(work: Work, variant: Variant, past: Mapping[str, float] | None = None) -> Cost:
    """What a variant would read; files that the keys of the change rule out are not counted."""
    correction = correction_of(variant.way, past or {})
    if variant.refresh is None:
        rows = sum(version.rows for version in work.after.values())
        return Cost(variant.way, 1, rows, correction=correction)
    asked = [each for step in variant.refresh.steps for each in usual_statements(step)]
    rows = sum(_rows_read(work, statement) for statement in asked)
    return replace(least_cost(work, variant, past or {}), rows_read=rows)


def least_cost(work: Work, variant: Variant, past: Mapping[str, float]) -> Cost:
    """What a variant takes at least: told from the numbers of changed rows, without reading any."""
    assert variant.refresh is not None
    changed = sum(work.changes[name].rows for name in variant.refresh.changed)
    asked = [each for step in variant.refresh.steps for each in usual_statements(step)]
    relations = sum(len(statement.reads) for statement in asked)
    correction = correction_of(variant.way, past)
    return Cost(variant.way, len(asked), 0, changed, relations, correction)


def is_worth_state(saved: float, notes: Iterable[Note]) -> bool:
    """Whether to build state that would have saved so many seconds of this refresh.

    Four times as many for each time that state was built lately and then given up.
    """
    kept = [note.stateful for note in notes]
    given_up = sum(before and not after for before, after in pairwise(kept))
    return saved > _WORTH_STATE * _RELUCTANCE**given_up


def lessons(notes: Iterable[Note]) -> dict[str, float]:
    """By what to correct the estimates of each way, from the newest refreshes of a view.

    The median of what was wrong, together with the belief that nothing was.
    """
    wrong: dict[str, list[float]] = {}
    for note in notes:
        if note.expected > 0.0:
            wrong.setdefault(note.variant, []).append(note.seconds / note.expected)
    found = {way: median([1.0, *each[-_LESSONS:]]) for way, each in wrong.items()}
    return {way: min(max(each, 1 / _MOST), _MOST) for way, each in found.items()}


def correction_of(way: Way, past: Mapping[str, float]) -> float:
    """By what to correct the estimate of a way; one that was never tried is like the others."""
    return past.get(way.value, median(past.values()) if past else 1.0)


def _rows_read(work: Work, statement: Statement) -> int:
    """The rows in the files that a statement would read."""
    tables: dict[str, pa.Table | None] = {}
    for reading in statement.reads:
        known = reading.kind is Kind.CHANGE and reading.of in work.changes
        tables[reading.name] = work.changes[reading.of].arrow if known else None
    rows = 0
    for reading in statement.reads:
        if reading.kind not in (Kind.BEFORE, Kind.AFTER, Kind.STORED):
            continue
        near = work.near(reading, tables)
        found = sum(file.rows for file in work.files(reading, near))
        # Keys that are not known before the statement runs: a guess is that they lie together.
        guessed = len(near) < len(reading.near) or reading.kind is Kind.STORED
        rows += min(found, 2 * ROWS_PER_FILE) if guessed else found
    return rows
