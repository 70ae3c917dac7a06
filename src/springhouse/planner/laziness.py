"""Which of the blocks that exist need not be looked at before plans cost so and so much?

A base that consumers have long passed, and the deltas that lead up from it, are of use only to make
a new base, and whoever does that reads the old one. So whatever they lead to costs at least as much
as the cheapest operator that reads that base:

    least(B on X) = min of what operators and converters would ask to read it, and nothing else
    least(Δ on X) = min of least(B) over X and all below it, if Δ starts before where consumers are

They are put on the queue at that cost instead of at 0, and most searches are over before. This
needs costs that never fall when more is read.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf

from springhouse.planner.blocks import BASE, Block
from springhouse.planner.costs import Costs, Reading
from springhouse.planner.operators import Base, Operator
from springhouse.planner.workflow import Workflow


class Laziness:
    """How much a plan costs at least that uses a block, in one search."""

    def __init__(
        self,
        workflow: Workflow,
        operators: Iterable[Operator],
        blocks: Mapping[str, Sequence[Block]],
        reached: Mapping[str, Mapping[str, int]],
        costs: Costs,
    ) -> None:
        """`blocks` are in the order of the workflow.

        `reached` is how far all consumers are on each pathway of each channel.
        """
        self._reached = reached
        self._base: dict[str, float] = {}
        self._delta: dict[str, float] = {}
        reading: dict[str, list[tuple[Operator, int]]] = {}
        for operator in operators:
            for number, port in enumerate(operator.ports):
                if port.base is not Base.NONE:
                    reading.setdefault(port.channel, []).append((operator, number))
        for channel in reversed(list(blocks)):
            rows = [block.rows for block in blocks[channel] if block.kind == BASE]
            # Tables that keep all their versions have no converters, and are never behind.
            if channel not in workflow.converters:
                self._base[channel] = self._delta[channel] = 0.0
                continue
            least = inf
            if rows:
                least = _least(workflow, channel, min(rows), reading.get(channel, ()), costs)
            self._base[channel] = 0.0 if least == inf else least
            below = (self._delta.get(each, inf) for each in workflow.readers[channel])
            self._delta[channel] = min(least, *below, inf)

    def least(self, block: Block) -> float:
        """What a plan costs at least that uses a block; 0 if nothing is known."""
        if block.start is None:
            return self._base[block.channel]
        reached = self._reached.get(block.channel)
        if not reached:
            return 0.0
        behind = False
        for key, versions in block.start.reflected.items():
            if block.end.reflected.get(key) == versions:
                continue
            newest, consumers = max(versions), reached.get(key, -1)
            if newest > consumers:
                return 0.0
            behind = behind or newest < consumers
        least = self._delta[block.channel]
        return least if behind and least < inf else 0.0


def _least(
    workflow: Workflow,
    channel: str,
    rows: float,
    reading: Iterable[tuple[Operator, int]],
    costs: Costs,
) -> float:
    found = [
        costs.estimate(converter.operator, [Reading(rows)]).cost
        for converter in workflow.converters[channel]
        if converter.reads_base
    ]
    for operator, number in reading:
        readings = [Reading() for _ in operator.ports]
        readings[number] = Reading(rows)
        found.append(costs.estimate(operator, readings).cost)
    return min(found, default=inf)
