"""Who may lead, and what makes a majority?

This is Raft's election (003 cites it unchanged), for snapshots with versions. A voter gives one
vote per term, to a candidate whose version is not below its own. The candidate decides whether a
vote counts, because a node may become a voter before it hears of that. Therefore:

    committed snapshot s, leader elected later  =>  the leader's version >= s's version

since the majority that has s and the majority that voted have a node in common. There are two
additions. A candidate first asks for pre-votes: what would the answers be? So a node that comes
back and can't win disturbs nobody. And a voter that acknowledged a leader refuses everybody else
for an election time-out; the guarantees of `timing` depend on that.
"""

from collections.abc import Iterable, Mapping

from springhouse.cluster.state import ClusterState, Disks, SnapshotVersion
from springhouse.units import Instant, Seconds


def is_up_to_date(candidate: SnapshotVersion, own: SnapshotVersion) -> bool:
    """Whether a candidate has everything that its voter has.

    >>> ours = SnapshotVersion(2, 9)
    >>> is_up_to_date(SnapshotVersion(3, 7), ours), is_up_to_date(SnapshotVersion(2, 8), ours)
    (True, False)
    """
    return candidate >= own


def may_vote_for(candidate: str, vote: str | None) -> bool:
    """Whether the one vote of a term is still free, or already belongs to this candidate."""
    return vote is None or vote == candidate


def is_bound(acknowledged_at: Instant, now: Instant, election_seconds: Seconds) -> bool:
    """Whether a node that acknowledged a leader at that time still has to stay with it."""
    return now < acknowledged_at + election_seconds


def is_heard(echo: Instant, now: Instant, election_seconds: Seconds) -> bool:
    """Whether a leader that last heard what this node sent at `echo` can hear this node.

    A leader that can't hear a node does not bind it.
    """
    return now < echo + election_seconds


def is_voter(state: ClusterState, name: str, disk: int) -> bool:
    """Whether a node with this disk is one of the voters."""
    return state.voters.get(name) == disk


def quorum_since(
    acknowledged: Mapping[str, Instant], voters: Disks, own: str, now: Instant
) -> Instant:
    """The latest moment at which a majority of the voters is known to have been with the leader.

    `acknowledged` has, for each other node, when the leader sent what that node last acknowledged.
    """
    never = Instant(float("-inf"))
    moments = sorted(now if name == own else acknowledged.get(name, never) for name in voters)
    return moments[-(len(voters) // 2 + 1)]


def find_voter_without_memory(voters: Disks, disks: Iterable[tuple[str, int]]) -> str | None:
    """A voter that came back with another disk, and so must not count as that voter any more.

    >>> find_voter_without_memory({"a": 1, "b": 2}, [("a", 1), ("b", 7)])
    'b'
    """
    return next((name for name, disk in disks if voters.get(name, disk) != disk), None)
