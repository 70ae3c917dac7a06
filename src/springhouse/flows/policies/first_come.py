"""Which task came first? The simple scheduler that 002 (section 6) compares its own scheduler with.

All tasks are alike. Each thread has one list and works on it first come, first served. When the
list is empty, the thread takes tasks from the other threads in turn. This policy needs one
semaphore for all threads and row packs of a fixed size. `run.Pool` chooses both when it starts the
threads.
"""

from collections import deque
from collections.abc import Callable, Sequence

from springhouse.flows.policies.task_policy import TaskPolicy, Turn
from springhouse.flows.request import FlowTask, Request


class FirstCome(TaskPolicy):
    """The oldest task of this thread, else the oldest task of the next thread that has one.

    The policy calls `announce` for every task, so that a semaphore counts the tasks.
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
