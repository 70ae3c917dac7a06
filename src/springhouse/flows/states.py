"""What is an operator doing? (002 section 3.1)

An operator runs on at most one thread at a time. Four states ensure that. Scheduling an operator
while it runs only sets a mark, and the mark becomes a task when the run is over.

>>> print(draw_transitions())
nothing               scheduled  -> scheduled (a new task)
scheduled             scheduled  -> scheduled
scheduled             began      -> running
running               scheduled  -> running and scheduled
running               finished   -> nothing
running and scheduled scheduled  -> running and scheduled
running and scheduled finished   -> scheduled (a new task)
"""

from enum import Enum


class OperatorState(Enum):
    """The states of an operator."""

    NOTHING = "nothing"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    RUNNING_AND_SCHEDULED = "running and scheduled"

    # Every row pack looks up states, and the hash of an Enum is a slow function in Python.
    __hash__ = object.__hash__


class StateEvent(Enum):
    """The events that change an operator's state."""

    __hash__ = object.__hash__

    SCHEDULED = "scheduled"
    BEGAN = "began"
    FINISHED = "finished"


TRANSITIONS = {
    (OperatorState.NOTHING, StateEvent.SCHEDULED): OperatorState.SCHEDULED,
    (OperatorState.SCHEDULED, StateEvent.SCHEDULED): OperatorState.SCHEDULED,
    (OperatorState.SCHEDULED, StateEvent.BEGAN): OperatorState.RUNNING,
    (OperatorState.RUNNING, StateEvent.SCHEDULED): OperatorState.RUNNING_AND_SCHEDULED,
    (OperatorState.RUNNING, StateEvent.FINISHED): OperatorState.NOTHING,
    (
        OperatorState.RUNNING_AND_SCHEDULED,
        StateEvent.SCHEDULED,
    ): OperatorState.RUNNING_AND_SCHEDULED,
    (OperatorState.RUNNING_AND_SCHEDULED, StateEvent.FINISHED): OperatorState.SCHEDULED,
}
"""All other pairs are impossible."""


def next_state(state: OperatorState, happening: StateEvent) -> OperatorState:
    """The state after an event."""
    after = TRANSITIONS.get((state, happening))
    assert after is not None, f"an operator in state {state.value} can't be {happening.value}"
    return after


def makes_a_task(before: OperatorState, after: OperatorState) -> bool:
    """Whether a new task follows: it does when an operator becomes scheduled."""
    return after is OperatorState.SCHEDULED and before is not OperatorState.SCHEDULED


def draw_transitions() -> str:
    """The table above, as text."""
    return "\n".join(
        f"{state.value:<21} {happening.value:<10} -> {after.value}"
        + (" (a new task)" if makes_a_task(state, after) else "")
        for (state, happening), after in TRANSITIONS.items()
    )
