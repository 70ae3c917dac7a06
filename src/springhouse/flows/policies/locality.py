"""Which task has its data in the cache? The scheduler of Bobox (002 section 5).

A new pack is in the cache of the thread that made it. So each thread has a list of immediate tasks,
each request has a list of deferred tasks, and each node has a list of the requests that it
evaluates. A free thread takes a task in this order:

1. its own newest immediate task;
2. the oldest deferred task of the request that it worked on last;
3. the oldest deferred task of the oldest request of its node;
4. the oldest immediate task of another thread of its node;
5. no task: the thread sleeps.

One node is responsible for each task and must be awake for it. For an immediate task it is the node
whose thread made the task. For deferred tasks it is each node that shares their request, in turn.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from springhouse.flows.policies.task_policy import TaskPolicy, Turn
from springhouse.flows.request import FlowTask, Request, TaskUrgency


@dataclass(eq=False)
class _Placed:
    """A request, the nodes that evaluate it, and its deferred tasks with the responsible nodes."""

    request: Request
    nodes: list[int]
    deferred: deque[tuple[FlowTask, int]] = field(default_factory=deque)
    turn: int = 0

    def responsible(self) -> int:
        node = self.nodes[self.turn % len(self.nodes)]
        self.turn += 1
        return node


class Locality(TaskPolicy):
    """Runs a task on the thread or node whose cache or memory has its data.

    `nodes` are the threads of each node. `free_memory` gives the free bytes of a node.
    """

    def __init__(
        self,
        nodes: Sequence[Sequence[int]],
        free_memory: Callable[[int], int] = lambda node: 0,
    ) -> None:
        super().__init__()
        self._threads = [tuple(threads) for threads in nodes]
        self._node = {thread: n for n, threads in enumerate(nodes) for thread in threads}
        self._free_memory = free_memory
        self._requests: list[list[_Placed]] = [[] for _ in nodes]
        self._placed: dict[int, _Placed] = {}
        self._immediate: dict[int, deque[FlowTask]] = {thread: deque() for thread in self._node}
        self._last: dict[int, _Placed] = {}
        self._responsible = [0] * len(self._threads)

    def admit(self, request: Request, idle: Sequence[int]) -> None:
        """Give the request to the node with most idle threads, fewest requests and most memory."""
        node = max(
            range(len(self._threads)),
            key=lambda n: (idle[n], -len(self._requests[n]), self._free_memory(n)),
        )
        placed = _Placed(request, [node])
        self._placed[id(request)] = placed
        self._requests[node].append(placed)

    def nodes_of(self, request: Request) -> tuple[int, ...]:
        """The nodes that evaluate a request."""
        return tuple(self._placed[id(request)].nodes)

    def retire(self, request: Request) -> None:
        placed = self._placed.pop(id(request))
        for _, node in placed.deferred:
            self._responsible[node] -= 1
        for node in placed.nodes:
            self._requests[node].remove(placed)
        for thread, tasks in self._immediate.items():
            remaining = deque(task for task in tasks if task.request is not request)
            self._responsible[self._node[thread]] -= len(tasks) - len(remaining)
            self._immediate[thread] = remaining
        self._last = {thread: last for thread, last in self._last.items() if last is not placed}

    def add(self, task: FlowTask) -> None:
        if task.urgency is TaskUrgency.IMMEDIATE and task.thread is not None:
            self._immediate[task.thread].append(task)
            self._responsible[self._node[task.thread]] += 1
            return
        placed = self._placed[id(task.request)]
        node = placed.responsible()
        placed.deferred.append((task, node))
        self._responsible[node] += 1

    def next(self, thread: int) -> Turn | None:
        task = self._choose(thread, self._node[thread])
        if task is None:
            return None
        self._last[thread] = self._placed[id(task.request)]
        return Turn(task, steps=1)

    def _choose(self, thread: int, node: int) -> FlowTask | None:
        mine = self._immediate[thread]
        if mine:
            self._responsible[node] -= 1
            return mine.pop()
        last = self._last.get(thread)
        if last is not None and last.deferred and node in last.nodes:
            return self._oldest(last)
        for placed in self._requests[node]:
            if placed.deferred:
                return self._oldest(placed)
        threads = self._threads[node]
        here = threads.index(thread)
        for other in (*threads[here + 1 :], *threads[:here]):
            if self._immediate[other]:
                self._responsible[node] -= 1
                return self._immediate[other].popleft()
        return None

    def _oldest(self, placed: _Placed) -> FlowTask:
        task, node = placed.deferred.popleft()
        self._responsible[node] -= 1
        return task

    def pick(self, tasks: Sequence[FlowTask]) -> Turn:
        raise AssertionError("locality does not look at all tasks")

    def takeable_tasks(self, node: int) -> int:
        return self._responsible[node]

    def balance(self, idle: Sequence[int]) -> None:
        """Move the newest request of a busy node to an idle node. Share the request if it is alone.

        002 section 5.2: the newest request uses the least memory. A busy node has waiting tasks.
        """
        loads = self._responsible
        lazy = [n for n in range(len(loads)) if idle[n] and not loads[n]]
        busy = [n for n in range(len(loads)) if not idle[n] and loads[n] > 0 and self._requests[n]]
        if not lazy or not busy:
            return
        source, target = max(busy, key=loads.__getitem__), max(lazy, key=lambda n: idle[n])
        newest = self._requests[source][-1]
        if target in newest.nodes:
            return
        newest.nodes.append(target)
        self._requests[target].append(newest)
        if len(self._requests[source]) > 1:
            newest.nodes.remove(source)
            self._requests[source].remove(newest)
        tasks = [task for task, _ in newest.deferred]
        for _, node in newest.deferred:
            self._responsible[node] -= 1
        newest.deferred.clear()
        for task in tasks:
            node = newest.responsible()
            newest.deferred.append((task, node))
            self._responsible[node] += 1
