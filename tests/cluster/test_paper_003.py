"""Paper 003, "Distributed ETL", section by section."""

import pytest

from springhouse.cluster.messages import AppendEntries, Assign, Send
from springhouse.cluster.raft_node import Role
from springhouse.cluster.timing import Timing

PAPER = (
    "BN4SCH102032018",
    "BN4SCH102031924",
    "BN4SCH102032017",
    "BN4SCH102031919",
    "BN4SCH102031619",
)


def sent(cluster, to=None, since=0.0):
    """The AppendEntries that were sent."""
    return [
        order.message
        for at, _, order in cluster.log
        if at >= since
        and isinstance(order, Send)
        and isinstance(order.message, AppendEntries)
        and to in (None, order.to)
    ]


def test_section_4_2_1_each_mutation_is_one_version_and_all_nodes_get_the_latest(cluster):
    versions = sorted({message.version.number for message in sent(cluster)})
    assert versions == list(range(versions[0], versions[-1] + 1))
    assert {node.applied.version for node in cluster.nodes.values()} == {
        cluster.nodes[cluster.leader].accepted.version
    }


def test_section_4_2_1_a_node_that_fell_behind_gets_the_entire_state_by_force(cluster):
    behind = next(name for name in cluster.names if name != cluster.leader)
    cluster.kill(behind)
    for offset in range(1, 41):
        for unit in cluster.units:
            if cluster.workers(unit):
                cluster.work(unit, offset)
        cluster.run(1)
    restored = cluster.now
    cluster.start(behind)
    cluster.run(5)
    assert any(message.force for message in sent(cluster, behind, restored))
    assert cluster.nodes[behind].applied == cluster.nodes[cluster.leader].applied


def test_section_4_2_1_a_node_that_missed_one_message_gets_only_the_changes(cluster):
    start = cluster.now
    cluster.work("partition 1", 5)
    cluster.run(5)
    assert not any(message.force for message in sent(cluster, since=start))


def test_section_4_2_2_processing_begins_with_the_first_state_that_was_not_forced(make_cluster):
    cluster = make_cluster(units={f"partition {number}": 1.0 for number in range(10)})
    roles, begun = {}, set()
    while cluster.now < 15:
        cluster.run(0.005)
        for name, node in cluster.nodes.items():
            roles.setdefault(name, [])
            if roles[name][-1:] != [node.role]:
                roles[name].append(node.role)
            if cluster.working[name] and name not in begun:
                begun.add(name)
                assert node.role in (Role.SYNCHRONIZED_FOLLOWER, Role.LEADER)
    assert begun == set(cluster.names)
    for name, seen in roles.items():
        last = (
            [Role.CANDIDATE, Role.LEADER]
            if name == cluster.leader
            else [Role.SYNCHRONIZED_FOLLOWER]
        )
        assert [role for role in seen if role is not Role.FOLLOWER][-len(last) :] == last


def test_section_4_2_3_without_quorum_all_processing_stops_within_the_keep_alive_time(cluster):
    followers = [name for name in cluster.names if name != cluster.leader]
    for name in followers[:3]:
        cluster.kill(name)
    cluster.run(2)
    assert any(cluster.working.values())
    cluster.run(1)
    assert not any(cluster.working.values())
    assert not sent(cluster, since=cluster.now - 0.4)[-1].has_quorum


def test_section_4_2_3_with_quorum_again_the_same_leader_goes_on_at_once(cluster):
    leader = cluster.leader
    followers = [name for name in cluster.names if name != leader]
    for name in followers[:3]:
        cluster.kill(name)
    cluster.run(30)
    assert not any(cluster.working.values())
    cluster.start(followers[0])
    cluster.run(1)
    assert cluster.leader == leader
    assert cluster.working[leader]
    cluster.run(4)
    assert cluster.all_worked_on_once


def test_section_5_1_the_papers_time_outs():
    timing = Timing()
    assert timing.heartbeat_seconds == 0.3
    assert timing.election_seconds == timing.keep_alive_seconds == 3.0


@pytest.mark.parametrize("seed", range(5))
def test_section_5_table_1(make_cluster, seed):
    """Leader killed, second leader killed, first restored, two more killed, one restored."""
    cluster = make_cluster(PAPER, seed=seed)
    cluster.run(15)
    assert cluster.all_worked_on_once
    first = cluster.leader
    cluster.kill(first)
    cluster.run(10)
    assert cluster.all_worked_on_once
    cluster.run(50)
    second = cluster.leader
    cluster.kill(second)
    cluster.run(31)
    assert cluster.all_worked_on_once
    cluster.start(first)
    cluster.run(46)
    assert cluster.all_worked_on_once
    assert cluster.working[first], "its work comes back with it"
    for name in [name for name in cluster.nodes if name != first][:2]:
        cluster.kill(name)
    cluster.run(3)
    stopped = cluster.now
    cluster.run(41)
    assert not any(cluster.working.values())
    assert not any(isinstance(order, Assign) for at, _, order in cluster.log if at > stopped)
    cluster.start(second)
    cluster.run(10)
    assert cluster.all_worked_on_once


@pytest.mark.parametrize("seed", range(10))
def test_section_5_a_killed_node_costs_less_than_three_election_time_outs(make_cluster, seed):
    cluster = make_cluster(PAPER, seed=seed)
    cluster.run(15)
    cluster.kill(cluster.leader)
    killed = cluster.now
    while not cluster.all_worked_on_once:
        cluster.run(0.1)
        assert cluster.now - killed < 3 * cluster.timing.election_seconds
