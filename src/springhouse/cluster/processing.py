"""Which units does this node work on right now?

A node works on the units that it owns in the committed state that it applied last, and that have no
heir. It works only while it may process: it must have applied the version that its leader requires,
and have had a quorum less than the keep-alive time ago (003 section 4.2.3). After the order to
release a unit, the worker still has it until it reports `Released`. So every unit is working,
releasing, or neither. A unit that is neither and has an heir is reported to the leader as released.
"""

from collections.abc import Mapping

from springhouse.cluster.follower import assignments_of
from springhouse.cluster.messages import Assign, Order, Release
from springhouse.cluster.state import EMPTY, Assignment, ClusterState


class Processing:
    """The units of one node, and what its worker does with them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.applied = EMPTY
        self.working: dict[str, None] = {}
        self.releasing: dict[str, None] = {}
        self._allowed = False
        self._owned: dict[str, Assignment] = {}
        self._with_heir: dict[str, None] = {}
        self._offsets: dict[str, int] = {}

    def apply(self, state: ClusterState, changes: Mapping[str, Assignment | None] | None) -> None:
        """Apply a later committed state; `changes` lead to it from the one before, if known."""
        self.applied = state
        if changes is None:
            self._owned = assignments_of(self._name, state.assignments)
            self._with_heir = {unit: None for unit, each in self._owned.items() if each.heir}
        else:
            for unit, assignment in changes.items():
                self._apply_one(unit, assignment)
        if self._offsets:
            self._offsets = {
                unit: offset
                for unit, offset in self._offsets.items()
                if unit in self._owned and offset > self._owned[unit].offset
            }

    def _apply_one(self, unit: str, assignment: Assignment | None) -> None:
        self._with_heir.pop(unit, None)
        if assignment is None or assignment.owner != self._name:
            self._owned.pop(unit, None)
            return
        self._owned[unit] = assignment
        if assignment.heir is not None:
            self._with_heir[unit] = None

    def next_orders(self, allowed: bool) -> list[Order]:
        """The orders that lead from the present work to the intended work."""
        if not allowed:
            return self._stop()
        self._allowed = True
        return [*self._release(), *self._assign()]

    def _stop(self) -> list[Order]:
        was_allowed, self._allowed = self._allowed, False
        if not (was_allowed and (self.working or self.releasing)):
            return []
        self.releasing.update(self.working)
        self.working.clear()
        return [Release(tuple(self.releasing), at_once=True)]

    def _release(self) -> list[Order]:
        owned, with_heir = self._owned, self._with_heir
        units = [unit for unit in self.working if unit not in owned or unit in with_heir]
        for unit in units:
            del self.working[unit]
            self.releasing[unit] = None
        return [Release(tuple(units), at_once=False)] if units else []

    def _assign(self) -> list[Order]:
        if len(self.working) + len(self._with_heir) >= len(self._owned):
            return []
        units = [
            (unit, max(assignment.offset, self._offsets.get(unit, 0)))
            for unit, assignment in self._owned.items()
            if assignment.heir is None and unit not in self.working and unit not in self.releasing
        ]
        self.working.update((unit, None) for unit, _ in units)
        return [Assign(tuple(units))] if units else []

    def mark_released(self, units: tuple[str, ...]) -> None:
        """The worker has ended its work in these units."""
        for unit in units:
            self.releasing.pop(unit, None)

    def record_progress(self, unit: str, offset: int) -> None:
        """A unit of this node is processed up to this offset."""
        assignment = self._owned.get(unit)
        if assignment is not None and offset > assignment.offset:
            self._offsets[unit] = max(offset, self._offsets.get(unit, 0))

    @property
    def is_busy(self) -> bool:
        """Whether work would have to stop if this node were not allowed to process."""
        return self._allowed and bool(self.working or self.releasing)

    @property
    def released_units(self) -> tuple[str, ...]:
        """The units that have an heir, and that the worker has released."""
        return tuple(
            unit
            for unit in self._with_heir
            if unit not in self.working and unit not in self.releasing
        )

    @property
    def new_offsets(self) -> tuple[tuple[str, int], ...]:
        """The offsets that units have reached, and that are not in the agreed state yet."""
        return tuple(self._offsets.items())
