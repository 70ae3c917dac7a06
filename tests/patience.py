"""How long does a test wait before it says that something does not happen?

Nothing here makes a test slower: whoever waits goes on as soon as what it waits for is there. A
time-out only has to be longer than the slowest machine takes, and a machine may be slow because it
is small, because other tests run beside, or because somebody else uses it. So every time-out of a
test is `patience(seconds)`: what an idle machine would need at most, times the slowness

    slowness = max(SPRINGHOUSE_TEST_PATIENCE or 1, measured) * 4

`measured` is how much longer a small piece of work takes than the processor worked on it (others
had the processor meanwhile), the longest ever seen in this process. It is measured anew whenever
somebody asks, since a machine may become busy in the midst of a run.
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
    """The time-out for something that takes at most so many seconds on an idle machine."""
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
    """How much longer work takes than the processor works on it, measured now and then meanwhile.

    On an idle machine the numbers are near 1. They are for tests that compare what happens live
    with what should happen: the busier the machine, the less they can say.
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
    """What is typical of the numbers that were `watched`; at least 1."""
    return max(1.0, statistics.fmean(seen)) if seen else 1.0
