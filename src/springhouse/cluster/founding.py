"""How does a cluster begin, and how is a node known that lost its disk?

A node with an empty disk is either new, like all others, or it forgot its votes: nobody can tell
from the disk. So it takes no part until others tell it what there is. Every empty disk gets a
number. If *all* configured nodes answer that their disks are empty too, they found the cluster,
with these disks as its voters; who hears of that from one of them, and finds its own disk among
the voters, begins as well. If there is a cluster, its leader sends the state, removes the old
disk from the voters and then adds the new one, as two versions (see `leading`).

An answer counts only for the disk that asked. If a node is met with another disk than before, both
can't be right and nobody knows which is: then our own disk gets a new number, so that only answers
from now on count.
"""

from collections.abc import Iterable

from springhouse.cluster.messages import Introduced
from springhouse.cluster.state import Disks, Stamp, State
from springhouse.units import Dice

FOUNDED = Stamp(0, 1)
"""The stamp of the state that a cluster begins with, which no leader made."""

_NUMBERS = 2**52


def new_number(dice: Dice) -> int:
    """A number for an empty disk, or for a new life."""
    return 1 + int(dice.between(0, _NUMBERS))


class Founding:
    """What a node with an empty disk knows of the others."""

    def __init__(self, name: str, peers: Iterable[str]) -> None:
        self._name = name
        self._peers = frozenset(peers)
        self._empty: dict[str, int] = {}

    def contradicts(self, peer: str, disk: int) -> bool:
        """Whether a peer was known with another disk; all that was known is then forgotten."""
        if self._empty.get(peer, disk) == disk:
            return False
        self._empty.clear()
        return True

    def answered(self, peer: str, answer: Introduced, disk: int) -> State | None:
        """The state to begin with, once it is certain."""
        if answer.to != disk:
            return None
        if answer.voters is not None:
            self._empty.clear()
            if answer.voters.get(self._name) == disk:
                # The others count on this very disk, which never had anything to forget.
                return State(FOUNDED, answer.voters)
            return None
        self._empty[peer] = answer.disk
        return self.complete(disk)

    def complete(self, disk: int) -> State | None:
        """The state to begin with, if all others have empty disks, too."""
        if self._empty.keys() != self._peers:
            return None
        voters: Disks = dict(sorted({**self._empty, self._name: disk}.items()))
        return State(FOUNDED, voters)
