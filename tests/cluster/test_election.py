"""Which nodes may lead?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springhouse.cluster.election import (
    find_voter_without_memory,
    is_bound,
    is_heard,
    is_up_to_date,
    is_voter,
    may_vote_for,
    quorum_since,
)
from springhouse.cluster.state import ClusterState, SnapshotVersion
from springhouse.units import Instant

FIVE = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}


@pytest.mark.parametrize(
    ("candidate", "own", "expected"),
    [
        (SnapshotVersion(2, 7), SnapshotVersion(2, 7), True),
        (SnapshotVersion(2, 6), SnapshotVersion(2, 7), False),
        (SnapshotVersion(3, 2), SnapshotVersion(2, 7), True),
        (SnapshotVersion(1, 99), SnapshotVersion(2, 7), False),
    ],
)
def test_a_candidate_must_not_lack_what_its_voter_keeps(candidate, own, expected):
    assert is_up_to_date(candidate, own) is expected


def test_one_vote_per_term():
    assert may_vote_for("a", None)
    assert may_vote_for("a", "a")
    assert not may_vote_for("a", "b")


def test_who_acknowledged_a_leader_stays_for_an_election_time_out():
    assert is_bound(Instant(10.0), Instant(12.9), 3.0)
    assert not is_bound(Instant(10.0), Instant(13.0), 3.0)


def test_a_leader_hears_who_was_heard_within_an_election_time_out():
    assert is_heard(Instant(10.0), Instant(12.9), 3.0)
    assert not is_heard(Instant(10.0), Instant(13.0), 3.0)
    assert not is_heard(Instant(float("-inf")), Instant(13.0), 3.0)


def test_a_voter_is_a_name_and_a_disk():
    state = ClusterState(voters=FIVE)
    assert is_voter(state, "a", 1)
    assert not is_voter(state, "a", 2)
    assert not is_voter(state, "x", 1)


@pytest.mark.parametrize(
    ("answered", "expected"),
    [
        ({}, float("-inf")),
        ({"b": 8.0}, float("-inf")),
        ({"b": 8.0, "c": 5.0}, 5.0),
        ({"b": 8.0, "c": 5.0, "d": 7.0}, 7.0),
        ({"b": 8.0, "x": 9.0}, float("-inf")),
    ],
)
def test_a_quorum_is_as_old_as_the_oldest_of_its_newest_answers(answered, expected):
    assert quorum_since(answered, FIVE, "a", Instant(10.0)) == expected


@given(st.dictionaries(st.sampled_from("bcde"), st.floats(0, 10)))
def test_a_majority_answered_since_then_and_not_since_any_later(answered):
    since = quorum_since(answered, FIVE, "a", Instant(10.0))
    moments = [10.0, *answered.values()]
    assert sum(moment >= since for moment in moments) >= 3 or since == float("-inf")
    assert sum(moment > since for moment in moments) < 3


def test_a_node_with_another_disk_is_not_the_voter_that_it_was():
    assert find_voter_without_memory(FIVE, [("b", 2), ("c", 9)]) == "c"
    assert find_voter_without_memory(FIVE, [("b", 2), ("x", 9)]) is None
