"""How does a cluster begin, and how does it notice that a node has lost its disk?

A node with an empty disk is either new or has forgotten its votes: its disk can't tell which. So
the node does not stand for election until others tell it who votes. Every empty disk gets a random
number, and a vote counts only with the number of the disk that it comes from.

If *all* configured nodes answer that their disks are empty, too, they found the cluster, with these
disks as its voters. A node that hears from another that its disk is among the voters begins as
well. If there is a cluster already, its leader sends the state, removes the old disk from the
voters and then adds the new one, as two versions (see `leader_state`).

Answers count only together: all must arrive within half an election time-out of the question.
Nobody stands for election within a whole one of founding. So nobody has voted and nothing is stored
in that time, and a node that loses its disk then loses nothing, even if others founded with it.
"""

from collections.abc import Iterable

from springhouse.cluster.messages import Introduced, SendTime
from springhouse.cluster.state import ClusterState, Disks, SnapshotVersion
from springhouse.cluster.timing import Timing
from springhouse.units import Dice, Instant

FOUNDED = SnapshotVersion(0, 1)
"""The version of the state that a cluster begins with, which no leader made."""

_IDENTIFIERS = 2**52


def draw_identifier(dice: Dice) -> int:
    """A random number for an empty disk, or for a new incarnation."""
    return 1 + int(dice.between(0, _IDENTIFIERS))


class Bootstrap:
    """What a node with an empty disk knows of the others."""

    def __init__(self, name: str, peers: Iterable[str], timing: Timing) -> None:
        self._name = name
        self._peers = frozenset(peers)
        self._window_seconds = timing.election_seconds / 2
        self._question: SendTime | None = None
        self._empty_disks: dict[str, int] = {}

    def ask(self, sent: SendTime) -> None:
        """Ask the others; forget what they answered before."""
        self._question = sent
        self._empty_disks = {}

    def receive_answer(
        self, peer: str, answer: Introduced, disk: int, now: Instant
    ) -> ClusterState | None:
        """The state to begin with, once that is certain."""
        question = self._question
        if question is None or answer.answers != question:
            return None
        if now > question.at + self._window_seconds:
            return None
        if answer.voters is None:
            self._empty_disks[peer] = answer.disk
            return self.founded_state(disk)
        if answer.voters.get(self._name) == disk:
            # The others count on this very disk, which never had anything to forget.
            return ClusterState(FOUNDED, answer.voters)
        return None

    def founded_state(self, disk: int) -> ClusterState | None:
        """The state to begin with, if all others have empty disks, too."""
        if self._empty_disks.keys() != self._peers:
            return None
        voters: Disks = dict(sorted({**self._empty_disks, self._name: disk}.items()))
        return ClusterState(FOUNDED, voters)
