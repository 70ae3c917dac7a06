"""How does the engine use a policy?

The engine adds every task and calls `next` when a thread is free. The answer is a turn: the task
and the end of the turn (000 Table 1). A turn ends when the input is exhausted, after a time slot,
or after one step. A policy knows only the numbers of threads, and never waits.
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
    """Chooses the next task. A policy that needs only the waiting tasks overrides only `pick`."""

    def __init__(self) -> None:
        self.tasks: list[FlowTask] = []

    def admit(self, request: Request, idle: Sequence[int]) -> None:  # noqa: B027  an optional hook
        """Note that a flow begins. `idle` is the number of sleeping threads of each node."""

    def retire(self, request: Request) -> None:
        """Forget a flow that has ended."""
        self.tasks = [task for task in self.tasks if task.request is not request]

    def add(self, task: FlowTask) -> None:
        """Add a new task."""
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
        """The best of the waiting tasks; `tasks` is never empty."""

    def left(self, turn: Turn, thread: int) -> None:  # noqa: B027  an optional hook
        """Note that the thread has ended its turn."""

    def takeable_tasks(self, node: int) -> int:
        """The number of the node's threads for which `next` would find a task now."""
        return len(self.tasks)

    def balance(self, idle: Sequence[int]) -> None:  # noqa: B027  an optional hook
        """Move work to nodes without work. Called every 100 ms while a thread sleeps."""
