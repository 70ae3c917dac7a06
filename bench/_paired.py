"""By how much does one thing take longer than another, on a machine that is never quiet?

Every round measures both, in random order, and compares the two durations of that round: if a round
is slow, both are slow. The result is the median of these ratios, with the interval that holds the
true median nine times of ten, whatever the distribution (the sign test). A goal is missed for sure
only if the whole interval is beyond it.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from math import comb

ONE_SIDE = 0.05
"""How often the true median may lie below the interval, and how often above it."""


@dataclass(frozen=True)
class Ratio:
    """A median of ratios, its interval, and the number of its rounds."""

    median: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        return f"{self.median - 1:+.0%} ({self.low - 1:+.0%} to {self.high - 1:+.0%})"


def ratio(one: Mapping[int, float], other: Mapping[int, float]) -> Ratio:
    """How many times as long one takes as the other, given the seconds of each by round.

    >>> print(ratio({1: 3.0, 2: 2.2, 3: 4.0}, {1: 2.0, 2: 2.0, 4: 9.0}))
    +30% (+10% to +50%)
    """
    found = sorted(one[each] / other[each] for each in one.keys() & other.keys())
    assert found, "these were never measured in one round"
    place = _place(len(found))
    return Ratio(statistics.median(found), found[place], found[-1 - place], len(found))


def _place(count: int) -> int:
    """The position, among this many sorted values, of one often enough below the true median.

    >>> [_place(count) for count in (3, 5, 8, 15)]
    [0, 0, 1, 3]
    """
    place, below = 0, 1.0
    while place < count // 2 and (below + comb(count, place + 1)) / 2**count <= ONE_SIDE:
        below += comb(count, place + 1)
        place += 1
    return place
