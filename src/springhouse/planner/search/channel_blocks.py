"""Which blocks can be made from a block on its own channel?

`ChannelBlocks` holds the blocks of one channel that are at hand in a search. A new block makes new
chains of deltas that abut (paper 004, section 6.2.2) and new conversions (section 2.4) possible.
The search makes no block that ends outside the bounds of the channel, because no reader could use
it.

A delta continues a base if, on each pathway that it moves, it starts where the base ends. With only
one pathway, its start is the end of the base, and one look-up finds it.
"""

from collections.abc import Iterable, Sequence
from functools import cache

from springhouse.planner.bounds import ChannelBounds, Times
from springhouse.planner.provenance import Provenance
from springhouse.planner.search.blocks import BASE, STRONG, Block, Kind, fits
from springhouse.planner.search.converters import Converter
from springhouse.planner.search.invocation import Invocation, PlannedBlock
from springhouse.planner.search.invocation_costs import InputRead
from springhouse.planner.search.operators import Operator, WidgetVariant
from springhouse.planner.search.pruning import join_chain


class ChannelBlocks:
    """The blocks at hand on one channel, in one search."""

    __slots__ = (
        "_has_one_pathway",
        "_limits",
        "_times",
        "_usable",
        "bases",
        "bases_at",
        "by_end",
        "by_start",
        "deltas",
    )

    def __init__(self, limits: ChannelBounds, times: Times, *, has_one_pathway: bool) -> None:
        self._limits, self._times, self._has_one_pathway = limits, times, has_one_pathway
        self._usable: dict[Provenance, bool] = {}
        self.bases: list[PlannedBlock] = []
        self.deltas: list[PlannedBlock] = []
        self.bases_at: dict[Provenance, list[PlannedBlock]] = {}
        self.by_start: dict[Provenance, list[PlannedBlock]] = {}
        self.by_end: dict[Provenance, list[PlannedBlock]] = {}

    def may_end(self, end: Provenance) -> bool:
        """Whether a block with this end is within the bounds of the channel."""
        usable = self._usable.get(end)
        if usable is None:
            usable = self._usable[end] = self._times.keeps(self._limits, end)
        return usable

    def add(self, holding: PlannedBlock, converters: Iterable[Converter]) -> list[Invocation]:
        """Add a block; returns the chains and conversions that it makes possible."""
        block = holding.block
        invocations: list[Invocation] = []
        if block.start is None:
            self.bases.append(holding)
            self.bases_at.setdefault(block.end, []).append(holding)
        else:
            self.deltas.append(holding)
            self.by_start.setdefault(block.start, []).append(holding)
            self.by_end.setdefault(block.end, []).append(holding)
            invocations += self._chains(holding, block.start)
        for converter in converters:
            if converter.source == BASE:
                invocations += self._differences(converter, holding)
            elif block.start is None:
                invocations += self._continued(converter, holding)
            elif converter.reads_base:
                invocations += self._continuing(converter, holding, block.start)
            elif self.may_end(block.end):
                output = Block(block.channel, converter.target, block.end, block.start)
                rows = (InputRead(0.0, block.rows),)
                invocations.append(Invocation(converter.operator, (holding,), rows, (output,)))
        return invocations

    def _chains(self, holding: PlannedBlock, start: Provenance) -> list[Invocation]:
        """Chains of this delta and one other; longer chains are chains of chains."""
        block = holding.block
        pairs = [(before, holding) for before in self.by_end.get(start, ())]
        pairs += [(holding, after) for after in self.by_start.get(block.end, ())]
        invocations = []
        for first, last in pairs:
            begin, end = first.block.start, last.block.end
            kind = _chain_kind(first.block.kind, last.block.kind)
            if kind is None or begin is None or not self.may_end(end):
                continue
            if begin.precedes(end):
                chain = join_chain((first.block, last.block), kind)
                invocations.append(
                    Invocation(_chain_operator(block.channel), (first, last), (), (chain,))
                )
        return invocations

    def _differences(self, converter: Converter, holding: PlannedBlock) -> list[Invocation]:
        """The deltas between this base and every other base."""
        pairs = [(other, holding) for other in self.bases if self.may_end(holding.block.end)]
        pairs += [(holding, other) for other in self.bases if self.may_end(other.block.end)]
        invocations = []
        for old, new in pairs:
            first, last = old.block, new.block
            if first.end.precedes(last.end):
                delta = Block(last.channel, converter.target, last.end, first.end)
                rows = (InputRead(first.rows, last.rows),)
                invocations.append(Invocation(converter.operator, (old, new), rows, (delta,)))
        return invocations

    def _continued(self, converter: Converter, base: PlannedBlock) -> list[Invocation]:
        """The conversions of a base with each delta that continues it."""
        deltas: Sequence[PlannedBlock] = self.deltas
        if self._has_one_pathway or converter.target != BASE:
            deltas = self.by_start.get(base.block.end, ())
        return [
            invocation
            for delta in deltas
            if fits(delta.block.kind, converter.source)
            for invocation in self._converted(converter, base, delta)
        ]

    def _continuing(
        self, converter: Converter, delta: PlannedBlock, start: Provenance
    ) -> list[Invocation]:
        """The conversions of a delta with each base that it continues."""
        bases: Sequence[PlannedBlock] = self.bases
        if self._has_one_pathway or converter.target != BASE:
            bases = self.bases_at.get(start, ())
        return [
            invocation for base in bases for invocation in self._converted(converter, base, delta)
        ]

    def _converted(
        self, converter: Converter, base: PlannedBlock, delta: PlannedBlock
    ) -> Iterable[Invocation]:
        block, held = delta.block, base.block.end
        start, end = block.start, block.end
        assert start is not None
        if converter.target == BASE:
            if not held.convertible(start, end):
                return
            end = held.converted(start, end)
            if not held.precedes(end):
                return
            start = None
        if self.may_end(end):
            output = Block(block.channel, converter.target, end, start)
            rows = (InputRead(base.block.rows, block.rows),)
            yield Invocation(converter.operator, (base, delta), rows, (output,))


def _chain_kind(one: Kind, other: Kind) -> Kind | None:
    if one == other:
        return one
    both_strong = fits(one, STRONG) and fits(other, STRONG)
    return STRONG if both_strong else None


@cache
def _chain_operator(channel: str) -> Operator:
    return Operator(f"{channel}: chain", WidgetVariant.CHAIN, (), ())
