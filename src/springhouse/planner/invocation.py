"""What is one step of a search?

A *holding* is a block with one plan to get it. An *invocation* is an operator on holdings; what it
costs, and how many rows come out, is estimated when it turns out to be worth it.
"""

from typing import NamedTuple

from springhouse.planner.blocks import Block
from springhouse.planner.costs import Reading
from springhouse.planner.operators import Operator


class Holding:
    """A block and one plan to get it: the invocations in it, as bits, and what they cost."""

    __slots__ = ("block", "cost", "mask")

    def __init__(self, block: Block, mask: int, cost: float) -> None:
        self.block, self.mask, self.cost = block, mask, cost


class Invocation(NamedTuple):
    """An operator on blocks, each with a plan, and the blocks that it would make, without rows."""

    operator: Operator
    holdings: tuple[Holding, ...]
    readings: tuple[Reading, ...]
    makes: tuple[Block, ...]
