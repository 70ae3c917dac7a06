"""What does every room measure in?

These are the only types that all rooms share: points in time, durations, counts, and the one source
of random numbers. An `Instant` is a number of seconds since 1970 in UTC, `Seconds` is a duration.
Both are plain floats at run time, so arithmetic is cheap and a simulator can supply its own clock.
"""

import random
from collections.abc import Sequence
from typing import NewType, TypeVar

Instant = NewType("Instant", float)
Seconds = NewType("Seconds", float)
RowCount = NewType("RowCount", int)

_Choice = TypeVar("_Choice")

_SPANS = (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0))


class Dice:
    """Random numbers from a seed: the same seed gives the same numbers again."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._random = random.Random(seed)

    def between(self, low: float, high: float) -> float:
        """A number in [low, high)."""
        return self._random.uniform(low, high)

    def normal(self, mean: float, deviation: float) -> float:
        """A number from the normal distribution."""
        return self._random.gauss(mean, deviation)

    def pick(self, choices: Sequence[_Choice]) -> _Choice:
        """One of `choices`, all with the same probability."""
        return self._random.choice(choices)


def span_text(seconds: float) -> str:
    """A duration as people write it.

    >>> span_text(0.25), span_text(75), span_text(7200), span_text(90000)
    ('0.25 s', '1.2 min', '2 h', '1 d')
    """
    for name, size in _SPANS:
        if seconds >= size:
            return f"{_short(seconds / size)} {name}"
    return f"{_short(seconds)} s"


def _short(number: float) -> str:
    text = f"{number:.2f}" if number < 1 else f"{number:.1f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
