"""What is one step of a search?

A *holding* is a block with one plan to get it (`PlannedBlock`). An *invocation* is an operator on
holdings. The search estimates its cost and rows only after it proves useful.
"""

from typing import NamedTuple

from springhouse.planner.search.blocks import Block
from springhouse.planner.search.invocation_costs import InputRead
from springhouse.planner.search.operators import Operator


class PlannedBlock:
    """A block and one plan to get it: the invocations in the plan, as bits, and their cost."""

    __slots__ = ("block", "cost", "mask")

    def __init__(self, block: Block, mask: int, cost: float) -> None:
        self.block, self.mask, self.cost = block, mask, cost


class Invocation(NamedTuple):
    """An operator on blocks, each with a plan, and the blocks that it would make, without rows."""

    operator: Operator
    holdings: tuple[PlannedBlock, ...]
    readings: tuple[InputRead, ...]
    makes: tuple[Block, ...]
