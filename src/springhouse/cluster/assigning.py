"""What should the next version of the state say about who owns what?

The leader's side of ownership. It turns what nodes report (they are here, they are gone, they let
go, they got this far, they are overloaded) into changes of holdings:

    a unit without an owner, or of a node that is gone, goes to its new owner at once
    a unit of a node that is here gets an heir first, and changes hands when its owner let go

A node is gone when its keep-alive time is certainly over, so that it has stopped by itself. It is
`expelled` with that: whatever it hears later, it must act on this version before it processes.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from springhouse.cluster.balance import EPSILON, Books, moves
from springhouse.cluster.messages import Appended
from springhouse.cluster.ring import Ring
from springhouse.cluster.state import Assignment, ClusterState, SnapshotVersion


@dataclass(frozen=True, slots=True)
class Presence:
    """Who is with the leader, who is gone for certain, and whether there are others."""

    here: Collection[str]
    gone: Collection[str]
    unsure: bool


class Assigner:
    """Decides for the leader; made anew with every election."""

    def __init__(self, ring: Ring, state: ClusterState, units: Mapping[str, float]) -> None:
        self._ring = ring
        self._books = Books()
        self._handing: dict[str, None] = {}
        self._released: dict[str, str] = {}
        self._offsets: dict[str, int] = {}
        self._balanced_for: object = None
        self._undeclared: dict[str, None] = {}
        for unit, holding in state.holdings.items():
            self._books.put(unit, units.get(unit, 1.0))
            self._enter(unit, holding)
        self.declare(units)

    def declare(self, units: Mapping[str, float]) -> None:
        """These are all units that there are."""
        for unit, weight in units.items():
            self._books.put(unit, weight)
        self._undeclared = {unit: None for unit in self._books.weights if unit not in units}
        self._balanced_for = None

    def reported(self, node: str, answer: Appended, holdings: Mapping[str, Assignment]) -> bool:
        """Take in what a node said of its units; whether it let go of something."""
        for unit, offset in answer.offsets:
            holding = holdings.get(unit)
            if holding is not None and holding.owner == node and offset > holding.offset:
                self._offsets[unit] = max(offset, self._offsets.get(unit, 0))
        return self.released(node, answer.released, answer.acting, holdings)

    def released(
        self,
        node: str,
        units: Iterable[str],
        acting: SnapshotVersion,
        holdings: Mapping[str, Assignment],
    ) -> bool:
        """A node that acts on a state let go of these; whether that was waited for."""
        found = False
        for unit in units:
            holding = holdings.get(unit)
            # What it said of an earlier handover, and comes late, is not about this one.
            if holding is None or holding.heir is None or holding.owner != node:
                continue
            if acting.version >= holding.since:
                self._released[unit] = node
                found = True
        return found

    def bounding_share(self, node: str, whole: float) -> float:
        """The share, of `whole` for all, of which what a node has is the most that is allowed."""
        books = self._books
        if books.total <= 0:
            return whole
        return whole * books.loads.get(node, 0.0) / books.total / (1 + EPSILON)

    def changes(
        self, state: ClusterState, version: int, presence: Presence
    ) -> tuple[dict[str, Assignment | None], set[str]]:
        """The holdings that `version` changes, and who is expelled by that."""
        made: dict[str, Assignment | None] = {}
        expelled: set[str] = set()
        if self._undeclared:
            self._drop(state, made)
        self._complete(state, version, presence, made, expelled)
        if not presence.unsure:
            self._rebalance(state, version, presence, made, expelled)
        for unit, offset in self._offsets.items():
            holding = made.get(unit, state.holdings.get(unit))
            if holding is not None and offset > holding.offset:
                made[unit] = holding._replace(offset=offset)
        self._offsets.clear()
        for unit, changed in made.items():
            if changed is not None:
                self._enter(unit, changed)
        return made, expelled

    def _enter(self, unit: str, holding: Assignment) -> None:
        if self._books.homes.get(unit) != holding.next_owner:
            self._books.move(unit, holding.next_owner)
        if holding.heir is None:
            self._handing.pop(unit, None)
        else:
            self._handing[unit] = None

    def _drop(self, state: ClusterState, made: dict[str, Assignment | None]) -> None:
        for unit in self._undeclared:
            self._books.remove(unit)
            self._handing.pop(unit, None)
            if unit in state.holdings:
                made[unit] = None
        self._undeclared.clear()

    def _complete(
        self,
        state: ClusterState,
        version: int,
        presence: Presence,
        made: dict[str, Assignment | None],
        expelled: set[str],
    ) -> None:
        """Handovers whose owner let go, or is gone."""
        for unit in self._handing:
            holding = state.holdings[unit]
            assert holding.heir is not None
            if self._released.get(unit) == holding.owner or holding.owner in presence.gone:
                made[unit] = Assignment(holding.heir, None, version, holding.offset)
                if holding.owner in presence.gone:
                    expelled.add(holding.owner)
        self._released.clear()

    def _rebalance(
        self,
        state: ClusterState,
        version: int,
        presence: Presence,
        made: dict[str, Assignment | None],
        expelled: set[str],
    ) -> None:
        shares = {node: state.shares.get(node, 1.0) for node in presence.here}
        shares = {node: share for node, share in shares.items() if share > 0}
        if shares == self._balanced_for:
            return
        self._balanced_for = shares
        holdings = {unit: made.get(unit, state.holdings[unit]) for unit in self._handing}
        leaving = {unit: each.owner for unit, each in holdings.items() if each and each.heir}
        for unit, target in moves(self._books, self._ring, shares, leaving).items():
            holding = made.get(unit, state.holdings.get(unit))
            if holding is None:
                made[unit] = Assignment(target, None, version)
            elif holding.owner in presence.gone:
                expelled.add(holding.owner)
                made[unit] = Assignment(target, None, version, holding.offset)
            elif holding.heir is None:
                made[unit] = holding._replace(heir=target, since=version)
            else:
                made[unit] = holding._replace(heir=target)
