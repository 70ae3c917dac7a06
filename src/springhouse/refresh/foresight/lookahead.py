"""Is it worth keeping a track free for a better job that is about to come?

This is Max Benefit with Lookahead (paper 001, section 3.1). The best released job J would run until
after a better job K is expected. If other released jobs S fill the time until K comes, and together
with K bring more per second than J, then the best of S starts instead:

    r_K - now <= Σ E_m < E_J        B[S] = (Σ p_m ΔF_m + p_K ΔF_K) / (Σ E_m + E_K)

A track never stays idle because of a guess. The paper does not bound the sets S to try. Here the
sets are made of the few best jobs, and their number is limited.
"""

from collections.abc import Sequence
from typing import NamedTuple

_MOST_SETS = 128


class Prospect(NamedTuple):
    """A job with its benefit and seconds, and when it can start."""

    benefit: float
    seconds: float
    release: float = 0.0

    @property
    def marginal(self) -> float:
        return self.benefit / self.seconds


def look_ahead(
    released: Sequence[Prospect], coming: Sequence[Prospect], now: float
) -> tuple[int, float]:
    """The released job to start, and the benefit per second that decided.

    `released` has the best job first. `coming` are expected jobs, with their release times.
    """
    best = released[0]
    choice, most = 0, best.marginal
    others = [i for i in range(1, len(released)) if released[i].seconds < best.seconds]
    for job in coming:
        wait = job.release - now
        if not 0.0 < wait <= best.seconds or job.marginal <= best.marginal:
            continue
        for first, benefit, seconds in _sets(released, others, best.seconds):
            together = (benefit + job.benefit) / (seconds + job.seconds)
            if wait <= seconds and together > most:
                choice, most = first, together
    return choice, most


def _sets(
    released: Sequence[Prospect], others: Sequence[int], below: float
) -> list[tuple[int, float, float]]:
    """Sets of jobs that together take less than `below`: the best job, benefit and seconds."""
    sets: list[tuple[int, float, float]] = []
    for i in others:
        job = released[i]
        # Jobs come best first, so a set starts with its first job.
        larger = [
            (first, benefit + job.benefit, seconds + job.seconds)
            for first, benefit, seconds in sets
            if seconds + job.seconds < below
        ]
        sets.append((i, job.benefit, job.seconds))
        sets += larger[: _MOST_SETS - len(sets)]
        if len(sets) >= _MOST_SETS:
            break
    return sets
