"""A follower's answer to a message: its term, its version, the message -> its new version."""

import pytest

from springhouse.cluster.follower import (
    MISSING,
    OUTDATED,
    accept_entries,
    assignments_of,
    is_committed,
)
from springhouse.cluster.messages import AppendEntries, SendTime
from springhouse.cluster.state import (
    NO_CHANGES,
    ZERO,
    Assignment,
    ClusterState,
    SnapshotVersion,
    StateChanges,
)
from springhouse.units import Instant, Seconds


def message(term, version, previous=ZERO, *, force=False, changes=NO_CHANGES):
    state = ClusterState(SnapshotVersion(*version)) if force else None
    return AppendEntries(
        term, SendTime(1, Instant(0)), None, SnapshotVersion(*previous), SnapshotVersion(*version),
        changes, state, ZERO, ZERO, has_quorum=True, quorum_age=Seconds(0.0),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("told", "term", "own", "sent", "expected"),
    [
        ("it continues", 2, (2, 5), message(2, (2, 6), (2, 5)), (2, 6)),
        ("a heartbeat", 2, (2, 5), message(2, (2, 5), (2, 5)), (2, 5)),
        ("repeated", 2, (2, 6), message(2, (2, 6), (2, 5)), (2, 6)),
        ("overtaken", 2, (2, 7), message(2, (2, 6), (2, 5)), (2, 7)),
        ("a gap", 2, (2, 4), message(2, (2, 6), (2, 5)), MISSING),
        ("another line", 3, (2, 5), message(3, (3, 5), (1, 4)), MISSING),
        ("an old leader", 3, (2, 5), message(2, (2, 6), (2, 5)), OUTDATED),
        ("forced", 2, (1, 2), message(2, (2, 6), force=True), (2, 6)),
        ("forced over what nobody else has", 3, (2, 9), message(3, (3, 6), force=True), (3, 6)),
        ("forced by an old leader", 3, (2, 5), message(2, (2, 9), force=True), OUTDATED),
        ("forced, but late", 2, (2, 7), message(2, (2, 6), force=True), (2, 7)),
        ("forced, of another term", 3, (2, 5), message(3, (2, 9), force=True), OUTDATED),
    ],
)  # fmt: skip
def test_what_is_kept(told, term, own, sent, expected):
    kept = accept_entries(term, ClusterState(SnapshotVersion(*own)), sent)
    assert (kept.version if isinstance(kept, ClusterState) else kept) == expected, told


def test_changes_are_applied():
    own = ClusterState(SnapshotVersion(2, 5), assignments={"orders 0": Assignment("a")})
    changes = StateChanges({"orders 1": Assignment("b")})
    kept = accept_entries(2, own, message(2, (2, 6), (2, 5), changes=changes))
    assert kept.assignments == {"orders 0": Assignment("a"), "orders 1": Assignment("b")}


@pytest.mark.parametrize(
    ("own", "committed", "expected"),
    [
        ((2, 5), (2, 5), True),
        ((2, 5), (2, 7), True),
        ((2, 8), (2, 7), False),
        ((1, 5), (2, 7), False),
    ],
)
def test_only_within_a_term_a_later_commit_tells_of_an_earlier_state(own, committed, expected):
    assert is_committed(SnapshotVersion(*own), SnapshotVersion(*committed)) is expected


def test_what_a_node_owns():
    assignments = {
        "orders 0": Assignment("a"),
        "orders 1": Assignment("b"),
        "orders 2": Assignment("a", "b"),
    }
    assert set(assignments_of("a", assignments)) == {"orders 0", "orders 2"}
