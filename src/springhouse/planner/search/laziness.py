"""What is the least cost of a plan that uses an existing block?

Consumers passed an old base and the deltas that continue it long ago. These blocks are useful only
to make a new base, and this requires reading the old base. So every plan that uses them costs at
least as much as the cheapest operator that reads the old base:

    least(B on X) = min over operators and converters of the cost to read B, and nothing else
    least(Δ on X) = min of least(B) over X and all below it, if Δ starts before the consumers' state

The same holds for a delta of X if its results exist already. If a channel is made from X alone, the
deltas on that channel count as taken by consumers: to make them again from X would cost more than
to use them.

The search puts such a block on the queue at that cost instead of at 0. Most searches end before
they reach it. This is correct only if more rows never cost less.
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
    """The least costs of plans that use a block, in one search."""

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

        `reached` has the version that all consumers have reached, for each pathway of each channel.
        `outputs` are the channels whose blocks consumers take unchanged.
        """
        self._workflow, self._part, self._blocks = workflow, part, blocks
        self._reached, self._outputs = reached, outputs
        self._passed: dict[str, Mapping[str, int]] = {}
        self._base: dict[str, float] = {}
        self._delta: dict[str, float] = {}
        for channel in reversed(list(blocks)):
            # A table of a warehouse keeps all its versions and has no converters.
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
        """The least cost of a plan that uses a block; 0 if it is unknown."""
        if block.start is None:
            return self._base[block.channel]
        least = self._delta[block.channel]
        return least if 0.0 < least < inf and self._is_behind(block, block.start) else 0.0

    def _is_behind(self, block: Block, start: Provenance) -> bool:
        """Whether a delta starts before the consumers' state on a pathway, and on none after it."""
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
        """The versions that consumers reached, with blocks made only from this channel as taken."""
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
    """The versions to which deltas of these kinds lead from the consumers' state."""
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
    """The lowest cost at which one of these operators reads a base with this number of rows."""
    least, base = inf, InputRead(rows)
    for operator, number in reading:
        readings = [_NO_ROWS] * len(operator.ports)
        readings[number] = base
        cost = costs.estimate(operator, readings).cost
        if cost < least:
            least = cost
    return least
