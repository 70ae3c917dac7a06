"""Does every block that consumers get keep every promise about consistency?

The checker knows nothing of the planner. It takes the published blocks in their order, adds them up
by the rule of 004 section 2.4, and checks the state of the consumers after each block. The bound on
inconsistency always holds. Blocks are of an accepted kind. Each block continues that state: a base
replaces any state, a delta starts where the state is, and no pathway goes back.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from math import inf

from springhouse.planner.bounds import Bound, BoundInconsistency
from springhouse.planner.provenance import Provenance
from springhouse.planner.search.blocks import Block

State = dict[str, frozenset[int]]


class BrokenPromise(AssertionError):
    """A published block broke a promise: the planner has a bug."""


class Checker:
    """Checks the blocks that are published on the outputs of one run."""

    def __init__(self, bounds: Iterable[Bound], outputs: Mapping[str, Sequence[str]]) -> None:
        self.blocks = 0
        self.worst_inconsistency = 0.0
        self._outputs = outputs
        self._held: dict[str, State] = {}
        self._bounds: dict[str, float] = {}
        for bound in bounds:
            if isinstance(bound, BoundInconsistency):
                least = min(bound.seconds, self._bounds.get(bound.channel, inf))
                self._bounds[bound.channel] = least

    def begin(self, channel: str, provenance: Provenance) -> None:
        self._held[channel] = dict(provenance.reflected)

    def published(
        self,
        channel: str,
        block: Block,
        versions: Mapping[str, Sequence[int]],
        timestamps: Mapping[str, Sequence[float]],
    ) -> None:
        """Add a block, or raise `BrokenPromise`."""
        kind = "strong delta" if block.kind == "monotone delta" else block.kind
        if kind not in self._outputs[channel]:
            raise BrokenPromise(f"{channel} got a block of a kind that it does not accept: {block}")
        before = self._held[channel]
        after = self._add_up(channel, before, block)
        self._check_forward(channel, before, after)
        left, right = -inf, inf
        for pathway, reflected in after.items():
            source = pathway.split(">")[0]
            for version in reflected:
                place = bisect_left(versions[source], version)
                left = max(left, timestamps[source][place])
                if place + 1 < len(versions[source]):
                    right = min(right, timestamps[source][place + 1])
        if not left < right + self._bounds.get(channel, inf):
            raise BrokenPromise(f"{channel} is {left - right:g} s inconsistent after {block}")
        self.worst_inconsistency = max(self.worst_inconsistency, left - right)
        self._held[channel] = after
        self.blocks += 1

    @staticmethod
    def _add_up(channel: str, before: State, block: Block) -> State:
        end = dict(block.end.reflected)
        if block.start is None:
            return end
        start = block.start.reflected
        after = dict(before)
        for pathway in {**start, **end}:
            old, first = before.get(pathway, frozenset()), start.get(pathway, frozenset())
            last = end.get(pathway, frozenset())
            if old != first and first != last:
                raise BrokenPromise(
                    f"{channel} holds {sorted(old)}, which {block} does not continue"
                )
            after[pathway] = (old - first) | last
        return after

    @staticmethod
    def _check_forward(channel: str, before: State, after: State) -> None:
        ahead = False
        for pathway, reflected in before.items():
            now = after.get(pathway, frozenset())
            if not now or max(now) < max(reflected):
                raise BrokenPromise(f"{channel} went back on {pathway}")
            ahead = ahead or max(now) > max(reflected) or min(now) > min(reflected)
        if not ahead:
            raise BrokenPromise(f"{channel} got a block that changes nothing")
