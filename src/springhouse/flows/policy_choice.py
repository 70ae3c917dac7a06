"""Under which policy does each subflow run? ExecuteSISS (000 section 5.3).

A subflow with more than theta memory-intensive activities runs under Minimum Memory, any other
under Minimum Cost. The plan is data: `policies.mixed` follows it, `explain` prints it.

The paper's own theta (4 to 6 at scale factor 1, 2 at 10) counts over subflows that are archetypes
of 20 to 45 nodes. BIS as the paper defines it gives every blocking activity a subflow of its own.
So 0 separates the lines of a flow from its core here, and 0 is the default. Each flow can set its
own theta.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from springhouse.flows.flow_graph import FlowGraph
from springhouse.flows.stratum import stratify
from springhouse.flows.subflow import Subflow, is_scheduled, subflow_of

THETA = 0


class PolicyName(Enum):
    """The policies, as a project's settings name them."""

    ROUND_ROBIN = "round robin"
    MINIMUM_COST = "minimum cost"
    MINIMUM_MEMORY = "minimum memory"
    MIXED = "mixed"
    LOCALITY = "locality"
    FIRST_COME = "first come"


@dataclass(frozen=True)
class ExecutionPlan:
    """The subflows of a flow, the strata in which they run, and the policy of each."""

    subflows: tuple[Subflow, ...]
    strata: tuple[tuple[int, ...], ...]
    policies: Mapping[int, PolicyName]

    @cached_property
    def subflow(self) -> Mapping[str, int]:
        """The subflow of each node."""
        return subflow_of(self.subflows)

    @cached_property
    def stratum(self) -> Mapping[str, int]:
        """The stratum of each node."""
        level = {n: i for i, numbers in enumerate(self.strata) for n in numbers}
        return {name: level[number] for name, number in self.subflow.items()}

    def __str__(self) -> str:
        lines = []
        for level, numbers in enumerate(self.strata):
            for number in numbers:
                policy = self.policies.get(number)
                under = f" under {policy.value}" if policy else ""
                names = ", ".join(self.subflows[number].nodes)
                lines.append(f"stratum {level}: {names}{under}")
        return "\n".join(lines)


def execute_siss(graph: FlowGraph, theta: int = THETA) -> ExecutionPlan:
    """EIS: the plan of a flow under the Mixed policy. The graph has its readers and writers."""
    subflows, strata = stratify(graph)
    policies = {}
    for subflow in subflows:
        if is_scheduled(graph, subflow):
            intensive = sum(graph.nodes[name].memory_intensive for name in subflow.nodes)
            policies[subflow.number] = (
                PolicyName.MINIMUM_MEMORY if intensive > theta else PolicyName.MINIMUM_COST
            )
    return ExecutionPlan(subflows, strata, policies)
