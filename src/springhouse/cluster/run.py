"""The door of the room: a node with a thread, a disk, a clock and a network.

One thread owns the `Node`. What happens (messages, time, what the hands tell) waits in a queue; for
each event the thread asks the node what to do and does it, in that order: first the disk, then all
else. Nothing here decides anything.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer
from pathlib import Path
from random import SystemRandom
from typing import Protocol, TypeVar

from springhouse.cluster import wire
from springhouse.cluster.cluster_report import ClusterReport, NodeReport, describe
from springhouse.cluster.keeping import StateFile
from springhouse.cluster.members import Members
from springhouse.cluster.messages import (
    AppendEntries,
    AskForVote,
    Assign,
    DrainAsked,
    Event,
    Message,
    Order,
    Persist,
    Received,
    Release,
    Send,
    Tick,
)
from springhouse.cluster.network import LIMITS, LOG, MessageLimits, Network
from springhouse.cluster.raft_node import Node, Role
from springhouse.cluster.timing import Timing
from springhouse.errors import SpringhouseError
from springhouse.units import Dice, Instant

_MOST_WAITING = 10_000
_ANSWER_SECONDS = 2.0
_Found = TypeVar("_Found")
Asked = Callable[[Node, Instant], None]


class Worker(Protocol):
    """Whoever does the work; called by the node's thread, and must not wait."""

    def take(self, units: tuple[tuple[str, int], ...]) -> None:
        """Begin with these units, each from its offset."""
        ...

    def let_go(self, units: tuple[str, ...], *, at_once: bool) -> None:
        """Begin nothing more in these; tell `Released` when what is under way has ended."""
        ...


def steady_clock() -> Instant:
    """A clock that never goes back and runs on while the machine sleeps, where there is one."""
    return Instant(time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)))


class Agent:
    """One node of a cluster, at work from `start` to `stop`."""

    def __init__(
        self,
        members: Members,
        timing: Timing,
        folder: Path,
        hands: Worker,
        *,
        limits: MessageLimits = LIMITS,
        clock: Callable[[], Instant] = steady_clock,
    ) -> None:
        self.members = members
        self.problem: BaseException | None = None
        self._hands = hands
        self._clock = clock
        self._keeping = StateFile(folder, members.cluster, members.name)
        try:
            memory = self._keeping.load()
            self._network = Network(members, self, clock, limits)
        except BaseException:
            self._keeping.close()
            raise
        dice = Dice(SystemRandom().getrandbits(64))
        nodes = (members.name, *members.peers)
        self._node = Node(members.name, nodes, timing, dice, clock(), memory)
        self._told = (self._node.role, self._node.leader, False)
        self._waiting: queue.Queue[Event | Asked | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="cluster", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._network.start()
        self._thread.start()

    def stop(self) -> None:
        """End, as others will see by our silence; nothing is processed afterwards."""
        if self._thread.is_alive():
            self._waiting.put(None)
            self._thread.join(timeout=10.0)
        self._network.stop()
        self._keeping.close()

    def tell(self, event: Event) -> None:
        """Something happened on this node."""
        self._waiting.put(event)

    @property
    def may_process(self) -> bool:
        """Whether a quorum was heard of within the keep-alive time, as of this very moment."""
        return self.problem is None and self._node.may_process(self._clock())

    @property
    def leads(self) -> bool:
        """Whether this node is the leader."""
        return self._node.role is Role.LEADER

    def report(self) -> ClusterReport:
        """How all nodes are."""
        return self._network.report()

    # --- What others ask ------------------------------------------------------------------------

    def received(self, sender: str, message: Message) -> None:
        """A message of a peer came."""
        # What others send is bounded; what the node's own thread puts here must never wait for it.
        if self._waiting.qsize() >= _MOST_WAITING:
            raise SpringhouseError("this node can't keep up with what it is sent")
        self._waiting.put(Received(sender, message))

    def describe(self) -> NodeReport:
        """How this node is."""
        return self._ask(describe)

    def drain(self, node: str, drained: bool) -> str:
        """Have a node drained, or not any more, by the leader, whoever that is."""
        if node != self.members.name and node not in self.members.peers:
            nodes = ", ".join(sorted((self.members.name, *self.members.peers)))
            raise SpringhouseError(f'"{node}" is not a node of this cluster: {nodes}')
        leader = self._ask(lambda own, now: own.leader if own.may_process(now) else None)
        if leader is None:
            raise SpringhouseError("there is no leader with a quorum just now; try again later")
        if leader == self.members.name:
            self.tell(DrainAsked(node, drained))
            return leader
        asked = wire.drain(self.members.cluster, node, drained)
        return wire.to_drain_taken(self._network.lines[leader].call("AskToDrain", asked))

    def _ask(self, look: Callable[[Node, Instant], _Found]) -> _Found:
        """What the node's own thread sees."""
        found: Future[_Found] = Future()

        def answer(node: Node, now: Instant) -> None:
            found.set_result(look(node, now))

        self._waiting.put(answer)
        try:
            return found.result(timeout=_ANSWER_SECONDS)
        except NoAnswer:
            raise SpringhouseError("this node is too busy to answer, or ends") from None

    # --- The thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while True:
                pause = max(self._node.wake_at - self._clock(), 0.0)
                try:
                    found = self._waiting.get(timeout=pause)
                except queue.Empty:
                    found = Tick()
                if found is None:
                    break
                if callable(found):
                    found(self._node, self._clock())
                    continue
                self._step(found)
                if self._clock() >= self._node.wake_at:
                    self._step(Tick())
        except BaseException as problem:  # noqa: BLE001  a full disk, or a bug: stop working first
            self.problem = problem
            LOG.exception("node %s ends: %s", self.members.name, problem)
        units = (*self._node.processing.taken, *self._node.processing.leaving)
        self._hands.let_go(units, at_once=True)

    def _step(self, event: Event) -> None:
        if isinstance(event, Received):
            self._tell_outdated(event)
        for order in self._node.step(event, self._clock()):
            self._follow(order)
        self._tell_changes()

    def _follow(self, order: Order) -> None:
        match order:
            case Persist(memory):
                self._keeping.save(memory)
            case Send(to, message):
                self._network.send(to, message)
            case Assign(units):
                self._hands.take(units)
            case Release(units, at_once):
                self._hands.let_go(units, at_once=at_once)

    # --- The log --------------------------------------------------------------------------------

    def _tell_outdated(self, event: Received) -> None:
        message, term = event.message, self._node.term
        if isinstance(message, AppendEntries | AskForVote) and message.term < term:
            LOG.info(
                "%s of %s is of term %d, and this node is in term %d: refused",
                type(message).__name__, event.sender, message.term, term,
            )  # fmt: skip

    def _tell_changes(self) -> None:
        node = self._node
        now = (node.role, node.leader, node.may_process(self._clock()))
        if now == self._told:
            return
        before, self._told = self._told, now
        if now[:2] != before[:2] and LOG.isEnabledFor(logging.INFO):
            led = f", led by {node.leader}" if node.leader not in (None, node.name) else ""
            LOG.info("%s is %s in term %d%s", node.name, node.role.value, node.term, led)
        if now[2] != before[2]:
            if now[2]:
                LOG.info("%s: there is a quorum: work goes on", node.name)
            else:
                LOG.warning("%s: no quorum: all work stops", node.name)
