"""Which promises are deadlines now?

`feasible` says which promises can be kept. This module calls it with the facts of the scheduler.
"""

from collections.abc import Mapping

from springhouse.refresh.inheritance.hierarchy import Hierarchy
from springhouse.refresh.promises.feasible import TableLoad, UnkeepablePromise, unkeepable
from springhouse.refresh.table.load_cost import LoadCost
from springhouse.refresh.table.scheduled_table import ScheduledTable


def find_unkeepable(
    hierarchy: Hierarchy, tables: Mapping[str, ScheduledTable], tracks: int
) -> list[UnkeepablePromise]:
    """The promises that can't be kept."""
    order = reversed(hierarchy.ancestors_last(hierarchy.tables))
    return unkeepable([_asked(tables[name], hierarchy) for name in order], tracks)


def grant_promises(
    hierarchy: Hierarchy, tables: Mapping[str, ScheduledTable], tracks: int
) -> list[str]:
    """Note which promises are deadlines; returns the tables for which this changed."""
    refused = {each.table for each in find_unkeepable(hierarchy, tables, tracks)}
    changed = [name for name in hierarchy.tables if tables[name].is_granted == (name in refused)]
    for name in changed:
        tables[name].is_granted = name not in refused
    return changed


def _asked(table: ScheduledTable, hierarchy: Hierarchy) -> TableLoad:
    return TableLoad(
        table.name,
        tuple(hierarchy.upstream(table.name)),
        table.interval_seconds,
        table.own_priority,
        table.promise,
        # A guess must not end a promise, so an unknown cost counts as nothing.
        table.cost.cost if table.is_known else LoadCost(0.0, 0.0),
    )
