"""What a leader knows of the others, and what it tells them."""

import pytest

from springhouse.cluster.leading import LeaderState
from springhouse.cluster.messages import Appended, Sent
from springhouse.cluster.node_load import IDLE
from springhouse.cluster.ring import ring_of
from springhouse.cluster.state import ZERO, ClusterState, SnapshotVersion
from springhouse.cluster.timing import Timing
from springhouse.units import Instant

VOTERS = {"a": 1, "b": 2, "c": 3}
LIFE = 77
UNITS = {f"unit {number}": 1.0 for number in range(6)}


@pytest.fixture
def office():
    """Node a leads in term 4, from a state of term 3."""
    state = ClusterState(SnapshotVersion(3, 7), VOTERS)
    return LeaderState(
        "a", 4, state, ring_of(frozenset("abc")), UNITS, Timing(), LIFE, Instant(10.0)
    )


def answer(office, sender, now, stamp=None, **others):
    fields = {
        "term": 4,
        "disk": VOTERS[sender],
        "answers": Sent(LIFE, Instant(now)),
        "sent": Sent(1, Instant(500 + now)),
        "bound": True,
        "taken": True,
        "stamp": stamp or office.state.stamp,
        "acting": ZERO,
        "released": (),
        "offsets": (),
        "load": IDLE,
    }
    return office.answered(sender, Appended(**{**fields, **others}), Instant(now))


def told(office, to, now):
    ((_, message),) = office.messages([to], Instant(now))
    return message


def agree(office, now):
    """All are here and keep the newest version."""
    answer(office, "b", now)
    answer(office, "c", now)


def test_the_first_version_is_of_the_own_term_and_changes_nothing(office):
    assert office.state == ClusterState(SnapshotVersion(4, 8), VOTERS)
    message = told(office, "b", 10.0)
    assert (message.previous, message.stamp, message.force) == (
        SnapshotVersion(3, 7),
        SnapshotVersion(4, 8),
        False,
    )
    assert (message.committed, message.required) == (ZERO, SnapshotVersion(4, 8))
    assert not message.has_quorum


def test_a_version_is_committed_when_a_majority_keeps_it(office):
    assert office.under_way
    committed, _, _ = answer(office, "b", 10.1)
    assert committed
    assert office.committed == SnapshotVersion(4, 8)
    assert answer(office, "c", 10.1)[0] is False, "once is enough"


@pytest.mark.parametrize(
    ("told_of", "others"),
    [
        ("another disk", {"disk": 99}),
        ("an earlier state", {"stamp": SnapshotVersion(3, 7), "taken": False}),
        ("what was sent in another life", {"answers": Sent(5, Instant(11.0))}),
        ("what was sent before the election", {"answers": Sent(LIFE, Instant(9.0))}),
    ],
)
def test_an_answer_that_commits_nothing(office, told_of, others):
    assert answer(office, "b", 10.1, **others)[0] is False, told_of
    assert office.under_way


def test_who_is_behind_gets_the_changes_or_if_it_is_far_behind_the_state(office):
    agree(office, 10.1)
    behind = office.state.stamp
    for offset in range(1, 30):
        agree(office, 10.0 + offset)
        assert office.propose(Instant(10.0 + offset), {"b": bool(offset % 2)})
        agree(office, 10.0 + offset)
        answer(office, "c", 10.5 + offset, behind)
        message = told(office, "c", 10.5 + offset)
        assert message.force is (offset > 16)
        assert message.stamp == office.state.stamp
        if not message.force:
            assert message.previous == behind
            assert message.changes


def test_who_is_not_heard_of_is_not_sent_everything_again_and_again(office):
    assert told(office, "c", 10.0).previous == SnapshotVersion(3, 7)
    message = told(office, "c", 20.0)
    assert (message.previous, message.force) == (message.stamp, False)


def test_one_version_at_a_time(office):
    assert not office.propose(Instant(10.2), {})
    agree(office, 10.2)
    assert office.propose(Instant(10.2), {})
    assert set(office.state.holdings) == set(UNITS)
    assert not office.propose(Instant(10.3), {"b": True})


def test_without_a_quorum_nothing_is_proposed(office):
    agree(office, 10.1)
    assert office.has_quorum(Instant(13.0))
    assert not office.has_quorum(Instant(13.2))
    assert not office.propose(Instant(13.2), {})


def test_answers_that_bind_nobody_make_no_quorum(office):
    answer(office, "b", 10.1, bound=False)
    assert not office.has_quorum(Instant(10.2))


def test_a_new_leader_waits_a_moment_before_it_takes_a_silent_node_for_gone(office):
    answer(office, "b", 10.1)
    settled = 10.0 + Timing().settling_seconds
    assert office.presence(Instant(settled - 0.01)).unsure
    presence = office.presence(Instant(settled + 0.01))
    assert (list(presence.here), presence.gone, presence.unsure) == (["a", "b"], {"c"}, False)


def test_a_node_that_lost_its_disk_is_removed_and_then_added(office):
    agree(office, 10.1)
    office.propose(Instant(10.2), {})
    agree(office, 10.2)
    answer(office, "c", 10.3, SnapshotVersion(0, 0), disk=33, taken=False)
    assert office.propose(Instant(10.4), {})
    assert office.state.voters == {"a": 1, "b": 2}
    answer(office, "b", 10.4)
    assert not office.propose(Instant(10.5), {}), "it does not have the state yet"
    answer(office, "c", 10.6, disk=33)
    assert office.propose(Instant(10.6), {})
    assert office.state.voters == {"a": 1, "b": 2, "c": 33}


def test_who_lost_its_disk_must_first_act_on_what_is_the_newest_now(office):
    """It let go of something before, perhaps, and an old state that comes late does not know it."""
    agree(office, 11.0)
    assert office.propose(Instant(11.5), {})
    agree(office, 12.0)
    assert told(office, "c", 12.5).required == SnapshotVersion(4, 8)
    answer(office, "c", 13.0, stamp=ZERO, disk=99, taken=False)
    assert told(office, "c", 13.5).required == office.state.stamp == SnapshotVersion(4, 9)
    assert told(office, "b", 13.5).required == SnapshotVersion(4, 8)


def test_who_is_expelled_must_first_act_on_that(office):
    agree(office, 10.1)
    office.propose(Instant(10.2), {})
    agree(office, 10.2)
    answer(office, "b", 15.0)
    assert office.propose(Instant(15.0), {})
    assert told(office, "c", 15.1).required == office.state.stamp
    assert told(office, "b", 15.1).required == office.first
