"""Which activity has the longest queue? Minimum Cost Prediction (000 section 4.2).

The activity with the longest queue can work for the longest time without scheduling. It works until
its input is exhausted, with no time slot. Readers have no queue, so they run when no other activity
has input.
"""

from collections.abc import Sequence

from springhouse.flows.policies.task_policy import TaskPolicy, Turn
from springhouse.flows.request import FlowTask


def longest_queue(tasks: Sequence[FlowTask]) -> FlowTask:
    """The task with most waiting rows; the first task if several have the same number."""
    return max(tasks, key=lambda task: task.item.waiting_rows)


class MinimumCost(TaskPolicy):
    """The activity with the largest input."""

    def pick(self, tasks: Sequence[FlowTask]) -> Turn:
        return Turn(longest_queue(tasks))
