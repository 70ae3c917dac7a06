"""What does it cost to say who owns what?

1,000 nodes own 100,000 units. How many units move, and how long do the decision and the new version
of the state take, when one node leaves, comes back, is overloaded or drained, and when a tenth of
all nodes leaves at once?

Run: `python bench/cluster.py [--nodes 1000] [--units 100000] [--json FILE]`. Goals: when a node
leaves, its own units move and no others; a reassignment takes less than a heartbeat (300 ms).
"""

import argparse
import json
import platform
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

from springhouse.cluster.assigner import Assigner, Presence
from springhouse.cluster.ring import ring_of
from springhouse.cluster.state import ClusterState, SnapshotVersion, StateChanges

HEARTBEAT_MILLISECONDS = 300


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print(
        f"{arguments.nodes:,} nodes, {arguments.units:,} units, "
        f"{platform.machine()}, Python {platform.python_version()}"
    )
    found = {"ownership": ownership(arguments.nodes, arguments.units)}
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")


class Leader:
    """The part of a leader that decides about owners, and its state."""

    def __init__(self, nodes: list[str], units: Mapping[str, float]) -> None:
        self.nodes = nodes
        self.state = ClusterState(SnapshotVersion(1, 1))
        self.assigner = Assigner(ring_of(frozenset(nodes)), self.state, units)

    def decide(self, gone: frozenset[str] = frozenset(), **shares: float) -> tuple[int, float]:
        """The number of units that moved, and the milliseconds that the decision took."""
        start = perf_counter()
        here = [node for node in self.nodes if node not in gone]
        if shares:
            self.state = self.state.apply(self.state.version, StateChanges(shares=shares))
        version = SnapshotVersion(1, self.state.version.number + 1)
        assignments, _ = self.assigner.next_changes(
            self.state, version.number, Presence(here, gone, False)
        )
        self.state = self.state.apply(version, StateChanges(assignments))
        return len(assignments), (perf_counter() - start) * 1000

    def owned_by(self, nodes: frozenset[str]) -> int:
        """The number of units that these nodes should own."""
        return sum(each.next_owner in nodes for each in self.state.assignments.values())

    def let_go(self) -> None:
        """Release all units that have to move."""
        for unit, assignment in self.state.assignments.items():
            if assignment.heir is not None:
                self.assigner.record_release(
                    assignment.owner, [unit], self.state.version, self.state.assignments
                )


def ownership(count: int, units: int) -> dict[str, dict[str, float]]:
    """For each occasion: how many units moved, how many had to, and how long it took."""
    nodes = [f"node{number}" for number in range(count)]
    start = perf_counter()
    leader = Leader(nodes, {f"unit {number}": 1.0 for number in range(units)})
    print(f"a new leader reads everything in       {(perf_counter() - start) * 1000:8.1f} ms")
    found: dict[str, dict[str, float]] = {}

    def occasion(told: str, had: int, moved: int, took: float) -> None:
        found[told] = {"had": had, "moved": moved, "milliseconds": took}
        print(f"{told:<38} {took:8.1f} ms  {moved:>7,} units moved of {had:,}")

    occasion("the first assignment", units, *leader.decide())
    loads = [0] * count
    for assignment in leader.state.assignments.values():
        loads[int(assignment.owner[4:])] += 1
    print(f"units per node: {min(loads)} to {max(loads)}, {units / count:g} on average")
    one, tenth = frozenset({nodes[7]}), frozenset(nodes[: count // 10])
    for told, gone in (("one node leaves", one), ("it comes back", frozenset[str]())):
        had = leader.owned_by(one)
        moved, took = leader.decide(gone)
        assert moved == had or not gone, "others than its own units moved"
        assert took < HEARTBEAT_MILLISECONDS, f"{told}: {took:.0f} ms"
        occasion(told, had, moved, took)
        leader.let_go()
        leader.decide(gone)
    had = leader.owned_by(tenth)
    occasion("a tenth of the nodes leaves", had, *leader.decide(tenth))
    occasion("they come back", leader.owned_by(tenth), *leader.decide())
    leader.let_go()
    occasion("and the others have let go", units, *leader.decide())
    hot, had = nodes[9], leader.owned_by(frozenset({nodes[9]}))
    share = 0.8 * leader.assigner.limiting_share(hot, count)
    occasion("one stays overloaded", had, *leader.decide(**{hot: share}))
    had = leader.owned_by(frozenset({hot}))
    occasion("one is drained", had, *leader.decide(**{hot: 0.0}))
    return found


if __name__ == "__main__":
    main()
