"""Who may lead, and what makes a majority?

Raft's election (003 cites it unchanged), for snapshots with stamps. A voter gives one vote per
term, to a candidate whose stamp is not below its own; whom a vote counts for, the candidate knows
(a node may be a voter before it heard of it):

    committed snapshot s, leader elected later  =>  the leader's stamp >= s's stamp

since the majority that keeps s and the majority that voted have a node in common. Two additions.
A candidate first canvasses: it asks what the answers would be, so a node that comes back and can't
win disturbs nobody. And a voter that acknowledged a leader refuses everybody for an election
time-out; that is what `timing` reckons with.
"""

from collections.abc import Iterable, Mapping

from springhouse.cluster.state import ClusterState, Disks, SnapshotVersion
from springhouse.units import Instant, Seconds


def up_to_date(candidate: SnapshotVersion, own: SnapshotVersion) -> bool:
    """Whether a candidate can't lack anything that its voter keeps.

    >>> ours = SnapshotVersion(2, 9)
    >>> up_to_date(SnapshotVersion(3, 7), ours), up_to_date(SnapshotVersion(2, 8), ours)
    (True, False)
    """
    return candidate >= own


def may_vote_for(candidate: str, vote: str | None) -> bool:
    """Whether the one vote of a term is still free, or was given to the same candidate."""
    return vote is None or vote == candidate


def is_bound(heard: Instant, now: Instant, election_seconds: Seconds) -> bool:
    """Whether a node that acknowledged a leader at `heard` still has to stay with it."""
    return now < heard + election_seconds


def is_heard(echo: Instant, now: Instant, election_seconds: Seconds) -> bool:
    """Whether a leader that last heard what was sent at `echo` can hear this node.

    One that can't is no leader, and binds nobody.
    """
    return now < echo + election_seconds


def is_voter(state: ClusterState, name: str, disk: int) -> bool:
    """Whether a node is one of those that decide, with the memory that it has."""
    return state.voters.get(name) == disk


def quorum_since(answered: Mapping[str, Instant], voters: Disks, own: str, now: Instant) -> Instant:
    """The latest moment at which a majority of the voters is known to have been with the leader.

    `answered` has, for each of the others, when it was sent what they last acknowledged.
    """
    never = Instant(float("-inf"))
    moments = sorted(now if name == own else answered.get(name, never) for name in voters)
    return moments[-(len(voters) // 2 + 1)]


def without_memory(voters: Disks, disks: Iterable[tuple[str, int]]) -> str | None:
    """A voter that came back with another disk, and so must not count as that voter any more.

    >>> without_memory({"a": 1, "b": 2}, [("a", 1), ("b", 7)])
    'b'
    """
    return next((name for name, disk in disks if voters.get(name, disk) != disk), None)
