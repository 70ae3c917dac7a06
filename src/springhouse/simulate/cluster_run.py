"""Does the cluster keep its laws whatever happens?

This is a pretend cluster (003, with everything that can go wrong). It runs the same `Node` as a
real one, with pretend clocks that drift, pretend disks that may survive a crash or not, and a
pretend network. First one trouble follows another, and the checkers watch. Then the troubles end,
and the cluster must recover soon (`cluster_recovery`). Everything follows from the seed.
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
from springhouse.simulate.cluster_checkers import BrokenLaw, Checkers
from springhouse.simulate.cluster_model import ClusterConditions, ClusterOutcome, Host, NodeFactory
from springhouse.simulate.cluster_recovery import RecoveryCheck
from springhouse.simulate.faulty_network import FaultyNetwork, Trouble
from springhouse.units import Dice, Instant

_SHORTEST, _LONGEST = 6.0, 16.0

EventListener = Callable[[float, str], None]
"""Gets the time and the text of each event of the story."""

ScheduledCall = tuple[float, int, Callable[..., None], tuple[Any, ...]]
"""The time, a number that orders calls at the same time, the function and its arguments."""


class ClusterRun:
    """One run; the listener gets its story."""

    def __init__(
        self,
        conditions: ClusterConditions,
        make_node: NodeFactory = Node,
        listener: EventListener | None = None,
    ) -> None:
        self.conditions = conditions
        self.now = 0.0
        self.events = self.troubles = 0
        self.checkers = Checkers()
        self._make_node = make_node
        self._listener = listener
        self._timing = conditions.timing
        self.dice = Dice(conditions.seed)
        names = [f"node {number}" for number in range(1, conditions.nodes + 1)]
        self.units = {f"unit {number}": 1.0 for number in range(1, conditions.units + 1)}
        self.network = FaultyNetwork(self.dice, names, self._timing.election_seconds)
        self.hosts = {name: Host(name) for name in names}
        # With little work, a node that was cut off for a while still has the newest version.
        self._work_pace = self.dice.pick((1.0, 1.0, 20.0))
        self._heap: list[ScheduledCall] = []
        self._ticks = count()
        self._silent_since: float | None = None
        self._silences = 0
        self._in_trouble = True
        self._offsets: dict[str, int] = {}
        for host in self.hosts.values():
            drift = self._timing.drift
            host.rate = self.dice.between(1 - drift, 1 + drift)
            self._start(host, host.incarnation)

    def run(self) -> ClusterOutcome:
        """The outcome of the whole run; a `BrokenLaw` says how to replay it."""
        try:
            return self._run()
        except AssertionError as broken:
            raise BrokenLaw.replayed(broken, self.conditions.replay) from broken

    def _run(self) -> ClusterOutcome:
        wait = self._timing.election_seconds
        self.advance_to(wait * self.dice.between(0.5, 4.0))
        end = self.now + wait * self.dice.between(_SHORTEST, _LONGEST)
        while self.now < end:
            after, trouble = self.network.next_trouble()
            self.advance_to(min(self.now + after, end))
            self._cause(trouble)
        return self._recover()

    # --- Recovery -------------------------------------------------------------------------------

    def _recover(self) -> ClusterOutcome:
        """End the troubles, and check that the cluster recovers soon."""
        self._log("all troubles end")
        self._in_trouble = False
        self.network.repair()
        for host in self.hosts.values():
            host.torn = host.doomed = False
            if host.node is None:
                self._start(host, host.incarnation)
            elif host.paused_until > self.now:
                host.paused_until = self.now
                self._wake(host, host.incarnation)
            self.set_able(host, True)
        self._update_contact()
        check = RecoveryCheck(self)
        led_after, worked_on_after = check.recover()
        if self.dice.pick((True, False)):  # It takes as long as everything before it.
            check.lose_and_regain_sparks()
        newest = self.checkers.newest
        assert newest is not None
        return ClusterOutcome(
            self.conditions.seed,
            self.now,
            self.events,
            self.troubles,
            self.checkers.elections,
            newest.version.number,
            led_after,
            worked_on_after,
        )

    # --- Time -----------------------------------------------------------------------------------

    def advance_to(self, until: float) -> None:
        """Make all scheduled calls until then."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.now, _, call, arguments = heappop(heap)
            call(*arguments)
        self.now = until

    def _schedule(self, at: float, call: Callable[..., None], *arguments: Any) -> None:
        heappush(self._heap, (at, next(self._ticks), call, arguments))

    def _deliver(self, host: Host, event: Event) -> None:
        if host.node is None:
            return
        if self.now < host.paused_until:
            self._schedule(host.paused_until, self._deliver, host, event)
        else:
            self._step(host, host.node, event)

    def _tick(self, host: Host, incarnation: int) -> None:
        node = host.node
        if node is None or incarnation != host.incarnation:
            return
        if self.now < host.paused_until:
            self._schedule(host.paused_until, self._tick, host, incarnation)
            return
        host.wakes_at = inf
        if host.offset + host.rate * self.now >= node.wake_at:
            self._step(host, node, Tick())
        else:
            self._schedule_tick(host, node)

    def _schedule_tick(self, host: Host, node: Node) -> None:
        # A clock rounds its time; a hair later the time has come for certain.
        at = max((node.wake_at - host.offset) / host.rate, self.now) + 1e-6
        if at < host.wakes_at:
            host.wakes_at = at
            self._schedule(at, self._tick, host, host.incarnation)

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
            self._schedule(self.now + after, self._cut_off, event.sender)
            return
        if node.role is Role.LEADER and node.term != host.led:
            host.led = node.term
            assert node.leadership is not None
            self._log(f"{host.name} leads in term {node.term}")
            self.checkers.check_leader(
                host.name, node.disk, node.term, node.leadership.first_version.number
            )
        if node.applied is not host.applied:
            host.applied = node.applied
            self._log(f"{host.name} applies version {node.applied.version}")
            self.checkers.check_applied(host.name, node.applied)
        self._schedule_tick(host, node)

    def _follow(self, host: Host, node: Node, orders: list[Order]) -> None:
        for order in orders:
            if type(order) is Send:
                to, received = self.hosts[order.to], Received(host.name, order.message)
                large = type(order.message) is AppendEntries and order.message.force
                for delay in self.network.arrivals(host.name, order.to, large=large):
                    self._schedule(self.now + delay, self._deliver, to, received)
            elif type(order) is Persist:
                stored = order.persistent_state
                if not node.load.able and host.disk is not None:
                    self.checkers.check_unable_leader(host.name, host.disk.state, stored.state)
                host.disk = stored
                self.checkers.record_persisted(host.name, stored)
            elif type(order) is Assign:
                self._take(host, node, order)
            elif type(order) is Release:
                self._release(host, order)

    # --- Work -----------------------------------------------------------------------------------

    def _take(self, host: Host, node: Node, order: Assign) -> None:
        now = self.now
        asleep = frozenset(name for name, other in self.hosts.items() if other.paused_until > now)
        self.checkers.check_start(host.name, order, node.applied, asleep)
        host.working.update(unit for unit, _ in order.units)
        if self._silent_since is not None:
            self._check_silence(self._silences)

    def _release(self, host: Host, order: Release) -> None:
        if order.at_once:
            self._stop(host, order.units)
        slow = 0.05 if order.at_once else self.dice.pick((0.02, 0.3, 1.0))
        after = self._timing.election_seconds * self.dice.between(0.0, slow)
        number = next(self._ticks)
        host.leaving.update(dict.fromkeys(order.units, number))
        self._schedule(self.now + after, self._finish_release, host, host.incarnation, number)

    def _finish_release(self, host: Host, incarnation: int, number: int) -> None:
        """End the work in units that this order, and no later one, released."""
        if host.node is None or incarnation != host.incarnation:
            return
        if self.now < host.paused_until:
            self._schedule(host.paused_until, self._finish_release, host, incarnation, number)
            return
        units = tuple(unit for unit, by in host.leaving.items() if by == number)
        for unit in units:
            del host.leaving[unit]
        self._stop(host, units)
        self._step(host, host.node, Released(units))

    def _stop(self, host: Host, units: Iterable[str]) -> None:
        for unit in tuple(units):
            host.working.discard(unit)
            self.checkers.record_stop(host.name, unit)

    def _work(self, host: Host, incarnation: int) -> None:
        """Process a little more of a unit."""
        if host.node is None or incarnation != host.incarnation:
            return
        wait = self._timing.election_seconds * self._work_pace
        self._schedule(self.now + wait * self.dice.between(0.3, 1.2), self._work, host, incarnation)
        if host.working and host.able and self.now >= host.paused_until:
            unit = self.dice.pick(sorted(host.working))
            offset = self._offsets[unit] = self._offsets.get(unit, 0) + 1
            self._step(host, host.node, Progressed(unit, offset))

    # --- Machines -------------------------------------------------------------------------------

    def _start(self, host: Host, incarnation: int) -> None:
        if host.node is not None or incarnation != host.incarnation:
            return
        host.incarnation += 1
        host.offset = self.dice.between(0.0, 1000.0)
        host.paused_until, host.wakes_at, host.torn = 0.0, inf, False
        host.applied = EMPTY
        dice = Dice(int(self.dice.between(0, 2**52)))
        now = Instant(host.offset + host.rate * self.now)
        host.node = self._make_node(host.name, self.hosts, self._timing, dice, now, host.disk)
        self._log(f"{host.name} starts" + ("" if host.disk else " with an empty disk"))
        self._schedule(self.now, self._work, host, host.incarnation)
        wait = self._timing.election_seconds
        self._lose_spark(host, wait * self.dice.pick((0.0, 0.02, 0.3, 1.0)))
        self._step(host, host.node, UnitsDeclared(self.units))
        self._update_contact()

    def _crash(self, host: Host) -> None:
        if host.node is None:
            return
        seconds = self.network.lasts()
        self._log(f"{host.name} crashes for {seconds:.2f} s")
        self._stop(host, host.working)
        host.leaving.clear()
        host.node, host.paused_until, host.torn, host.doomed = None, 0.0, False, False
        host.incarnation += 1
        self._schedule(self.now + seconds, self._start, host, host.incarnation)
        self._update_contact()

    def set_able(self, host: Host, able: bool) -> None:
        """Make the Spark of a machine work from now on, or not."""
        host.sparks += 1
        if host.able is not able:
            host.able = able
            self._log(f"{host.name} can work" if able else f"{host.name} can't work")
        self._measure(host, host.sparks)

    def _measure(self, host: Host, sparks: int) -> None:
        """Report to the node whether it can work, unless that has changed."""
        if host.node is None or sparks != host.sparks:
            return
        if self.now < host.paused_until:
            self._schedule(host.paused_until, self._measure, host, sparks)
        else:
            self._step(host, host.node, LoadMeasured(NodeLoad(able=host.able)))

    def _lose_spark(self, host: Host, seconds: float) -> None:
        """Have no Spark for a while, as a node that has just started."""
        able = not (seconds and self._in_trouble)
        self.set_able(host, able)
        if not able:
            self._schedule(self.now + seconds, self._regain_spark, host, host.sparks)

    def _regain_spark(self, host: Host, sparks: int) -> None:
        if host.node is not None and sparks == host.sparks:
            self.set_able(host, True)

    def _cut_off(self, name: str) -> None:
        if self._in_trouble:
            self._log(f"{name} is cut off")
            self.network.split({name})
            self._update_contact()

    def _sleep(self, host: Host) -> None:
        if host.node is None or host.paused_until > self.now:
            return
        seconds = self.network.lasts()
        self._log(f"{host.name} is paused for {seconds:.2f} s")
        host.paused_until = self.now + seconds
        self._schedule(host.paused_until, self._wake, host, host.incarnation)
        self._update_contact()

    def _wake(self, host: Host, incarnation: int) -> None:
        if host.node is None or incarnation != host.incarnation or host.paused_until != self.now:
            return
        self._step(host, host.node, Tick())
        self.checkers.check_awake(host.name, host.working)
        self._update_contact()

    # --- Troubles -------------------------------------------------------------------------------

    def _cause(self, trouble: Trouble) -> None:
        self.troubles += 1
        network, hosts = self.network, self.hosts
        leaders = [name for name, host in hosts.items() if _leads(host)]
        one = hosts[network.some(1, 1)[0]]
        central = hosts[self.dice.pick(leaders)] if leaders else one
        self._log(trouble.value)
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
                for name in network.some(2, len(hosts)):
                    self._crash(hosts[name])
            case Trouble.LOSE_DISK:
                self._lose_disk(one)
            case Trouble.PAUSE:
                self._sleep(self.dice.pick((one, central)))
            case Trouble.DRAIN:
                self._drain(central)
            case Trouble.SPARK:
                self._lose_spark(self.dice.pick((one, central)), network.lasts())
            case _:
                network.change_links(trouble, {central.name, one.name})
        self._update_contact()

    def _drain(self, leader: Host) -> None:
        """Always the same node, so that others are left. Who is asleep can't be asked."""
        if len(self.hosts) > 1 and leader.paused_until <= self.now:
            drained = self.dice.between(0.0, 1.0) < 0.5
            self._deliver(leader, DrainAsked(next(iter(self.hosts)), drained))

    def _lose_disk(self, host: Host) -> None:
        if self._can_lose(host):
            self._crash(host)
            host.disk = None

    def _can_lose(self, host: Host) -> bool:
        """Whether a majority of the voters would still have their disks."""
        newest = self.checkers.newest
        if newest is None:
            return False
        disks = {
            name: other.disk.disk
            for name, other in self.hosts.items()
            if other.disk is not None and other is not host
        }
        # A change of voters that is not committed yet may become so.
        stored = [other.disk.state for other in self.hosts.values() if other.disk is not None]
        return all(
            len(disks.items() & state.voters.items()) >= state.majority
            for state in (newest, *stored)
            if state.version >= newest.version
        )

    def _update_contact(self) -> None:
        """Check whether a majority is in touch, after nodes or links have changed."""
        newest = self.checkers.newest
        voters = len(newest.voters if newest is not None else self.hosts)
        # The leader may already have removed one voter.
        majority = (voters - 1) // 2 + 1
        running = [
            name
            for name, host in self.hosts.items()
            if host.node is not None and host.paused_until <= self.now
        ]
        self._silences += 1
        if self.network.in_touch(running) >= majority:
            self._silent_since = None
            return
        self._silent_since = self.now
        self._schedule(self.now + self._longest + 1e-3, self._check_silence, self._silences)

    @property
    def _longest(self) -> float:
        """The keep-alive time on the slowest clock."""
        return self._timing.keep_alive_seconds / (1 - self._timing.drift)

    def _check_silence(self, silence: int) -> None:
        if silence != self._silences or self._silent_since is None:
            return
        silent = self.now - self._silent_since
        if silent > self._longest:
            awake = (host for host in self.hosts.values() if host.paused_until <= self.now)
            working = {host.name: host.working for host in awake}
            self.checkers.check_without_quorum(working, silent)

    def _log(self, text: str) -> None:
        if self._listener is not None:
            self._listener(self.now, text)


def _leads(host: Host) -> bool:
    return host.node is not None and host.node.role is Role.LEADER


def _is_vote(order: Order) -> bool:
    if type(order) is not Send or type(order.message) is not Vote:
        return False
    return order.message.granted and not order.message.pre_vote
