"""How does a node run with a thread, a disk, a clock and a network?

One thread owns the `Node`. Events (messages, time, reports of the worker) wait in a queue. For each
event the thread gets the node's orders and carries them out in their order: first the disk, then
the rest. This module decides nothing.
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
from springhouse.cluster.state_file import StateFile
from springhouse.cluster.timing import Timing
from springhouse.errors import SpringhouseError
from springhouse.units import Dice, Instant

_MOST_WAITING = 10_000
_ANSWER_SECONDS = 2.0
_Answer = TypeVar("_Answer")
Inspection = Callable[[Node, Instant], None]


class Worker(Protocol):
    """Does the work in the units. The node's thread calls it, so no method may wait."""

    def take(self, units: tuple[tuple[str, int], ...]) -> None:
        """Begin to work on these units, each from its offset."""
        ...

    def let_go(self, units: tuple[str, ...], *, at_once: bool) -> None:
        """Begin nothing more in these units; report `Released` when the running work has ended."""
        ...


def steady_clock() -> Instant:
    """A clock that never goes back, and that runs on while the machine sleeps, if it has one."""
    return Instant(time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)))


class Agent:
    """One node of a cluster, which runs from `start` to `stop`."""

    def __init__(
        self,
        members: Members,
        timing: Timing,
        folder: Path,
        worker: Worker,
        *,
        limits: MessageLimits = LIMITS,
        clock: Callable[[], Instant] = steady_clock,
    ) -> None:
        self.members = members
        self.problem: BaseException | None = None
        self._worker = worker
        self._clock = clock
        self._state_file = StateFile(folder, members.cluster, members.name)
        try:
            persistent_state = self._state_file.load()
            self._network = Network(members, self, clock, limits)
        except BaseException:
            self._state_file.close()
            raise
        dice = Dice(SystemRandom().getrandbits(64))
        nodes = (members.name, *members.peers)
        self._node = Node(members.name, nodes, timing, dice, clock(), persistent_state)
        self._logged = (self._node.role, self._node.leader, False)
        self._queue: queue.Queue[Event | Inspection | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="cluster", daemon=True)

    def start(self) -> None:
        """Start the network and the thread."""
        self._network.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop for good; the other nodes notice that this one is silent."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(timeout=10.0)
        self._network.stop()
        self._state_file.close()

    def notify(self, event: Event) -> None:
        """Put an event of this node into the queue."""
        self._queue.put(event)

    @property
    def may_process(self) -> bool:
        """Whether this node had a quorum within the keep-alive time, at this very moment."""
        return self.problem is None and self._node.may_process(self._clock())

    @property
    def leads(self) -> bool:
        """Whether this node is the leader."""
        return self._node.role is Role.LEADER

    def report(self) -> ClusterReport:
        """The report of the cluster."""
        return self._network.report()

    # --- Calls from other threads ---------------------------------------------------------------

    def received(self, sender: str, message: Message) -> None:
        """Put a message of a peer into the queue."""
        # Messages of peers are limited, so that they can't fill the memory. Other events are not:
        # the node's own thread puts some here, and would wait for itself.
        if self._queue.qsize() >= _MOST_WAITING:
            raise SpringhouseError("this node can't keep up with the messages that it gets")
        self._queue.put(Received(sender, message))

    def describe(self) -> NodeReport:
        """The report of this node."""
        return self._inspect(describe)

    def drain(self, node: str, drained: bool) -> str:
        """Have the leader drain a node, or not any more; return the leader's name."""
        if node != self.members.name and node not in self.members.peers:
            nodes = ", ".join(sorted((self.members.name, *self.members.peers)))
            raise SpringhouseError(f'"{node}" is not a node of this cluster; its nodes are {nodes}')
        leader = self._inspect(lambda own, now: own.leader if own.may_process(now) else None)
        if leader is None:
            raise SpringhouseError("no leader has a quorum now; try again later")
        if leader == self.members.name:
            self.notify(DrainAsked(node, drained))
            return leader
        request = wire.encode_drain(self.members.cluster, node, drained)
        return wire.decode_drain_taken(self._network.channels[leader].call("AskToDrain", request))

    def _inspect(self, look: Callable[[Node, Instant], _Answer]) -> _Answer:
        """The answer of a function that the node's own thread calls."""
        result: Future[_Answer] = Future()

        def answer(node: Node, now: Instant) -> None:
            result.set_result(look(node, now))

        self._queue.put(answer)
        try:
            return result.result(timeout=_ANSWER_SECONDS)
        except NoAnswer:
            raise SpringhouseError("this node is too busy to answer, or is stopping") from None

    # --- The thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while True:
                pause = max(self._node.wake_at - self._clock(), 0.0)
                try:
                    entry = self._queue.get(timeout=pause)
                except queue.Empty:
                    entry = Tick()
                if entry is None:
                    break
                if callable(entry):
                    entry(self._node, self._clock())
                    continue
                self._step(entry)
                if self._clock() >= self._node.wake_at:
                    self._step(Tick())
        except BaseException as problem:  # noqa: BLE001  a full disk, or a bug: the work must stop
            self.problem = problem
            LOG.exception("node %s stops after an error: %s", self.members.name, problem)
        units = (*self._node.processing.working, *self._node.processing.releasing)
        self._worker.let_go(units, at_once=True)

    def _step(self, event: Event) -> None:
        if isinstance(event, Received):
            self._log_outdated(event)
        for order in self._node.step(event, self._clock()):
            self._carry_out(order)
        self._log_changes()

    def _carry_out(self, order: Order) -> None:
        match order:
            case Persist(persistent_state):
                self._state_file.save(persistent_state)
            case Send(to, message):
                self._network.send(to, message)
            case Assign(units):
                self._worker.take(units)
            case Release(units, at_once):
                self._worker.let_go(units, at_once=at_once)

    # --- The log --------------------------------------------------------------------------------

    def _log_outdated(self, event: Received) -> None:
        message, term = event.message, self._node.term
        if isinstance(message, AppendEntries | AskForVote) and message.term < term:
            LOG.info(
                "refused %s of %s: it is of term %d, and this node is in term %d",
                type(message).__name__, event.sender, message.term, term,
            )  # fmt: skip

    def _log_changes(self) -> None:
        node = self._node
        now = (node.role, node.leader, node.may_process(self._clock()))
        if now == self._logged:
            return
        before, self._logged = self._logged, now
        if now[:2] != before[:2] and LOG.isEnabledFor(logging.INFO):
            led = f", led by {node.leader}" if node.leader not in (None, node.name) else ""
            LOG.info("%s is %s in term %d%s", node.name, node.role.value, node.term, led)
        if now[2] != before[2]:
            if now[2]:
                LOG.info("%s has a quorum: work goes on", node.name)
            else:
                LOG.warning("%s has no quorum: all work stops", node.name)
