"""How long will a refresh take?

`E(n) = alpha + beta × n` (paper 001, section 2.4): a start, and a time for each second of data to
load. Least squares over finished refreshes give both; old refreshes fade. A refresh that took far
longer or shorter than expected counts only up to a limit. The limit widens if this happens again
and again. So one pause of the machine changes little, and a few refreshes are enough to learn a new
pace.

If the number of rows is known, two rates are learned: the time per row, and the rows per second of
data. (The second rate is all rows over all seconds, so that a long silence counts in full.) Then
`beta` is the product of both.

If every refresh loaded equally much, alpha and beta can't be told apart, and the paper does not say
what to do. Then the prior says which share of the time is the start. A table that was never
refreshed counts as a typical refresh of the other tables, and all of it as start. This guess is too
low on purpose. With a high guess for the data, a table with much data would look too long to be
worth a turn. Without a turn the guess would never be corrected.
"""

from dataclasses import dataclass
from math import exp, log

from springhouse.units import Seconds

FIRST_GUESS = Seconds(1.0)
"""The expected seconds of a refresh before the first one has finished."""

SHORTEST = 1e-9
"""The least seconds of a refresh: benefits are divided by them."""

_FADE = 0.95
_TRUSTED_AFTER = 4
_LIMIT = 4.0
_SHAPE_WEIGHT = 0.5


@dataclass(frozen=True)
class LoadCost:
    """`E(n)` in seconds, for `n` seconds of data.

    >>> LoadCost(alpha=1.0, beta=0.1).seconds(100.0)
    11.0
    """

    alpha: float
    beta: float

    def seconds(self, interval: float) -> float:
        return self.alpha + self.beta * interval


class LearnedCost:
    """The learned cost of one table's refreshes, and its mean absolute error."""

    __slots__ = (
        "_counted",
        "_n",
        "_nn",
        "_ns",
        "_prior",
        "_rows",
        "_s",
        "_seconds",
        "_w",
        "cost",
        "count",
        "deviation",
    )

    def __init__(self, prior: LoadCost) -> None:
        self.cost = prior
        self.count = 0
        self.deviation = 0.0
        self._prior = prior
        # The cost per row, if numbers of rows are known.
        self._counted = prior
        # The known rows, and the seconds of data in which they came.
        self._rows = self._seconds = 0.0
        self._w = self._n = self._nn = self._s = self._ns = 0.0

    def seconds(self, interval: float) -> float:
        """The expected seconds to load so many seconds of data."""
        return max(self.cost.alpha + self.cost.beta * interval, SHORTEST)

    def observe(self, interval: float, seconds: float, rows: float | None = None) -> None:
        """Learn from a refresh that loaded `interval` seconds of data and took `seconds`."""
        if rows is not None and rows > 0 and interval > 0:
            self._learn_rate(interval, rows)
        n = interval * self._rate if rows is None else float(rows)
        expected = self._counted.seconds(n)
        error = seconds - expected
        if self.count >= _TRUSTED_AFTER:
            limit = _LIMIT * max(self.deviation, 0.05 * expected)
            error = min(max(error, -limit), limit)
            seconds = expected + error
        if self.count:
            # The first error is that of the prior, and says nothing about the learned cost.
            weight = max(0.1, 1.0 / self.count)
            self.deviation += weight * (abs(error) - self.deviation)
        self.count += 1
        self._w = self._w * _FADE + 1.0
        self._n = self._n * _FADE + n
        self._nn = self._nn * _FADE + n * n
        self._s = self._s * _FADE + seconds
        self._ns = self._ns * _FADE + n * seconds
        self._counted = self._fitted(self._rate)
        self.cost = LoadCost(self._counted.alpha, self._counted.beta * self._rate)

    @property
    def _rate(self) -> float:
        """The rows per second of data; 1 if rows are unknown, so that seconds count instead."""
        return self._rows / self._seconds if self._seconds else 1.0

    def _learn_rate(self, interval: float, rows: float) -> None:
        if not self._seconds:
            # Until now seconds of data were counted, from now on rows.
            rate = rows / interval
            self._n, self._nn, self._ns = self._n * rate, self._nn * rate * rate, self._ns * rate
            self._counted = LoadCost(self.cost.alpha, self.cost.beta / rate)
        self._rows = self._rows * _FADE + rows
        self._seconds = self._seconds * _FADE + interval

    def _fitted(self, rate: float) -> LoadCost:
        """Least squares; one faint point at n = 0 keeps the prior's share of the start."""
        mean_n, mean_s = self._n / self._w, self._s / self._w
        whole = self._prior.seconds(mean_n / rate)
        start = mean_s * (self._prior.alpha / whole if whole > 0 else 1.0)
        w, s = self._w + _SHAPE_WEIGHT, self._s + _SHAPE_WEIGHT * start
        spread = self._nn - self._n * self._n / w
        if spread <= 1e-9 * self._nn or spread <= 0.0:
            return LoadCost(mean_s, 0.0)
        beta = (self._ns - self._n * s / w) / spread
        alpha = (s - beta * self._n) / w
        if beta < 0.0:
            return LoadCost(mean_s, 0.0)
        if alpha < 0.0:
            return LoadCost(0.0, self._ns / self._nn)
        return LoadCost(alpha, beta)


class TypicalRefresh:
    """The duration of refreshes of all tables, as a mean in which no single one weighs much."""

    __slots__ = ("_log",)

    def __init__(self) -> None:
        self._log: float | None = None

    def observe(self, seconds: float) -> None:
        log_seconds = log(max(seconds, 1e-6))
        self._log = (
            log_seconds if self._log is None else self._log + 0.05 * (log_seconds - self._log)
        )

    def cost(self) -> LoadCost:
        """The expected cost of a table that was never refreshed."""
        return LoadCost(FIRST_GUESS if self._log is None else exp(self._log), 0.0)
