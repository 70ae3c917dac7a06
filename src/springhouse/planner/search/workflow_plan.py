"""Question and answer of the search, as data.

The question is a `Situation`. The answer is a `WorkflowPlan`: the steps in their order, the cost,
and the reason. A step reads existing blocks, or blocks that an earlier step makes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from springhouse.planner.provenance import Channel, Provenance
from springhouse.planner.search.blocks import BASE, STRONG, Block, Kind
from springhouse.planner.search.operators import Operator, WidgetVariant
from springhouse.units import Instant

ANY_DELTA: tuple[Kind, ...] = (BASE, STRONG)
"""The kinds that a consumer accepts if it can apply changes."""


@dataclass(frozen=True)
class Situation:
    """The versions of inputs, the blocks by channel, and the present states of consumers."""

    now: Instant
    channels: Mapping[str, Channel]
    blocks: Mapping[str, Sequence[Block]]
    held: Mapping[str, Provenance]


@dataclass(frozen=True)
class PlanStep:
    """One invocation: its operator, the blocks it reads, the blocks it makes, its expected cost."""

    operator: Operator
    inputs: tuple[Block, ...]
    outputs: tuple[Block, ...]
    cost: float

    @property
    def is_work(self) -> bool:
        """Whether the step does any work: a chain of deltas is no work."""
        return self.operator.variant is not WidgetVariant.CHAIN


class Alternative(NamedTuple):
    """Another way to grant a wish: its last operator, its end, and its whole cost."""

    operator: str
    end: Provenance
    cost: float


@dataclass(frozen=True)
class Wish:
    """A channel that has to move, the pathways with broken bounds, and the blocks that grant it.

    Consumers get the `blocks`, one after the other, and then reflect `reaches`. Without a plan
    there are no blocks. `left` are the pathways that stay broken. `alternatives` are all last steps
    that the search considered, the cheapest first.
    """

    channel: str
    asked: tuple[str, ...]
    blocks: tuple[Block, ...] = ()
    reaches: Provenance | None = None
    left: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True)
class WorkflowPlan:
    """Steps that grant wishes; `explored` is the number of blocks that the search examined."""

    steps: tuple[PlanStep, ...] = ()
    wishes: tuple[Wish, ...] = ()
    cost: float = 0.0
    explored: int = 0

    @property
    def granted(self) -> tuple[Wish, ...]:
        return tuple(wish for wish in self.wishes if wish.blocks)

    @property
    def missed(self) -> tuple[str, ...]:
        """The channels that can't be brought within their bounds."""
        return tuple(wish.channel for wish in self.wishes if not wish.blocks)
