"""Which units should go to another node, and to which one?

Consistent hashing with bounded load (Mirrokni, Thorup and Zadimoghaddam 2016), on what is there:
nobody's work is moved because a fresh start would place it elsewhere. With `fair` the part of all
weight that a node's share gives it, and with ε = 1/4, rounded to whole units of average weight:

    (1 - ε) fair  <=  what a node has  <=  (1 + ε) fair

A unit without a node goes to the first one on the circle with room. A node above its bound gives
units away until it is within, and one below its bound gets some, from those that have the most.
That is all that ever moves, so the second call finds nothing to do.
"""

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heapreplace
from math import ceil, floor
from types import MappingProxyType

from springhouse.cluster.ring import Ring, place

EPSILON = 0.25
_HAIR = 1e-9


class Books:
    """Who has what, and how much that weighs, kept up with every move."""

    def __init__(self) -> None:
        self.weights: dict[str, float] = {}
        self.homes: dict[str, str] = {}
        self.homeless: dict[str, None] = {}
        self.loads: dict[str, float] = {}
        self.total = 0.0
        self._units: dict[str, dict[str, None]] = {}
        self._places: dict[str, int] = {}
        self._ring: Ring | None = None
        self._firsts: dict[str, str] = {}

    def units_of(self, node: str) -> Iterable[str]:
        """What a node has, in the order in which it came."""
        return self._units.get(node, ())

    @property
    def nodes(self) -> Iterable[str]:
        """Everybody who has something."""
        return self._units.keys()

    def put(self, unit: str, weight: float) -> None:
        """A unit is there, or weighs something else now."""
        before = self.weights.get(unit)
        if before is None:
            self.homeless[unit] = None
            self._places[unit] = place(unit)
        elif before != weight and unit in self.homes:
            self.loads[self.homes[unit]] += weight - before
        self.total += weight - (before or 0.0)
        self.weights[unit] = weight

    def remove(self, unit: str) -> None:
        """A unit is no more."""
        self.move(unit, None)
        del self.homeless[unit], self._places[unit]
        self._firsts.pop(unit, None)
        self.total -= self.weights.pop(unit)

    def move(self, unit: str, node: str | None) -> None:
        """A unit has another home, or none."""
        before = self.homes.pop(unit, None)
        weight = self.weights[unit]
        if before is not None:
            units = self._units[before]
            del units[unit]
            self.loads[before] -= weight
            if not units:
                del self._units[before], self.loads[before]
        if node is None:
            self.homeless[unit] = None
            return
        self.homeless.pop(unit, None)
        self.homes[unit] = node
        self._units.setdefault(node, {})[unit] = None
        self.loads[node] = self.loads.get(node, 0.0) + weight

    def place(self, unit: str) -> int:
        """Where a unit lies on the circle."""
        return self._places[unit]

    def first(self, unit: str, ring: Ring) -> str:
        """Whom a unit meets first; remembered, since a ring is used for long."""
        if ring is not self._ring:
            self._ring, self._firsts = ring, {}
        found = self._firsts.get(unit)
        if found is None:
            found = self._firsts[unit] = ring.first(self._places[unit])
        return found


class _Bounds:
    """What each node may and should have."""

    def __init__(self, books: Books, shares: Mapping[str, float]) -> None:
        whole = sum(shares.values())
        usual = books.total / len(books.weights) if books.total > 0 else 1.0
        self.fair: dict[str, float] = {}
        self.upper: dict[str, float] = {}
        self.lower: dict[str, float] = {}
        for node, share in shares.items():
            fair = self.fair[node] = books.total * share / whole
            self.upper[node] = ceil(fair * (1 + EPSILON) / usual - _HAIR) * usual + _HAIR
            self.lower[node] = floor(fair * (1 - EPSILON) / usual + _HAIR) * usual - _HAIR


def moves(
    books: Books,
    ring: Ring,
    shares: Mapping[str, float],
    leaving: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """The units that get another home, and which one. The books are kept up.

    `shares` are those of the nodes that can have units, each above 0; `ring` has all of them.
    `leaving` are units that are on their way to their home, and the nodes that still have them.
    """
    if not shares or not books.weights:
        return {}
    bounds = _Bounds(books, shares)
    moved: dict[str, str] = {}
    _warehouse(books, ring, bounds, leaving, moved)
    _shed(books, ring, bounds, moved)
    _fill(books, ring, bounds, moved)
    return moved


def _warehouse(
    books: Books,
    ring: Ring,
    bounds: _Bounds,
    leaving: Mapping[str, str],
    moved: dict[str, str],
) -> None:
    """Find a home for what has none, and for what is with a node that can't have units."""
    for node in [node for node in books.nodes if node not in bounds.fair]:
        for unit in list(books.units_of(node)):
            books.move(unit, None)
    limits = (bounds.upper,)
    for unit in sorted(books.homeless):
        home = leaving.get(unit)
        if home is None or not _has_room(home, unit, books, bounds.upper):
            home = _first_with_room(unit, books, ring, bounds, limits)
        # What has not left yet stays where it is: then nobody has to take it up.
        _settle(unit, home, books, moved)


def _shed(books: Books, ring: Ring, bounds: _Bounds, moved: dict[str, str]) -> None:
    """Take from those above their bound, first what the circle would not have put there."""
    # Whoever is below its bound needs units anyway: what goes there moves once, not twice.
    limits = (bounds.lower, bounds.fair, bounds.upper)
    above = [node for node, load in books.loads.items() if load > bounds.upper[node]]
    for node in sorted(above):
        units = sorted(
            books.units_of(node), key=lambda unit: (books.first(unit, ring) == node, unit)
        )
        for unit in units:
            if books.loads[node] <= bounds.upper[node]:
                break
            home = _first_with_room(unit, books, ring, bounds, limits, node)
            # A unit too heavy for anybody would otherwise wander.
            after = books.loads.get(home, 0.0) + books.weights[unit]
            relief = after / bounds.fair[home] < books.loads[node] / bounds.fair[node]
            if relief or after <= bounds.upper[home] + 2 * _HAIR:
                _settle(unit, home, books, moved)


def _fill(books: Books, ring: Ring, bounds: _Bounds, moved: dict[str, str]) -> None:
    """Give to those below their bound, from those that have the most for their share."""
    loads = books.loads
    below = sorted(node for node, low in bounds.lower.items() if loads.get(node, 0.0) < low)
    if not below:
        return
    givers = [(-load / bounds.fair[node], node) for node, load in loads.items()]
    heapify(givers)
    giving = _Givers(books, ring, bounds, below)
    for node in below:
        while givers and loads.get(node, 0.0) < bounds.lower[node]:
            giver = givers[0][1]
            unit = giving.spare(giver, node)
            if unit is None:
                heappop(givers)
                continue
            _settle(unit, node, books, moved)
            heapreplace(givers, (-loads.get(giver, 0.0) / bounds.fair[giver], giver))


class _Givers:
    """What each giver has to give, sorted once by whom the circle would give it to."""

    def __init__(self, books: Books, ring: Ring, bounds: _Bounds, takers: Iterable[str]) -> None:
        self._books, self._ring, self._bounds = books, ring, bounds
        self._takers = frozenset(takers)
        self._sorted: dict[str, dict[str, list[str]]] = {}

    def spare(self, giver: str, node: str) -> str | None:
        """A unit that one can give and the other can take, best one that the circle puts there."""
        if giver == node:
            return None
        books, bounds = self._books, self._bounds
        can_give = books.loads.get(giver, 0.0) - bounds.lower[giver]
        can_take = bounds.upper[node] - books.loads.get(node, 0.0)
        most = min(can_give, can_take)
        for unit in self._meant_for(node, giver):
            if books.weights[unit] <= most and books.homes[unit] == giver:
                return unit
        return next((unit for unit in books.units_of(giver) if books.weights[unit] <= most), None)

    def _meant_for(self, node: str, giver: str) -> list[str]:
        found = self._sorted.get(giver)
        if found is None:
            found = self._sorted[giver] = {}
            for unit in self._books.units_of(giver):
                first = self._books.first(unit, self._ring)
                if first in self._takers:
                    found.setdefault(first, []).append(unit)
        return found.get(node, [])


def _first_with_room(
    unit: str,
    books: Books,
    ring: Ring,
    bounds: _Bounds,
    limits: Iterable[Mapping[str, float]],
    but: str | None = None,
) -> str:
    """Where a unit goes: the first node on the circle below the first limit that leaves room."""
    for limit in limits:
        for node in ring.walk(books.place(unit)):
            if node != but and _has_room(node, unit, books, limit):
                return node
    # A unit may weigh more than anybody has room for.
    weight, loads, fair = books.weights[unit], books.loads, bounds.fair
    others = [node for node in fair if node != but] or list(fair)
    return min(others, key=lambda node: ((loads.get(node, 0.0) + weight) / fair[node], node))


def _has_room(node: str, unit: str, books: Books, limit: Mapping[str, float]) -> bool:
    most = limit.get(node)
    if most is None:
        return False
    return books.loads.get(node, 0.0) + books.weights[unit] <= most + 2 * _HAIR


def _settle(unit: str, home: str, books: Books, moved: dict[str, str]) -> None:
    books.move(unit, home)
    moved[unit] = home
