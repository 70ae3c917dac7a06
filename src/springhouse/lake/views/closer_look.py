"""Which facts are known before a view is refreshed, and what does a closer look add?

The planner chooses by these facts (`planner.way.choose_way`): the work of the statements
(`views.effort`) and the numbers of rows in the Delta logs. They need no data. A closer look reads
the keys that changed, and leaves out the files that can't hold these keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.lake.delta.stores import ROWS_PER_FILE, Store
from springhouse.lake.delta.tables import read_arrow
from springhouse.lake.views.incremental import Work
from springhouse.planner.placement import counts_here
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.way.choose_way import WayFacts
from springhouse.planner.way.past_refreshes import Past
from springhouse.planner.way.refresh_cost import WayCost, with_state
from springhouse.views import variants
from springhouse.views.compile import Compiled
from springhouse.views.delta.aggregate import COUNT
from springhouse.views.delta.statement import Refresh, RelationKind, RelationRead, Statement
from springhouse.views.effort import effort_of, read_again
from springhouse.views.explanation import usual_statements
from springhouse.views.variants import Way, regrouped, synchronous


def variant_of(way: Way) -> WidgetVariant:
    """The planner's name for a way."""
    return WidgetVariant[way.name]


def batch_cost(rows: float) -> WayCost:
    """The cost of a recomputation that reads this number of rows."""
    return WayCost(WidgetVariant.BATCH, 1, int(rows))


def change_cost(
    way: Way, refresh: Refresh, changed: Mapping[str, float], rows: Mapping[str, float]
) -> WayCost:
    """The cost of a refresh, from numbers of rows alone: the `changed` ones and all `rows`."""
    work = effort_of(refresh, changed, rows)
    return WayCost(
        variant_of(way), work.queries, 0, work.changed, work.relations, work.met, work.made
    )


def ways_by_change(
    compiled: Compiled, changed: frozenset[str]
) -> dict[WidgetVariant, variants.RefreshVariant]:
    """The ways that take in all changes of these inputs, the usual way first."""
    other = regrouped(compiled, changed)
    found = [synchronous(compiled, changed), *([other] if other is not None else [])]
    return {variant_of(each.way): each for each in found}


def facts_of(
    compiled: Compiled,
    changed: Mapping[str, float],
    rows: Mapping[str, float],
    past: Past,
) -> WayFacts:
    """The facts about a refresh that follow from numbers of rows.

    `rows` are the rows of the inputs, of the hidden tables and, under the name "", of the view.
    """
    inputs = {name: rows.get(name, 0.0) for name in compiled.inputs}
    hidden = sum(rows.get(name, 0.0) for name in compiled.hidden.values())
    batch = batch_cost(sum(inputs.values()))
    moved = frozenset(changed) or frozenset(compiled.inputs)
    costs = []
    for each in ways_by_change(compiled, moved).values():
        assert each.refresh is not None
        costs.append(change_cost(each.way, each.refresh, changed, rows))
    building = with_state(batch, read_again(compiled, inputs), int(hidden))
    return WayFacts(batch, building, tuple(costs), past)


@dataclass(frozen=True)
class CloserLook:
    """A closer look at one refresh: the keys that changed, and the files that may hold them."""

    work: Work
    ways: Mapping[WidgetVariant, variants.RefreshVariant]

    def cost(self, way: WidgetVariant) -> WayCost:
        """The cost of a way, which counts only files that may hold the changed keys."""
        return looked_cost(self.work, self.ways[way])


def unread_cost(work: Work, variant: variants.RefreshVariant) -> WayCost:
    """The cost of a variant, estimated without reading data."""
    assert variant.refresh is not None
    changed = {name: work.changes[name].rows for name in variant.refresh.changed}
    return change_cost(variant.way, variant.refresh, changed, work.sizes)


def looked_cost(work: Work, variant: variants.RefreshVariant) -> WayCost:
    """The cost of a variant, which counts only files that may hold the keys of the change."""
    least = unread_cost(work, variant)
    assert variant.refresh is not None
    rows, met = 0, 0
    for step in variant.refresh.steps:
        for statement in usual_statements(step):
            read, meets = _rows_read(work, statement, least.rows_changed)
            rows, met = rows + read, met + meets
    return replace(least, rows_read=rows, rows_met=least.rows_met + met)


def _rows_read(work: Work, statement: Statement, changed: int) -> tuple[int, int]:
    """The rows in the files that a statement would read, and how many are in touched groups."""
    tables: dict[str, pa.Table | None] = {}
    for reading in statement.reads:
        known = reading.kind is RelationKind.CHANGE and reading.of in work.changes
        tables[reading.name] = work.changes[reading.of].arrow if known else None
    rows, met = 0, 0
    for reading in statement.reads:
        if reading.kind not in (RelationKind.BEFORE, RelationKind.AFTER, RelationKind.STORED):
            continue
        near = work.near(reading, tables)
        found = sum(file.rows for file in work.files(reading, near))
        share = _share_of_groups(work, statement, reading, changed)
        if share is not None:
            rows, met = rows + found, met + int(found * share)
            continue
        # Some keys are known only when the statement runs: guess that they lie close together.
        guessed = len(near) < len(reading.near) or reading.kind is RelationKind.STORED
        rows += min(found, 2 * ROWS_PER_FILE) if guessed else found
    return rows, met


def _share_of_groups(
    work: Work, statement: Statement, reading: RelationRead, changed: int
) -> float | None:
    """The share of a table that belongs to the groups of a hidden table that a change touches.

    None if the statement does not look the table up by such groups. The estimate assumes that the
    groups are scattered over the table.
    """
    if reading.kind is RelationKind.STORED:
        return None
    hidden = {
        each.name: work.stores[each.of]
        for each in statement.reads
        if each.kind is RelationKind.CHANGE and each.of in work.stores
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
    """The share of all rows that belongs to the groups of a hidden table that a change touches."""
    rows = sum(work.after[name].rows for name in work.changes)
    # The groups may hold only few of all rows: then they hold few of the changed rows, too.
    gathered = min(_gathered(store) / max(rows, 1), 1.0)
    return gathered * min(changed * gathered / store.rows, 1.0)


def _gathered(store: Store) -> float:
    """The number of rows in all groups of a hidden table; infinite if not easy to find out."""
    if not counts_here(store.rows) or COUNT not in store.schema.names:
        return float("inf")
    counts = read_arrow(store.storage, [file.path for file in store.files], [COUNT])
    return float(pc.sum(counts[COUNT]).as_py() or 0)
