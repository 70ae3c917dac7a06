"""What does the scheduler have to know of a table?

What was declared of it: how often data comes, what it reads, how much its staleness weighs, what
was promised. `together` makes one job of several tables that are best refreshed in one scan (001
section 2.1): its benefit is the sum of theirs, and so its priority is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from springhouse.refresh.cost import LoadCost
from springhouse.units import Seconds


@dataclass(frozen=True)
class TableProfile:
    """A table or view. Without a period of its own it has the longest of what it reads.

    `cost` is what is known of its refreshes beforehand, and `members` are the tables that one job
    refreshes, where it is more than this one. `promise_seconds` is the strictest of its promises;
    what comes through some inputs may wait longer. `patience_by_input` says by how much, if it is
    known what all that is made of this table allows, too.
    """

    name: str
    upstream: tuple[str, ...] = ()
    period_seconds: Seconds | None = None
    priority: float = 1.0
    promise_seconds: Seconds | None = None
    cost: LoadCost | None = None
    members: tuple[str, ...] = ()
    promise_by_input: Mapping[str, Seconds] = field(default_factory=dict, hash=False)
    patience_by_input: Mapping[str, Seconds] = field(default_factory=dict, hash=False)


def together(name: str, tables: Sequence[TableProfile]) -> TableProfile:
    """One job for tables that share a scan.

    It keeps the strictest promise and the shortest period. Starting costs once, as much as the
    dearest start; loading costs the sum. Members that read each other can't share a scan.

    >>> pair = together("by_day_and_month", [
    ...     TableProfile("by_day", ("sales",), priority=2.0, cost=LoadCost(1.0, 0.1)),
    ...     TableProfile("by_month", ("sales",), priority=3.0, cost=LoadCost(2.0, 0.1))])
    >>> pair.priority, pair.upstream, pair.cost
    (5.0, ('sales',), LoadCost(alpha=2.0, beta=0.2))
    """
    members = tuple(table.name for table in tables)
    upstream = tuple(dict.fromkeys(each for table in tables for each in table.upstream))
    assert not {*members} & {*upstream}, "a member reads another one"
    costs = [table.cost for table in tables if table.cost is not None]
    whole = None
    if len(costs) == len(tables):
        whole = LoadCost(max(cost.alpha for cost in costs), sum(cost.beta for cost in costs))
    return TableProfile(
        name,
        upstream,
        min((t.period_seconds for t in tables if t.period_seconds is not None), default=None),
        sum(table.priority for table in tables),
        min((t.promise_seconds for t in tables if t.promise_seconds is not None), default=None),
        whole,
        members,
    )
