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
import time

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
