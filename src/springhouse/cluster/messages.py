"""What do nodes say to each other, what happens to a node, and what does it want done?

Messages are values: a shell sends them over the wire, a simulator loses, delays and repeats them.
Events go into `Node.step`, orders come out. `AppendEntries` is that of 003 section 4.2 with its
two fields `force` and `has_quorum`. Three things are added to it.

  `sent` and `echo`  Each side says when it sent, on its own clock, and what it last heard from the
                     other. So both know how old their knowledge is, however long messages took.
  `quorum_age`       How long ago, at the least, a majority was with this leader.
  `required`         The state that the receiver must act on before it may process anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from springhouse.cluster.node_load import NodeLoad
from springhouse.cluster.state import (
    ClusterState,
    Disks,
    PersistentState,
    SnapshotVersion,
    StateChanges,
)
from springhouse.units import Instant, Seconds


class Sent(NamedTuple):
    """When something was sent, on a clock that starts anew with every life of its node."""

    life: int
    at: Instant


# --- Messages -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskForVote:
    """`sender` would lead in `term`. A canvass asks what the answer would be, and binds nobody."""

    term: int
    stamp: SnapshotVersion
    canvass: bool


@dataclass(frozen=True, slots=True)
class Vote:
    """The answer about the term that was asked for; `term` is that of the voter."""

    term: int
    asked: int
    granted: bool
    canvass: bool
    disk: int


@dataclass(frozen=True, slots=True)
class AppendEntries:
    """The leader is there; `changes` lead from `previous` to `stamp`, or `state` is all of it."""

    term: int
    sent: Sent
    echo: Sent | None
    previous: SnapshotVersion
    stamp: SnapshotVersion
    changes: StateChanges
    state: ClusterState | None
    committed: SnapshotVersion
    required: SnapshotVersion
    has_quorum: bool
    quorum_age: Seconds

    @property
    def force(self) -> bool:
        """Whether this is a sync of the whole state."""
        return self.state is not None


@dataclass(frozen=True, slots=True)
class Appended:
    """The answer: what the follower keeps and acts on, and how it is.

    `answers` is when the leader sent what this answers. `bound`: the follower gives no vote to
    another for an election time-out.
    """

    term: int
    disk: int
    answers: Sent
    sent: Sent
    bound: bool
    taken: bool
    stamp: SnapshotVersion
    acting: SnapshotVersion
    released: tuple[str, ...]
    offsets: tuple[tuple[str, int], ...]
    load: NodeLoad


@dataclass(frozen=True, slots=True)
class Introduce:
    """A node whose disk is empty asks what there is."""

    sent: Sent


@dataclass(frozen=True, slots=True)
class Introduced:
    """The answer: who votes, or None if this disk is empty too."""

    answers: Sent
    disk: int
    voters: Disks | None


Message = AskForVote | Vote | AppendEntries | Appended | Introduce | Introduced

# --- Events -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed; due at the latest at `Node.wake_at`."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message came."""

    sender: str
    message: Message


@dataclass(frozen=True, slots=True)
class Released:
    """Nothing is under way any more in these units, which were to be let go; said once of each."""

    units: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progressed:
    """A unit was processed up to this offset, and that is in its table."""

    unit: str
    offset: int


@dataclass(frozen=True, slots=True)
class LoadMeasured:
    """How busy this node is."""

    load: NodeLoad


@dataclass(frozen=True, slots=True)
class UnitsDeclared:
    """All units that there are, each with its weight: 1 for one like the others."""

    units: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """A node is to have no units any more, or to have them again. Only a leader can see to it."""

    node: str
    drained: bool = True


Event = Tick | Received | Released | Progressed | LoadMeasured | UnitsDeclared | DrainAsked

# --- Orders -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Persist:
    """Write this to disk, and wait until it is there, before the orders after it are followed."""

    memory: PersistentState


@dataclass(frozen=True, slots=True)
class Send:
    """Send this; it may be lost."""

    to: str
    message: Message


@dataclass(frozen=True, slots=True)
class Assign:
    """Begin with these units, each from the offset that is known to be done."""

    units: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Release:
    """Begin nothing more in these units; say `Released` when what is under way has ended.

    `at_once`: the right to process has ended, so what is under way is given up and not committed.
    """

    units: tuple[str, ...]
    at_once: bool


Order = Persist | Send | Assign | Release
