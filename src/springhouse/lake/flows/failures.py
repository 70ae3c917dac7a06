"""What does a user read when the tasks of a flow fail? One sentence, without Java's stack.

If an activity raises an error, the task's message names the activity, and the user reads this
message. A killed worker leaves no message: Spark only sees that its connection is closed.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from springhouse.flows.flow_graph import FlowError

_OURS = re.compile(r"^springhouse\.[\w.]*?(\w+): (.*)", re.MULTILINE | re.DOTALL)
_RAISED = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?([A-Z]\w*): (.+)$", re.MULTILINE)
_KILLED = ("Python worker exited unexpectedly", "Python worker failed to connect back")
_LOST = ("ExecutorLostFailure", "Could not execute broadcast", "executor heartbeat timed out")


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turn Spark's error about failed tasks into a `FlowError` that a user can read."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("pyspark", "py4j", "grpc"):
            raise
        raise failure_of(str(error)) from error


def failure_of(message: str) -> FlowError:
    """The error that Spark's message about failed tasks stands for.

    >>> failure_of("Traceback …\\nspringhouse.flows.flow_graph.FlowError: it is late").problem
    'it is late'
    """
    ours = _OURS.search(message)
    if ours is not None:
        problem, _, behind = ours.group(2).partition("\n  hint: ")
        lines = (behind or "").splitlines()
        return FlowError(problem.splitlines()[0], hint=lines[0] if lines else None)
    if any(words in message for words in (*_KILLED, *_LOST)):
        return FlowError(
            "a worker of Spark was killed while it ran the flow; no table was changed",
            hint="The machine may have too little memory: give the worker more, or use more and "
            "smaller partitions. Then run the flow again.",
        )
    raised = [match for match in _RAISED.finditer(message) if "\tat " not in match.group(0)]
    lines = [line.strip() for line in message.splitlines() if line.strip() and "\tat " not in line]
    what = f"{raised[-1].group(1)}: {raised[-1].group(2)}" if raised else (lines or ["?"])[-1]
    return FlowError(f"the flow failed on Spark: {what[:600]}")
