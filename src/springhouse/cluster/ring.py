"""Where on a circle do units and nodes lie, and whom does a unit meet first?

Consistent hashing (003 section 4.5). Every node has many points on a circle, a unit has one; from
there it meets the nodes in the order of their points. When a node comes or goes, only what lies
before its points meets somebody else first. The hash is BLAKE2, the same on every machine.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b

POINTS = 64
"""With so many points per node, shares of the circle differ by about an eighth."""


def place(text: str) -> int:
    """Where on the circle a text lies."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


class Ring:
    """The nodes on their circle."""

    def __init__(self, nodes: Iterable[str], points: int = POINTS) -> None:
        self.nodes = frozenset(nodes)
        lying = sorted(
            (place(f"{node} {number}"), node) for node in self.nodes for number in range(points)
        )
        self._places = [at for at, _ in lying]
        self._owners = [node for _, node in lying]

    def first(self, at: int) -> str:
        """The node that is met first from there."""
        return self._owners[bisect_right(self._places, at) % len(self._owners)]

    def walk(self, at: int) -> Iterator[str]:
        """All nodes, as they are met from there, each once."""
        owners, count = self._owners, len(self._owners)
        start = bisect_right(self._places, at)
        met: set[str] = set()
        for step in range(count):
            node = owners[(start + step) % count]
            if node not in met:
                met.add(node)
                yield node
                if len(met) == len(self.nodes):
                    return


@lru_cache(maxsize=4)
def ring_of(nodes: frozenset[str]) -> Ring:
    """The ring of these nodes, made once: they are configured, and seldom change."""
    return Ring(nodes)
