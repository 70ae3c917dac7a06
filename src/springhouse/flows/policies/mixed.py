"""How does each subflow run under the policy that suits it (000 sections 4.4 and 5.3)?

The request separates the strata: a later stratum has no tasks before the earlier strata are done.
Here every subflow has its own policy and runs on one thread at a time. A thread stays with its
subflow while the subflow has work, and then goes to the next free subflow.
"""

from collections.abc import Callable, Mapping, Sequence

from springhouse.flows.policies.task_policy import TaskPolicy, Turn
from springhouse.flows.policy_choice import PolicyName
from springhouse.flows.request import FlowTask, Request

_Subflow = tuple[int, int]
"""The request (by identity) and the number of one of its subflows."""


class Mixed(TaskPolicy):
    """A policy per subflow. `makers` has a function that makes each kind of policy."""

    def __init__(self, makers: Mapping[PolicyName, Callable[[], TaskPolicy]]) -> None:
        super().__init__()
        self._makers = makers
        self._subflows: dict[_Subflow, TaskPolicy] = {}
        self._running: dict[_Subflow, int] = {}
        self._last: dict[int, _Subflow] = {}

    def admit(self, request: Request, idle: Sequence[int]) -> None:
        assert request.plan is not None, "the Mixed policy needs the plan that EIS made"
        for number, name in request.plan.policies.items():
            self._subflows[id(request), number] = self._makers[name]()

    def retire(self, request: Request) -> None:
        for subflow in [s for s in self._subflows if s[0] == id(request)]:
            del self._subflows[subflow]

    def add(self, task: FlowTask) -> None:
        self._subflows[_subflow(task)].add(task)

    def next(self, thread: int) -> Turn | None:
        mine = self._last.get(thread)
        free = [s for s in self._subflows if self._is_free(s)]
        if not free:
            return None
        chosen = mine if mine in free else free[0]
        assert chosen is not None
        turn = self._subflows[chosen].next(thread)
        assert turn is not None
        self._running[chosen] = thread
        self._last[thread] = chosen
        return turn

    def pick(self, tasks: Sequence[FlowTask]) -> Turn:
        raise AssertionError("the policies of the subflows pick")

    def left(self, turn: Turn, thread: int) -> None:
        self._running.pop(_subflow(turn.task), None)

    def takeable_tasks(self, node: int) -> int:
        return sum(self._is_free(subflow) for subflow in self._subflows)

    def _is_free(self, subflow: _Subflow) -> bool:
        return subflow not in self._running and self._subflows[subflow].takeable_tasks(0) > 0


def _subflow(task: FlowTask) -> _Subflow:
    assert task.request.plan is not None
    return id(task.request), task.request.plan.subflow[task.item.name]
