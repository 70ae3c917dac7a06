"""How is an operator represented in a running flow? As an execution item (000 section 6.1).

An item has one queue per input and knows the queues of its consumers. It holds the outputs that it
could not pass on yet, and is in one of four states. Only `perform` runs with no lock held: the
operator works on one message, and the item takes at most one output from it. So the item can be
stalled between any two outputs and resumed later.
"""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from springhouse.flows.flow_graph import FlowNode, FlowOperator, Output
from springhouse.flows.monitor import ActivityStatistics
from springhouse.flows.pack_queue import PackQueue
from springhouse.flows.row_pack import weigher_for
from springhouse.flows.states import OperatorState


class Message(NamedTuple):
    """The work of one step: a pack, the end of a port (no pack), or (port -1) the last message."""

    port: int
    pack: pa.RecordBatch | None


RESUME = Message(-1, None)
"""Continue with the outputs of the last message."""


class SizedPack(NamedTuple):
    """An output with its size in bytes, which is computed with no lock held."""

    port: int
    pack: pa.RecordBatch
    size: int


class StepResult(NamedTuple):
    """The result of one step: outputs and an iterator for more outputs (`rest`), or a failure."""

    outputs: tuple[SizedPack, ...] = ()
    rest: Iterator[Output] | None = None
    failure: BaseException | None = None


class ItemEdge(NamedTuple):
    """One edge out of an item: its queue, the consumer, and the consumer's port."""

    queue: PackQueue
    consumer: "Item"
    enters: int


class Item:
    """An operator in a running flow."""

    def __init__(
        self, index: int, node: FlowNode, operator: FlowOperator, stratum: int = 0
    ) -> None:
        self.index = index
        self.name = node.name
        self.node = node
        self.operator = operator
        self.stratum = stratum
        self.inbox: list[PackQueue] = []
        self.producers: list[Item | None] = []
        self.outgoing: list[list[ItemEdge]] = [[] for _ in node.outputs]
        self.state = OperatorState.NOTHING
        self.marked_immediate = False
        self.ended: set[int] = set()
        self.unsent: deque[SizedPack] = deque()
        self.rest: Iterator[Output] | None = None
        self.forced = False
        self.finished = False
        self.statistics = ActivityStatistics()
        self._scales = [weigher_for(schema) for schema in node.outputs]

    @property
    def waiting_rows(self) -> int:
        """queue(v): the number of rows that wait for the item, over all inputs."""
        return sum(queue.rows for queue in self.inbox)

    @property
    def memory_benefit(self) -> float:
        """MemB(p) = (In(p) - Out(p)) / ExecTime(p) * Queue(p) (000 section 4.3)."""
        return self.statistics.consumption_rate * self.waiting_rows

    @property
    def is_done(self) -> bool:
        """Whether all its inputs have ended and all its outputs are sent."""
        return not self.unsent and self.rest is None and len(self.ended) == len(self.inbox)

    def has_room(self) -> bool:
        """Whether every consumer can take one more pack."""
        for ways in self.outgoing:
            for way in ways:
                if not way.queue.has_room:
                    return False
        return True

    def can_send(self) -> bool:
        """Whether the first unsent pack fits into its consumers' queues now."""
        return all(way.queue.has_room for way in self.outgoing[self.unsent[0].port])

    def must_wait(self, port: int) -> bool:
        """Whether this input should wait for another one to end."""
        before = self.node.waits.get(port)
        return before is not None and before not in self.ended

    def open_port(self) -> int | None:
        """The input with most waiting rows, or an input whose end waits; None if all are empty."""
        best, most = None, -1
        for port, queue in enumerate(self.inbox):
            if port in self.ended or not queue.has_message:
                continue
            if self.must_wait(port) and not self.forced:
                continue
            if queue.rows > most:
                best, most = port, queue.rows
        return best

    def can_run(self) -> bool:
        """Whether the item has work, and its consumers have room for the output."""
        if self.finished:
            return False
        if self.unsent:
            return self.can_send()
        if self.rest is None and self.open_port() is None:
            return False
        return self.has_room()

    def perform(self, message: Message) -> StepResult:
        """Let the operator work; called with no lock held, by one thread at a time."""
        try:
            if message is RESUME:
                assert self.rest is not None
                rest = self.rest
            else:
                if message.pack is None:
                    outputs = self.operator.end(message.port)
                else:
                    outputs = self.operator.take(message.port, message.pack)
                if isinstance(outputs, tuple | list):
                    return StepResult(tuple(self._weigh(*output_) for output_ in outputs))
                rest = iter(outputs)
            output = next(rest, None)
            if output is None:
                return StepResult()
            return StepResult((self._weigh(*output),), rest)
        except BaseException as failure:  # noqa: BLE001  every error of an activity fails its flow
            # SystemExit, too: it would end only this thread, and the flow would never end.
            return StepResult(failure=failure)

    def _weigh(self, port: int, pack: pa.RecordBatch) -> SizedPack:
        return SizedPack(port, pack, self._scales[port](pack))
