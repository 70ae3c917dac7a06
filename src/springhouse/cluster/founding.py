"""How does a cluster begin, and how is a node known that lost its disk?

A node with an empty disk is either new, like all others, or it forgot its votes: nobody can tell
from the disk. So it does not stand for election until others tell it what there is, and every empty
disk gets a number: a vote counts only for who knows the disk that it comes from. If *all*
configured nodes answer that their disks are empty too, they found the cluster, with these disks as
its voters; who hears of that from one of them, and finds its own disk among the voters, begins as
well. If there is a cluster, its leader sends the state, removes the old disk from the voters and
then adds the new one, as two versions (see `leading`).

Answers count only together: all within half an election time-out of the question. Nobody stands for
election within a whole one of founding, so in that time no vote was given and nothing was kept: who
lost a disk meanwhile lost nothing, even if others founded with it.
"""

from collections.abc import Iterable

from springhouse.cluster.messages import Introduced, Sent
from springhouse.cluster.state import ClusterState, Disks, SnapshotVersion
from springhouse.cluster.timing import Timing
from springhouse.units import Dice, Instant

FOUNDED = SnapshotVersion(0, 1)
"""The stamp of the state that a cluster begins with, which no leader made."""

_NUMBERS = 2**52


def new_number(dice: Dice) -> int:
    """A number for an empty disk, or for a new life."""
    return 1 + int(dice.between(0, _NUMBERS))


class Bootstrap:
    """What a node with an empty disk knows of the others."""

    def __init__(self, name: str, peers: Iterable[str], timing: Timing) -> None:
        self._name = name
        self._peers = frozenset(peers)
        self._window_seconds = timing.election_seconds / 2
        self._asked: Sent | None = None
        self._empty: dict[str, int] = {}

    def asks(self, sent: Sent) -> None:
        """The others are asked; what they said before counts no more."""
        self._asked = sent
        self._empty = {}

    def answered(
        self, peer: str, answer: Introduced, disk: int, now: Instant
    ) -> ClusterState | None:
        """The state to begin with, once it is certain."""
        asked = self._asked
        if asked is None or answer.answers != asked or now > asked.at + self._window_seconds:
            return None
        if answer.voters is None:
            self._empty[peer] = answer.disk
            return self.complete(disk)
        if answer.voters.get(self._name) == disk:
            # The others count on this very disk, which never had anything to forget.
            return ClusterState(FOUNDED, answer.voters)
        return None

    def complete(self, disk: int) -> ClusterState | None:
        """The state to begin with, if all others have empty disks, too."""
        if self._empty.keys() != self._peers:
            return None
        voters: Disks = dict(sorted({**self._empty, self._name: disk}.items()))
        return ClusterState(FOUNDED, voters)
