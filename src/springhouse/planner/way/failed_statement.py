"""What is remembered of a compiled statement in which Spark failed?

A view that plain Spark can compute is never stuck: the refresh is done with the query itself. The
next ones remember it: they are full, and after two of them (four after a second failure, and so on)
one tries again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_LONGEST_PAUSE = 64


@dataclass(frozen=True)
class FailedStatement:
    """What Spark said of a compiled statement, how often in a row one failed, and for how many
    refreshes nobody tries again.
    """

    problem: str
    times: int
    pause: int
    unknown: Mapping[str, Any] = field(default_factory=dict)


def failed_again(before: FailedStatement | None, problem: str) -> FailedStatement:
    """What is remembered after one more failure.

    >>> failed_again(failed_again(None, "first"), "second")
    FailedStatement(problem='second', times=2, pause=4, unknown={})
    """
    times = before.times + 1 if before is not None else 1
    return FailedStatement(problem, times, min(2**times, _LONGEST_PAUSE))
