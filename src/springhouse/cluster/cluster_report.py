"""What is the status of a node, and of the whole cluster?

A node describes itself. A node that is asked for the status of the cluster asks all others. So
there is an answer without a leader, and it shows where two nodes see things differently.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from springhouse.cluster.node_load import NodeLoad
from springhouse.cluster.raft_node import Node
from springhouse.cluster.state import Assignment, SnapshotVersion
from springhouse.units import Instant, Seconds


@dataclass(frozen=True)
class NodeReport:
    """One node: its role, its accepted and its applied version, and its load.

    `quorum_age` is how long ago it last had a quorum, None if never. `assignments` and `shares` are
    those of the state that it applied.
    """

    name: str
    role: str
    leader: str | None
    term: int
    accepted: SnapshotVersion
    applied: SnapshotVersion
    processing: bool
    quorum_age: Seconds | None
    load: NodeLoad
    working: tuple[str, ...]
    voter: bool
    assignments: Mapping[str, Assignment] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)

    @property
    def drained(self) -> bool:
        """Whether the node should have no units."""
        return self.shares.get(self.name, 1.0) <= 0


@dataclass(frozen=True)
class ClusterReport:
    """All nodes as the node `asked` sees them; for each that does not answer, the problem."""

    asked: str
    nodes: tuple[NodeReport, ...]
    problems: Mapping[str, str]

    @property
    def newest(self) -> NodeReport:
        """The node that applied the newest state."""
        return max(self.nodes, key=lambda node: (node.applied, node.role == "Leader"))

    @property
    def leader(self) -> str | None:
        """The node that leads in the latest term, if any node says that it leads."""
        leaders = [node for node in self.nodes if node.role == "Leader"]
        return max(leaders, key=lambda node: node.term).name if leaders else None

    def share_of(self, node: str) -> float:
        """The share of the work that a node should have: usually 1, and 0 if it is drained."""
        return self.newest.shares.get(node, 1.0)

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        newest = self.newest
        return {
            "asked": self.asked,
            "leader": self.leader,
            "term": max(node.term for node in self.nodes),
            "version": newest.applied.number,
            "nodes": [self._node_as_json(node) for node in self.nodes],
            "problems": dict(self.problems),
            "units": {
                unit: {"owner": each.owner, "heir": each.heir, "offset": each.offset}
                for unit, each in sorted(newest.assignments.items())
            },
        }

    def _node_as_json(self, node: NodeReport) -> dict[str, Any]:
        return {
            "name": node.name,
            "role": node.role,
            "leader": node.leader,
            "term": node.term,
            "version": node.applied.number,
            "voter": node.voter,
            "processing": node.processing,
            "last_quorum_seconds": node.quorum_age,
            "able": node.load.able,
            "share": self.share_of(node.name),
            "load": {
                "cpu": node.load.cpu,
                "memory": node.load.memory,
                "tracks": node.load.tracks,
                "backlog_seconds": node.load.backlog_seconds,
            },
            "working": list(node.working),
        }


def describe(node: Node, now: Instant) -> NodeReport:
    """The report of a node."""
    age = now - (node.lease_until - node.timing.keep_alive_seconds)
    return NodeReport(
        node.name,
        node.role.value,
        node.leader,
        node.term,
        node.accepted.version,
        node.applied.version,
        node.may_process(now),
        Seconds(max(age, 0.0)) if isfinite(age) else None,
        node.load,
        tuple(sorted(node.processing.working)),
        node.is_voter,
        node.applied.assignments,
        node.applied.shares,
    )
