"""What do the nodes of a cluster agree on?

The replicated state is a snapshot, not a log (003 section 4.2.1). It says who owns each unit, up to
which offset the unit is processed, which disks may vote, and how much of the work each node should
get. Every change makes a new snapshot with a version: the term of the leader that made it, and a
global number. Versions are ordered by term, then number. A version is committed when a majority of
the voters has it, or a later one of the same term, on disk. Then:

    a leader of term t makes only versions of term t, each one number above the one before
    the version on a node's disk never goes down
    two committed snapshots with the same number are the same

A unit has one owner. A handover takes two versions: the first names an heir, and the owner finishes
its work and releases the unit; the second makes the heir the owner.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class SnapshotVersion(NamedTuple):
    """The version of a snapshot: the term of the leader that made it, and a global number."""

    term: int
    number: int

    def __str__(self) -> str:
        return f"{self.number} of term {self.term}"


ZERO = SnapshotVersion(0, 0)
"""The version before all others."""


class Assignment(NamedTuple):
    """The owner of a unit and the heir that gets it next, if any, since a version number."""

    owner: str
    heir: str | None = None
    since: int = 0
    offset: int = 0

    @property
    def next_owner(self) -> str:
        """The node that should have the unit."""
        return self.heir or self.owner


Disks = Mapping[str, int]
"""The nodes that may vote, each with the number of the disk that holds its votes."""


@dataclass(frozen=True, slots=True)
class StateChanges:
    """The differences to a later snapshot. An assignment of None: the unit does not exist now."""

    assignments: Mapping[str, Assignment | None] = field(default_factory=dict)
    voters: Disks | None = None
    shares: Mapping[str, float] | None = None

    def __bool__(self) -> bool:
        return bool(self.assignments) or self.voters is not None or self.shares is not None

    def then(self, later: "StateChanges") -> "StateChanges":
        """Both changes as one."""
        return StateChanges(
            {**self.assignments, **later.assignments},
            self.voters if later.voters is None else later.voters,
            self.shares if later.shares is None else later.shares,
        )


NO_CHANGES = StateChanges()


@dataclass(frozen=True, slots=True)
class ClusterState:
    """One snapshot. A node without an entry in `shares` has a share of 1, a drained one of 0."""

    version: SnapshotVersion = ZERO
    voters: Disks = field(default_factory=dict)
    assignments: Mapping[str, Assignment] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)

    @property
    def majority(self) -> int:
        """How many voters are needed for a decision."""
        return len(self.voters) // 2 + 1

    def apply(self, version: SnapshotVersion, changes: StateChanges) -> "ClusterState":
        """The snapshot after these changes."""
        assignments = self.assignments
        if changes.assignments:
            updated = dict(assignments)
            for unit, assignment in changes.assignments.items():
                if assignment is None:
                    updated.pop(unit, None)
                else:
                    updated[unit] = assignment
            assignments = updated
        return ClusterState(
            version,
            self.voters if changes.voters is None else changes.voters,
            assignments,
            self.shares if changes.shares is None else changes.shares,
        )


EMPTY = ClusterState()


@dataclass(frozen=True, slots=True)
class PersistentState:
    """The part of a node that is on disk before the node says anything that depends on it.

    `disk` is a random number, drawn when the disk was empty. A node that comes back with another
    number has lost its votes and its state, and is not the voter that it was.
    """

    disk: int
    term: int
    vote: str | None
    state: ClusterState
