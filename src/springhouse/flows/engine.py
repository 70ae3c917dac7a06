"""What does a thread do next, and which threads must be awake?

The engine connects running flows, a policy and numbered threads. `advance` takes the result of a
thread's last step and returns its next step. Locks, clocks and semaphores belong to `run.py`.

A thread that finds no task sleeps (002 section 5.2). The engine wakes as many threads of a node as
would find a task there. While all threads are awake it counts nothing and wakes no thread, so a
fully loaded engine makes no call to the system.
"""

from collections.abc import Sequence
from typing import NamedTuple

from springhouse.flows.item import Item, Message, StepResult
from springhouse.flows.policies.task_policy import TaskPolicy, Turn
from springhouse.flows.request import Request
from springhouse.units import Instant


class EngineStep(NamedTuple):
    """One step of a thread, with no lock held: `item.perform(message)`."""

    item: Item
    message: Message


class Advice(NamedTuple):
    """The engine's answer: the next step (None: sleep), threads to wake, and ended flows."""

    step: EngineStep | None = None
    wake: tuple[int, ...] = ()
    over: tuple[Request, ...] = ()


class Engine:
    """Running flows on numbered threads; `nodes` are the threads of each node."""

    def __init__(self, policy: TaskPolicy, nodes: Sequence[Sequence[int]]) -> None:
        self.policy = policy
        self._nodes = [tuple(threads) for threads in nodes]
        self._turns: dict[int, tuple[Turn, Instant, int]] = {}
        self._asleep: list[list[int]] = [[] for _ in self._nodes]
        self._sleeping: set[int] = set()
        self._node = {thread: n for n, threads in enumerate(self._nodes) for thread in threads}
        self._woken = [0] * len(self._nodes)
        self._requests: list[Request] = []

    @property
    def idle(self) -> tuple[int, ...]:
        """How many threads of each node sleep."""
        return tuple(len(asleep) for asleep in self._asleep)

    def submit(self, request: Request) -> Advice:
        """Begin a flow."""
        self._requests.append(request)
        self.policy.admit(request, self.idle)
        request.start(self.policy.add)
        return Advice(wake=self._wakes())

    def note_awake(self, thread: int) -> None:
        """Note that a thread is awake again and will call `advance`."""
        if thread in self._sleeping:  # it woke by itself
            self._sleeping.discard(thread)
            self._asleep[self._node[thread]].remove(thread)
        else:
            self._woken[self._node[thread]] -= 1

    def advance(self, thread: int, did: StepResult | None, seconds: float, now: Instant) -> Advice:
        """The thread's next step. `did` is the result of its last step (None: it had no step)."""
        over: tuple[Request, ...] = ()
        if did is not None:
            step, over = self._go_on(thread, did, seconds, now)
            if step is not None:
                return Advice(step, self._wakes())
        step, more_over = self._begin_turn(thread, now)
        if step is None:
            self._asleep[self._node[thread]].append(thread)
            self._sleeping.add(thread)
        return Advice(step, self._wakes(), over + more_over)

    def ask(self, thread: int, now: Instant) -> Advice:
        """The first step of a new turn: half of `advance`, for a caller that manages sleep."""
        step, over = self._begin_turn(thread, now)
        return Advice(step, over=over)

    def after(self, thread: int, did: StepResult, seconds: float, now: Instant) -> Advice:
        """The next step of the same turn (None: it is over). The other half of `advance`."""
        step, over = self._go_on(thread, did, seconds, now)
        return Advice(step, over=over)

    def _go_on(
        self, thread: int, did: StepResult, seconds: float, now: Instant
    ) -> tuple[EngineStep | None, tuple[Request, ...]]:
        turn, began, steps = self._turns[thread]
        request, item = turn.task.request, turn.task.item
        request.record_step(item, did, seconds)
        steps += 1
        if not _is_up(turn, steps, now - began):
            message = request.message(item, thread, now)
            if message is not None:
                self._turns[thread] = turn, began, steps
                return EngineStep(item, message), ()
        return None, self._end_turn(thread, turn, now)

    def balance(self) -> Advice:
        """Move work to nodes without work. Called while a thread sleeps."""
        self.policy.balance(self.idle)
        return Advice(wake=self._wakes())

    def _begin_turn(
        self, thread: int, now: Instant
    ) -> tuple[EngineStep | None, tuple[Request, ...]]:
        over: tuple[Request, ...] = ()
        while True:
            turn = self.policy.next(thread)
            if turn is None:
                return None, over
            request, item = turn.task.request, turn.task.item
            request.begin(item, now)
            message = request.message(item, thread, now)
            if message is not None:
                self._turns[thread] = turn, now, 0
                return EngineStep(item, message), over
            # The item only sent its waiting outputs, or another turn has done its work already.
            over += self._end_turn(thread, turn, now)

    def _end_turn(self, thread: int, turn: Turn, now: Instant) -> tuple[Request, ...]:
        self._turns.pop(thread, None)
        request = turn.task.request
        self.policy.left(turn, thread)
        request.finish_turn(turn.task.item, thread, now)
        if request.is_over and request in self._requests:
            self._requests.remove(request)
            self.policy.retire(request)
            return (request,)
        return ()

    def _wakes(self) -> tuple[int, ...]:
        if not self._sleeping:
            return ()
        wake: list[int] = []
        for node, asleep in enumerate(self._asleep):
            missing = self.policy.takeable_tasks(node) - self._woken[node] if asleep else 0
            for _ in range(min(missing, len(asleep))):
                thread = asleep.pop()
                self._sleeping.discard(thread)
                self._woken[node] += 1
                wake.append(thread)
        return tuple(wake)


def _is_up(turn: Turn, steps: int, seconds: float) -> bool:
    if turn.steps is not None and steps >= turn.steps:
        return True
    return turn.slot_seconds is not None and seconds >= turn.slot_seconds
