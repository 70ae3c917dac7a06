"""When is a refresh that failed tried again?

The wait doubles with every failure in a row, up to a limit. A failure that heals by itself (a file
that is being written, a server that restarts) heals soon. Retries of any other failure cost little.
"""

from dataclasses import dataclass

from springhouse.units import Instant, Seconds

LONGEST = Seconds(300.0)


@dataclass(frozen=True)
class Failure:
    """The last error of a table, how often in a row it failed, and when it is tried again."""

    problem: str
    times: int
    at: Instant
    retry_at: Instant


def add_failure(before: Failure | None, problem: str, now: Instant, first: Seconds) -> Failure:
    """The failure after one more: it waits `first` seconds, then twice that, and so on.

    >>> once = add_failure(None, "no disk", Instant(0.0), Seconds(2.0))
    >>> add_failure(once, "no disk", Instant(9.0), Seconds(2.0)).retry_at
    13.0
    """
    times = before.times + 1 if before else 1
    wait = min(first * 2.0 ** min(times - 1, 30), LONGEST)
    return Failure(problem, times, now, Instant(now + wait))
