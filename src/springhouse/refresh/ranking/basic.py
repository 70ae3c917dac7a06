"""Which of the waiting refreshes is the best one?

A basic algorithm (paper 001, section 3.1) orders the jobs of one track by a key; the smallest key
starts first. A key stays the same until data arrives for the table or a refresh of it ends. This
holds for Max Benefit, too: staleness grows by itself, but the freshness *delta* does not. So
waiting jobs are kept in heaps and never sorted.

    EDF          release + period
    EDF-P        priority, then release + period
    Max Benefit  priority × freshness delta / expected seconds
    Whittle      priority × freshness delta ^ (1 + patience) / expected seconds
    FIFO         release
    Round robin  the last start
    Random       a die

The paper defines the release twice. Here it is the moment at which the freshness delta became
nonzero: a deadline that moves away with every arrival could never be missed.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from math import log
from typing import Protocol

from springhouse.units import Dice

Key = tuple[float, float]
"""Jobs are ordered by the first number, then by the second; the smaller number starts first."""


class Basic(Enum):
    """The basic algorithms, by their names in `configuration:`."""

    EDF = "edf"
    EDF_P = "edf-p"
    MAX_BENEFIT = "max-benefit"
    WHITTLE = "whittle"
    LOOKAHEAD = "lookahead"
    RANDOM = "random"
    FIFO = "fifo"
    ROUND_ROBIN = "round-robin"


class JobFacts(Protocol):
    """The facts about a job that its key depends on."""

    priority: float
    ahead_alpha: float
    ahead_beta: float
    period_seconds: float
    freshness_delta: float
    expected_seconds: float
    released: float
    last_started: float


def edf(job: JobFacts) -> Key:
    return job.released + job.period_seconds, 0.0


def edf_p(job: JobFacts) -> Key:
    return -job.priority, job.released + job.period_seconds


def max_benefit(job: JobFacts) -> Key:
    delta = job.freshness_delta
    seconds = job.expected_seconds + job.ahead_alpha + job.ahead_beta * delta
    return -job.priority * delta / seconds, job.released


def whittle(job: JobFacts, patience: float) -> Key:
    delta = job.freshness_delta
    seconds = job.expected_seconds + job.ahead_alpha + job.ahead_beta * delta
    return -job.priority * delta ** (1.0 + patience) / seconds, job.released


def fifo(job: JobFacts) -> Key:
    return job.released, 0.0


def round_robin(job: JobFacts) -> Key:
    return job.last_started, job.released


KEYS: Mapping[Basic, Callable[[JobFacts], Key]] = {
    Basic.EDF: edf,
    Basic.EDF_P: edf_p,
    Basic.MAX_BENEFIT: max_benefit,
    Basic.LOOKAHEAD: max_benefit,
    Basic.FIFO: fifo,
    Basic.ROUND_ROBIN: round_robin,
}
"""The key of each algorithm except Whittle, which needs a patience, and Random, which is `race`."""

NUMBERS: Mapping[Basic, tuple[str, float]] = {
    Basic.EDF: ("deadline", 1.0),
    Basic.EDF_P: ("priority", -1.0),
    Basic.MAX_BENEFIT: ("benefit per second", -1.0),
    Basic.WHITTLE: ("benefit over time", -1.0),
    Basic.LOOKAHEAD: ("benefit per second", -1.0),
    Basic.RANDOM: ("chance", 1.0),
    Basic.FIFO: ("released", 1.0),
    Basic.ROUND_ROBIN: ("last start", 1.0),
}
"""The name and the sign with which the first number of a key is shown."""


def race(passed: float, dice: Dice) -> Key:
    """A key that makes every waiting job equally likely to be next, however long it has waited.

    Each job runs to a finish that is exponentially distributed after the finish of the last winner.
    This distribution has no memory, so old and new jobs have the same chance.
    """
    return passed - log(1.0 - dice.between(0.0, 1.0)), 0.0
