"""Who owns which unit in the next version of the state?

This is the leader's side of ownership. Nodes report that they are present, that they released a
unit, how far they processed, and how loaded they are. The assigner turns that into changes:

    a unit without an owner, or of a node that is gone, gets its new owner at once
    a unit of a node that is present gets an heir first, and changes owner after its release

A node is gone when its keep-alive time is over for certain, so that it has stopped by itself. It is
then fenced: whatever it hears later, it must apply this version before it processes anything.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from springhouse.cluster.balance import EPSILON, Placement, plan_moves
from springhouse.cluster.messages import Appended
from springhouse.cluster.ring import Ring
from springhouse.cluster.state import Assignment, ClusterState, SnapshotVersion

_Changes = dict[str, Assignment | None]


@dataclass(frozen=True, slots=True)
class Presence:
    """The nodes that can work, those that are gone for certain, and whether others are unsure."""

    present: Collection[str]
    gone: Collection[str]
    unsure: bool


class Assigner:
    """Decides for one leader; every election makes a new one."""

    def __init__(self, ring: Ring, state: ClusterState, units: Mapping[str, float]) -> None:
        self._ring = ring
        self._placement = Placement()
        self._handovers: dict[str, None] = {}
        self._released: dict[str, str] = {}
        self._offsets: dict[str, int] = {}
        self._balanced_for: object = None
        self._undeclared: dict[str, None] = {}
        for unit, assignment in state.assignments.items():
            self._placement.put(unit, units.get(unit, 1.0))
            self._record(unit, assignment)
        self.declare(units)

    def declare(self, units: Mapping[str, float]) -> None:
        """The project has exactly these units."""
        for unit, weight in units.items():
            self._placement.put(unit, weight)
        self._undeclared = {unit: None for unit in self._placement.weights if unit not in units}
        self._balanced_for = None

    def record_answer(
        self, node: str, answer: Appended, assignments: Mapping[str, Assignment]
    ) -> bool:
        """Record what a node says of its units; return whether a handover can go on."""
        for unit, offset in answer.offsets:
            assignment = assignments.get(unit)
            if assignment is not None and assignment.owner == node and offset > assignment.offset:
                self._offsets[unit] = max(offset, self._offsets.get(unit, 0))
        return self.record_release(node, answer.released, answer.applied, assignments)

    def record_release(
        self,
        node: str,
        units: Iterable[str],
        applied: SnapshotVersion,
        assignments: Mapping[str, Assignment],
    ) -> bool:
        """A node that applied this version released units; return whether an heir waits for one."""
        awaited = False
        for unit in units:
            assignment = assignments.get(unit)
            if assignment is None or assignment.heir is None or assignment.owner != node:
                continue
            # A late message about an earlier handover says nothing about this one.
            if applied.number >= assignment.since:
                self._released[unit] = node
                awaited = True
        return awaited

    def limiting_share(self, node: str, whole: float) -> float:
        """The share, of `whole` for all, for which a node's units are the most that is allowed."""
        placement = self._placement
        if placement.total <= 0:
            return whole
        return whole * placement.loads.get(node, 0.0) / placement.total / (1 + EPSILON)

    def next_changes(
        self, state: ClusterState, number: int, presence: Presence
    ) -> tuple[_Changes, set[str]]:
        """The assignments that the version with this number changes, and the nodes it fences."""
        changes: _Changes = {}
        fenced: set[str] = set()
        if self._undeclared:
            self._drop_undeclared(state, changes)
        self._complete_handovers(state, number, presence, changes, fenced)
        if not presence.unsure:
            self._rebalance(state, number, presence, changes, fenced)
        for unit, offset in self._offsets.items():
            assignment = changes.get(unit, state.assignments.get(unit))
            if assignment is not None and offset > assignment.offset:
                changes[unit] = assignment._replace(offset=offset)
        self._offsets.clear()
        for unit, changed in changes.items():
            if changed is not None:
                self._record(unit, changed)
        return changes, fenced

    def _record(self, unit: str, assignment: Assignment) -> None:
        if self._placement.nodes_by_unit.get(unit) != assignment.next_owner:
            self._placement.move(unit, assignment.next_owner)
        if assignment.heir is None:
            self._handovers.pop(unit, None)
        else:
            self._handovers[unit] = None

    def _drop_undeclared(self, state: ClusterState, changes: _Changes) -> None:
        for unit in self._undeclared:
            self._placement.remove(unit)
            self._handovers.pop(unit, None)
            if unit in state.assignments:
                changes[unit] = None
        self._undeclared.clear()

    def _complete_handovers(
        self,
        state: ClusterState,
        number: int,
        presence: Presence,
        changes: _Changes,
        fenced: set[str],
    ) -> None:
        """Give units to their heirs, if the owner released them or is gone."""
        for unit in self._handovers:
            assignment = state.assignments[unit]
            owner, heir = assignment.owner, assignment.heir
            assert heir is not None
            if self._released.get(unit) == owner or owner in presence.gone:
                changes[unit] = Assignment(heir, None, number, assignment.offset)
                if owner in presence.gone:
                    fenced.add(owner)
        self._released.clear()

    def _rebalance(
        self,
        state: ClusterState,
        number: int,
        presence: Presence,
        changes: _Changes,
        fenced: set[str],
    ) -> None:
        """Move units so that every node that can work has its share."""
        shares = {node: state.shares.get(node, 1.0) for node in presence.present}
        shares = {node: share for node, share in shares.items() if share > 0}
        if shares == self._balanced_for:
            return
        self._balanced_for = shares
        handed = {unit: changes.get(unit, state.assignments[unit]) for unit in self._handovers}
        leaving = {unit: each.owner for unit, each in handed.items() if each and each.heir}
        for unit, target in plan_moves(self._placement, self._ring, shares, leaving).items():
            assignment = changes.get(unit, state.assignments.get(unit))
            if assignment is None:
                changes[unit] = Assignment(target, None, number)
            elif assignment.owner in presence.gone:
                fenced.add(assignment.owner)
                changes[unit] = Assignment(target, None, number, assignment.offset)
            elif assignment.heir is None:
                changes[unit] = assignment._replace(heir=target, since=number)
            else:
                changes[unit] = assignment._replace(heir=target)
