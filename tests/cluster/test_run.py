"""Nodes with threads, disks and sockets: three of them in one process, on loopback."""

import threading
import time
from contextlib import suppress

import pytest

from patience import patience
from springhouse.cluster.members import Members
from springhouse.cluster.messages import Progressed, Released, UnitsDeclared
from springhouse.cluster.run import Agent
from springhouse.cluster.timing import Timing
from springhouse.errors import SpringhouseError
from springhouse.units import Seconds

TIMING = Timing(
    heartbeat_seconds=Seconds(0.06),
    election_seconds=Seconds(0.6),
    keep_alive_seconds=Seconds(0.6),
)
UNITS = {f"unit {number}": 1.0 for number in range(6)}


class Hands:
    """Works on its units, and releases them at once."""

    def __init__(self, moved):
        self.working, self.offsets, self.agent = set(), {}, None
        self._moved = moved

    def take(self, units):
        self.working = self.working | {unit for unit, _ in units}
        self.offsets.update(units)
        self._moved.set()

    def let_go(self, units, *, at_once):
        self.working = self.working - set(units)
        self.agent.notify(Released(units))
        self._moved.set()


class Trio:
    """Three nodes that can be stopped and started again."""

    def __init__(self, folder, free_port, names="abc"):
        self.folder = folder
        self.addresses = {name: f"127.0.0.1:{free_port()}" for name in names}
        self.agents, self.hands = {}, {}
        self._moved = threading.Event()
        for name in names:
            self.start(name)

    def start(self, name):
        peers = {other: at for other, at in self.addresses.items() if other != name}
        members = Members("trio", name, self.addresses[name], peers)
        hands = Hands(self._moved)
        agent = Agent(members, TIMING, self.folder / name, hands)
        self.hands[name], self.agents[name], hands.agent = hands, agent, agent
        agent.notify(UnitsDeclared(UNITS))
        agent.start()

    def stop(self, name):
        self.agents.pop(name).stop()
        self.hands.pop(name)

    def until(self, wanted, seconds=60.0):
        deadline = time.monotonic() + patience(seconds)
        while not wanted():
            assert time.monotonic() < deadline, self.working
            self._moved.wait(timeout=0.05)
            self._moved.clear()

    def drains(self, asked, node, drained):
        """Whether a node passes a drain request on to the leader."""
        # On a busy machine there may be no leader for a moment: the node says so; try again.
        with suppress(SpringhouseError):
            return self.agents[asked].drain(node, drained) == self.leader
        return False

    @property
    def working(self):
        return {name: sorted(hands.working) for name, hands in self.hands.items()}

    @property
    def shared(self):
        """Whether one node works on each unit, and every node has some units."""
        found = [unit for units in self.working.values() for unit in units]
        return sorted(found) == sorted(UNITS) and all(self.working.values())

    @property
    def leader(self):
        return next((name for name, agent in self.agents.items() if agent.leads), None)


@pytest.fixture
def trio(tmp_path, free_port):
    made = Trio(tmp_path, free_port)
    yield made
    for name in list(made.agents):
        made.stop(name)


def test_three_nodes_elect_a_leader_and_share_the_work(trio):
    trio.until(lambda: trio.shared)
    report = trio.agents["a"].report()
    assert report.leader == trio.leader
    assert [each.name for each in report.nodes] == ["a", "b", "c"]
    assert set(report.newest.assignments) == set(UNITS)


def test_the_others_take_over_from_a_leader_that_is_gone(trio):
    trio.until(lambda: trio.shared)
    first = trio.leader
    unit = trio.working[first][0]
    trio.agents[first].notify(Progressed(unit, 41))
    survivor = next(name for name in trio.agents if name != first)
    trio.until(lambda: trio.agents[survivor].describe().assignments[unit].offset == 41)
    trio.stop(first)
    trio.until(lambda: trio.shared)
    assert max(hands.offsets.get(unit, 0) for hands in trio.hands.values()) == 41


def test_without_quorum_all_work_stops_and_goes_on_with_it(trio):
    trio.until(lambda: trio.shared)
    trio.stop("a")
    trio.stop("b")
    trio.until(lambda: not trio.working["c"])
    assert not trio.agents["c"].may_process
    trio.start("a")
    trio.until(lambda: trio.shared)


def test_a_drained_node_has_no_units_whoever_is_asked(trio):
    trio.until(lambda: trio.shared)
    follower = next(name for name in trio.agents if name != trio.leader)
    trio.until(lambda: trio.drains(follower, follower, True) and not trio.working[follower])
    trio.until(lambda: trio.drains(follower, follower, False) and trio.shared)
    with pytest.raises(SpringhouseError, match=r'"x" is not a node .* its nodes are a, b, c'):
        trio.agents["a"].drain("x", True)


def test_a_second_process_can_not_be_the_same_node(trio, tmp_path):
    with pytest.raises(SpringhouseError, match='already runs as node "a"'):
        trio.start("a")
