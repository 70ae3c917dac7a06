"""Costs that are linear in rows: a start, and a price for each row that an operator reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from springhouse.planner.search.blocks import BASE
from springhouse.planner.search.invocation_costs import Estimate, InputRead
from springhouse.planner.search.operators import Operator


@dataclass(frozen=True)
class Price:
    """The cost of one operator: `start + per_base_row × bases + per_delta_row × deltas`.

    `rows_out` gives the number of output rows per input row: per base row if the operator makes a
    base from bases, else per delta row. It has one number for each new block, or one number for
    all. At most `most_rows` come out: a count has no more rows than groups.
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
    """A price for each operator by its name; `usual` applies to all others."""

    prices: Mapping[str, Price] = field(default_factory=dict)
    usual: Price = Price(1.0, 1e-6, 1e-6)

    def estimate(self, operator: Operator, readings: Sequence[InputRead]) -> Estimate:
        return self.prices.get(operator.name, self.usual).estimate(operator, readings)
