"""When is the machine slow?

These are the transient slowdowns of 001 section 4.1. The world alternates between normal and slow
periods. A refresh that starts in a slow one takes `times` as long. The last `share` of every cycle
is slow:

    mean = (1 - share) + share × times
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Slowdowns:
    """How slow the machine is, for which share of the time, and how long a cycle takes.

    >>> slowdowns = Slowdowns(times=3.0, share=0.5, cycle_seconds=100.0)
    >>> slowdowns.factor(149.0), slowdowns.factor(150.0), slowdowns.mean
    (1.0, 3.0, 2.0)
    """

    times: float = 3.0
    share: float = 0.5
    cycle_seconds: float = 2_000.0

    def factor(self, now: float) -> float:
        """The factor for the duration of a refresh that starts now."""
        normal = (1.0 - self.share) * self.cycle_seconds
        return self.times if now % self.cycle_seconds >= normal else 1.0

    @property
    def mean(self) -> float:
        return 1.0 - self.share + self.share * self.times


NEVER = Slowdowns(times=1.0, share=0.0)
