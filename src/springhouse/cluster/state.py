"""What do the nodes of a cluster agree on?

A snapshot, not a log (003 section 4.2.1): who owns which unit, up to which offset it was processed,
which disks may vote, and how much of the work each node should get. Every change makes a new
snapshot with a stamp: the term of the leader that made it, and a global version. Stamps are ordered
by term, then version. With `committed` meaning that a majority of the voters keeps the snapshot, or
a later one of the same term, on disk:

    a leader of term t makes only stamps of term t, each one version above the one before
    the stamp on a node's disk never goes down
    two committed snapshots of the same version are the same

A unit is in the hands of one owner. A handover has two steps, each a version of its own: first an
heir is named, and the owner lets go; then, when the owner said so, the heir is the owner.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class SnapshotVersion(NamedTuple):
    """Which snapshot: the term of the leader that made it, and its global version."""

    term: int
    version: int

    def __str__(self) -> str:
        return f"{self.version} of term {self.term}"


ZERO = SnapshotVersion(0, 0)
"""Before everything."""


class Assignment(NamedTuple):
    """Whose a unit is: to be handed to `heir`, if there is one; as it is since a version."""

    owner: str
    heir: str | None = None
    since: int = 0
    offset: int = 0

    @property
    def next_owner(self) -> str:
        """Who is meant to have it."""
        return self.heir or self.owner


Disks = Mapping[str, int]
"""The nodes that may vote, each with the number of the disk that has its memory."""


@dataclass(frozen=True, slots=True)
class StateChanges:
    """What is different in a later snapshot. A holding of None: the unit is gone."""

    holdings: Mapping[str, Assignment | None] = field(default_factory=dict)
    voters: Disks | None = None
    shares: Mapping[str, float] | None = None

    def __bool__(self) -> bool:
        return bool(self.holdings) or self.voters is not None or self.shares is not None

    def then(self, later: "StateChanges") -> "StateChanges":
        """Both, as one."""
        return StateChanges(
            {**self.holdings, **later.holdings},
            self.voters if later.voters is None else later.voters,
            self.shares if later.shares is None else later.shares,
        )


NO_CHANGES = StateChanges()


@dataclass(frozen=True, slots=True)
class ClusterState:
    """One snapshot. A node without a share in `shares` has a share of 1, a drained one of 0."""

    stamp: SnapshotVersion = ZERO
    voters: Disks = field(default_factory=dict)
    holdings: Mapping[str, Assignment] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)

    @property
    def majority(self) -> int:
        """How many voters decide."""
        return len(self.voters) // 2 + 1

    def changed(self, stamp: SnapshotVersion, changes: StateChanges) -> "ClusterState":
        """The snapshot after these changes."""
        holdings = self.holdings
        if changes.holdings:
            made = dict(holdings)
            for unit, holding in changes.holdings.items():
                if holding is None:
                    made.pop(unit, None)
                else:
                    made[unit] = holding
            holdings = made
        return ClusterState(
            stamp,
            self.voters if changes.voters is None else changes.voters,
            holdings,
            self.shares if changes.shares is None else changes.shares,
        )


EMPTY = ClusterState()


@dataclass(frozen=True, slots=True)
class PersistentState:
    """What a node must not forget: it is on disk before anything that depends on it is said.

    `disk` is a number rolled when the disk was empty: who comes back with another number forgot
    what it voted and what it kept, and is not the voter that it was.
    """

    disk: int
    term: int
    vote: str | None
    state: ClusterState
