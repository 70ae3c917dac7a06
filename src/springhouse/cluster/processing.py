"""Which units does this node work on right now?

Those that it owns in the committed state that it acts on, that have no heir, and only while it may
process at all: it must have the state that its leader requires, and have heard of a quorum less
than the keep-alive time ago (003 section 4.2.3). A unit that it has to let go is still in its hands
until `Released`. So every unit is taken, leaving, or neither, and what is neither and has an heir
can be told to the leader as released.
"""

from collections.abc import Mapping

from springhouse.cluster.following import of_owner
from springhouse.cluster.messages import Assign, Order, Release
from springhouse.cluster.state import EMPTY, Assignment, ClusterState


class Processing:
    """The hands of one node."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.acting = EMPTY
        self.taken: dict[str, None] = {}
        self.leaving: dict[str, None] = {}
        self._allowed = False
        self._mine: dict[str, Assignment] = {}
        self._inherited: dict[str, None] = {}
        self._offsets: dict[str, int] = {}

    def act_on(self, state: ClusterState, changes: Mapping[str, Assignment | None] | None) -> None:
        """A later state is committed; `changes` lead to it from the one before, if known."""
        self.acting = state
        if changes is None:
            self._mine = of_owner(self._name, state.holdings)
            self._inherited = {unit: None for unit, each in self._mine.items() if each.heir}
        else:
            for unit, holding in changes.items():
                self._own(unit, holding)
        if self._offsets:
            self._offsets = {
                unit: offset
                for unit, offset in self._offsets.items()
                if unit in self._mine and offset > self._mine[unit].offset
            }

    def _own(self, unit: str, holding: Assignment | None) -> None:
        self._inherited.pop(unit, None)
        if holding is None or holding.owner != self._name:
            self._mine.pop(unit, None)
            return
        self._mine[unit] = holding
        if holding.heir is not None:
            self._inherited[unit] = None

    def orders(self, allowed: bool) -> list[Order]:
        """What to take and what to let go, from how it is to how it should be."""
        orders: list[Order] = []
        if not allowed:
            if self._allowed and (self.taken or self.leaving):
                self.leaving.update(self.taken)
                self.taken.clear()
                orders.append(Release(tuple(self.leaving), at_once=True))
            self._allowed = False
            return orders
        self._allowed = True
        mine, inherited, leaving = self._mine, self._inherited, self.leaving
        let_go = [unit for unit in self.taken if unit not in mine or unit in inherited]
        if let_go:
            for unit in let_go:
                del self.taken[unit]
                leaving[unit] = None
            orders.append(Release(tuple(let_go), at_once=False))
        if len(self.taken) + len(inherited) < len(mine):
            take = [
                (unit, max(holding.offset, self._offsets.get(unit, 0)))
                for unit, holding in mine.items()
                if holding.heir is None and unit not in self.taken and unit not in leaving
            ]
            if take:
                self.taken.update((unit, None) for unit, _ in take)
                orders.append(Assign(tuple(take)))
        return orders

    def let_go(self, units: tuple[str, ...]) -> None:
        """What was leaving has left."""
        for unit in units:
            self.leaving.pop(unit, None)

    def progressed(self, unit: str, offset: int) -> None:
        """A unit of ours got further."""
        holding = self._mine.get(unit)
        if holding is not None and offset > holding.offset:
            self._offsets[unit] = max(offset, self._offsets.get(unit, 0))

    @property
    def under_way(self) -> bool:
        """Whether something would have to stop if this node were not allowed to process."""
        return self._allowed and bool(self.taken or self.leaving)

    @property
    def released(self) -> tuple[str, ...]:
        """What waits to be handed on, and is in our hands no more."""
        return tuple(
            unit for unit in self._inherited if unit not in self.taken and unit not in self.leaving
        )

    @property
    def offsets(self) -> tuple[tuple[str, int], ...]:
        """How far units got, as far as that is not yet agreed on."""
        return tuple(self._offsets.items())
