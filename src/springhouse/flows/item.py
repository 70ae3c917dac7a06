"""What is an operator in a running flow? The execution item (000 section 6.1).

It has a queue per input, knows the queues of its consumers, holds what it could not pass on yet,
and is in one of four states. `perform` is the only thing that is done with no lock held: it lets
the operator work on one message and pulls at most one output, so between any two outputs the item
can be stalled and later resumed.
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
    """What an item works on: a pack, the end of a port (no pack), or (port -1) its last message."""

    port: int
    pack: pa.RecordBatch | None


RESUME = Message(-1, None)
"""Go on with what the last message gave."""


class SizedPack(NamedTuple):
    """An output with its bytes, which are counted with no lock held."""

    port: int
    pack: pa.RecordBatch
    size: int


class StepResult(NamedTuple):
    """What came of one step: outputs, where more may come from, or a failure."""

    outputs: tuple[SizedPack, ...] = ()
    rest: Iterator[Output] | None = None
    failure: BaseException | None = None


class ItemEdge(NamedTuple):
    """One edge out of an item: the queue on it and who takes from there."""

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
        """queue(v): how many rows wait for it, over all inputs."""
        return sum(queue.rows for queue in self.inbox)

    @property
    def memory_benefit(self) -> float:
        """MemB(p) = (In(p) - Out(p)) / ExecTime(p) * Queue(p) (000 section 4.3)."""
        return self.statistics.consumption_rate * self.waiting_rows

    @property
    def is_done(self) -> bool:
        """Whether all its inputs ended and all that it made is on its way."""
        return not self.unsent and self.rest is None and len(self.ended) == len(self.inbox)

    def has_room(self) -> bool:
        """Whether every consumer can take one more pack."""
        for ways in self.outgoing:
            for way in ways:
                if not way.queue.has_room:
                    return False
        return True

    def can_send(self) -> bool:
        """Whether the first pack that it could not pass on yet can go now."""
        return all(way.queue.has_room for way in self.outgoing[self.unsent[0].port])

    def must_wait(self, port: int) -> bool:
        """Whether this input should wait for another one to end."""
        before = self.node.waits.get(port)
        return before is not None and before not in self.ended

    def open_port(self) -> int | None:
        """The input to take from: the one with most rows, or one whose end was not taken yet."""
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
        """Whether there is something to do and room for what comes of it."""
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
        except BaseException as failure:  # noqa: BLE001  whatever an activity raises fails its flow
            # SystemExit too: it would end this thread only, and its flow would never end.
            return StepResult(failure=failure)

    def _weigh(self, port: int, pack: pa.RecordBatch) -> SizedPack:
        return SizedPack(port, pack, self._scales[port](pack))
