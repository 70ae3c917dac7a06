"""What do nodes say to each other, what happens to a node, and what does it order?

Messages are values: `run` sends them over the network, a simulator loses, delays and repeats them.
Events go into `Node.step`, and orders come out. `AppendEntries` is that of 003 section 4.2 with its
two fields `force` and `has_quorum`. It has three more fields:

  `sent` and `echo`  Each side says when it sent a message, on its own clock, and which message of
                     the other side it received last. So both know how old their knowledge is, no
                     matter how long messages took.
  `quorum_age`       How many seconds ago, at least, a majority was in touch with this leader.
  `required`         The version that the receiver must apply before it may process anything.
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


class SendTime(NamedTuple):
    """When a message was sent. The clock starts anew with every incarnation of its node."""

    incarnation: int
    at: Instant


# --- Messages -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskForVote:
    """The sender wants to lead in `term`. A pre-vote only asks for the answer and binds nobody."""

    term: int
    version: SnapshotVersion
    pre_vote: bool


@dataclass(frozen=True, slots=True)
class Vote:
    """The answer for the requested term; `term` is that of the voter."""

    term: int
    requested_term: int
    granted: bool
    pre_vote: bool
    disk: int


@dataclass(frozen=True, slots=True)
class AppendEntries:
    """A leader's heartbeat. `changes` lead from `previous` to `version`, or `state` is complete."""

    term: int
    sent: SendTime
    echo: SendTime | None
    previous: SnapshotVersion
    version: SnapshotVersion
    changes: StateChanges
    state: ClusterState | None
    committed: SnapshotVersion
    required: SnapshotVersion
    has_quorum: bool
    quorum_age: Seconds

    @property
    def force(self) -> bool:
        """Whether this message carries the complete state."""
        return self.state is not None


@dataclass(frozen=True, slots=True)
class Appended:
    """The follower's answer: the version that it accepted, the one that it applied, its load.

    `answers` is when the leader sent the message that this answers. `accepted`: the follower has
    the leader's version. `bound`: it gives no vote to another node for an election time-out.
    """

    term: int
    disk: int
    answers: SendTime
    sent: SendTime
    bound: bool
    accepted: bool
    version: SnapshotVersion
    applied: SnapshotVersion
    released: tuple[str, ...]
    offsets: tuple[tuple[str, int], ...]
    load: NodeLoad


@dataclass(frozen=True, slots=True)
class Introduce:
    """A node with an empty disk asks who votes."""

    sent: SendTime


@dataclass(frozen=True, slots=True)
class Introduced:
    """The answer: the voters, or None if the answering disk is empty, too."""

    answers: SendTime
    disk: int
    voters: Disks | None


Message = AskForVote | Vote | AppendEntries | Appended | Introduce | Introduced

# --- Events -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; due at the latest at `Node.wake_at`."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message has arrived."""

    sender: str
    message: Message


@dataclass(frozen=True, slots=True)
class Released:
    """The worker has ended its work in these units, as a `Release` ordered. Sent once per order."""

    units: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progressed:
    """A unit is processed up to this offset, and its table has the result."""

    unit: str
    offset: int


@dataclass(frozen=True, slots=True)
class LoadMeasured:
    """The load of this node was measured."""

    load: NodeLoad


@dataclass(frozen=True, slots=True)
class UnitsDeclared:
    """The project has exactly these units, each with its weight: 1 for an ordinary one."""

    units: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """Somebody wants a node to have no units, or to have units again. Only a leader can do that."""

    node: str
    drained: bool = True


Event = Tick | Received | Released | Progressed | LoadMeasured | UnitsDeclared | DrainAsked

# --- Orders -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Persist:
    """Write this to disk, and wait until it is there before you carry out the next order."""

    persistent_state: PersistentState


@dataclass(frozen=True, slots=True)
class Send:
    """Send this message; it may be lost."""

    to: str
    message: Message


@dataclass(frozen=True, slots=True)
class Assign:
    """Begin to work on these units, each from the offset that is known to be processed."""

    units: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Release:
    """Begin nothing more in these units; report `Released` when the running work has ended.

    `at_once`: the right to process has ended, so give the running work up and commit nothing.
    """

    units: tuple[str, ...]
    at_once: bool


Order = Persist | Send | Assign | Release
