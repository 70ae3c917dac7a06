"""What does a follower do with a state that it is sent?

003 section 4.2.1 lets `force` skip the checks of version and term, "as we assume the data received
will always be the latest". A network that delays and repeats breaks that assumption twice: a forced
state of a leader that was voted out would replace a committed one, and so would an early forced
state of the present leader that arrives late. So `force` only skips the check that needs it, that
of the previous stamp. Always:

    the message's term is not below the node's, its stamp is of its own term,
    and the stamp that a node keeps never goes down
"""

from collections.abc import Mapping

from springhouse.cluster.messages import AppendEntries
from springhouse.cluster.state import Assignment, ClusterState, SnapshotVersion

OUTDATED = "outdated"
"""The message is of a leader that is no more."""

MISSING = "missing"
"""The changes do not continue what the node keeps, which needs the whole state."""


def verdict(term: int, accepted: ClusterState, message: AppendEntries) -> ClusterState | str:
    """The state to keep from now on, or why the message can't be followed."""
    if message.term < term or message.stamp.term != message.term:
        return OUTDATED
    own = accepted.stamp
    if own.term == message.term and own.version >= message.stamp.version:
        # A repeated or an overtaken message, whose content is here already.
        return accepted
    if message.state is not None:
        return message.state
    if message.previous == own:
        return accepted.changed(message.stamp, message.changes)
    return MISSING


def is_committed(own: SnapshotVersion, committed: SnapshotVersion) -> bool:
    """Whether what a node keeps is committed, when the leader says that `committed` is.

    Within one term there is one leader and one line of versions; across terms nothing follows.
    """
    return own.term == committed.term and own.version <= committed.version


def of_owner(name: str, holdings: Mapping[str, Assignment]) -> dict[str, Assignment]:
    """What a node owns, by a look at everything."""
    return {unit: holding for unit, holding in holdings.items() if holding.owner == name}
