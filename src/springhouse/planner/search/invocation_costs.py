"""What will an invocation cost, and how many rows come out?

A standard model: a start, and a price for every row that is read, by operator; the rows that come
out are a share of those that go in. `Costs` is what the planner asks; a warehouse answers with what
it learned from finished refreshes (the same numbers as its scheduler's), a simulator with what it
assumes. `Linear` is both: alpha + beta × rows for each operator, and a usual one for what was never
run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from springhouse.planner.search.blocks import BASE
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


@dataclass(frozen=True)
class Price:
    """The cost of one operator: `start + per_base_row × bases + per_delta_row × deltas`.

    `rows_out` says how many rows come out for each that goes in: of the bases where a base is made
    from bases, else of the deltas. There is one number for each block that is made, or one for
    all; no more than `most_rows` come out: a count has no more rows than there are groups.
    """

    start: float = 0.0
    per_base_row: float = 0.0
    per_delta_row: float = 0.0
    rows_out: tuple[float, ...] = (1.0,)
    most_rows: float = float("inf")

    def estimate(self, operator: Operator, readings: Sequence[InputRead]) -> Estimate:
        inputs = len(operator.ports)
        bases = sum(each.base_rows for each in readings[:inputs])
        deltas = sum(each.delta_rows for each in readings[:inputs])
        own = sum(each.base_rows for each in readings[inputs:])
        cost = self.start + self.per_base_row * bases + self.per_delta_row * deltas
        shares = self.rows_out
        if operator.in_place:
            changed = shares[-1] * (deltas if operator.moves else bases)
            base = max(own, shares[0] * bases) if operator.moves else shares[0] * bases
            return Estimate(cost, (min(base, self.most_rows), min(changed, self.most_rows)))
        if len(shares) < len(operator.outputs):
            shares = shares * len(operator.outputs)
        made = []
        for share, output in zip(shares, operator.outputs, strict=False):
            if not operator.moves:
                rows = share * bases
            elif output.kind == BASE:
                rows = bases + share * deltas
            else:
                rows = share * deltas
            made.append(min(rows, self.most_rows))
        return Estimate(cost, tuple(made))


@dataclass(frozen=True)
class Linear:
    """A price for each operator by its name; `usual` for those that have none."""

    prices: Mapping[str, Price] = field(default_factory=dict)
    usual: Price = Price(1.0, 1e-6, 1e-6)

    def estimate(self, operator: Operator, readings: Sequence[InputRead]) -> Estimate:
        return self.prices.get(operator.name, self.usual).estimate(operator, readings)


class Remembered:
    """Costs that do not change as time goes by: what was asked before is not worked out again.

    Plan after plan asks what it would cost to read the same old bases.
    """

    _MOST = 4096

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self._known: dict[tuple[str, tuple[InputRead, ...]], Estimate] = {}

    def estimate(self, operator: Operator, readings: Sequence[InputRead]) -> Estimate:
        key = (operator.name, tuple(readings))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= self._MOST:
                self._known.clear()
            found = self._known[key] = self._costs.estimate(operator, readings)
        return found
