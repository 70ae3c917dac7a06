"""Does the cluster keep its laws whatever happens?

A pretend cluster (003, with all that can go wrong): the same `Node` that a real one runs, with
pretend clocks that drift, pretend disks that survive a crash or do not, and a pretend network. For
a while there is trouble after trouble, and the checkers watch; then the troubles end, and all must
be well soon (`cluster_calm`). All of it follows from the seed.
"""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any

from springhouse.cluster.messages import (
    AppendEntries,
    Assign,
    DrainAsked,
    Event,
    LoadMeasured,
    Order,
    Persist,
    Progressed,
    Received,
    Release,
    Released,
    Send,
    Tick,
    UnitsDeclared,
    Vote,
)
from springhouse.cluster.node_load import NodeLoad
from springhouse.cluster.raft_node import Node, Role
from springhouse.cluster.state import EMPTY
from springhouse.simulate.cluster_calm import Calm
from springhouse.simulate.cluster_checkers import BrokenLaw, Checkers
from springhouse.simulate.cluster_model import ClusterConditions, ClusterOutcome, Host, MakesNode
from springhouse.simulate.cluster_weather import Trouble, Weather
from springhouse.units import Dice, Instant

_SHORTEST, _LONGEST = 6.0, 16.0

Telling = Callable[[float, str], None]
"""Is told when what happened."""

Happening = tuple[float, int, Callable[..., None], tuple[Any, ...]]
"""When, which of those at the same time, and what."""


class ClusterRun:
    """One run. `tell` hears the story."""

    def __init__(
        self, conditions: ClusterConditions, make: MakesNode = Node, tell: Telling | None = None
    ) -> None:
        self.conditions = conditions
        self.now = 0.0
        self.events = self.troubles = 0
        self.checkers = Checkers()
        self._make = make
        self._tell = tell
        self._timing = conditions.timing
        self.dice = Dice(conditions.seed)
        names = [f"node {number}" for number in range(1, conditions.nodes + 1)]
        self.units = {f"unit {number}": 1.0 for number in range(1, conditions.units + 1)}
        self.weather = Weather(self.dice, names, self._timing.election_seconds)
        self.hosts = {name: Host(name) for name in names}
        # Where little happens, who was cut off for a while still has the newest version.
        self._work_pace = self.dice.pick((1.0, 1.0, 20.0))
        self._heap: list[Happening] = []
        self._ticks = count()
        self._silent_since: float | None = None
        self._silences = 0
        self._in_trouble = True
        self._offsets: dict[str, int] = {}
        for host in self.hosts.values():
            drift = self._timing.drift
            host.rate = self.dice.between(1 - drift, 1 + drift)
            self._start(host, host.life)

    def run(self) -> ClusterOutcome:
        """All of it; a `BrokenLaw` says how to see it again."""
        try:
            return self._run()
        except AssertionError as broken:
            raise BrokenLaw.replayed(broken, self.conditions.replay) from broken

    def _run(self) -> ClusterOutcome:
        wait = self._timing.election_seconds
        self.let_pass(wait * self.dice.between(0.5, 4.0))
        end = self.now + wait * self.dice.between(_SHORTEST, _LONGEST)
        while self.now < end:
            after, trouble = self.weather.next_trouble()
            self.let_pass(min(self.now + after, end))
            self._happen(trouble)
        return self._recover()

    # --- The end --------------------------------------------------------------------------------

    def _recover(self) -> ClusterOutcome:
        """The troubles end; is all well soon?"""
        self._say("all troubles end")
        self._in_trouble = False
        self.weather.calm()
        for host in self.hosts.values():
            host.torn = host.doomed = False
            if host.node is None:
                self._start(host, host.life)
            elif host.until > self.now:
                host.until = self.now
                self._wake(host, host.life)
            self.set_able(host, True)
        self._touch()
        calm = Calm(self)
        led_after, worked_on_after = calm.recover()
        if self.dice.pick((True, False)):  # It takes as long as all that was before it.
            calm.lose_and_regain_sparks()
        newest = self.checkers.newest
        assert newest is not None
        return ClusterOutcome(
            self.conditions.seed,
            self.now,
            self.events,
            self.troubles,
            self.checkers.elections,
            newest.stamp.version,
            led_after,
            worked_on_after,
        )

    # --- Time -----------------------------------------------------------------------------------

    def let_pass(self, until: float) -> None:
        """Let everything happen until then."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.now, _, do, what = heappop(heap)
            do(*what)
        self.now = until

    def _plan(self, at: float, do: Callable[..., None], *what: Any) -> None:
        heappush(self._heap, (at, next(self._ticks), do, what))

    def _deliver(self, host: Host, event: Event) -> None:
        if host.node is None:
            return
        if self.now < host.until:
            self._plan(host.until, self._deliver, host, event)
        else:
            self._step(host, host.node, event)

    def _tick(self, host: Host, life: int) -> None:
        node = host.node
        if node is None or life != host.life:
            return
        if self.now < host.until:
            self._plan(host.until, self._tick, host, life)
            return
        host.wakes_at = inf
        if host.offset + host.rate * self.now >= node.wake_at:
            self._step(host, node, Tick())
        else:
            self._plan_tick(host, node)

    def _plan_tick(self, host: Host, node: Node) -> None:
        # A clock's reading is rounded; a hair later it is certainly time.
        at = max((node.wake_at - host.offset) / host.rate, self.now) + 1e-6
        if at < host.wakes_at:
            host.wakes_at = at
            self._plan(at, self._tick, host, host.life)

    def _step(self, host: Host, node: Node, event: Event) -> None:
        self.events += 1
        orders = node.step(event, Instant(host.offset + host.rate * self.now))
        if host.torn and orders:
            self._follow(host, node, orders[: int(self.dice.between(0, len(orders) + 1))])
            self._crash(host)
            return
        self._follow(host, node, orders)
        if host.doomed and any(_is_vote(order) for order in orders):
            self._crash(host)
            assert type(event) is Received
            after = self._timing.election_seconds * self.dice.between(0.0, 0.2)
            self._plan(self.now + after, self._cut_off, event.sender)
            return
        if node.role is Role.LEADER and node.term != host.led:
            host.led = node.term
            assert node.office is not None
            self._say(f"{host.name} leads in term {node.term}")
            self.checkers.leads(host.name, node.disk, node.term, node.office.first.version)
        if node.acting is not host.acting:
            host.acting = node.acting
            self._say(f"{host.name} acts on version {node.acting.stamp}")
            self.checkers.acts_on(host.name, node.acting)
        self._plan_tick(host, node)

    def _follow(self, host: Host, node: Node, orders: list[Order]) -> None:
        for order in orders:
            if type(order) is Send:
                to, received = self.hosts[order.to], Received(host.name, order.message)
                large = type(order.message) is AppendEntries and order.message.force
                for delay in self.weather.arrivals(host.name, order.to, large=large):
                    self._plan(self.now + delay, self._deliver, to, received)
            elif type(order) is Persist:
                if not node.load.able and host.disk is not None:
                    self.checkers.kept_unable(host.name, host.disk.state, order.memory.state)
                host.disk = order.memory
                self.checkers.written(host.name, order.memory)
            elif type(order) is Assign:
                self._take(host, node, order)
            elif type(order) is Release:
                self._let_go(host, order)

    # --- Work -----------------------------------------------------------------------------------

    def _take(self, host: Host, node: Node, order: Assign) -> None:
        asleep = frozenset(name for name, other in self.hosts.items() if other.until > self.now)
        self.checkers.takes(host.name, order, node.acting, asleep)
        host.working.update(unit for unit, _ in order.units)
        if self._silent_since is not None:
            self._prove_silence(self._silences)

    def _let_go(self, host: Host, order: Release) -> None:
        if order.at_once:
            self._stop(host, order.units)
        slow = 0.05 if order.at_once else self.dice.pick((0.02, 0.3, 1.0))
        after = self._timing.election_seconds * self.dice.between(0.0, slow)
        number = next(self._ticks)
        host.leaving.update(dict.fromkeys(order.units, number))
        self._plan(self.now + after, self._release, host, host.life, number)

    def _release(self, host: Host, life: int, number: int) -> None:
        """What was let go by that order, and by no later one, has ended."""
        if host.node is None or life != host.life:
            return
        if self.now < host.until:
            self._plan(host.until, self._release, host, life, number)
            return
        units = tuple(unit for unit, by in host.leaving.items() if by == number)
        for unit in units:
            del host.leaving[unit]
        self._stop(host, units)
        self._step(host, host.node, Released(units))

    def _stop(self, host: Host, units: Iterable[str]) -> None:
        for unit in tuple(units):
            host.working.discard(unit)
            self.checkers.lets_go(host.name, unit)

    def _work(self, host: Host, life: int) -> None:
        """A unit gets a little further."""
        if host.node is None or life != host.life:
            return
        wait = self._timing.election_seconds * self._work_pace
        self._plan(self.now + wait * self.dice.between(0.3, 1.2), self._work, host, life)
        if host.working and host.able and self.now >= host.until:
            unit = self.dice.pick(sorted(host.working))
            offset = self._offsets[unit] = self._offsets.get(unit, 0) + 1
            self._step(host, host.node, Progressed(unit, offset))

    # --- Machines -------------------------------------------------------------------------------

    def _start(self, host: Host, life: int) -> None:
        if host.node is not None or life != host.life:
            return
        host.life += 1
        host.offset = self.dice.between(0.0, 1000.0)
        host.until, host.wakes_at, host.torn = 0.0, inf, False
        host.acting = EMPTY
        dice = Dice(int(self.dice.between(0, 2**52)))
        now = Instant(host.offset + host.rate * self.now)
        host.node = self._make(host.name, self.hosts, self._timing, dice, now, host.disk)
        self._say(f"{host.name} starts" + ("" if host.disk else " with an empty disk"))
        self._plan(self.now, self._work, host, host.life)
        wait = self._timing.election_seconds
        self._lose_spark(host, wait * self.dice.pick((0.0, 0.02, 0.3, 1.0)))
        self._step(host, host.node, UnitsDeclared(self.units))
        self._touch()

    def _crash(self, host: Host) -> None:
        if host.node is None:
            return
        seconds = self.weather.lasts()
        self._say(f"{host.name} crashes for {seconds:.2f} s")
        self._stop(host, host.working)
        host.leaving.clear()
        host.node, host.until, host.torn, host.doomed = None, 0.0, False, False
        host.life += 1
        self._plan(self.now + seconds, self._start, host, host.life)
        self._touch()

    def set_able(self, host: Host, able: bool) -> None:
        """The Spark of a machine works from now on, or does not."""
        host.sparks += 1
        if host.able is not able:
            host.able = able
            self._say(f"{host.name} can work" if able else f"{host.name} can't work")
        self._measure(host, host.sparks)

    def _measure(self, host: Host, sparks: int) -> None:
        """Tell the node whether it can work, unless that is another by now."""
        if host.node is None or sparks != host.sparks:
            return
        if self.now < host.until:
            self._plan(host.until, self._measure, host, sparks)
        else:
            self._step(host, host.node, LoadMeasured(NodeLoad(able=host.able)))

    def _lose_spark(self, host: Host, seconds: float) -> None:
        """There is no Spark for a while; when a node has just started, it is still to come."""
        able = not (seconds and self._in_trouble)
        self.set_able(host, able)
        if not able:
            self._plan(self.now + seconds, self._regain_spark, host, host.sparks)

    def _regain_spark(self, host: Host, sparks: int) -> None:
        if host.node is not None and sparks == host.sparks:
            self.set_able(host, True)

    def _cut_off(self, name: str) -> None:
        if self._in_trouble:
            self._say(f"{name} is cut off")
            self.weather.split({name})
            self._touch()

    def _sleep(self, host: Host) -> None:
        if host.node is None or host.until > self.now:
            return
        seconds = self.weather.lasts()
        self._say(f"{host.name} is paused for {seconds:.2f} s")
        host.until = self.now + seconds
        self._plan(host.until, self._wake, host, host.life)
        self._touch()

    def _wake(self, host: Host, life: int) -> None:
        if host.node is None or life != host.life or host.until != self.now:
            return
        self._step(host, host.node, Tick())
        self.checkers.awoke(host.name, host.working)
        self._touch()

    # --- Troubles -------------------------------------------------------------------------------

    def _happen(self, trouble: Trouble) -> None:
        self.troubles += 1
        weather, hosts = self.weather, self.hosts
        leaders = [name for name, host in hosts.items() if _leads(host)]
        one = hosts[weather.some(1, 1)[0]]
        central = hosts[self.dice.pick(leaders)] if leaders else one
        self._say(trouble.value)
        match trouble:
            case Trouble.CRASH:
                self._crash(one)
            case Trouble.TORN:
                one.torn = one.node is not None
            case Trouble.AFTER_VOTE:
                one.doomed = central.doomed = True
            case Trouble.CRASH_LEADER:
                self._crash(central)
            case Trouble.CRASH_MANY:
                for name in weather.some(2, len(hosts)):
                    self._crash(hosts[name])
            case Trouble.LOSE_DISK:
                self._lose_disk(one)
            case Trouble.PAUSE:
                self._sleep(self.dice.pick((one, central)))
            case Trouble.DRAIN:
                self._drain(central)
            case Trouble.SPARK:
                self._lose_spark(self.dice.pick((one, central)), weather.lasts())
            case _:
                weather.change_links(trouble, {central.name, one.name})
        self._touch()

    def _drain(self, leader: Host) -> None:
        """Always the same node, so that others are left. Who is asleep can't be asked."""
        if len(self.hosts) > 1 and leader.until <= self.now:
            drained = self.dice.between(0.0, 1.0) < 0.5
            self._deliver(leader, DrainAsked(next(iter(self.hosts)), drained))

    def _lose_disk(self, host: Host) -> None:
        if self._can_lose(host):
            self._crash(host)
            host.disk = None

    def _can_lose(self, host: Host) -> bool:
        """Whether a majority of the voters would still have its memory, whoever they are."""
        newest = self.checkers.newest
        if newest is None:
            return False
        disks = {
            name: other.disk.disk
            for name, other in self.hosts.items()
            if other.disk is not None and other is not host
        }
        # A change of voters that is not committed may become so.
        kept = [other.disk.state for other in self.hosts.values() if other.disk is not None]
        return all(
            len(disks.items() & state.voters.items()) >= state.majority
            for state in (newest, *kept)
            if state.stamp >= newest.stamp
        )

    def _touch(self) -> None:
        """Who can talk with whom may have changed: is there a majority in touch?"""
        newest = self.checkers.newest
        voters = len(newest.voters if newest is not None else self.hosts)
        # The leader may know of one voter less than what is committed.
        majority = (voters - 1) // 2 + 1
        running = [
            name
            for name, host in self.hosts.items()
            if host.node is not None and host.until <= self.now
        ]
        self._silences += 1
        if self.weather.in_touch(running) >= majority:
            self._silent_since = None
            return
        self._silent_since = self.now
        self._plan(self.now + self._longest + 1e-3, self._prove_silence, self._silences)

    @property
    def _longest(self) -> float:
        """How long a keep-alive time is on the slowest clock."""
        return self._timing.keep_alive_seconds / (1 - self._timing.drift)

    def _prove_silence(self, silence: int) -> None:
        if silence != self._silences or self._silent_since is None:
            return
        silent = self.now - self._silent_since
        if silent > self._longest:
            working = {
                name: host.working for name, host in self.hosts.items() if host.until <= self.now
            }
            self.checkers.without_quorum(working, silent)

    def _say(self, what: str) -> None:
        if self._tell is not None:
            self._tell(self.now, what)


def _leads(host: Host) -> bool:
    return host.node is not None and host.node.role is Role.LEADER


def _is_vote(order: Order) -> bool:
    if type(order) is not Send or type(order.message) is not Vote:
        return False
    return order.message.granted and not order.message.canvass
