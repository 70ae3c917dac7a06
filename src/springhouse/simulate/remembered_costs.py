"""What did an invocation cost when the planner asked last?

Plan after plan asks what it costs to read the same old bases. Costs that stay the same are worked
out once.
"""

from collections.abc import Sequence

from springhouse.planner.search.invocation_costs import Costs, Estimate, InputRead
from springhouse.planner.search.operators import Operator


class RememberedCosts:
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
