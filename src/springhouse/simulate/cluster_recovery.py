"""Does the cluster recover soon after the troubles, and does work go to the nodes that can do it?

First the cluster must recover: within ten election time-outs it has a leader, and every owner works
on its units. Then the Spark of some nodes ends, and nothing else goes wrong: these nodes are
present and vote, but can't work. After a while their Spark is back. Each time, within three
election time-outs, the nodes that can work must share all units. No more units may move than
necessary, and then no unit may move at all.
"""

from collections.abc import Callable, Collection
from math import inf
from typing import Protocol

from springhouse.cluster.raft_node import Node
from springhouse.simulate.cluster_checkers import BrokenLaw, Checkers
from springhouse.simulate.cluster_model import ClusterConditions, Host
from springhouse.units import Dice

_RECOVERS, _HANDS_OVER = 10, 3
"""The most election time-outs that a recovery and a handover may take."""

_LOOK, _REST = 0.25, 1.0
"""The election time-outs between two looks, and those after which nothing should move."""


class RecoveringCluster(Protocol):
    """The run that this check ends."""

    conditions: ClusterConditions
    now: float
    hosts: dict[str, Host]
    units: dict[str, float]
    checkers: Checkers
    dice: Dice

    def advance_to(self, until: float) -> None:
        """Let time pass until then."""
        ...

    def set_able(self, host: Host, able: bool) -> None:
        """Make the Spark of a machine work from now on, or not."""
        ...


class RecoveryCheck:
    """Watches the end of a run."""

    def __init__(self, world: RecoveringCluster) -> None:
        self._world = world
        self._wait = world.conditions.timing.election_seconds

    def recover(self) -> tuple[float, float]:
        """The seconds until there was a leader, and until every owner worked on its units."""
        world = self._world
        led_after, ended = inf, world.now

        def is_well() -> bool:
            nonlocal led_after
            if led_after == inf and self._leader() is not None:
                led_after = world.now - ended
            return led_after < inf and self._is_worked_on()

        if not self._soon(is_well, _RECOVERS):
            if led_after == inf:
                late = f"no leader {_RECOVERS} election time-outs after trouble"
                raise BrokenLaw("liveness", late)
            lost = sorted(world.units.keys() - world.checkers.workers.keys())
            raise BrokenLaw("liveness", f"no node works on {', '.join(lost) or 'its own units'}")
        return led_after, world.now - ended

    def lose_and_regain_sparks(self) -> None:
        """Take Spark from some nodes for a while, and check where their units go."""
        world = self._world
        # By then a drain that was asked for at the last moment is carried out.
        world.advance_to(world.now + _REST * self._wait)
        all_nodes = self._undrained_nodes()
        if len(all_nodes) < 2:
            return
        # All nodes that can work share the units, also those that have just come back.
        self._check_shared(all_nodes, "the troubles end", _RECOVERS)
        down = self._some_of(all_nodes)
        others = [name for name in all_nodes if name not in down]
        for able, workers in ((False, others), (True, all_nodes)):
            self._rest()
            before = world.checkers.owners
            for name in down:
                world.set_able(world.hosts[name], able)
            what = f"{' and '.join(down)} {'can work again' if able else 'can work no more'}"
            self._check_shared(workers, what, _HANDS_OVER)
            world.checkers.check_moves(before, workers)
        self._rest()

    def _check_shared(self, workers: Collection[str], since: str, timeouts: int) -> None:
        checkers = self._world.checkers

        def is_shared() -> bool:
            return self._is_worked_on() and checkers.find_unfairness(workers) is None

        if not self._soon(is_shared, timeouts):
            unfair = checkers.find_unfairness(workers) or "not every unit is worked on by its owner"
            raise BrokenLaw("able", f"{timeouts} election time-outs after {since}: {unfair}")

    def _rest(self) -> None:
        """Check that no unit moves while nothing happens."""
        checkers = self._world.checkers
        before = checkers.owners
        self._world.advance_to(self._world.now + _REST * self._wait)
        if checkers.owners != before:
            raise BrokenLaw("able", "units move though nothing happens")

    def _soon(self, is_so: Callable[[], bool], timeouts: float) -> bool:
        """Let time pass until it is so; return whether that was in time."""
        world = self._world
        end = world.now + timeouts * self._wait
        while world.now < end:
            world.advance_to(world.now + _LOOK * self._wait)
            if is_so():
                return True
        return False

    # --- Observations ---------------------------------------------------------------------------

    def _leader(self) -> Node | None:
        """The leader that has committed all of its versions."""
        for host in self._world.hosts.values():
            leadership = host.node.leadership if host.node is not None else None
            if leadership is not None and not leadership.is_committing:
                return host.node
        return None

    def _is_worked_on(self) -> bool:
        """Whether the state has all units, and every owner works on its units."""
        checkers = self._world.checkers
        newest, workers = checkers.newest, checkers.workers
        if newest is None or newest.assignments.keys() != self._world.units.keys():
            return False
        return all(
            each.heir is None and workers.get(unit) == each.owner
            for unit, each in newest.assignments.items()
        )

    def _undrained_nodes(self) -> list[str]:
        """The nodes that are not drained."""
        newest = self._world.checkers.newest
        assert newest is not None
        return [name for name in self._world.hosts if newest.shares.get(name, 1.0) > 0]

    def _some_of(self, names: Collection[str]) -> list[str]:
        """At least one of these nodes, and not all."""
        left, dice = list(names), self._world.dice
        count = int(dice.between(1, len(left)))
        return sorted(left.pop(int(dice.between(0, len(left)))) for _ in range(count))
