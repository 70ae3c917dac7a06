"""Where on a circle do units and nodes lie, and which node does a unit prefer?

This is consistent hashing (003 section 4.5). Every node has many points on a circle, and a unit has
one. From its point a unit prefers the nodes in the order of their points. When a node comes or
goes, the first choice changes only for the units that lie before its points. The hash is BLAKE2,
which is the same on every machine.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b

POINTS = 64
"""With so many points per node, the nodes' parts of the circle differ by about an eighth."""


def hash_position(text: str) -> int:
    """The position of a text on the circle."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


class Ring:
    """The nodes on their circle."""

    def __init__(self, nodes: Iterable[str], points: int = POINTS) -> None:
        self.nodes = frozenset(nodes)
        placed = sorted(
            (hash_position(f"{node} {number}"), node)
            for node in self.nodes
            for number in range(points)
        )
        self._positions = [position for position, _ in placed]
        self._owners = [node for _, node in placed]

    def find_first(self, position: int) -> str:
        """The node that comes first after this position."""
        return self._owners[bisect_right(self._positions, position) % len(self._owners)]

    def walk(self, position: int) -> Iterator[str]:
        """All nodes in the order in which they come after this position, each once."""
        owners, count = self._owners, len(self._owners)
        start = bisect_right(self._positions, position)
        passed: set[str] = set()
        for step in range(count):
            node = owners[(start + step) % count]
            if node not in passed:
                passed.add(node)
                yield node
                if len(passed) == len(self.nodes):
                    return


@lru_cache(maxsize=4)
def ring_of(nodes: frozenset[str]) -> Ring:
    """The ring of these nodes, made once: they are configured, and seldom change."""
    return Ring(nodes)
