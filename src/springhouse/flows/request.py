"""How does one running flow advance?

A request (002's word) is a flow with its items and queues. It answers three questions, each under
its owner's lock: which items have work now, which message an item takes next, and which items have
work after a step.

A flow always ends, even with the smallest queues. Proof: take the last item, in the order of the
flow, that has a message or an output. The queues of all its consumers are empty, so it has room,
and an operator accepts any pack. It can only be stopped by an input that should wait for another
input (`FlowNode.waits`). If no other item can run, `_relieve` lets such an input go on. It is the
MsgDummyResume of 000 (Table 2).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from springhouse.flows.flow_graph import FlowGraph, FlowOperator, NodeKind
from springhouse.flows.item import RESUME, Item, ItemEdge, Message, StepResult
from springhouse.flows.monitor import FlowMeasurements, Monitor
from springhouse.flows.pack_queue import PackQueue
from springhouse.flows.policy_choice import ExecutionPlan
from springhouse.flows.states import OperatorState, StateEvent, makes_a_task, next_state
from springhouse.units import Instant


class TaskUrgency(Enum):
    """002 section 3.1: a task for a new pack finds the pack in the cache. Other tasks may wait."""

    IMMEDIATE = "immediate"
    DEFERRED = "deferred"


class FlowTask(NamedTuple):
    """An item that has work. `thread` made the task (None: the flow just began)."""

    request: "Request"
    item: Item
    urgency: TaskUrgency
    thread: int | None


class Request:
    """One running flow. `operators` has an operator for every node of `graph` that runs.

    The graph has its readers and writers already. With a `plan`, its strata run one after the
    other. Edges between subflows are staged: their queues have no limit, because a consumer reads
    them only when they are complete.
    """

    def __init__(
        self,
        graph: FlowGraph,
        operators: Mapping[str, FlowOperator],
        *,
        now: Instant,
        limit: int,
        plan: ExecutionPlan | None = None,
        monitor: Monitor | None = None,
    ) -> None:
        self.graph = graph
        self.plan = plan
        self.monitor = monitor or Monitor(now)
        self.failure: BaseException | None = None
        self.failed_in: str | None = None
        self.waiting_tasks = 0
        self.running = 0
        self.unfinished = 0
        self._emit: Callable[[FlowTask], None] = lambda task: None
        strata = plan.stratum if plan else {}
        names = [n for n in graph.order if graph.nodes[n].kind is not NodeKind.RECORDSET]
        self.items = {
            name: Item(index, graph.nodes[name], operators[name], strata.get(name, 0))
            for index, name in enumerate(names)
        }
        self._connect(limit)
        self._left = Counter(item.stratum for item in self.items.values())
        self._open = min(self._left, default=0)

    def _connect(self, limit: int) -> None:
        subflow = self.plan.subflow if self.plan else {}
        for name, item in self.items.items():
            feeding = _feeding(self.graph, name)
            for port, (producer, leaves) in enumerate(feeding):
                staged = subflow.get(producer) != subflow.get(name)
                queue = PackQueue(None if staged else limit)
                item.inbox.append(queue)
                item.producers.append(self.items[producer])
                self.items[producer].outgoing[leaves].append(ItemEdge(queue, item, port))
            if not feeding:
                # A reader of a source can begin at once: no writer has to end before.
                begun = PackQueue(1)
                begun.closed = True
                item.inbox.append(begun)
                item.producers.append(None)
        self.unfinished = len(self.items)

    @property
    def is_over(self) -> bool:
        """Whether no item of it runs or will run."""
        if self.failure is not None:
            return self.running == 0
        return self.unfinished == 0

    def measured(self, now: Instant) -> FlowMeasurements:
        """The time and memory that the flow used so far."""
        for item in self.items.values():
            item.statistics.most_waiting = max((queue.most for queue in item.inbox), default=0)
        return self.monitor.measured(
            now, {name: item.statistics for name, item in self.items.items()}
        )

    def start(self, emit: Callable[[FlowTask], None]) -> None:
        """Schedule the items that can begin. The request passes every task to `emit`, later too."""
        self._emit = emit
        for item in self.items.values():
            self._schedule(item, TaskUrgency.DEFERRED, None)

    def begin(self, item: Item, now: Instant) -> None:
        """Note that a thread took a task and its item runs."""
        self.waiting_tasks -= 1
        self.running += 1
        item.state = next_state(item.state, StateEvent.BEGAN)
        item.statistics.turns += 1
        self.monitor.record_turn(now, item.name)

    def message(self, item: Item, thread: int, now: Instant) -> Message | None:
        """The next message of a running item; None if its turn is over.

        A turn is over when the item has no more input, or a consumer has no more room.
        """
        self._send(item, thread, now)
        if self.failure is not None or item.unsent or item.finished or not item.has_room():
            return None
        if item.rest is not None:
            return RESUME
        port = item.open_port()
        if port is None:
            return None
        item.forced = False
        queue = item.inbox[port]
        was_full = not queue.has_room
        taken = queue.take()
        if taken is None:
            item.ended.add(port)
            return Message(port, None)
        pack, size = taken
        item.statistics.rows_in += pack.num_rows
        item.statistics.packs_in += 1
        self.monitor.count_packs(now, -1, -size)
        producer = item.producers[port]
        if was_full and producer is not None:
            self._schedule(producer, TaskUrgency.DEFERRED, thread)
        return Message(port, pack)

    def record_step(self, item: Item, did: StepResult, seconds: float) -> None:
        """Record the result of an item's step, and its time."""
        item.statistics.seconds += seconds
        item.rest = did.rest
        item.unsent.extend(did.outputs)
        if did.failure is not None and self.failure is None:
            self.failure, self.failed_in = did.failure, item.name

    def finish_turn(self, item: Item, thread: int, now: Instant) -> None:
        """Note that the thread ends its turn on the item."""
        self._send(item, thread, now)
        self.running -= 1
        if item.is_done and not item.finished and self.failure is None:
            self._finish(item, thread)
        immediate = item.state is OperatorState.RUNNING_AND_SCHEDULED and item.marked_immediate
        if item.state is OperatorState.RUNNING and self._may_run(item):
            item.state = next_state(item.state, StateEvent.SCHEDULED)
        before, item.state = item.state, next_state(item.state, StateEvent.FINISHED)
        if makes_a_task(before, item.state):
            self._give(item, TaskUrgency.IMMEDIATE if immediate else TaskUrgency.DEFERRED, thread)
        if self.waiting_tasks == 0 and self.running == 0 and not self.is_over:
            self._relieve(thread)

    def _send(self, item: Item, thread: int, now: Instant) -> None:
        while item.unsent and item.can_send():
            port, pack, size = item.unsent.popleft()
            item.statistics.rows_out += pack.num_rows
            item.statistics.packs_out += 1
            for queue, consumer, _ in item.outgoing[port]:
                queue.put(pack, size)
                self.monitor.count_packs(now, 1, size)
                self._schedule(consumer, TaskUrgency.IMMEDIATE, thread)

    def _finish(self, item: Item, thread: int) -> None:
        item.finished = True
        self.unfinished -= 1
        for ways in item.outgoing:
            for way in ways:
                way.queue.closed = True
                self._schedule(way.consumer, TaskUrgency.DEFERRED, thread)
        self._left[item.stratum] -= 1
        if self._left[self._open] == 0:
            del self._left[self._open]
            self._open = min(self._left, default=self._open)
            for opened in self.items.values():
                if opened.stratum == self._open:
                    self._schedule(opened, TaskUrgency.DEFERRED, thread)

    def _may_run(self, item: Item) -> bool:
        return self.failure is None and item.stratum <= self._open and item.can_run()

    def _schedule(self, item: Item, urgency: TaskUrgency, thread: int | None) -> None:
        if item.state is OperatorState.SCHEDULED or not self._may_run(item):
            return
        before, item.state = item.state, next_state(item.state, StateEvent.SCHEDULED)
        item.marked_immediate = urgency is TaskUrgency.IMMEDIATE
        if makes_a_task(before, item.state):
            self._give(item, urgency, thread)

    def _give(self, item: Item, urgency: TaskUrgency, thread: int | None) -> None:
        self.waiting_tasks += 1
        self._emit(FlowTask(self, item, urgency, thread))

    def _relieve(self, thread: int) -> None:
        """Let the last item with a waiting input go on, because no other item can run."""
        for item in reversed(self.items.values()):
            item.forced = True
            self._schedule(item, TaskUrgency.DEFERRED, thread)
            if item.state is OperatorState.SCHEDULED:
                return
            item.forced = False
        raise AssertionError("a flow that is not over has something to do")


def _feeding(graph: FlowGraph, name: str) -> list[tuple[str, int]]:
    """The producer and its port for each input of a node that runs.

    The writer of a recordset feeds the reader, which gets only the end of the writer's data.
    """
    if graph.nodes[name].kind is NodeKind.READER:
        (recordset,) = graph.producers(name)
        return [(edge.producer, edge.leaves) for edge in graph.incoming[recordset]]
    entering = sorted(graph.incoming[name], key=lambda edge: edge.enters)
    return [(edge.producer, edge.leaves) for edge in entering]
