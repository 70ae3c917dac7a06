"""The checkers of a cluster find real errors, and no others."""

import pytest

from springhouse.cluster.messages import Assign
from springhouse.cluster.state import Assignment, ClusterState, PersistentState, SnapshotVersion
from springhouse.simulate.cluster_checkers import BrokenLaw, Checkers

VOTERS = {"a": 1, "b": 2, "c": 3}
NOBODY = frozenset()


def state(term, version, **assignments):
    return ClusterState(SnapshotVersion(term, version), VOTERS, assignments)


def commit(checkers, kept):
    for name in ("a", "b"):
        checkers.record_persisted(
            name, PersistentState(VOTERS[name], kept.version.term, None, kept)
        )


@pytest.fixture
def checkers():
    made = Checkers()
    commit(made, state(1, 5, one=Assignment("a", offset=4)))
    return made


def test_two_disks_of_three_commit_and_one_does_not(checkers):
    checkers.record_persisted("a", PersistentState(1, 1, None, state(1, 6)))
    assert checkers.newest.version == SnapshotVersion(1, 5)
    checkers.record_persisted("b", PersistentState(99, 1, None, state(1, 6)))
    assert checkers.newest.version == SnapshotVersion(1, 5), "another disk is another voter"
    checkers.record_persisted("c", PersistentState(3, 1, None, state(1, 6)))
    assert checkers.newest.version == SnapshotVersion(1, 6)


def test_two_leaders_in_a_term(checkers):
    checkers.check_leader("a", 1, 2, 6)
    checkers.check_leader("a", 1, 2, 6)
    checkers.check_leader("b", 2, 3, 6)
    with pytest.raises(BrokenLaw, match="one leader: a and c both lead in term 2"):
        checkers.check_leader("c", 3, 2, 6)


def test_a_leader_that_lacks_what_is_committed(checkers):
    with pytest.raises(BrokenLaw, match="from version 4, but version 5 of term 1 is committed"):
        checkers.check_leader("b", 2, 2, 5)


def test_a_version_that_changes(checkers):
    with pytest.raises(BrokenLaw, match="nothing lost"):
        commit(checkers, state(2, 5))


def test_an_offset_that_goes_back(checkers):
    with pytest.raises(BrokenLaw, match="one went back from offset 4"):
        commit(checkers, state(1, 6, one=Assignment("a", offset=3)))


def test_acting_on_what_is_not_committed_or_not_the_same(checkers):
    checkers.check_applied("c", state(1, 5, one=Assignment("a", offset=4)))
    with pytest.raises(BrokenLaw, match="which is not committed"):
        checkers.check_applied("c", state(1, 6))
    with pytest.raises(BrokenLaw, match="another state"):
        checkers.check_applied("c", state(1, 5))


def test_two_hands_on_one_unit(checkers):
    take = Assign((("one", 0),))
    checkers.check_start("a", take, state(1, 5, one=Assignment("a")), NOBODY)
    later = state(1, 6, one=Assignment("b"))
    with pytest.raises(BrokenLaw, match="one at a time: b starts one while a works on it"):
        checkers.check_start("b", take, later, NOBODY)
    checkers.check_start("b", take, later, frozenset({"a"}))
    with pytest.raises(BrokenLaw, match="a works on one, which b has"):
        checkers.check_awake("a", {"one"})


def test_two_owners_at_one_version(checkers):
    take = Assign((("one", 0),))
    checkers.check_start("a", take, state(1, 5, one=Assignment("a")), NOBODY)
    checkers.record_stop("a", "one")
    with pytest.raises(BrokenLaw, match="a and b own one at 5"):
        checkers.check_start("b", take, state(1, 5, one=Assignment("b")), NOBODY)
    with pytest.raises(BrokenLaw, match="which it does not own"):
        checkers.check_start("c", take, state(1, 5, one=Assignment("b")), NOBODY)


def test_work_without_quorum(checkers):
    checkers.check_without_quorum({"a": set()}, 4.0)
    with pytest.raises(BrokenLaw, match=r"quorum: a works on one after 4.00 s"):
        checkers.check_without_quorum({"a": {"one"}}, 4.0)


def shared(*owners):
    """A committed state in which these nodes own the units 0, 1, 2 …"""
    return state(1, 6, **{str(number): Assignment(owner) for number, owner in enumerate(owners)})


@pytest.mark.parametrize(
    ("owners", "workers", "problem"),
    [
        ("aabbccdd", "abcd", None),
        ("aaabbccd", "abcd", None),
        ("aaaabccd", "abcd", "a has 4 units, not 1 to 3"),
        ("aabbbccc", "abcd", "d has 0 units, not 1 to 3"),
        ("aabbccdd", "abc", "6 is with d, which can't work"),
        ("aaabbbcc", "abc", None),
    ],
)
def test_who_can_work_shares_the_units(checkers, owners, workers, problem):
    commit(checkers, shared(*owners))
    assert checkers.find_unfairness(workers) == problem


@pytest.mark.parametrize(
    ("before", "after", "workers", "problem"),
    [
        # d can't work: its two units move, and no others.
        ("aabbccdd", "aabbccab", "abc", None),
        ("aabbccdd", "abbaccab", "abc", "4 units moved, and 2 had to"),
        # d is back, and gets the one unit that is its minimum.
        ("aaabbbcc", "aadbbbcc", "abcd", None),
        ("aaabbbcc", "aadbbdcc", "abcd", "2 units moved, and 1 had to"),
    ],
)
def test_only_what_has_to_changes_hands(checkers, before, after, workers, problem):
    commit(checkers, shared(*after))
    owners = {str(number): owner for number, owner in enumerate(before)}
    if problem is None:
        checkers.check_moves(owners, workers)
    else:
        with pytest.raises(BrokenLaw, match=problem):
            checkers.check_moves(owners, workers)


def test_a_leader_that_can_not_work_gives_itself_nothing(checkers):
    before, after = shared("b", "c"), shared("b", "a")
    checkers.check_leader("b", 2, 1, 6)
    checkers.check_unable_leader("a", before, after)  # It keeps what its leader decided.
    checkers.check_unable_leader("b", before, after)
    with pytest.raises(BrokenLaw, match="b leads, can't work, and gives itself 1"):
        checkers.check_unable_leader("b", before, shared("b", "b"))
