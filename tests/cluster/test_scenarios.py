"""Scenarios that read aloud: `scenarios/*.txt` list events, and the reactions of the nodes.

A scenario is a list of blocks. A block is some events, a line `----`, and the reactions. After an
intended change, `REWRITE=1 pytest tests/cluster/test_scenarios.py` writes the new reactions: read
the difference before you commit it.

    cluster a b c with u1 u2        three nodes that founded a cluster, and its units
    new cluster a b c with u1       three nodes with empty disks
    node a: election timeout        time passes until a gives up waiting for a leader
    node a: heartbeat               time passes until a, the leader, speaks again
    node a: reaches 41 in u1        the offset 41 of u1 is processed
    node a: reaches 2 to 21 in u1   the same, offset by offset, each in a version of its own
    node a: load 99%                its processors are that busy;  can't work, can work
    node a: drain b                 b is to have no units any more; undrain b
    node a: units u1 u2 u3          the project declares these units
    node a: works slowly            what is under way ends only with the next line
    node a: finishes u1             what was under way in u1 is done
    node a: repeats done u1         the worker says a second time that u1 is done
    node a dies                     it stops, and forgets all that is not on its disk
    node a dies at the next persist so that this is not on its disk, and nothing after it is done
    node a returns                  with its disk; or: returns with an empty disk
    deliver                         all messages under way arrive; or only those: deliver a -> b
    settle                          messages arrive until there are no more
    a -> b lost                     the messages under way from a to b are lost
    a -> b held                     they are held back until: a -> b arrives
    a -> b copied                   they arrive twice: now, and with: a -> b arrives
    a -> b again                    the last message from a to b that arrived arrives once more
    cut a -> b                      from now on all are lost; cut a: all from and to a; heal
    wait 5 seconds                  everything runs by itself
    show nodes, units, disks        how it is now

`settle`, `wait` and lines after `quietly` report leaders and work only, not messages.
"""

import os
import re
from pathlib import Path

import pytest
from scenario_text import assignment_text, memory_text, message_text, version_text
from scenario_world import World

from springhouse.cluster.messages import (
    DrainAsked,
    LoadMeasured,
    Progressed,
    Released,
    UnitsDeclared,
)
from springhouse.cluster.node_load import NodeLoad
from springhouse.cluster.raft_node import Role
from springhouse.units import Instant

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


class Scenario:
    """One file: its world, and its lines."""

    def __init__(self):
        self.world = None

    def run(self, events):
        """The reactions of the nodes to these events, as lines."""
        lines = []
        for event in events:
            if self.world is not None:
                self.world.loud = not re.match("quietly |wait |settle", event)
            self._event(event.removeprefix("quietly "))
            lines += self.world.lines
            self.world.lines.clear()
        return lines or ["(nothing happens)"]

    def _event(self, event):
        for pattern, act in EVENTS:
            found = re.fullmatch(pattern, event)
            if found:
                act(self, *found.groups())
                return
        raise ValueError(f"no such event: {event}")

    # --- Events ---------------------------------------------------------------------------------

    def cluster(self, new, names, units):
        self.world = World(names.split(), units.split(), founded=not new)

    def times_out(self, name):
        assert self.world.nodes[name].role is not Role.LEADER
        self.world.wake(name)

    def heartbeat(self, name):
        assert self.world.nodes[name].role is Role.LEADER
        self.world.wake(name)

    def reaches(self, name, offset, unit):
        assert unit in self.world.working[name]
        self.world.step(name, Progressed(unit, int(offset)))

    def reach_one_by_one(self, name, first, last, unit):
        self.world.loud = False
        for offset in range(int(first), int(last) + 1):
            self.reaches(name, offset, unit)
            self.world.wake(name)
            self.world.settle()

    def load(self, name, percent):
        self.world.step(name, LoadMeasured(NodeLoad(cpu=int(percent) / 100)))

    def ability(self, name, ability):
        self.world.step(name, LoadMeasured(NodeLoad(able=ability == "can")))

    def drain(self, name, undone, drained):
        self.world.step(name, DrainAsked(drained, drained=not undone))

    def declare(self, name, units):
        self.world.step(name, UnitsDeclared(dict.fromkeys(units.split(), 1.0)))

    def slow(self, name):
        self.world.slow.add(name)

    def finish(self, name, units):
        self.world.slow.discard(name)
        self.world.finish(name, units.split())

    def repeat_done(self, name, units):
        self.world.step(name, Released(tuple(units.split())))

    def die(self, name, at_persist):
        if at_persist:
            self.world.failing.add(name)
        else:
            self.world.kill(name)

    def come_back(self, name, empty):
        if empty:
            del self.world.disks[name]
        self.world.start(name)

    def deliver(self, sender, to):
        self.world.deliver(self._take(sender, to) if sender else self._take())

    def _take(self, *between):
        """Take the messages under way out of the network."""
        taken = [each for each in self.world.mail if not between or each[:2] == between]
        self.world.mail = [each for each in self.world.mail if each not in taken]
        assert taken or not between, f"nothing is under way between {' and '.join(between)}"
        return taken

    def lose(self, sender, to):
        for each in self._take(sender, to):
            self.world.say(f"{sender} -> {to} is lost: {message_text(each.message)}")

    def hold(self, sender, to):
        self.world.held += self._take(sender, to)

    def copy(self, sender, to):
        copies = [each for each in self.world.mail if each[:2] == (sender, to)]
        assert copies
        self.world.held += copies

    def arrive(self, sender, to):
        held = [each for each in self.world.held if each[:2] == (sender, to)]
        assert held
        self.world.held = [each for each in self.world.held if each not in held]
        self.world.deliver(held)

    def again(self, sender, to):
        self.world.deliver([self.world.delivered[sender, to]])

    def cut(self, sender, to):
        others = [to] if to else [name for name in self.world.names if name != sender]
        self.world.cut |= {(sender, other) for other in others}
        if not to:
            self.world.cut |= {(other, sender) for other in others}

    def heal(self):
        self.world.cut.clear()

    def settle(self):
        self.world.settle()

    def wait(self, seconds):
        self.world.wait(float(seconds))

    def show(self, what):
        self.world.lines += SHOWN[what](self.world)


EVENTS = [
    (r"(new )?cluster ([\w ]+?) with ([\w ]+)", Scenario.cluster),
    (r"node (\w+): election timeout", Scenario.times_out),
    (r"node (\w+): heartbeat", Scenario.heartbeat),
    (r"node (\w+): reaches (\d+) in (\w+)", Scenario.reaches),
    (r"node (\w+): reaches (\d+) to (\d+) in (\w+)", Scenario.reach_one_by_one),
    (r"node (\w+): load (\d+)%", Scenario.load),
    (r"node (\w+): (can|can't) work", Scenario.ability),
    (r"node (\w+): (un)?drain (\w+)", Scenario.drain),
    (r"node (\w+): units ([\w ]+)", Scenario.declare),
    (r"node (\w+): works slowly", Scenario.slow),
    (r"node (\w+): finishes ([\w ]+)", Scenario.finish),
    (r"node (\w+): repeats done ([\w ]+)", Scenario.repeat_done),
    (r"node (\w+) dies( at the next persist)?", Scenario.die),
    (r"node (\w+) returns( with an empty disk)?", Scenario.come_back),
    (r"deliver(?: (\w+) -> (\w+))?", Scenario.deliver),
    (r"(\w+) -> (\w+) lost", Scenario.lose),
    (r"(\w+) -> (\w+) held", Scenario.hold),
    (r"(\w+) -> (\w+) copied", Scenario.copy),
    (r"(\w+) -> (\w+) arrives", Scenario.arrive),
    (r"(\w+) -> (\w+) again", Scenario.again),
    (r"cut (\w+)(?: -> (\w+))?", Scenario.cut),
    (r"heal", Scenario.heal),
    (r"settle", Scenario.settle),
    (r"wait ([\d.]+) seconds", Scenario.wait),
    (r"show (nodes|units|disks)", Scenario.show),
]


def nodes_text(world):
    rows = [("node", "role", "term", "keeps", "acts on", "works on")]
    for name in world.names:
        node = world.nodes.get(name)
        if node is None:
            rows.append((name, "dead", "", "", "", ""))
            continue
        kept, applied = version_text(node.accepted.version), version_text(node.applied.version)
        working = " ".join(sorted(world.working[name])) or "-"
        if world.working[name] and not node.may_process(Instant(world.now)):
            working += " (without the right to)"
        rows.append((name, node.role.value, str(node.term), kept, applied, working))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def units_text(world):
    newest = max((node.applied for node in world.nodes.values()), key=lambda state: state.version)
    for unit, assignment in sorted(newest.assignments.items()):
        yield assignment_text(unit, assignment)
    yield "voters: " + ", ".join(
        f"{name} with a disk that is lost"
        if name in world.nodes and world.nodes[name].disk != disk
        else name
        for name, disk in newest.voters.items()
    )
    if newest.shares:
        yield "shares: " + ", ".join(f"{node} {of:.2f}" for node, of in newest.shares.items())


def disks_text(world):
    for name in world.names:
        memory = world.disks.get(name)
        yield f"{name}: {'empty' if memory is None else memory_text(memory)}"


SHOWN = {"nodes": nodes_text, "units": units_text, "disks": disks_text}


def walk(text):
    """The scenario with the real reactions of the nodes."""
    scenario, result, lines = Scenario(), [], iter(text.splitlines())
    events = []
    for line in lines:
        result.append(line)
        if line == "----":
            result += scenario.run(events)
            events = []
            # The old answers end with an empty line, so the new ones do, too.
            if any(not answer for answer in lines):
                result.append("")
        elif line and not line.startswith("#"):
            events.append(line)
    assert not events, f"events without an answer: {events}"
    return "\n".join(result) + "\n"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_nodes_do_what_the_scenario_says(file):
    text = file.read_text()
    happened = walk(text)
    if os.environ.get("REWRITE"):
        file.write_text(happened)
    else:
        assert happened == text


def test_there_are_scenarios_and_each_begins_with_what_it_shows():
    assert len(FILES) >= 12
    assert all(file.read_text().startswith("# ") for file in FILES)
