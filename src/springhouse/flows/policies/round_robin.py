"""Whose turn is it? Each activity runs in turn (000 section 4.1).

The policy takes activities in the order of their numbers, again and again. An activity works until
its input is exhausted. No activity starves. The other policies are compared with this one.
"""

from collections.abc import Sequence

from springhouse.flows.policies.task_policy import TaskPolicy, Turn
from springhouse.flows.request import FlowTask


class RoundRobin(TaskPolicy):
    """The activity after the last one."""

    def __init__(self) -> None:
        super().__init__()
        self._last = -1

    def pick(self, tasks: Sequence[FlowTask]) -> Turn:
        last = self._last
        chosen = min(tasks, key=lambda t: (t.item.index <= last, t.item.index))
        self._last = chosen.item.index
        return Turn(chosen)
