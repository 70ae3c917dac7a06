"""Which way of refreshing a view is cheapest now?

Variants are data: what each would read, in rows. The choice is by a simple cost,

    cost = queries × ROWS_PER_QUERY + rows read + CHANGE × rows changed

against the rows that a recomputation reads. Files that the keys of the change rule out are not
counted. A planner may choose otherwise; it finds the same variants here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from springhouse.lake.incremental import Work
from springhouse.views.statement import Bag, Keyed, Kind, Refresh, Statement, Step, Top

ROWS_PER_QUERY = 150_000
"""A query that reads nothing takes about as long as one that reads this many rows."""

CHANGE = 3
"""A changed row is joined, grouped and merged; a row of a recomputation is mostly just read."""


class Kinds(Enum):
    """The ways to refresh a view (004 section 3)."""

    BATCH = "full"
    INCREMENTAL = "incremental"
    ASYNCHRONOUS = "asynchronous"
    RECOMPUTE_GROUPS = "group recompute"


@dataclass(frozen=True)
class Variant:
    """One way to refresh a view now, and what it would read."""

    kind: Kinds
    queries: int
    rows_read: int
    rows_changed: int
    driver: str | None = None

    @property
    def cost(self) -> int:
        return self.queries * ROWS_PER_QUERY + self.rows_read + CHANGE * self.rows_changed

    def __str__(self) -> str:
        by = f" driven by {self.driver}" if self.driver else ""
        return (
            f"{self.kind.value}{by}: {self.queries} quer{'y' if self.queries == 1 else 'ies'}, "
            f"{self.rows_read:,} rows read, {self.rows_changed:,} changed"
        )


def batch(work: Work) -> Variant:
    """Recomputing the view from its inputs."""
    rows = sum(version.rows for version in work.after.values())
    return Variant(Kinds.BATCH, 1, rows, 0)


def incremental(work: Work, refresh: Refresh) -> Variant:
    """Running the steps: what their statements would read."""
    changed = sum(work.changes[name].rows for name in refresh.changed)
    queries, rows, by_groups = 0, 0, False
    for step in refresh.steps:
        asked = _statements(step)
        queries += len(asked)
        rows += sum(_rows_read(work, statement) for statement in asked)
        by_groups = by_groups or (isinstance(step, Keyed) and step.merge is None)
    kind = Kinds.RECOMPUTE_GROUPS if by_groups else Kinds.INCREMENTAL
    return Variant(kind, queries, rows, changed)


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
        if reading.kind in (Kind.BEFORE, Kind.AFTER, Kind.STORED):
            rows += sum(f.rows for f in work.files(reading, work.near(reading, tables)))
    return rows
