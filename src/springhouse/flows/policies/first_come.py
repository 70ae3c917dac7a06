"""The simple scheduler that 002 (section 6) measures its own against.

Tasks are all alike: each thread has one list, works on it first come, first served, and when it is
empty takes from the other threads in turn. It goes with one semaphore for all threads and with row
packs of a fixed size; both are chosen where threads are started (`run.Pool`).
"""

from collections import deque
from collections.abc import Callable, Sequence

from springhouse.flows.policies.task_policy import TaskPolicy, Turn
from springhouse.flows.request import FlowTask, Request


class FirstCome(TaskPolicy):
    """The oldest task of this thread, else of the next thread that has any.

    `announce` is called for every task: its semaphore counts them.
    """

    def __init__(self, threads: int, announce: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self._announce = announce
        self._lists: list[deque[FlowTask]] = [deque() for _ in range(threads)]
        self._next_thread = 0

    def add(self, task: FlowTask) -> None:
        thread = task.thread
        if thread is None:
            thread, self._next_thread = self._next_thread, self._next_thread + 1
        self._lists[thread % len(self._lists)].append(task)
        self._announce()

    def next(self, thread: int) -> Turn | None:
        for step in range(len(self._lists)):
            waiting = self._lists[(thread + step) % len(self._lists)]
            if waiting:
                return Turn(waiting.popleft(), steps=1)
        return None

    def pick(self, tasks: Sequence[FlowTask]) -> Turn:
        raise AssertionError("first come, first served: there is nothing to pick")

    def retire(self, request: Request) -> None:
        self._lists = [deque(t for t in w if t.request is not request) for w in self._lists]

    def takeable_tasks(self, node: int) -> int:
        return sum(map(len, self._lists))
