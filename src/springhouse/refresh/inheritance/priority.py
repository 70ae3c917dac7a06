"""How much priority does a table inherit from its readers?

A view can't be fresher than its inputs, so a table inherits the priority of its dependents (paper
001, section 3.3): their sum, the largest, or the largest times K for every level in between. The
paper describes max-plus without levels, but says that it favours tables with long chains of
dependents. So a table without readers keeps its own priority, and each level upstream counts K
times more.

The rule `chain` is ours. The sum counts the benefit of readers but not their cost. With the
largest, every table of a chain claims the whole benefit. In a chain, a table and those of its
dependents that are worth it count as one job: the sum of priorities over the sum of seconds. A
reader is worth it if its own chain brings more per second than the job without it. This is Horn's
rule for jobs in a tree, which is optimal there. If paths meet again, the tables that they share
count more than once.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from springhouse.refresh.inheritance.hierarchy import Hierarchy
from springhouse.refresh.table.load_cost import LoadCost


class Rule(Enum):
    """How priority is inherited."""

    NONE = "none"
    SUM = "sum"
    MAX = "max"
    MAX_PLUS = "max-plus"
    CHAIN = "chain"


@dataclass(frozen=True)
class Inheritance:
    """A rule; `k` is the factor per level of max-plus."""

    rule: Rule = Rule.CHAIN
    k: float = 1.5


class Chain(NamedTuple):
    """Tables that are refreshed one after the other: the sums of their priorities and costs."""

    priority: float
    cost: LoadCost

    def worth(self, interval: float) -> float:
        return self.priority / max(self.cost.seconds(interval), 1e-9)


def chain(own: Chain, readers: Iterable[Chain], interval: float) -> Chain:
    """A table with the chains of the readers that are worth it, for `interval` seconds of data.

    >>> base = Chain(0.0, LoadCost(1.0, 0.0))
    >>> chain(base, [Chain(6.0, LoadCost(2.0, 0.0)), Chain(1.0, LoadCost(9.0, 0.0))], 60.0)
    Chain(priority=6.0, cost=LoadCost(alpha=3.0, beta=0.0))
    """
    job = own
    for reader in sorted(readers, key=lambda each: each.worth(interval), reverse=True):
        if reader.worth(interval) <= job.worth(interval):
            break
        cost = LoadCost(job.cost.alpha + reader.cost.alpha, job.cost.beta + reader.cost.beta)
        job = Chain(job.priority + reader.priority, cost)
    return job


def inherited_priority(
    name: str, hierarchy: Hierarchy, inheritance: Inheritance, of: Callable[[str], float]
) -> float:
    """The priority of a table; `of` returns the priority of a direct reader."""
    own = hierarchy.tables[name].priority
    match inheritance.rule:
        case Rule.NONE | Rule.CHAIN:
            return own
        case Rule.SUM:
            # Sum the own priorities of all dependents: inherited ones would count diamonds twice.
            reached = hierarchy.dependents_last([name])
            return sum(hierarchy.tables[each].priority for each in reached)
        case Rule.MAX:
            return max(own, max(map(of, hierarchy.downstream(name)), default=own))
        case Rule.MAX_PLUS:
            readers = map(of, hierarchy.downstream(name))
            return max(own, inheritance.k * max(readers, default=0.0))
