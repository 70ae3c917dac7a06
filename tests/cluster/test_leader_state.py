"""A leader's knowledge of the other nodes, and its messages to them."""

import pytest

from springhouse.cluster.leader_state import LeaderState
from springhouse.cluster.messages import Appended, SendTime
from springhouse.cluster.node_load import IDLE
from springhouse.cluster.ring import ring_of
from springhouse.cluster.state import ZERO, ClusterState, SnapshotVersion
from springhouse.cluster.timing import Timing
from springhouse.units import Instant

VOTERS = {"a": 1, "b": 2, "c": 3}
INCARNATION = 77
UNITS = {f"unit {number}": 1.0 for number in range(6)}


@pytest.fixture
def leadership():
    """Node a leads in term 4, from a state of term 3."""
    state = ClusterState(SnapshotVersion(3, 7), VOTERS)
    return LeaderState(
        "a", 4, state, ring_of(frozenset("abc")), UNITS, Timing(), INCARNATION, Instant(10.0)
    )


def answer(leadership, sender, now, version=None, **others):
    fields = {
        "term": 4,
        "disk": VOTERS[sender],
        "answers": SendTime(INCARNATION, Instant(now)),
        "sent": SendTime(1, Instant(500 + now)),
        "bound": True,
        "accepted": True,
        "version": version or leadership.state.version,
        "applied": ZERO,
        "released": (),
        "offsets": (),
        "load": IDLE,
    }
    return leadership.receive_answer(sender, Appended(**{**fields, **others}), Instant(now))


def told(leadership, to, now):
    ((_, message),) = leadership.messages_to([to], Instant(now))
    return message


def agree(leadership, now):
    """All nodes are present and have the newest version."""
    answer(leadership, "b", now)
    answer(leadership, "c", now)


def test_the_first_version_is_of_the_own_term_and_changes_nothing(leadership):
    assert leadership.state == ClusterState(SnapshotVersion(4, 8), VOTERS)
    message = told(leadership, "b", 10.0)
    assert (message.previous, message.version, message.force) == (
        SnapshotVersion(3, 7),
        SnapshotVersion(4, 8),
        False,
    )
    assert (message.committed, message.required) == (ZERO, SnapshotVersion(4, 8))
    assert not message.has_quorum


def test_a_version_is_committed_when_a_majority_keeps_it(leadership):
    assert leadership.is_committing
    committed, _, _ = answer(leadership, "b", 10.1)
    assert committed
    assert leadership.committed == SnapshotVersion(4, 8)
    assert answer(leadership, "c", 10.1)[0] is False, "once is enough"


@pytest.mark.parametrize(
    ("told_of", "others"),
    [
        ("another disk", {"disk": 99}),
        ("an earlier state", {"version": SnapshotVersion(3, 7), "accepted": False}),
        ("what was sent in another incarnation", {"answers": SendTime(5, Instant(11.0))}),
        ("what was sent before the election", {"answers": SendTime(INCARNATION, Instant(9.0))}),
    ],
)
def test_an_answer_that_commits_nothing(leadership, told_of, others):
    assert answer(leadership, "b", 10.1, **others)[0] is False, told_of
    assert leadership.is_committing


def test_who_is_behind_gets_the_changes_or_if_it_is_far_behind_the_state(leadership):
    agree(leadership, 10.1)
    behind = leadership.state.version
    for offset in range(1, 30):
        agree(leadership, 10.0 + offset)
        assert leadership.propose(Instant(10.0 + offset), {"b": bool(offset % 2)})
        agree(leadership, 10.0 + offset)
        answer(leadership, "c", 10.5 + offset, behind)
        message = told(leadership, "c", 10.5 + offset)
        assert message.force is (offset > 16)
        assert message.version == leadership.state.version
        if not message.force:
            assert message.previous == behind
            assert message.changes


def test_who_is_not_heard_of_is_not_sent_everything_again_and_again(leadership):
    assert told(leadership, "c", 10.0).previous == SnapshotVersion(3, 7)
    message = told(leadership, "c", 20.0)
    assert (message.previous, message.force) == (message.version, False)


def test_one_version_at_a_time(leadership):
    assert not leadership.propose(Instant(10.2), {})
    agree(leadership, 10.2)
    assert leadership.propose(Instant(10.2), {})
    assert set(leadership.state.assignments) == set(UNITS)
    assert not leadership.propose(Instant(10.3), {"b": True})


def test_without_a_quorum_nothing_is_proposed(leadership):
    agree(leadership, 10.1)
    assert leadership.has_quorum(Instant(13.0))
    assert not leadership.has_quorum(Instant(13.2))
    assert not leadership.propose(Instant(13.2), {})


def test_answers_that_bind_nobody_make_no_quorum(leadership):
    answer(leadership, "b", 10.1, bound=False)
    assert not leadership.has_quorum(Instant(10.2))


def test_a_new_leader_waits_a_moment_before_it_takes_a_silent_node_for_gone(leadership):
    answer(leadership, "b", 10.1)
    settled = 10.0 + Timing().settling_seconds
    assert leadership.presence(Instant(settled - 0.01)).unsure
    presence = leadership.presence(Instant(settled + 0.01))
    assert (list(presence.present), presence.gone, presence.unsure) == (["a", "b"], {"c"}, False)


def test_a_node_that_lost_its_disk_is_removed_and_then_added(leadership):
    agree(leadership, 10.1)
    leadership.propose(Instant(10.2), {})
    agree(leadership, 10.2)
    answer(leadership, "c", 10.3, SnapshotVersion(0, 0), disk=33, accepted=False)
    assert leadership.propose(Instant(10.4), {})
    assert leadership.state.voters == {"a": 1, "b": 2}
    answer(leadership, "b", 10.4)
    assert not leadership.propose(Instant(10.5), {}), "it does not have the state yet"
    answer(leadership, "c", 10.6, disk=33)
    assert leadership.propose(Instant(10.6), {})
    assert leadership.state.voters == {"a": 1, "b": 2, "c": 33}


def test_who_lost_its_disk_must_first_act_on_what_is_the_newest_now(leadership):
    """The node may have released units before; an old state that comes late does not show it."""
    agree(leadership, 11.0)
    assert leadership.propose(Instant(11.5), {})
    agree(leadership, 12.0)
    assert told(leadership, "c", 12.5).required == SnapshotVersion(4, 8)
    answer(leadership, "c", 13.0, version=ZERO, disk=99, accepted=False)
    assert told(leadership, "c", 13.5).required == leadership.state.version == SnapshotVersion(4, 9)
    assert told(leadership, "b", 13.5).required == SnapshotVersion(4, 8)


def test_a_fenced_node_must_first_apply_that_version(leadership):
    agree(leadership, 10.1)
    leadership.propose(Instant(10.2), {})
    agree(leadership, 10.2)
    answer(leadership, "b", 15.0)
    assert leadership.propose(Instant(15.0), {})
    assert told(leadership, "c", 15.1).required == leadership.state.version
    assert told(leadership, "b", 15.1).required == leadership.first_version
