"""Which units should move to another node, and to which one?

This is consistent hashing with bounded load (Mirrokni, Thorup and Zadimoghaddam 2016), applied to
the present placement: no unit moves only because a fresh start would place it elsewhere. `fair` is
the part of the total weight that a node's share gives it. With ε = 1/4, and rounded to whole units
of average weight:

    (1 - ε) fair  <=  load of a node  <=  (1 + ε) fair

A unit without a node goes to the first node on the circle with room. A node above its upper bound
gives units away until it is within. A node below its lower bound gets units from the nodes that
have the most. Nothing else moves, so a second call finds nothing to do.
"""

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heapreplace
from math import ceil, floor
from types import MappingProxyType

from springhouse.cluster.ring import Ring, hash_position

EPSILON = 0.25
_HAIR = 1e-9


class Placement:
    """Which node has which unit, and how much that weighs; updated with every move."""

    def __init__(self) -> None:
        self.weights: dict[str, float] = {}
        self.nodes_by_unit: dict[str, str] = {}
        self.unplaced: dict[str, None] = {}
        self.loads: dict[str, float] = {}
        self.total = 0.0
        self._units: dict[str, dict[str, None]] = {}
        self._positions: dict[str, int] = {}
        self._ring: Ring | None = None
        self._preferred: dict[str, str] = {}

    def units_of(self, node: str) -> Iterable[str]:
        """The units of a node, in the order in which they came."""
        return self._units.get(node, ())

    @property
    def nodes(self) -> Iterable[str]:
        """The nodes that have units."""
        return self._units.keys()

    def put(self, unit: str, weight: float) -> None:
        """Add a unit, or change its weight."""
        before = self.weights.get(unit)
        if before is None:
            self.unplaced[unit] = None
            self._positions[unit] = hash_position(unit)
        elif before != weight and unit in self.nodes_by_unit:
            self.loads[self.nodes_by_unit[unit]] += weight - before
        self.total += weight - (before or 0.0)
        self.weights[unit] = weight

    def remove(self, unit: str) -> None:
        """Forget a unit."""
        self.move(unit, None)
        del self.unplaced[unit], self._positions[unit]
        self._preferred.pop(unit, None)
        self.total -= self.weights.pop(unit)

    def move(self, unit: str, node: str | None) -> None:
        """Place a unit on another node, or on none."""
        before = self.nodes_by_unit.pop(unit, None)
        weight = self.weights[unit]
        if before is not None:
            units = self._units[before]
            del units[unit]
            self.loads[before] -= weight
            if not units:
                del self._units[before], self.loads[before]
        if node is None:
            self.unplaced[unit] = None
            return
        self.unplaced.pop(unit, None)
        self.nodes_by_unit[unit] = node
        self._units.setdefault(node, {})[unit] = None
        self.loads[node] = self.loads.get(node, 0.0) + weight

    def position_of(self, unit: str) -> int:
        """The position of a unit on the circle."""
        return self._positions[unit]

    def preferred_node(self, unit: str, ring: Ring) -> str:
        """The first node for a unit on the circle; cached, since a ring seldom changes."""
        if ring is not self._ring:
            self._ring, self._preferred = ring, {}
        node = self._preferred.get(unit)
        if node is None:
            node = self._preferred[unit] = ring.find_first(self._positions[unit])
        return node


class _Bounds:
    """What each node may and should have."""

    def __init__(self, placement: Placement, shares: Mapping[str, float]) -> None:
        total_share = sum(shares.values())
        average = placement.total / len(placement.weights) if placement.total > 0 else 1.0
        self.fair: dict[str, float] = {}
        self.upper: dict[str, float] = {}
        self.lower: dict[str, float] = {}
        for node, share in shares.items():
            fair = self.fair[node] = placement.total * share / total_share
            self.upper[node] = ceil(fair * (1 + EPSILON) / average - _HAIR) * average + _HAIR
            self.lower[node] = floor(fair * (1 - EPSILON) / average + _HAIR) * average - _HAIR


def plan_moves(
    placement: Placement,
    ring: Ring,
    shares: Mapping[str, float],
    leaving: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """The units that move, each with its new node. Updates the placement.

    `shares` has the nodes that can have units, each with a share above 0; `ring` has all of them.
    `leaving` has the units that are on their way to their node, and the nodes that still have them.
    """
    if not shares or not placement.weights:
        return {}
    bounds = _Bounds(placement, shares)
    moved: dict[str, str] = {}
    _place_unplaced(placement, ring, bounds, leaving, moved)
    _relieve_overloaded(placement, ring, bounds, moved)
    _fill_underloaded(placement, ring, bounds, moved)
    return moved


def _place_unplaced(
    placement: Placement,
    ring: Ring,
    bounds: _Bounds,
    leaving: Mapping[str, str],
    moved: dict[str, str],
) -> None:
    """Place the units that have no node, or are on a node that can't have units."""
    for node in [node for node in placement.nodes if node not in bounds.fair]:
        for unit in list(placement.units_of(node)):
            placement.move(unit, None)
    limits = (bounds.upper,)
    for unit in sorted(placement.unplaced):
        target = leaving.get(unit)
        if target is None or not _has_room(target, unit, placement, bounds.upper):
            target = _find_room(unit, placement, ring, bounds, limits)
        # A unit that has not left yet stays if it can: then no other node has to take it over.
        _place_unit(unit, target, placement, moved)


def _relieve_overloaded(
    placement: Placement, ring: Ring, bounds: _Bounds, moved: dict[str, str]
) -> None:
    """Take units from nodes above their bound, first those that prefer another node."""
    # A node below its bound needs units anyway: a unit that goes there moves once, not twice.
    limits = (bounds.lower, bounds.fair, bounds.upper)
    overloaded = [node for node, load in placement.loads.items() if load > bounds.upper[node]]
    for node in sorted(overloaded):
        units = sorted(
            placement.units_of(node),
            key=lambda unit: (placement.preferred_node(unit, ring) == node, unit),
        )
        for unit in units:
            if placement.loads[node] <= bounds.upper[node]:
                break
            target = _find_room(unit, placement, ring, bounds, limits, node)
            # Without this check a unit too heavy for any node would move with every call.
            after = placement.loads.get(target, 0.0) + placement.weights[unit]
            relief = after / bounds.fair[target] < placement.loads[node] / bounds.fair[node]
            if relief or after <= bounds.upper[target] + 2 * _HAIR:
                _place_unit(unit, target, placement, moved)


def _fill_underloaded(
    placement: Placement, ring: Ring, bounds: _Bounds, moved: dict[str, str]
) -> None:
    """Give units to nodes below their bound, from those that have the most for their share."""
    loads = placement.loads
    underloaded = sorted(node for node, low in bounds.lower.items() if loads.get(node, 0.0) < low)
    if not underloaded:
        return
    heap = [(-load / bounds.fair[node], node) for node, load in loads.items()]
    heapify(heap)
    donors = _Donors(placement, ring, bounds, underloaded)
    for node in underloaded:
        while heap and loads.get(node, 0.0) < bounds.lower[node]:
            donor = heap[0][1]
            unit = donors.find_spare(donor, node)
            if unit is None:
                heappop(heap)
                continue
            _place_unit(unit, node, placement, moved)
            heapreplace(heap, (-loads.get(donor, 0.0) / bounds.fair[donor], donor))


class _Donors:
    """The units that nodes can give away, sorted once by the node that they prefer."""

    def __init__(
        self, placement: Placement, ring: Ring, bounds: _Bounds, receivers: Iterable[str]
    ) -> None:
        self._placement, self._ring, self._bounds = placement, ring, bounds
        self._receivers = frozenset(receivers)
        self._sorted: dict[str, dict[str, list[str]]] = {}

    def find_spare(self, donor: str, receiver: str) -> str | None:
        """A unit that may go from one to the other, if possible one that prefers the receiver."""
        if donor == receiver:
            return None
        placement, bounds = self._placement, self._bounds
        can_give = placement.loads.get(donor, 0.0) - bounds.lower[donor]
        can_take = bounds.upper[receiver] - placement.loads.get(receiver, 0.0)
        most = min(can_give, can_take)
        for unit in self._preferring(receiver, donor):
            if placement.weights[unit] <= most and placement.nodes_by_unit[unit] == donor:
                return unit
        units = placement.units_of(donor)
        return next((unit for unit in units if placement.weights[unit] <= most), None)

    def _preferring(self, receiver: str, donor: str) -> list[str]:
        by_preference = self._sorted.get(donor)
        if by_preference is None:
            by_preference = self._sorted[donor] = {}
            for unit in self._placement.units_of(donor):
                preferred = self._placement.preferred_node(unit, self._ring)
                if preferred in self._receivers:
                    by_preference.setdefault(preferred, []).append(unit)
        return by_preference.get(receiver, [])


def _find_room(
    unit: str,
    placement: Placement,
    ring: Ring,
    bounds: _Bounds,
    limits: Iterable[Mapping[str, float]],
    excluded: str | None = None,
) -> str:
    """The first node on the circle that has room, below the first limit that leaves any."""
    for limit in limits:
        for node in ring.walk(placement.position_of(unit)):
            if node != excluded and _has_room(node, unit, placement, limit):
                return node
    # A unit may be heavier than the room of any node.
    weight, loads, fair = placement.weights[unit], placement.loads, bounds.fair
    others = [node for node in fair if node != excluded] or list(fair)
    return min(others, key=lambda node: ((loads.get(node, 0.0) + weight) / fair[node], node))


def _has_room(node: str, unit: str, placement: Placement, limit: Mapping[str, float]) -> bool:
    most = limit.get(node)
    if most is None:
        return False
    return placement.loads.get(node, 0.0) + placement.weights[unit] <= most + 2 * _HAIR


def _place_unit(unit: str, node: str, placement: Placement, moved: dict[str, str]) -> None:
    placement.move(unit, node)
    moved[unit] = node
