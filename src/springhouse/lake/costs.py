"""What would it cost to refresh a view in one way or another?

A simple cost in rows:

    cost = queries × ROWS_PER_QUERY + rows read + CHANGE × rows changed

A planner that learns what queries really take will do better, from the same variants.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from springhouse.lake.incremental import Work
from springhouse.lake.stores import ROWS_PER_FILE
from springhouse.views.statement import Bag, Keyed, Kind, Statement, Step, Top
from springhouse.views.variants import Variant, Way

ROWS_PER_QUERY = 150_000
"""A query that reads nothing takes about as long as one that reads this many rows."""

CHANGE = 3
"""A changed row is joined, grouped and merged; a row of a recomputation is mostly just read."""


@dataclass(frozen=True)
class Cost:
    """What one way of refreshing a view would take now."""

    way: Way
    queries: int
    rows_read: int
    rows_changed: int = 0

    @property
    def total(self) -> int:
        return self.queries * ROWS_PER_QUERY + self.rows_read + CHANGE * self.rows_changed

    def __str__(self) -> str:
        queries = f"{self.queries} quer{'y' if self.queries == 1 else 'ies'}"
        changed = f", {self.rows_changed:,} changed" if self.rows_changed else ""
        return f"{self.way.value}: {queries}, {self.rows_read:,} rows read{changed}"


def cost_of(work: Work, variant: Variant) -> Cost:
    """What a variant would read; files that the keys of the change rule out are not counted."""
    if variant.refresh is None:
        rows = sum(version.rows for version in work.after.values())
        return Cost(variant.way, 1, rows)
    changed = sum(work.changes[name].rows for name in variant.refresh.changed)
    asked = [each for step in variant.refresh.steps for each in _statements(step)]
    rows = sum(_rows_read(work, statement) for statement in asked)
    return Cost(variant.way, len(asked), rows, changed)


def _statements(step: Step) -> Sequence[Statement]:
    """The statements of a step that run in the usual case."""
    match step:
        case Keyed():
            return [step.merge] if step.merge is not None else [step.increments, step.recompute]
        case Bag():
            return [step.change]
        case Top():
            return [step.candidates or step.build]


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
