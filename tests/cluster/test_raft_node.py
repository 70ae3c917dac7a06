"""The reaction of a node to an event; `scenarios` hold the reactions of a cluster."""

import pytest

from springhouse.cluster.messages import (
    AskForVote,
    Assign,
    LoadMeasured,
    Persist,
    Received,
    Release,
    Released,
    Send,
    Tick,
    UnitsDeclared,
    Vote,
)
from springhouse.cluster.node_load import NodeLoad
from springhouse.cluster.raft_node import Node, Role
from springhouse.cluster.state import ClusterState, PersistentState, SnapshotVersion
from springhouse.cluster.timing import Timing
from springhouse.units import Dice, Instant

VOTERS = {"a": 1, "b": 2, "c": 3}


def remembering(term=4, vote=None, version=(3, 7), name="a"):
    memory = PersistentState(
        VOTERS[name], term, vote, ClusterState(SnapshotVersion(*version), VOTERS)
    )
    return Node(name, VOTERS, Timing(), Dice(1), Instant(0.0), memory)


def asked(node, term, version, *, pre_vote=False, sender="b", now=10.0):
    orders = node.step(
        Received(sender, AskForVote(term, SnapshotVersion(*version), pre_vote)), Instant(now)
    )
    (answer,) = [order.message for order in orders if isinstance(order, Send)]
    assert isinstance(answer, Vote)
    return answer.granted, [type(order).__name__ for order in orders]


@pytest.mark.parametrize(
    ("told", "node", "term", "version", "granted"),
    [
        ("a later term, as much kept", remembering(), 5, (3, 7), True),
        ("the same term, nobody has the vote", remembering(), 4, (3, 7), True),
        ("the same term, it is repeated", remembering(vote="b"), 4, (3, 7), True),
        ("the same term, another has the vote", remembering(vote="c"), 4, (3, 7), False),
        ("an earlier term", remembering(), 3, (3, 7), False),
        ("less is kept", remembering(), 5, (3, 6), False),
        ("an older state with a higher version", remembering(), 5, (2, 9), False),
    ],
)
def test_a_vote(told, node, term, version, granted):
    assert asked(node, term, version)[0] is granted, told


def test_a_vote_is_on_disk_before_it_is_given():
    node = remembering()
    assert asked(node, 5, (3, 7)) == (True, ["Persist", "Send"])
    assert (node.term, node.vote) == (5, "b")


def test_a_pre_vote_leaves_no_trace():
    node = remembering()
    assert asked(node, 5, (3, 7), pre_vote=True) == (True, ["Send"])
    assert (node.term, node.vote, node.role) == (4, None, Role.FOLLOWER)


@pytest.mark.parametrize("pre_vote", [True, False])
def test_who_just_started_may_have_acknowledged_a_leader_and_waits(pre_vote):
    node = remembering()
    assert asked(node, 9, (3, 7), pre_vote=pre_vote, now=2.9) == (False, ["Send"])
    assert node.term == 4


def test_a_candidate_asks_for_pre_votes_then_votes_then_leads():
    node = remembering()
    now = node.wake_at
    orders = node.step(Tick(), now)
    assert [order.message.pre_vote for order in orders] == [True, True]
    assert (node.role, node.term) == (Role.CANDIDATE, 4)
    orders = node.step(Received("b", Vote(4, 5, True, True, 2)), now)
    assert isinstance(orders[0], Persist)
    assert (orders[0].persistent_state.term, orders[0].persistent_state.vote) == (5, "a")
    assert [order.message.pre_vote for order in orders[1:]] == [False, False]
    orders = node.step(Received("c", Vote(5, 5, True, False, 3)), now)
    assert node.role is Role.LEADER
    assert isinstance(orders[0], Persist)
    assert orders[0].persistent_state.state.version == SnapshotVersion(5, 8)


def test_a_vote_from_a_disk_that_is_not_the_voters_does_not_count():
    node = remembering()
    now = node.wake_at
    node.step(Tick(), now)
    node.step(Received("b", Vote(4, 5, True, True, 99)), now)
    assert node.term == 4


def test_a_stranger_is_not_listened_to():
    node = remembering()
    assert (
        node.step(Received("x", AskForVote(9, SnapshotVersion(9, 9), False)), Instant(10.0)) == []
    )


def test_one_node_alone_needs_no_others():
    node = Node("a", [], Timing(), Dice(1), Instant(0.0))
    orders = node.step(UnitsDeclared({"orders 0": 1.0}), Instant(0.0))
    assert [type(order) for order in orders] == [Persist]
    taken = []
    while node.wake_at < 15:
        taken += [order for order in node.step(Tick(), node.wake_at) if isinstance(order, Assign)]
    assert node.role is Role.LEADER
    assert taken == [Assign((("orders 0", 0),))]


def test_persist_is_always_first(cluster):
    cluster.kill(cluster.leader)
    cluster.run(20)
    assert sum(isinstance(order, Persist) for orders in cluster.steps for order in orders) > 20
    for orders in cluster.steps:
        assert not any(isinstance(order, Persist) for order in orders[1:])


def test_a_node_that_stays_overloaded_gets_less(make_cluster):
    cluster = make_cluster(units={f"view {number}": 1.0 for number in range(50)})
    cluster.run(15)
    before = {name: len(units) for name, units in cluster.working.items()}
    hot = max(before, key=before.get)
    cluster.give(hot, LoadMeasured(NodeLoad(cpu=0.99)))
    cluster.run(200)
    after = {name: len(units) for name, units in cluster.working.items()}
    assert after[hot] < 0.7 * before[hot]
    assert sum(after.values()) == 50
    assert all(after[name] >= before[name] for name in cluster.names if name != hot)


def test_time_that_passed_unnoticed_stops_processing_before_anything_else(cluster):
    name = next(name for name in cluster.names if name != cluster.leader)
    assert cluster.working[name]
    held = set(cluster.working[name])
    orders = cluster.nodes[name].step(LoadMeasured(NodeLoad()), Instant(cluster.now + 100))
    assert orders == [Release(tuple(orders[0].units), at_once=True)]
    assert set(orders[0].units) == held


def test_a_released_unit_is_not_released_again(cluster):
    """Even if the node hears of it while it must stop all of its work."""
    name = next(name for name in cluster.names if name != cluster.leader)
    processing = cluster.nodes[name].processing
    unit, *others = processing.working
    del processing.working[unit]
    processing.releasing[unit] = None
    orders = cluster.nodes[name].step(Released((unit,)), Instant(cluster.now + 100))
    assert [each for each in orders if isinstance(each, Release)] == (
        [Release(tuple(others), at_once=True)] if others else []
    )
    assert not {unit} & {*processing.working, *processing.releasing}


def test_a_leader_knows_at_once_that_it_can_not_work(cluster):
    """Also before its first heartbeat: other nodes may get its units by then."""

    def workers():
        return cluster.nodes[cluster.leader].leadership.presence(Instant(cluster.now)).present

    first = cluster.leader
    cluster.give(first, LoadMeasured(NodeLoad(able=False)))
    assert first not in workers()
    for name in cluster.names:
        cluster.give(name, LoadMeasured(NodeLoad(able=False)))
    cluster.kill(first)
    while cluster.leader is None:
        cluster.run(0.01)
    assert cluster.leader not in workers()


def test_who_comes_back_at_once_and_can_not_work_yet_gives_its_units_away(cluster):
    name = next(name for name in cluster.names if name != cluster.leader)
    cluster.kill(name)
    cluster.start(name)
    cluster.give(name, LoadMeasured(NodeLoad(able=False)))
    cluster.run(5)
    assert not cluster.working[name]
    assert cluster.all_worked_on_once


def test_a_new_leader_and_its_followers_go_on_some_messages_after_the_election(cluster):
    cluster.kill(cluster.leader)
    while cluster.leader is None:
        cluster.run(0.01)
    # Messages of 0.01 s each tell that nodes are heard, that they are bound, and have a quorum.
    cluster.run(0.06)
    assert cluster.timing.heartbeat_seconds > 0.06
    assert all(node.may_process(Instant(cluster.now)) for node in cluster.nodes.values())
