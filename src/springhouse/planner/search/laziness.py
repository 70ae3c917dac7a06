"""Which of the blocks that exist need not be looked at before plans cost so and so much?

A base that consumers have long passed, and the deltas that lead up from it, are of use only to make
a new base, and whoever does that reads the old one. So whatever they lead to costs at least as much
as the cheapest operator that reads that base:

    least(B on X) = min of what operators and converters would ask to read it, and nothing else
    least(Δ on X) = min of least(B) over X and all below it, if Δ starts before where consumers are

Nor is a delta of use for anything else if all that is made from it lies ready: where X is all that
a channel is made from, its deltas count as if consumers had taken them. To make them again, from
more of X, would cost more than to use them.

Such blocks are put on the queue at that cost instead of at 0, and most searches are over before.
This needs costs that never fall when more is read.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from math import inf

from springhouse.planner.provenance import Provenance
from springhouse.planner.search.blocks import Block, Kind
from springhouse.planner.search.invocation_costs import Costs, InputRead
from springhouse.planner.search.operators import Operator
from springhouse.planner.search.part import Part
from springhouse.planner.search.workflow import Workflow

_NONE: frozenset[int] = frozenset()
_NO_ROWS = InputRead()


class Laziness:
    """How much a plan costs at least that uses a block, in one search."""

    def __init__(
        self,
        workflow: Workflow,
        part: Part,
        blocks: Mapping[str, Sequence[Block]],
        reached: Mapping[str, Mapping[str, int]],
        costs: Costs,
        outputs: Container[str] = (),
    ) -> None:
        """`blocks` are in the order of the workflow.

        `reached` is how far all consumers are on each pathway of each channel. Those of `outputs`
        take what lies on a channel as it is.
        """
        self._workflow, self._part, self._blocks = workflow, part, blocks
        self._reached, self._outputs = reached, outputs
        self._passed: dict[str, Mapping[str, int]] = {}
        self._base: dict[str, float] = {}
        self._delta: dict[str, float] = {}
        for channel in reversed(list(blocks)):
            # Tables that keep all their versions have no converters, and are never behind.
            if channel not in workflow.converters:
                self._base[channel] = self._delta[channel] = 0.0
                continue
            least = inf
            rows = [block.rows for block in blocks[channel] if block.start is None]
            if rows:
                least = _least(min(rows), part.reading_bases[channel], costs)
            self._base[channel] = 0.0 if least == inf else least
            for reader in workflow.readers[channel]:
                least = min(least, self._delta.get(reader, inf))
            self._delta[channel] = least

    def least(self, block: Block) -> float:
        """What a plan costs at least that uses a block; 0 if nothing is known."""
        if block.start is None:
            return self._base[block.channel]
        least = self._delta[block.channel]
        return least if 0.0 < least < inf and self._is_behind(block, block.start) else 0.0

    def _is_behind(self, block: Block, start: Provenance) -> bool:
        """Whether a delta starts before where consumers are, and nowhere after."""
        passed = self._passed.get(block.channel)
        if passed is None:
            passed = self._passed[block.channel] = self._how_far(block.channel)
        behind = False
        for key, versions in start.reflected.items():
            if block.end.reflected.get(key) == versions:
                continue
            newest, consumers = max(versions), passed.get(key, -1)
            if newest > consumers:
                return False
            behind = behind or newest < consumers
        return behind

    def _how_far(self, channel: str) -> Mapping[str, int]:
        """How far consumers are, or all that is made from a channel, if from nothing else."""
        reached = self._reached.get(channel, {})
        if not reached or channel in self._outputs:
            return reached
        newest_of: dict[str, int] = {}
        for reader in self._workflow.readers[channel]:
            if not self._reached.get(reader):
                continue
            if len(self._workflow.reads[reader]) > 1:
                return reached
            ready = _ready(self._blocks[reader], self._part.makes[reader], self._reached[reader])
            for pathway, key in self._workflow.key_map(reader, channel).items():
                far = ready.get(key, -1)
                newest_of[pathway] = min(far, newest_of.get(pathway, far))
        return {**reached, **newest_of}


def _ready(
    blocks: Iterable[Block], kinds: Collection[Kind], reached: Mapping[str, int]
) -> dict[str, int]:
    """How far deltas lead from where consumers are, if they are of kinds that operators make."""
    ready = dict(reached)
    deltas = [block for block in blocks if block.start is not None and block.kind in kinds]
    while deltas:
        later = []
        for block in deltas:
            assert block.start is not None
            starts, ends = block.start.reflected, block.end.reflected
            moved = [key for key, versions in ends.items() if starts.get(key) != versions]
            if all(max(starts.get(key, _NONE), default=-1) <= ready.get(key, -1) for key in moved):
                ready |= {key: max(*ends[key], ready.get(key, -1)) for key in moved}
            else:
                later.append(block)
        if len(later) == len(deltas):
            break
        deltas = later
    return ready


def _least(rows: float, reading: Iterable[tuple[Operator, int]], costs: Costs) -> float:
    """What the cheapest of these operators would ask for a base of so many rows alone."""
    least, base = inf, InputRead(rows)
    for operator, number in reading:
        readings = [_NO_ROWS] * len(operator.ports)
        readings[number] = base
        cost = costs.estimate(operator, readings).cost
        if cost < least:
            least = cost
    return least
