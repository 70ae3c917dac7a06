"""Is all well soon when the troubles end, and does work go to those who can do it?

First the cluster recovers: within ten election time-outs there is a leader, and every unit is
worked on by its owner. Then, with nothing else going wrong, the Spark of some nodes ends: they are
there and vote, but can't work. After a while it is back. Each time, within three election
time-outs, the units must be shared by those who can work, no more of them may change hands than
had to, and then all must rest.
"""

from collections.abc import Callable, Collection
from math import inf
from typing import Protocol

from springhouse.cluster.raft_node import Node
from springhouse.simulate.cluster_checkers import BrokenLaw, Checkers
from springhouse.simulate.cluster_model import ClusterConditions, Host
from springhouse.units import Dice

_RECOVERS, _HANDS_OVER = 10, 3
"""So many election time-outs each may take."""

_LOOK, _REST = 0.25, 1.0
"""After so many election time-outs one looks again, or takes it that nothing happens any more."""


class World(Protocol):
    """The run whose end this is."""

    conditions: ClusterConditions
    now: float
    hosts: dict[str, Host]
    units: dict[str, float]
    checkers: Checkers
    dice: Dice

    def let_pass(self, until: float) -> None:
        """Let everything happen until then."""
        ...

    def set_able(self, host: Host, able: bool) -> None:
        """The Spark of a machine works from now on, or does not."""
        ...


class Calm:
    """No more troubles but those that are made here."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._wait = world.conditions.timing.election_seconds

    def recover(self) -> tuple[float, float]:
        """After how many seconds there was a leader, and every unit was worked on."""
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
            lost = sorted(world.units.keys() - world.checkers.hands.keys())
            raise BrokenLaw("liveness", f"nobody works on {', '.join(lost) or 'its own units'}")
        return led_after, world.now - ended

    def lose_and_regain_sparks(self) -> None:
        """For a while some nodes can't work."""
        world = self._world
        # A drain that was asked for at the last moment is agreed on by then.
        world.let_pass(world.now + _REST * self._wait)
        everybody = self._everybody()
        if len(everybody) < 2:
            return
        # All who can work share the units, also those who came back just now.
        self._prove_shared(everybody, "the troubles end", _RECOVERS)
        down = self._some_of(everybody)
        others = [name for name in everybody if name not in down]
        for able, workers in ((False, others), (True, everybody)):
            self._rest()
            before = world.checkers.owners
            for name in down:
                world.set_able(world.hosts[name], able)
            what = f"{' and '.join(down)} {'can work again' if able else 'can work no more'}"
            self._prove_shared(workers, what, _HANDS_OVER)
            world.checkers.moved(before, workers)
        self._rest()

    def _prove_shared(self, workers: Collection[str], since: str, timeouts: int) -> None:
        checkers = self._world.checkers

        def is_shared() -> bool:
            return self._is_worked_on() and checkers.unfair(workers) is None

        if not self._soon(is_shared, timeouts):
            unfair = checkers.unfair(workers) or "not every unit is worked on by its owner"
            raise BrokenLaw("able", f"{timeouts} election time-outs after {since}: {unfair}")

    def _rest(self) -> None:
        """Nothing changes hands, because nothing happens."""
        checkers = self._world.checkers
        before = checkers.owners
        self._world.let_pass(self._world.now + _REST * self._wait)
        if checkers.owners != before:
            raise BrokenLaw("able", "units change hands though nothing happens")

    def _soon(self, is_so: Callable[[], bool], timeouts: float) -> bool:
        """Let time pass until it is so; whether it was in time."""
        world = self._world
        end = world.now + timeouts * self._wait
        while world.now < end:
            world.let_pass(world.now + _LOOK * self._wait)
            if is_so():
                return True
        return False

    # --- How it is ------------------------------------------------------------------------------

    def _leader(self) -> Node | None:
        """The leader that is agreed on, and has a version of its own committed."""
        for host in self._world.hosts.values():
            node = host.node
            if node is not None and node.office is not None and not node.office.under_way:
                return node
        return None

    def _is_worked_on(self) -> bool:
        """Whether there are all units, and the owner of each works on it."""
        checkers = self._world.checkers
        newest, hands = checkers.newest, checkers.hands
        if newest is None or newest.holdings.keys() != self._world.units.keys():
            return False
        return all(
            each.heir is None and hands.get(unit) == each.owner
            for unit, each in newest.holdings.items()
        )

    def _everybody(self) -> list[str]:
        """All nodes that are not drained."""
        newest = self._world.checkers.newest
        assert newest is not None
        return [name for name in self._world.hosts if newest.shares.get(name, 1.0) > 0]

    def _some_of(self, names: Collection[str]) -> list[str]:
        """At least one of them, and not all."""
        left, dice = list(names), self._world.dice
        count = int(dice.between(1, len(left)))
        return sorted(left.pop(int(dice.between(0, len(left)))) for _ in range(count))
