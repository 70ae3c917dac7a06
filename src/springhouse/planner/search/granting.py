"""Do these blocks give the consumers of an output what they wait for?

`selectOutputBlocks` of 004 section 6.1, for one output. Consumers take a block if they accept its
kind, if it brings them forward (monotonicity), and if what they hold then is no more inconsistent
than promised. A wish is granted by a block after which all bounds are kept. Where bounds on several
pathways are broken, several blocks may do it together, one after the other: an asynchronous union
brings forward one side at a time, and that is often far cheaper than one block for all.
"""

from collections.abc import Iterator, Mapping, Sequence

from springhouse.planner.bounds import NO_LIMITS, ChannelBounds, Times
from springhouse.planner.provenance import Provenance
from springhouse.planner.search.blocks import Block, Kind, accepted, applied
from springhouse.planner.search.workflow_plan import Wish

_MOST_IN_A_ROW = 4
"""How many blocks one after the other are tried to grant one wish."""

_MOST_TRIED = 24
"""Of how many blocks rows are tried: the cheapest."""

_After = tuple[Provenance, frozenset[str]]

Row = tuple[int, ...]
"""Blocks one after the other, as their numbers among those that were given."""


class Granting:
    """Judges blocks on outputs in one search."""

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
        self._accepted = {wish.channel: accepted(outputs[wish.channel]) for wish in wishes}
        self._first: dict[Block, _After | None] = {}

    def mends(self, channel: str, block: Block) -> bool:
        """Whether consumers that got nothing else yet may get this block, and it is of use."""
        return self._at_first(channel, block) is not None

    def reaches(self, channel: str, block: Block) -> Provenance | None:
        """What consumers would hold after this block and nothing else; None if they may not."""
        after = self._at_first(channel, block)
        return None if after is None else after[0]

    def _at_first(self, channel: str, block: Block) -> "_After | None":
        if block not in self._first:
            held, asked = self._held.get(channel), self._asked[channel]
            self._first[block] = self._after(channel, held, asked, block)
        return self._first[block]

    def may_help(self, channel: str, block: Block) -> bool:
        """Whether a block mends something, or could after another one did."""
        if len(self._asked[channel]) > 1:
            return block.kind in self._accepted[channel]
        return self.mends(channel, block)

    def rows(self, channel: str, blocks: Sequence[Block]) -> Iterator[tuple[frozenset[str], Row]]:
        """Blocks that may be handed out one after the other, and what each such row leaves broken.

        `blocks` are those that may help, the cheapest first.
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
        """What consumers hold after these blocks."""
        held = self._held.get(channel)
        for block in blocks:
            held = applied(held, block)
        return held

    def _after(
        self, channel: str, held: Provenance | None, broken: frozenset[str], block: Block
    ) -> "_After | None":
        """What is held after a block, and what is broken still; None if it may not be taken."""
        if block.kind not in self._accepted[channel]:
            return None
        reaches = applied(held, block)
        if reaches is None or (held is not None and not held.precedes(reaches)):
            return None
        limits = self._limits.get(channel, NO_LIMITS)
        if not self._times.within_inconsistency(limits, reaches):
            return None
        left = frozenset(self._times.violated(limits, reaches))
        if not left <= broken or (left == broken and left):
            return None
        return reaches, left
