"""How busy is this machine?

Utilisations from 0 to 1, from what Linux tells in /proc; elsewhere they are unknown and count as 0,
and what a warehouse itself knows (busy tracks, work that waits) has to do.
"""

from pathlib import Path

_PROC = Path("/proc")


class Machine:
    """Tells how busy the CPUs were since it was last asked, and how full the memory is."""

    def __init__(self, proc: Path = _PROC) -> None:
        self._proc = proc
        self._before = self._ticks()

    def cpu(self) -> float:
        """The part of all CPU time since the last call that was used by anybody."""
        before, self._before = self._before, self._ticks()
        passed = self._before[0] - before[0]
        idle = self._before[1] - before[1]
        return 1.0 - idle / passed if passed > 0 else 0.0

    def memory(self) -> float:
        """The part of the memory that nobody could get."""
        try:
            lines = (self._proc / "meminfo").read_text().splitlines()
        except OSError:
            return 0.0
        sizes = {name: int(rest.split()[0]) for name, _, rest in (x.partition(":") for x in lines)}
        total = sizes.get("MemTotal", 0)
        return 1.0 - sizes.get("MemAvailable", total) / total if total else 0.0

    def _ticks(self) -> tuple[int, int]:
        """All ticks of all CPUs so far, and those of them in which nothing ran."""
        try:
            words = (self._proc / "stat").read_text().split(maxsplit=9)[1:9]
        except OSError:
            return 0, 0
        ticks = [int(word) for word in words]
        return sum(ticks), ticks[3] + ticks[4]
