"""Up to which time stamp is the data complete?

001 section 2.2. The freshness of a table is the newest time stamp in it. In a set of tables, the
freshest table is the leading edge and the least fresh one is the trailing edge. Records may come
late: a table is *safe* up to a time if no record before that time can still come. The lateness of
the table or a punctuation of its source tells that time. A derived table advances to the safe
trailing edge of its inputs and never beyond, so it is consistent with their state at that time.
"""

from collections.abc import Iterable, Mapping, Sequence

from springhouse.refresh.staleness import trailing_edge
from springhouse.units import Instant, Seconds


def leading_edge(freshness: Iterable[Instant | None]) -> Instant | None:
    """The freshness of the freshest table; None if all tables are empty."""
    return max((instant for instant in freshness if instant is not None), default=None)


def safe_freshness(
    freshness: Instant, lateness: Seconds = Seconds(0.0), punctuation: Instant | None = None
) -> Instant:
    """The time before which no record can arrive any more.

    >>> safe_freshness(Instant(600.0), lateness=Seconds(60.0))
    540.0
    >>> safe_freshness(Instant(600.0), lateness=Seconds(60.0), punctuation=Instant(598.0))
    598.0
    """
    by_lateness = freshness - lateness
    return Instant(by_lateness if punctuation is None else max(by_lateness, punctuation))


class Edges:
    """The freshness of every table, and the edge to which its readers can advance.

    A simulator uses it to feed a scheduler in a world without other requests.
    """

    def __init__(self, upstream: Mapping[str, Sequence[str]]) -> None:
        self._upstream = {name: tuple(reads) for name, reads in upstream.items()}
        self._downstream: dict[str, list[str]] = {}
        for name, reads in self._upstream.items():
            for each in reads:
                self._downstream.setdefault(each, []).append(name)
        self._freshness: dict[str, Instant] = {}
        self._reachable: dict[str, Instant] = {}

    def freshness(self, name: str) -> Instant | None:
        """The safe freshness of a table."""
        return self._freshness.get(name)

    def moved(self, name: str, freshness: Instant) -> list[tuple[str, Instant]]:
        """The tables whose trailing edge moved because `name` did, each with its new edge.

        A table waits as long as one of its inputs is empty.
        """
        self._freshness[name] = freshness
        found = []
        for reader in self._downstream.get(name, ()):
            edge = self._edge(reader)
            if edge is not None and edge > self._reachable.get(reader, float("-inf")):
                self._reachable[reader] = edge
                found.append((reader, edge))
        return found

    def _edge(self, reader: str) -> Instant | None:
        reached = [self._freshness.get(each) for each in self._upstream[reader]]
        return None if None in reached else trailing_edge(reached)
