"""How important is a table to those who read it?

A view can't be fresher than what it reads, so a source inherits the priority of its dependents (001
section 3.3): the sum of them, the largest, or the largest times K for every level in between. The
paper words max-plus without levels, but says that it favours what has long chains above it; so a
table that nobody reads keeps its own priority, and each level below it counts K times more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from springhouse.refresh.hierarchy import Hierarchy


class Rule(Enum):
    """How priority is inherited."""

    NONE = "none"
    SUM = "sum"
    MAX = "max"
    MAX_PLUS = "max-plus"


@dataclass(frozen=True)
class Inheritance:
    """A rule; `k` is the factor per level of max-plus."""

    rule: Rule = Rule.MAX
    k: float = 1.5


def inherited_priority(
    name: str, hierarchy: Hierarchy, inheritance: Inheritance, of: Callable[[str], float]
) -> float:
    """The priority of a table, given that of those who read it directly (`of`)."""
    own = hierarchy.tables[name].priority
    match inheritance.rule:
        case Rule.NONE:
            return own
        case Rule.SUM:
            # Over the dependents themselves: adding up what they inherited counts diamonds twice.
            reached = hierarchy.dependents_last([name])
            return sum(hierarchy.tables[each].priority for each in reached)
        case Rule.MAX:
            return max(own, max(map(of, hierarchy.downstream(name)), default=own))
        case Rule.MAX_PLUS:
            readers = map(of, hierarchy.downstream(name))
            return max(own, inheritance.k * max(readers, default=0.0))
