"""Was every promise about consistency kept, in every block that consumers got?

It knows nothing of the planner: it takes the blocks that were published, one after the other, adds
them up by the rule of 004 section 2.4, and looks at what consumers hold after each of them. The
bound on inconsistency is never broken, not for a moment; blocks are of an accepted kind; each one
continues what is held (a base anything, a delta where it starts or stands still), and goes back on
no pathway.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from math import inf

from springhouse.planner.bounds import Bound, BoundInconsistency
from springhouse.planner.provenance import Provenance
from springhouse.planner.search.blocks import Block

State = dict[str, frozenset[int]]


class BrokenPromise(AssertionError):
    """A published block broke a promise: a bug of the planner."""


class Checker:
    """Watches what is published on the outputs of one run."""

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

    def begins(self, channel: str, provenance: Provenance) -> None:
        self._held[channel] = dict(provenance.reflected)

    def published(
        self,
        channel: str,
        block: Block,
        versions: Mapping[str, Sequence[int]],
        timestamps: Mapping[str, Sequence[float]],
    ) -> None:
        """Take a block in, or say what is wrong with it."""
        kind = "strong delta" if block.kind == "monotone delta" else block.kind
        if kind not in self._outputs[channel]:
            raise BrokenPromise(f"{channel} got a block that nobody accepts: {block}")
        before = self._held[channel]
        after = self._taken(channel, before, block)
        self._prove_forward(channel, before, after)
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
    def _taken(channel: str, before: State, block: Block) -> State:
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
    def _prove_forward(channel: str, before: State, after: State) -> None:
        ahead = False
        for pathway, reflected in before.items():
            now = after.get(pathway, frozenset())
            if not now or max(now) < max(reflected):
                raise BrokenPromise(f"{channel} went back on {pathway}")
            ahead = ahead or max(now) > max(reflected) or min(now) > min(reflected)
        if not ahead:
            raise BrokenPromise(f"{channel} got a block that brings nothing")
