"""How is a node, and how is the whole cluster, as its nodes tell it?

A node describes itself; whoever is asked for the cluster asks all others, too, so that the answer
is there without a leader and shows where two nodes see things differently.
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
    """One node: what it is to the others, what it keeps and acts on, and how busy it is.

    `quorum_age` is how long ago it last knew of a quorum, None if never. `holdings` and `shares`
    are those of the state that it acts on.
    """

    name: str
    role: str
    leader: str | None
    term: int
    kept: SnapshotVersion
    acting: SnapshotVersion
    processing: bool
    quorum_age: Seconds | None
    load: NodeLoad
    working: tuple[str, ...]
    voter: bool
    holdings: Mapping[str, Assignment] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)

    @property
    def drained(self) -> bool:
        """Whether it is to have no units."""
        return self.shares.get(self.name, 1.0) <= 0


@dataclass(frozen=True)
class ClusterReport:
    """All nodes, as `asked` found them; those that it could not ask, with the reason."""

    asked: str
    nodes: tuple[NodeReport, ...]
    problems: Mapping[str, str]

    @property
    def newest(self) -> NodeReport:
        """The node that acts on the newest state."""
        return max(self.nodes, key=lambda each: (each.acting, each.role == "Leader"))

    @property
    def leader(self) -> str | None:
        """Who leads in the latest term, if anybody says that it does."""
        leading = [each for each in self.nodes if each.role == "Leader"]
        return max(leading, key=lambda each: each.term).name if leading else None

    def share_of(self, node: str) -> float:
        """Which share of the work a node is to have: 1 for one like the others, 0 if drained."""
        return self.newest.shares.get(node, 1.0)

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain values."""
        newest = self.newest
        return {
            "asked": self.asked,
            "leader": self.leader,
            "term": max(each.term for each in self.nodes),
            "version": newest.acting.version,
            "nodes": [self._node(each) for each in self.nodes],
            "problems": dict(self.problems),
            "units": {
                unit: {"owner": of.owner, "heir": of.heir, "offset": of.offset}
                for unit, of in sorted(newest.holdings.items())
            },
        }

    def _node(self, each: NodeReport) -> dict[str, Any]:
        return {
            "name": each.name,
            "role": each.role,
            "leader": each.leader,
            "term": each.term,
            "version": each.acting.version,
            "voter": each.voter,
            "processing": each.processing,
            "last_quorum_seconds": each.quorum_age,
            "able": each.load.able,
            "share": self.share_of(each.name),
            "load": {
                "cpu": each.load.cpu,
                "memory": each.load.memory,
                "tracks": each.load.tracks,
                "backlog_seconds": each.load.backlog_seconds,
            },
            "working": list(each.working),
        }


def describe(node: Node, now: Instant) -> NodeReport:
    """How a node is now."""
    age = now - (node.lease_until - node.timing.keep_alive_seconds)
    return NodeReport(
        node.name,
        node.role.value,
        node.leader,
        node.term,
        node.accepted.stamp,
        node.acting.stamp,
        node.may_process(now),
        Seconds(max(age, 0.0)) if isfinite(age) else None,
        node.load,
        tuple(sorted(node.processing.taken)),
        node.is_voter,
        node.acting.holdings,
        node.acting.shares,
    )
