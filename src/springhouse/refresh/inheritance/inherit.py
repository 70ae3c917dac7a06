"""How do periods, priorities and promises pass from table to table?

After a change, periods pass downstream, and then priorities and promises pass upstream. Only the
tables that the change can reach are visited, each once, after the tables that it inherits from.
"""

from collections.abc import Iterable, Mapping
from math import inf

from springhouse.refresh.inheritance.hierarchy import Hierarchy
from springhouse.refresh.inheritance.priority import (
    Chain,
    Inheritance,
    Rule,
    chain,
    inherited_priority,
)
from springhouse.refresh.promises.urgency import DownstreamReader, Leeway, allowance
from springhouse.refresh.table.load_cost import LoadCost
from springhouse.refresh.table.scheduled_table import ScheduledTable
from springhouse.refresh.table.table_profile import TableProfile


def pass_on(
    changed: Iterable[str],
    hierarchy: Hierarchy,
    tables: Mapping[str, ScheduledTable],
    inheritance: Inheritance,
) -> list[str]:
    """Let tables inherit from changed tables; returns the names of all that may have changed."""
    below = hierarchy.dependents_last(changed)
    for name in below:
        _inherit_period(tables[name], hierarchy, tables)
    touched = hierarchy.ancestors_last(below)
    for name in touched:
        _inherit_weight(tables[name], hierarchy, tables, inheritance)
    return touched


def _inherit_period(
    table: ScheduledTable, hierarchy: Hierarchy, tables: Mapping[str, ScheduledTable]
) -> None:
    sources = hierarchy.upstream(table.name)
    declared = hierarchy.tables[table.name].period_seconds
    table.is_base = not sources
    if not sources:
        table.period_seconds = table.pace.period(declared or 1.0)
    elif declared is not None:
        table.period_seconds = declared
    else:
        table.period_seconds = max(tables[each].period_seconds for each in sources)
    usual = table.period_seconds
    table.interval_seconds = usual if table.is_base else table.pace.interval(usual)


def _inherit_weight(
    table: ScheduledTable,
    hierarchy: Hierarchy,
    tables: Mapping[str, ScheduledTable],
    inheritance: Inheritance,
) -> None:
    name = table.name
    table.priority = inherited_priority(
        name, hierarchy, inheritance, lambda reader: tables[reader].priority
    )
    table.ahead_alpha = table.ahead_beta = 0.0
    if inheritance.rule is Rule.CHAIN:
        _inherit_chain(table, [tables[each] for each in hierarchy.downstream(name)])
    own = hierarchy.tables[name].promise_seconds
    readers = [(tables[each], hierarchy.tables[each]) for each in hierarchy.downstream(name)]
    table.wished = _leeway(
        own, [as_reader(r, _through(profile, name, r.wished)) for r, profile in readers]
    )
    table.granted = _leeway(
        own if table.is_granted else None,
        [as_reader(r, _granted_through(profile, name, r)) for r, profile in readers],
    )


def _leeway(own: float | None, readers: list[DownstreamReader]) -> Leeway:
    return Leeway(allowance(own, readers), allowance(None, readers))


def _through(profile: TableProfile, source: str, leeway: Leeway) -> float | None:
    """How long data of one input may wait: for a table, and for its readers."""
    if leeway.whole is not None and source in profile.patience_by_input:
        return _patiently(profile, source, leeway.whole)
    if source not in profile.promise_by_input:
        return leeway.whole
    longer = profile.promise_by_input[source]
    return longer if leeway.below is None else min(longer, leeway.below)


def _granted_through(profile: TableProfile, source: str, table: ScheduledTable) -> float | None:
    """The same, by promises that can be kept; if its own can't, those of its readers count."""
    if table.is_granted:
        return _through(profile, source, table.granted)
    return _patiently(profile, source, table.granted.below)


def _patiently(profile: TableProfile, source: str, strictest: float | None) -> float | None:
    """A bound plus the patience for one input, because the bound may come from another input."""
    if strictest is None:
        return None
    longer = strictest + profile.patience_by_input.get(source, 0.0)
    return longer if longer < inf else None


def as_reader(table: ScheduledTable, bound: float | None) -> DownstreamReader:
    """A table as its inputs see it; while the table may wait, its data adds up."""
    interval = table.interval_seconds
    if table.promise is not None and bound is not None:
        interval = max(interval, bound)
    return DownstreamReader(bound, table.cost.seconds(interval), table.margin)


def _inherit_chain(table: ScheduledTable, readers: list[ScheduledTable]) -> None:
    own = Chain(table.own_priority, table.cost.cost)
    job = chain(own, map(_chain_of, readers), table.interval_seconds)
    table.priority = job.priority
    table.ahead_alpha = job.cost.alpha - own.cost.alpha
    table.ahead_beta = job.cost.beta - own.cost.beta


def _chain_of(table: ScheduledTable) -> Chain:
    cost = table.cost.cost
    return Chain(
        table.priority,
        LoadCost(cost.alpha + table.ahead_alpha, cost.beta + table.ahead_beta),
    )
