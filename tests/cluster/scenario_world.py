"""A cluster that a scenario moves one event at a time, and that writes down the results.

The nodes are real. The network, the disks, the clock and the workers are simulated. Between two
events the clock stands still, with one exception: a node that must stop processing stops in time.
"""

from collections import namedtuple
from math import inf

from scenario_text import memory_text, message_text, role_text

from springhouse.cluster.bootstrap import FOUNDED
from springhouse.cluster.messages import (
    Assign,
    Persist,
    Received,
    Release,
    Released,
    Send,
    Tick,
    UnitsDeclared,
)
from springhouse.cluster.raft_node import Node, Role
from springhouse.cluster.state import ClusterState, PersistentState
from springhouse.cluster.timing import Timing
from springhouse.units import Dice, Instant

TRAVEL_SECONDS = 0.01
WORK_SECONDS = 0.02

Letter = namedtuple("Letter", "sender to message due")


class World:
    """Nodes with their surroundings. `founded`: all disks remember that the cluster begins."""

    def __init__(self, names, units, *, founded):
        self.names, self.units = tuple(names), tuple(units)
        self.now, self.began = 0.0, None
        self.nodes, self.disks = {}, {}
        self.mail, self.held, self.delivered = [], [], {}
        self.cut, self.slow, self.failing = set(), set(), set()
        self.working = {name: {} for name in self.names}
        self.finishing = {name: {} for name in self.names}
        self.lines, self.loud = [], True
        self._starts = 0
        voters = {name: number for number, name in enumerate(self.names, 1)}
        for name, disk in voters.items():
            if founded:
                state = ClusterState(FOUNDED, voters)
                self.disks[name] = PersistentState(disk, 0, None, state)
            self.start(name)

    # --- Nodes ----------------------------------------------------------------------------------

    def start(self, name):
        self._starts += 1
        memory, now = self.disks.get(name), Instant(self.now)
        self.nodes[name] = Node(name, self.names, Timing(), Dice(self._starts), now, memory)
        self.step(name, UnitsDeclared(dict.fromkeys(self.units, 1.0)))

    def kill(self, name):
        del self.nodes[name]
        self.working[name].clear()
        self.finishing[name].clear()

    def step(self, name, event):
        node = self.nodes[name]
        before = self._status(node)
        orders = node.step(event, Instant(self.now))
        assert not any(isinstance(order, Persist) for order in orders[1:])
        if name in self.failing and orders and isinstance(orders[0], Persist):
            self.failing.discard(name)
            lost = memory_text(orders[0].persistent_state)
            self.say(f"{name} dies before it persists {lost}", always=True)
            self.kill(name)
            return
        self._say_changes(node, before)
        for order in orders:
            self._follow(name, order)
        self._check()

    def _follow(self, name, order):
        match order:
            case Persist(memory):
                self.disks[name] = memory
                self.say(f"{name} persists {memory_text(memory)}")
            case Send(to, message):
                lost = (name, to) in self.cut
                self.say(f"{name} -> {to}: {message_text(message)}{' (lost)' if lost else ''}")
                if not lost:
                    self.mail.append(Letter(name, to, message, self.now + TRAVEL_SECONDS))
            case Assign(units):
                self.working[name].update(units)
                begun = [f"{unit} from offset {at}" if at else unit for unit, at in units]
                self.say(f"{name} starts {', '.join(begun)}", always=True)
            case Release(units, at_once):
                how = "at once" if at_once else "when the work under way is done"
                self.say(f"{name} stops {' '.join(units)} {how}", always=True)
                takes = 0.0 if at_once else inf if name in self.slow else WORK_SECONDS
                for unit in units:
                    self.finishing[name][unit] = self.now + takes
                    if at_once:
                        self.working[name].pop(unit, None)

    def finish(self, name, units):
        """The running work in these units is done."""
        for unit in units:
            del self.finishing[name][unit]
            self.working[name].pop(unit, None)
        self.say(f"{name} is done with {' '.join(units)}", always=True)
        self.step(name, Released(tuple(units)))

    def _check(self):
        workers = {}
        for name, units in self.working.items():
            for unit in units:
                assert unit not in workers, f"{unit} is worked on by {workers[unit]} and {name}"
                workers[unit] = name

    # --- Time -----------------------------------------------------------------------------------

    def advance(self, to):
        """Let time pass; wake a node when its right to process ends during that time."""
        while True:
            ending = [
                (node.lease_until, name)
                for name, node in self.nodes.items()
                if node.processing.is_busy and node.lease_until <= to
            ]
            if not ending:
                break
            at, name = min(ending)
            self.now = max(self.now, at)
            self.step(name, Tick())
        self.now = max(self.now, to)

    def wake(self, name):
        """Go to the moment at which a node wakes up for any reason but the end of that right."""
        node = self.nodes[name]
        while node.processing.is_busy and node.lease_until <= node.wake_at:
            self.advance(node.lease_until)
        self.advance(node.wake_at)
        self.step(name, Tick())

    def deliver(self, letters):
        """Let these messages arrive, after all work that is done by then."""
        self.advance(self.now + TRAVEL_SECONDS)
        for letter in letters:
            self._arrive(letter)
        self._finish_due()

    def _arrive(self, letter):
        if letter.to in self.nodes:
            self.delivered[letter.sender, letter.to] = letter
            self.step(letter.to, Received(letter.sender, letter.message))

    def _finish_due(self):
        for name in self.names:
            due = [unit for unit, at in self.finishing[name].items() if at <= self.now]
            if due:
                self.finish(name, due)

    def settle(self):
        """Deliver until no message is under way."""
        for _ in range(100):
            letters, self.mail = self.mail, []
            busy = any(at < inf for units in self.finishing.values() for at in units.values())
            if not letters and not busy:
                return
            self.deliver(letters)
        raise AssertionError("the nodes never stop talking")

    def wait(self, seconds):
        """Let everything run by itself."""
        self.began, end = self.now, self.now + seconds
        while True:
            moments = [(node.wake_at, 2, name) for name, node in self.nodes.items()]
            moments += [(letter.due, 0, "") for letter in self.mail]
            moments += [(at, 1, "") for units in self.finishing.values() for at in units.values()]
            at, kind, name = min(moments, default=(end + 1, 0, ""))
            if at > end:
                break
            self.now = max(self.now, at)
            if kind == 0:
                due = [letter for letter in self.mail if letter.due <= self.now]
                self.mail = [letter for letter in self.mail if letter.due > self.now]
                for letter in due:
                    self._arrive(letter)
            elif kind == 1:
                self._finish_due()
            else:
                self.step(name, Tick())
        self.now, self.began = end, None

    # --- The written answers --------------------------------------------------------------------

    def say(self, line, *, always=False):
        if self.loud or always:
            passed = "" if self.began is None else f"after {self.now - self.began:.1f} s: "
            self.lines.append(passed + line)

    def _status(self, node):
        return role_text(node), node.may_process(Instant(self.now))

    def _say_changes(self, node, before):
        role, may_process = self._status(node)
        if role != before[0]:
            self.say(role, always=node.role is Role.LEADER)
        if may_process != before[1]:
            said = "may process" if may_process else "may not process any more"
            self.say(f"{node.name} {said}", always=True)
