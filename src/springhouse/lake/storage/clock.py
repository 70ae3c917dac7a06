"""What time is it, for a process that waits, retries and dates its commits?

A machine's wall clock jumps: somebody sets it, a virtual machine wakes up, a time server corrects
it. A process that waits by it waits for an hour too long, or for ten years. A `SteadyClock` starts
at the wall clock's time and goes on by a clock that never jumps (and runs on while the machine
sleeps). It follows the wall clock only slowly:

    of d seconds that pass, it shows at least 0.9 d and at most 1.1 d

so it never goes back, every span is right within a tenth, and after a jump of an hour it agrees
with the wall clock ten hours later.
"""

import threading
import time
from collections.abc import Callable

from springhouse.units import Instant, Seconds

CLOCK_TOLERANCE = Seconds(60.0)
"""Clocks of two machines may differ by so much before anybody is told."""

_FOLLOWS = 0.1


def steady_seconds() -> float:
    """Seconds on a clock that never goes back, and counts sleep where the system has such a one."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class SteadyClock:
    """The time, in milliseconds as the Delta log keeps it. Safe to use from several threads."""

    def __init__(
        self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = steady_seconds
    ) -> None:
        self._wall, self._steady = wall, steady
        self._lock = threading.Lock()
        self._seen, self._now = steady(), wall()
        self._told = 0.0

    def __call__(self) -> Instant:
        with self._lock:
            seen = self._steady()
            passed = max(seen - self._seen, 0.0)
            most = passed * _FOLLOWS
            behind = self._wall() - (self._now + passed)
            self._now += passed + min(max(behind, -most), most)
            self._seen = seen
            return Instant(round(self._now, 3))

    def jumped(self) -> Seconds | None:
        """By how much the wall clock has jumped since this was asked last; None if it has not."""
        now = self()
        with self._lock:
            apart = self._wall() - now
            # What is being made up for is no jump.
            makes_up = apart * self._told >= 0 and abs(apart) <= abs(self._told)
            if makes_up or abs(apart - self._told) <= CLOCK_TOLERANCE:
                self._told = min(self._told, apart, key=abs)
                return None
            jump, self._told = apart - self._told, apart
            return Seconds(jump)


steady_clock = SteadyClock()
"""The clock of this process."""
