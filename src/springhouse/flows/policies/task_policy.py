"""What does the engine ask a policy?

The engine adds every task and calls `next` when a thread is free. The answer is a turn: the task,
and when to ask again (000 Table 1): when its input is exhausted, after a time slot, or after
one step. A policy knows nothing of threads but their numbers, and never waits.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from springhouse.flows.request import FlowTask, Request


class Turn(NamedTuple):
    """A task for a thread; it also ends when the input is exhausted or a consumer is full."""

    task: FlowTask
    slot_seconds: float | None = None
    steps: int | None = None


class TaskPolicy(ABC):
    """Which task is next? Those that need no more than the tasks that wait override only `pick`."""

    def __init__(self) -> None:
        self.tasks: list[FlowTask] = []

    def admit(self, request: Request, idle: Sequence[int]) -> None:  # noqa: B027  most need not know
        """A flow begins; `idle` is the number of sleeping threads of each node."""

    def retire(self, request: Request) -> None:
        """A flow is over."""
        self.tasks = [task for task in self.tasks if task.request is not request]

    def add(self, task: FlowTask) -> None:
        """There is a new task."""
        self.tasks.append(task)

    def next(self, thread: int) -> Turn | None:
        """The turn that this thread runs now; None if there is no task for it."""
        if not self.tasks:
            return None
        turn = self.pick(self.tasks)
        self.tasks.remove(turn.task)
        return turn

    @abstractmethod
    def pick(self, tasks: Sequence[FlowTask]) -> Turn:
        """The best of the tasks that wait; there is at least one."""

    def left(self, turn: Turn, thread: int) -> None:  # noqa: B027  most need not know
        """The turn is over."""

    def takeable_tasks(self, node: int) -> int:
        """How many threads of the node would find a task if they asked now."""
        return len(self.tasks)

    def balance(self, idle: Sequence[int]) -> None:  # noqa: B027  only nodes can be out of balance
        """Called every 100 ms while a thread sleeps: move work to nodes that have none."""
