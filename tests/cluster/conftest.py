"""Five nodes on a good network. A test can kill them, cut them off, and let time pass."""

import heapq
import socket
import sys
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

# Makes the modules beside the tests importable.
sys.path.insert(0, str(Path(__file__).parent))

from springhouse.cluster.messages import (
    Assign,
    Persist,
    Progressed,
    Received,
    Release,
    Released,
    Send,
    Tick,
    UnitsDeclared,
)
from springhouse.cluster.raft_node import Node, Role
from springhouse.cluster.timing import Timing
from springhouse.units import Dice, Instant

TEN = {f"partition {number}": 1.0 for number in range(10)}


class Cluster:
    """Nodes, the messages between them, and the units that each of them works on."""

    def __init__(self, names="abcde", units=TEN, timing=None, seed=1):
        self.names, self.units, self.seed = tuple(names), units, seed
        self.timing = timing or Timing()
        self.now = 0.0
        self.nodes, self.disks, self.cut, self.slow = {}, {}, set(), {}
        self.working = {name: set() for name in self.names}
        self.offsets, self.log, self.steps = {}, [], []
        self._mail, self._ticks = [], count()
        for name in self.names:
            self.start(name)

    def start(self, name):
        number = self.seed * 100 + next(self._ticks)
        self.nodes[name] = Node(
            name, self.names, self.timing, Dice(number), Instant(self.now), self.disks.get(name)
        )
        self.give(name, UnitsDeclared(self.units))

    def kill(self, name):
        del self.nodes[name]
        self.working[name].clear()

    def give(self, name, event):
        orders = self.nodes[name].step(event, Instant(self.now))
        self.steps.append(orders)
        for order in orders:
            self.log.append((self.now, name, order))
            match order:
                case Persist(state):
                    self.disks[name] = state
                case Send(to, message):
                    if (name, to) not in self.cut:
                        self._post(0.01, to, Received(name, message))
                case Assign(units):
                    self.working[name].update(unit for unit, _ in units)
                    self.offsets.update(units)
                case Release(units, at_once):
                    if at_once:
                        self.working[name].difference_update(units)
                    self._post(self.slow.get(name, 0.02), name, Released(units))

    def _post(self, after, name, event):
        heapq.heappush(self._mail, (self.now + after, next(self._ticks), name, event))

    def run(self, seconds):
        end = self.now + seconds
        while True:
            wakes = [(node.wake_at, name) for name, node in self.nodes.items()]
            at, name = min(wakes, default=(float("inf"), ""))
            if self._mail and self._mail[0][0] <= at:
                if self._mail[0][0] > end:
                    break
                self.now, _, name, event = heapq.heappop(self._mail)
                if name not in self.nodes:
                    continue
                if isinstance(event, Released):
                    self.working[name].difference_update(event.units)
                self.give(name, event)
            else:
                if at > end:
                    break
                self.now = max(self.now, at)
                self.give(name, Tick())
        self.now = end

    def work(self, unit, offset):
        (name,) = self.workers(unit)
        self.give(name, Progressed(unit, offset))

    def workers(self, unit):
        return [name for name in self.names if unit in self.working[name]]

    def isolate(self, *names):
        others = [name for name in self.names if name not in names]
        for one in names:
            for other in others:
                self.cut |= {(one, other), (other, one)}

    def heal(self):
        self.cut.clear()

    @property
    def leader(self):
        found = [name for name, node in self.nodes.items() if node.role is Role.LEADER]
        return max(found, key=lambda name: self.nodes[name].term) if found else None

    @property
    def all_worked_on_once(self):
        return all(len(self.workers(unit)) == 1 for unit in self.units)


@pytest.fixture
def make_cluster():
    return Cluster


@pytest.fixture
def cluster():
    made = Cluster()
    made.run(15)
    assert made.leader is not None
    return made


@pytest.fixture(scope="session")
def authority_class():
    """Signs certificates for tests."""
    from authority import Authority

    return Authority


@pytest.fixture(scope="session")
def free_port():
    """Finds a port on which nobody listens."""

    def find():
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            return free.getsockname()[1]

    return find
