"""Which blocks bring an output back within its bounds?

This is `selectOutputBlocks` of paper 004 (section 6.1), for one output. Consumers take a block if
they accept its kind, if it brings them forward (monotonicity), and if their new state is no more
inconsistent than promised. A block grants a wish if it leaves all bounds kept. If bounds on several
pathways are broken, several blocks in a row may grant the wish: an asynchronous union moves one
side at a time, and this is often far cheaper than one block that moves both sides.
"""

from collections.abc import Iterator, Mapping, Sequence

from springhouse.planner.bounds import NO_LIMITS, ChannelBounds, Times
from springhouse.planner.provenance import Provenance
from springhouse.planner.search.blocks import Block, Kind, accepted_kinds, apply_block
from springhouse.planner.search.workflow_plan import Wish

_MOST_IN_A_ROW = 4
"""The maximum number of blocks in a row to grant one wish."""

_MOST_TRIED = 24
"""The number of blocks that rows are made of: the cheapest blocks."""

_After = tuple[Provenance, frozenset[str]]

Row = tuple[int, ...]
"""Blocks in a row, by their positions in a list of blocks."""


class Granting:
    """Finds the blocks that grant the wishes of one search."""

    def __init__(
        self,
        outputs: Mapping[str, Sequence[Kind]],
        limits: Mapping[str, ChannelBounds],
        held: Mapping[str, Provenance],
        times: Times,
        wishes: Sequence[Wish],
    ) -> None:
        self._limits, self._held, self._times = limits, held, times
        self._asked = {wish.channel: frozenset(wish.asked) for wish in wishes}
        self._accepted = {wish.channel: accepted_kinds(outputs[wish.channel]) for wish in wishes}
        self._first: dict[Block, _After | None] = {}

    def mends(self, channel: str, block: Block) -> bool:
        """Whether consumers can take this block first, and it mends a bound."""
        return self._at_first(channel, block) is not None

    def reaches(self, channel: str, block: Block) -> Provenance | None:
        """The state of consumers after this block alone; None if they can't take it."""
        after = self._at_first(channel, block)
        return None if after is None else after[0]

    def _at_first(self, channel: str, block: Block) -> "_After | None":
        if block not in self._first:
            held, asked = self._held.get(channel), self._asked[channel]
            self._first[block] = self._after(channel, held, asked, block)
        return self._first[block]

    def may_help(self, channel: str, block: Block) -> bool:
        """Whether a block mends a bound, or may do so after another block."""
        if len(self._asked[channel]) > 1:
            return block.kind in self._accepted[channel]
        return self.mends(channel, block)

    def rows(self, channel: str, blocks: Sequence[Block]) -> Iterator[tuple[frozenset[str], Row]]:
        """Rows of blocks that consumers can take, and the pathways that each row leaves broken.

        `blocks` are the blocks that may help, the cheapest first.
        """
        waiting: list[tuple[Provenance | None, frozenset[str], Row]] = [
            (self._held.get(channel), self._asked[channel], ())
        ]
        while waiting:
            held, broken, row = waiting.pop()
            for number, block in enumerate(blocks[:_MOST_TRIED] if row else blocks):
                if number in row:
                    continue
                if row:
                    after = self._after(channel, held, broken, block)
                else:
                    after = self._at_first(channel, block)
                if after is None:
                    continue
                state, left = after
                yield left, (*row, number)
                if left and len(row) + 1 < _MOST_IN_A_ROW:
                    waiting.append((state, left, (*row, number)))

    def reached(self, channel: str, blocks: Sequence[Block]) -> Provenance | None:
        """The state of consumers after these blocks."""
        held = self._held.get(channel)
        for block in blocks:
            held = apply_block(held, block)
        return held

    def _after(
        self, channel: str, held: Provenance | None, broken: frozenset[str], block: Block
    ) -> "_After | None":
        """The state after a block, and the pathways still broken; None if it can't be taken."""
        if block.kind not in self._accepted[channel]:
            return None
        reaches = apply_block(held, block)
        if reaches is None or (held is not None and not held.precedes(reaches)):
            return None
        limits = self._limits.get(channel, NO_LIMITS)
        if not self._times.within_inconsistency(limits, reaches):
            return None
        left = frozenset(self._times.violated(limits, reaches))
        if not left <= broken or (left == broken and left):
            return None
        return reaches, left
