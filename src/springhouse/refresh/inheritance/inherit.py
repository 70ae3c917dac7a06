"""What does a change of one table mean for the others?

Periods pass downstream, and then priorities and promises upstream; each table is looked at once,
after those from which it inherits. Only what a change can reach is looked at.
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
    standings: Mapping[str, ScheduledTable],
    inheritance: Inheritance,
) -> list[str]:
    """Let every table inherit what changed; the answer names those that may stand otherwise now."""
    below = hierarchy.dependents_last(changed)
    for name in below:
        _inherit_period(standings[name], hierarchy, standings)
    touched = hierarchy.ancestors_last(below)
    for name in touched:
        _inherit_weight(standings[name], hierarchy, standings, inheritance)
    return touched


def _inherit_period(
    standing: ScheduledTable, hierarchy: Hierarchy, standings: Mapping[str, ScheduledTable]
) -> None:
    sources = hierarchy.upstream(standing.name)
    declared = hierarchy.tables[standing.name].period_seconds
    standing.is_base = not sources
    if not sources:
        standing.period_seconds = standing.pace.period(declared or 1.0)
    elif declared is not None:
        standing.period_seconds = declared
    else:
        standing.period_seconds = max(standings[each].period_seconds for each in sources)
    usual = standing.period_seconds
    standing.interval_seconds = usual if standing.is_base else standing.pace.interval(usual)


def _inherit_weight(
    standing: ScheduledTable,
    hierarchy: Hierarchy,
    standings: Mapping[str, ScheduledTable],
    inheritance: Inheritance,
) -> None:
    name = standing.name
    standing.priority = inherited_priority(
        name, hierarchy, inheritance, lambda reader: standings[reader].priority
    )
    standing.ahead_alpha = standing.ahead_beta = 0.0
    if inheritance.rule is Rule.CHAIN:
        _inherit_chain(standing, [standings[each] for each in hierarchy.downstream(name)])
    own = hierarchy.tables[name].promise_seconds
    readers = [(standings[each], hierarchy.tables[each]) for each in hierarchy.downstream(name)]
    standing.wished = _leeway(
        own, [as_reader(r, _through(table, name, r.wished)) for r, table in readers]
    )
    standing.granted = _leeway(
        own if standing.is_granted else None,
        [as_reader(r, _granted_through(table, name, r)) for r, table in readers],
    )


def _leeway(own: float | None, readers: list[DownstreamReader]) -> Leeway:
    return Leeway(allowance(own, readers), allowance(None, readers))


def _through(table: TableProfile, source: str, leeway: Leeway) -> float | None:
    """How long what comes to a table through one input may wait: for it, and for its readers."""
    if leeway.whole is not None and source in table.patience_by_input:
        return _patiently(table, source, leeway.whole)
    if source not in table.promise_by_input:
        return leeway.whole
    longer = table.promise_by_input[source]
    return longer if leeway.below is None else min(longer, leeway.below)


def _granted_through(table: TableProfile, source: str, standing: ScheduledTable) -> float | None:
    """The same of what is granted: a promise that can't be kept leaves what its readers do."""
    if standing.is_granted:
        return _through(table, source, standing.granted)
    return _patiently(table, source, standing.granted.below)


def _patiently(table: TableProfile, source: str, strictest: float | None) -> float | None:
    """A bound with what may be added to it for one input: it may be another one's pathway's."""
    if strictest is None:
        return None
    longer = strictest + table.patience_by_input.get(source, 0.0)
    return longer if longer < inf else None


def as_reader(standing: ScheduledTable, bound: float | None) -> DownstreamReader:
    """A table to one that it reads. One that may wait loads what comes while it does."""
    interval = standing.interval_seconds
    if standing.promise is not None and bound is not None:
        interval = max(interval, bound)
    return DownstreamReader(bound, standing.cost.seconds(interval), standing.margin)


def _inherit_chain(standing: ScheduledTable, readers: list[ScheduledTable]) -> None:
    own = Chain(standing.own_priority, standing.cost.cost)
    found = chain(own, map(_chain_of, readers), standing.interval_seconds)
    standing.priority = found.priority
    standing.ahead_alpha = found.cost.alpha - own.cost.alpha
    standing.ahead_beta = found.cost.beta - own.cost.beta


def _chain_of(standing: ScheduledTable) -> Chain:
    cost = standing.cost.cost
    return Chain(
        standing.priority,
        LoadCost(cost.alpha + standing.ahead_alpha, cost.beta + standing.ahead_beta),
    )
