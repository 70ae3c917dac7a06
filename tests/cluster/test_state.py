"""Snapshots and their versions."""

from springhouse.cluster.state import (
    NO_CHANGES,
    Assignment,
    ClusterState,
    SnapshotVersion,
    StateChanges,
)

BEFORE = ClusterState(
    SnapshotVersion(2, 5),
    {"a": 1, "b": 2},
    {"orders 0": Assignment("a"), "orders 1": Assignment("b")},
)


def test_versions_are_ordered_by_term_and_then_by_number():
    assert SnapshotVersion(1, 9) < SnapshotVersion(2, 3) < SnapshotVersion(2, 4)
    assert str(SnapshotVersion(2, 3)) == "3 of term 2"


def test_changes_lead_to_another_snapshot_and_leave_the_first_as_it_was():
    changes = StateChanges({"orders 0": None, "orders 2": Assignment("a", since=6)}, {"a": 1})
    after = BEFORE.apply(SnapshotVersion(2, 6), changes)
    assert after.assignments == {"orders 1": Assignment("b"), "orders 2": Assignment("a", since=6)}
    assert (after.version, after.voters, after.shares) == (SnapshotVersion(2, 6), {"a": 1}, {})
    assert set(BEFORE.assignments) == {"orders 0", "orders 1"}


def test_two_changes_are_one():
    first = StateChanges({"orders 0": Assignment("b"), "orders 1": None}, shares={"a": 0.5})
    second = StateChanges({"orders 1": Assignment("a")}, {"a": 1})
    version = SnapshotVersion(2, 7)
    both = BEFORE.apply(SnapshotVersion(2, 6), first).apply(version, second)
    assert BEFORE.apply(version, first.then(second)) == both


def test_no_changes_are_false_and_all_others_true():
    assert not NO_CHANGES
    assert StateChanges(shares={})
    assert StateChanges({"orders 0": None})


def test_a_majority_is_more_than_half():
    sizes = {
        count: ClusterState(voters=dict.fromkeys("abcde"[:count], 1)).majority
        for count in (1, 2, 3, 4, 5)
    }
    assert sizes == {1: 1, 2: 2, 3: 2, 4: 3, 5: 3}


def test_the_heir_is_the_one_who_is_meant_to_have_it():
    assert Assignment("a").next_owner == "a"
    assert Assignment("a", "b").next_owner == "b"
