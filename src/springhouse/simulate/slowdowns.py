"""When is the machine slow?

Transient slowdowns (001 section 4.1): the world alternates between normal periods and slow ones, in
which whatever starts takes `times` as long. `share` of every cycle is slow, at its end.

    mean = (1 - share) + share × times
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Slowdowns:
    """How slow, how much of the time, and how long a normal and a slow period are together.

    >>> slowdowns = Slowdowns(times=3.0, share=0.5, cycle_seconds=100.0)
    >>> slowdowns.factor(149.0), slowdowns.factor(150.0), slowdowns.mean
    (1.0, 3.0, 2.0)
    """

    times: float = 3.0
    share: float = 0.5
    cycle_seconds: float = 2_000.0

    def factor(self, now: float) -> float:
        """What the time that a refresh takes is multiplied with, if it starts now."""
        normal = (1.0 - self.share) * self.cycle_seconds
        return self.times if now % self.cycle_seconds >= normal else 1.0

    @property
    def mean(self) -> float:
        return 1.0 - self.share + self.share * self.times


NEVER = Slowdowns(times=1.0, share=0.0)
