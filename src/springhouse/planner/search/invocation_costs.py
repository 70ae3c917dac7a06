"""What will an invocation cost, and how many rows come out?

The planner asks `Costs`. A warehouse answers from its finished refreshes, with the same numbers as
its scheduler's. A simulator answers with its assumptions.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from springhouse.planner.search.operators import Operator


class InputRead(NamedTuple):
    """How many rows an invocation reads from one input."""

    base_rows: float = 0.0
    delta_rows: float = 0.0


class Estimate(NamedTuple):
    """The cost of an invocation, and the rows of each block that it makes.

    For an operator in place these are the rows of the new base, and the changed rows.
    """

    cost: float
    rows: tuple[float, ...]


class Costs(Protocol):
    """Estimates the costs of invocations."""

    def estimate(self, operator: Operator, readings: Sequence[InputRead]) -> Estimate:
        """The expected cost of an invocation; more rows must never cost less.

        There is one reading for each port. An operator in place has one more, for its own base.
        """
        ...
