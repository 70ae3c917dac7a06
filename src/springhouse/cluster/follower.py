"""What does a follower do with a state that a leader sends?

003 section 4.2.1 lets `force` skip the checks of version and term, "as we assume the data received
will always be the latest". A network that delays and repeats messages breaks that assumption in two
ways. A forced state of a leader that was voted out could replace a committed state, and so could
an early forced state of the present leader that arrives late. So here `force` skips only one check,
that of the previous version. Always:

    the message's term is not below the node's, and its version is of its own term
    the version that a node has never goes down
"""

from collections.abc import Mapping

from springhouse.cluster.messages import AppendEntries
from springhouse.cluster.state import Assignment, ClusterState, SnapshotVersion

OUTDATED = "outdated"
"""The message is from a leader that does not lead any more."""

MISSING = "missing"
"""The changes do not continue the node's version, so the node needs the complete state."""


def accept_entries(term: int, own: ClusterState, message: AppendEntries) -> ClusterState | str:
    """The state to have from now on, or why the message can't be accepted."""
    if message.term < term or message.version.term != message.term:
        return OUTDATED
    version = own.version
    if version.term == message.term and version.number >= message.version.number:
        # The message arrives a second time, or a later one overtook it. Its content is here.
        return own
    if message.state is not None:
        return message.state
    if message.previous == version:
        return own.apply(message.version, message.changes)
    return MISSING


def is_committed(own: SnapshotVersion, committed: SnapshotVersion) -> bool:
    """Whether a node's version is committed, when the leader says that `committed` is.

    Within one term there is one leader and one sequence of versions; across terms nothing follows.
    """
    return own.term == committed.term and own.number <= committed.number


def assignments_of(name: str, assignments: Mapping[str, Assignment]) -> dict[str, Assignment]:
    """The assignments that a node owns."""
    return {unit: each for unit, each in assignments.items() if each.owner == name}
