"""What does a view remember of a compiled statement that Spark could not run?

A view that plain Spark can compute is never stuck: the refresh runs the view's own query instead.
The next two refreshes are also full (four after a second failure, and so on). Then a refresh tries
the compiled statement again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_LONGEST_PAUSE = 64


@dataclass(frozen=True)
class FailedStatement:
    """Spark's message, how often in a row a statement failed, and how many refreshes to wait."""

    problem: str
    times: int
    pause: int
    unknown: Mapping[str, Any] = field(default_factory=dict)


def note_failure(before: FailedStatement | None, problem: str) -> FailedStatement:
    """The memory after one more failure.

    >>> note_failure(note_failure(None, "first"), "second")
    FailedStatement(problem='second', times=2, pause=4, unknown={})
    """
    times = before.times + 1 if before is not None else 1
    return FailedStatement(problem, times, min(2**times, _LONGEST_PAUSE))
