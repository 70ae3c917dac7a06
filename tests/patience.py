"""How long does a test wait before it concludes that an event does not happen?

No test becomes slower: a wait ends as soon as its event happens. A time-out only has to be longer
than the slowest machine takes. A machine may be slow because it is small, because other tests run
beside, or because somebody else uses it. So every time-out of a test is `patience(seconds)`: the
longest time that an idle machine needs, times the slowness

    slowness = max(SPRINGHOUSE_TEST_PATIENCE or 1, measured) * 4

`measured` is how much longer a small piece of work takes than the processor worked on it (other
programs had the processor meanwhile), the longest ever seen in this process. Every call measures
again, since a machine may become busy in the middle of a run.
"""

import os
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SETTING = "SPRINGHOUSE_TEST_PATIENCE"
_GENEROUS = 4.0
_worst = 1.0


def patience(seconds: float) -> float:
    """The time-out for an action that takes at most this many seconds on an idle machine."""
    return seconds * slowness()


def slowness() -> float:
    """By how much this machine may be slower than an idle one."""
    global _worst  # noqa: PLW0603  what was seen once counts for the whole run
    _worst = max(_worst, _measured())
    return max(_worst, float(os.environ.get(SETTING, "1"))) * _GENEROUS


def _measured() -> float:
    wall, work = time.monotonic(), time.thread_time()
    while time.thread_time() - work < 0.005:
        pass
    return (time.monotonic() - wall) / 0.005


@contextmanager
def watched() -> Iterator[list[float]]:
    """How much longer work takes than its processor time, measured again and again in the block.

    On an idle machine the numbers are near 1. They are for tests that compare live behaviour with
    the expected one: the busier the machine, the less such a comparison can show.
    """
    seen: list[float] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.5):
            seen.append(_measured())

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield seen
    finally:
        ended.set()
        looking.join()


def contention(seen: list[float]) -> float:
    """A typical value of the numbers that were `watched`; at least 1."""
    return max(1.0, statistics.fmean(seen)) if seen else 1.0
