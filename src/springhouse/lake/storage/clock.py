"""What time is it, for a process that waits, retries and dates its commits?

A machine's wall clock jumps: a user sets it, a virtual machine wakes up, a time server corrects it.
A process that waits by the wall clock may wait an hour too long, or ten years. A `SteadyClock`
starts at the wall clock's time. Then it follows a clock that never jumps and that keeps running
while the machine sleeps. It follows the wall clock only slowly:

    while d seconds pass, it advances by at least 0.9 d and at most 1.1 d

So it never goes back, and every span is right within a tenth. After a jump of an hour, it agrees
with the wall clock ten hours later.
"""

import threading
import time
from collections.abc import Callable

from springhouse.units import Instant, Seconds

CLOCK_TOLERANCE = Seconds(60.0)
"""How much the clocks of two machines may differ before Springhouse reports it."""

_FOLLOWS = 0.1


def steady_seconds() -> float:
    """Seconds on a clock that never goes back, and that counts sleep if the system has one."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class SteadyClock:
    """The time, in milliseconds like the Delta log's. Safe to use from several threads."""

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
        """By how much the wall clock jumped since the last call; None if it did not jump."""
        now = self()
        with self._lock:
            apart = self._wall() - now
            # The clock still makes up for the last jump: this is no new one.
            makes_up = apart * self._told >= 0 and abs(apart) <= abs(self._told)
            if makes_up or abs(apart - self._told) <= CLOCK_TOLERANCE:
                self._told = min(self._told, apart, key=abs)
                return None
            jump, self._told = apart - self._told, apart
            return Seconds(jump)


steady_clock = SteadyClock()
"""The clock of this process."""
