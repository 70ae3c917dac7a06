"""What will an invocation cost, and how many rows come out?

The planner asks `Costs`. A warehouse answers with what it learned from finished
refreshes, the same numbers as its scheduler's. A simulator answers with what it assumes.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from springhouse.planner.search.operators import Operator


class InputRead(NamedTuple):
    """How many rows an invocation reads from one input."""

    base_rows: float = 0.0
    delta_rows: float = 0.0


class Estimate(NamedTuple):
    """What an invocation costs, and the rows of each block that it makes.

    For an operator in place these are the rows of the new base, and those that changed.
    """

    cost: float
    rows: tuple[float, ...]


class Costs(Protocol):
    """Tells what an invocation is expected to cost."""

    def estimate(self, operator: Operator, readings: Sequence[InputRead]) -> Estimate:
        """There is a reading for each port, and for one in place a last one for its own base.

        More rows must never cost less.
        """
        ...
