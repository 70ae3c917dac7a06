"""How does a planner avoid estimating the same invocation again and again?

Every plan asks for the cost of reading the same old bases. This cache computes each of them once.
"""

from collections.abc import Sequence

from springhouse.planner.search.invocation_costs import Costs, Estimate, InputRead
from springhouse.planner.search.operators import Operator


class CachedCosts:
    """A cache of costs that do not change over time."""

    _MOST = 4096

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self._known: dict[tuple[str, tuple[InputRead, ...]], Estimate] = {}

    def estimate(self, operator: Operator, readings: Sequence[InputRead]) -> Estimate:
        key = (operator.name, tuple(readings))
        estimate = self._known.get(key)
        if estimate is None:
            if len(self._known) >= self._MOST:
                self._known.clear()
            estimate = self._known[key] = self._costs.estimate(operator, readings)
        return estimate
