"""Which activity frees most memory? Minimum Memory Prediction (000 section 4.3).

MemB(p) = (In(p) - Out(p)) / ExecTime(p) * Queue(p): how fast the activity has consumed rows so far,
times how many rows wait for it. If no activity frees memory (before the first measurement, or if
all make more rows than they take), the longest queue is next, as in Minimum Cost.

A turn lasts one time slot. The paper found 60 to 70 ms to be best, in an engine where a pack of 400
tuples takes milliseconds. Here a pack takes some ten microseconds, and a slot of that length would
fill any queue. The waiting rows are the rows made within a slot, so the memory depends on the
length of the slot (`bench/results/000/time_slot.md`).
"""

from collections.abc import Sequence

from springhouse.flows.policies.minimum_cost import longest_queue
from springhouse.flows.policies.task_policy import TaskPolicy, Turn
from springhouse.flows.request import FlowTask

SLOT_SECONDS = 0.0002


class MinimumMemory(TaskPolicy):
    """The activity with the largest memory benefit."""

    def __init__(self, slot_seconds: float = SLOT_SECONDS) -> None:
        super().__init__()
        self.slot_seconds = slot_seconds

    def pick(self, tasks: Sequence[FlowTask]) -> Turn:
        best = max(tasks, key=lambda task: task.item.memory_benefit)
        if best.item.memory_benefit <= 0:
            best = longest_queue(tasks)
        return Turn(best, slot_seconds=self.slot_seconds)
