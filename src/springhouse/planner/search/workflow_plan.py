"""What is to be done, in which order, at what cost, and why?

A plan is data. `springhouse plan` shows it, a simulator and a warehouse carry it out, and all of
them read the same one. Its steps are in an order in which they can be done: each reads blocks that
exist or that an earlier step makes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from springhouse.planner.provenance import Channel, Provenance
from springhouse.planner.search.blocks import BASE, STRONG, Block, Kind
from springhouse.planner.search.operators import Operator, WidgetVariant
from springhouse.units import Instant

ANY_DELTA: tuple[Kind, ...] = (BASE, STRONG)
"""What a consumer accepts that can take in changes."""


@dataclass(frozen=True)
class Situation:
    """What there is: the versions of inputs, blocks by channel, and what consumers hold by now."""

    now: Instant
    channels: Mapping[str, Channel]
    blocks: Mapping[str, Sequence[Block]]
    held: Mapping[str, Provenance]


@dataclass(frozen=True)
class PlanStep:
    """One invocation: which operator, on which blocks, what it makes, and what it should cost."""

    operator: Operator
    inputs: tuple[Block, ...]
    outputs: tuple[Block, ...]
    cost: float

    @property
    def is_work(self) -> bool:
        """Whether there is anything to do: putting deltas one after the other is none."""
        return self.operator.variant is not WidgetVariant.CHAIN


class Alternative(NamedTuple):
    """Another way to make what was wanted: its last operator, where it leads, the whole cost."""

    operator: str
    end: Provenance
    cost: float


@dataclass(frozen=True)
class Wish:
    """A channel that has to move, the pathways whose bounds ask for it, and how that is granted.

    `blocks` are what its consumers get, one after the other; then they hold `reaches`. There are
    none if no plan was found. What they do not mend is `left`. `alternatives` are all last steps
    that were considered, the cheapest first.
    """

    channel: str
    asked: tuple[str, ...]
    blocks: tuple[Block, ...] = ()
    reaches: Provenance | None = None
    left: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True)
class WorkflowPlan:
    """Steps that grant wishes; `explored` is how many blocks the search looked at."""

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
