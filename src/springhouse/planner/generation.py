"""Which blocks can be made from a block, together with those already at hand?

`blockGen` of 004's Algorithm 1. A *holding* is a block with one plan to get it. A *filling* is what
one input of an operator gets in an invocation: a base, a delta, or both, and it either moves the
input from a start to an end or leaves it where it is. When a holding is new, every filling that it
takes part in is new, and each of those is combined with the known fillings of the other inputs. So
each invocation is found once, when the last block that it needs comes in.

Blocks that are read have to be within the bounds of their channel where they end; where they start
they need not be, because what is brought up to date was behind.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from springhouse.planner.blocks import BASE, MONOTONE, STRONG, Block, Kind, fits
from springhouse.planner.bounds import NO_LIMITS, Limits, Times
from springhouse.planner.converters import Converter
from springhouse.planner.costs import Reading
from springhouse.planner.operators import Base, Operator, Output, Port, Variant
from springhouse.planner.part import Outlet, Socket
from springhouse.planner.provenance import Provenance
from springhouse.planner.pruning import joined
from springhouse.planner.workflow import Workflow

_NOTHING = Provenance()

MOST_COMBINATIONS = 256
"""How many combinations of inputs are followed at once, for operators with very many inputs."""


class Holding:
    """A block and one plan to get it: the invocations in it, as bits, and what they cost."""

    __slots__ = ("block", "cost", "mask")

    def __init__(self, block: Block, mask: int, cost: float) -> None:
        self.block, self.mask, self.cost = block, mask, cost


class Filling:
    """What one input gets: from where to where it moves, and by which blocks."""

    __slots__ = ("base", "delta", "end", "ends", "start", "starts")

    def __init__(
        self,
        start: Provenance,
        end: Provenance,
        times: Times,
        base: Holding | None = None,
        delta: Holding | None = None,
    ) -> None:
        self.start, self.end, self.base, self.delta = start, end, base, delta
        self.ends = times.interval(end)
        self.starts = self.ends if start is end else times.interval(start)


class Invocation(NamedTuple):
    """An operator on blocks, each with a plan, and the blocks that it would make, without rows."""

    operator: Operator
    holdings: tuple[Holding, ...]
    readings: tuple[Reading, ...]
    makes: tuple[Block, ...]


class _Site:
    """An operator and the fillings that each of its ports could get by now."""

    __slots__ = ("channel", "fillings", "held", "operator", "own", "seen_still", "slack")

    def __init__(self, outlet: Outlet, own: Holding | None) -> None:
        self.operator, self.channel, self.slack = outlet.operator, outlet.channel, outlet.slack
        self.own = own
        self.held = own.block.end.reflected if own is not None else None
        self.fillings: list[list[Filling]] = [[] for _ in outlet.operator.ports]
        self.seen_still: set[tuple[int, Provenance]] = set()


@dataclass
class _Lane:
    """What is at hand on one channel."""

    bases: list[Holding] = field(default_factory=list)
    deltas: list[Holding] = field(default_factory=list)
    by_start: dict[Provenance, list[Holding]] = field(default_factory=dict)
    by_end: dict[Provenance, list[Holding]] = field(default_factory=dict)
    bases_at: dict[Provenance, list[Holding]] = field(default_factory=dict)
    readers: list[tuple[_Site, Socket]] = field(default_factory=list)


class Generation:
    """Knows the blocks at hand in one search, and what can be made of them."""

    def __init__(
        self,
        workflow: Workflow,
        outlets: Iterable[Outlet],
        own: Mapping[str, Holding],
        limits: Mapping[str, Limits],
        times: Times,
        superseded: Collection[Block] = (),
    ) -> None:
        """`own` are the newest bases of channels that are written in place.

        `superseded` are bases that need not be read where nothing has to be consistent with them.
        """
        self._superseded = superseded
        self._workflow = workflow
        self._limits = limits
        self._times = times
        self._usable: dict[tuple[str, Provenance], bool] = {}
        self._renamed: dict[tuple[str, Provenance], Provenance] = {}
        self._lanes: dict[str, _Lane] = {}
        for outlet in outlets:
            self._open(outlet, own.get(outlet.channel))

    def _open(self, outlet: Outlet, own: Holding | None) -> None:
        operator = outlet.operator
        if operator.in_place and operator.moves and own is None:
            return  # A change needs something that it changes.
        site = _Site(outlet, own if operator.in_place else None)
        for number in outlet.untouched:
            site.fillings[number].append(Filling(_NOTHING, _NOTHING, self._times))
        for socket in outlet.sockets:
            self._lane(socket.port.channel).readers.append((site, socket))

    def _lane(self, channel: str) -> _Lane:
        found = self._lanes.get(channel)
        if found is None:
            found = self._lanes[channel] = _Lane()
        return found

    def add(self, holding: Holding) -> list[Invocation]:
        """Take a block in; all invocations that it makes possible."""
        block = holding.block
        lane = self._lane(block.channel)
        found: list[Invocation] = []
        if block.kind == BASE:
            lane.bases.append(holding)
            lane.bases_at.setdefault(block.end, []).append(holding)
        else:
            assert block.start is not None
            lane.deltas.append(holding)
            lane.by_start.setdefault(block.start, []).append(holding)
            lane.by_end.setdefault(block.end, []).append(holding)
            found += self._chains(holding, lane)
        for converter in self._workflow.converters.get(block.channel, ()):
            if block.kind == BASE or fits(block.kind, converter.source):
                found += self._conversions(converter, holding, lane)
        for site, socket in lane.readers:
            if block.kind in socket.kinds or socket.stands_without_base:
                for filling in self._fillings(site, socket, holding, lane):
                    site.fillings[socket.number].append(filling)
                    found += self._combined(site, socket.number, filling)
        return found

    # --- what one input gets ---------------------------------------------------------------------

    def _fillings(
        self, site: _Site, socket: Socket, holding: Holding, lane: _Lane
    ) -> Iterable[Filling]:
        port, block = socket.port, holding.block
        if block.kind in socket.kinds:
            if block.kind == BASE:
                alone = len(site.operator.ports) == 1 and port.moves
                superseded = holding.block in self._superseded and not (
                    site.operator.synchronous or port.moves
                )
                if not alone and not superseded and self._stands(site, port, block.end):
                    yield Filling(block.end, block.end, self._times, base=holding)
                yield from self._with_base(site, port, holding, lane)
            else:
                yield from self._with_delta(site, port, holding, lane)
        if socket.stands_without_base and (socket.number, block.end) not in site.seen_still:
            # Nothing has to be read of a side that stands still, wherever it is.
            site.seen_still.add((socket.number, block.end))
            if self._stands(site, port, block.end):
                yield Filling(block.end, block.end, self._times)

    def _with_base(self, site: _Site, port: Port, base: Holding, lane: _Lane) -> Iterable[Filling]:
        if not port.deltas:
            return
        end = base.block.end
        partners = lane.by_start if port.base is Base.OLD else lane.by_end
        for delta in partners.get(end, ()):
            if any(fits(delta.block.kind, kind) for kind in port.deltas):
                yield from self._moving(site, port, base, delta)

    def _with_delta(
        self, site: _Site, port: Port, delta: Holding, lane: _Lane
    ) -> Iterable[Filling]:
        if port.base is Base.NONE:
            yield from self._moving(site, port, None, delta)
            return
        block = delta.block
        assert block.start is not None
        meets = block.start if port.base is Base.OLD else block.end
        for base in lane.bases_at.get(meets, ()):
            yield from self._moving(site, port, base, delta)

    def _moving(
        self, site: _Site, port: Port, base: Holding | None, delta: Holding
    ) -> Iterable[Filling]:
        block = delta.block
        assert block.start is not None
        if self._is_usable(port.channel, block.end) and self._continues(site, port, block.start):
            yield Filling(block.start, block.end, self._times, base, delta)

    def _stands(self, site: _Site, port: Port, end: Provenance) -> bool:
        """Whether an input may be read where it is, without moving."""
        if not self._is_usable(port.channel, end):
            return False
        # In place, what a change is computed with is what the state reflects, unless it is driven
        # by another input: then it may be anything that the bounds allow.
        return not port.moves or self._continues(site, port, end)

    def _continues(self, site: _Site, port: Port, start: Provenance) -> bool:
        """Whether an operator in place stands at `start` of this input."""
        held = site.held
        if held is None:
            return True
        part = self._workflow.composed(site.channel, ((port.channel, start),)).reflected
        return all(held.get(key) == versions for key, versions in part.items())

    def _is_usable(self, channel: str, end: Provenance) -> bool:
        found = self._usable.get((channel, end))
        if found is None:
            found = self._times.keeps(self._limits.get(channel, NO_LIMITS), end)
            self._usable[channel, end] = found
        return found

    # --- what all inputs together give -----------------------------------------------------------

    def _combined(self, site: _Site, number: int, filling: Filling) -> Iterable[Invocation]:
        """The invocations of an operator in which this filling takes part."""
        if len(site.fillings) == 1:
            if filling.delta is not None or not site.operator.moves:
                made = self._made(site, (filling,))
                if made:
                    yield self._invocation(site, (filling,), made)
            return
        for chosen in self._combinations(site, number, filling):
            if site.operator.moves and all(each.delta is None for each in chosen):
                continue
            made = self._made(site, chosen)
            if made:
                yield self._invocation(site, chosen, made)

    @staticmethod
    def _combinations(site: _Site, number: int, filling: Filling) -> Iterable[list[Filling]]:
        """The filling with all of the other ports' that go together with it."""
        synchronous, slack = site.operator.synchronous, site.slack
        partial: list[tuple[list[Filling], float, float, float, float]] = [
            ([filling], *filling.starts, *filling.ends)
        ]
        for other, known in enumerate(site.fillings):
            if other == number:
                continue
            grown = []
            for chosen, s_left, s_right, e_left, e_right in partial:
                for each in known:
                    left, right = max(e_left, each.ends[0]), min(e_right, each.ends[1])
                    if not left < right + slack:
                        continue
                    first, last = max(s_left, each.starts[0]), min(s_right, each.starts[1])
                    if not synchronous or first < last:
                        grown.append(([*chosen, each], first, last, left, right))
            partial = grown[-MOST_COMBINATIONS:]
        found = [chosen for chosen, *_ in partial]
        for chosen in found:
            chosen.insert(number, chosen.pop(0))
        return found

    def _invocation(
        self, site: _Site, chosen: Sequence[Filling], made: tuple[Block, ...]
    ) -> Invocation:
        holdings, readings = [], []
        for each in chosen:
            base_rows = delta_rows = 0.0
            if each.base is not None:
                holdings.append(each.base)
                base_rows = each.base.block.rows
            if each.delta is not None:
                holdings.append(each.delta)
                delta_rows = each.delta.block.rows
            readings.append(Reading(base_rows, delta_rows))
        if site.own is not None:
            readings.append(Reading(site.own.block.rows))
            holdings.append(site.own)
        return Invocation(site.operator, tuple(holdings), tuple(readings), made)

    def _made(self, site: _Site, chosen: Sequence[Filling]) -> tuple[Block, ...]:
        operator = site.operator
        found = []
        for output in operator.outputs:
            channel = output.channel
            end = self._composed(operator, channel, [each.end for each in chosen])
            start = end
            if operator.moves:
                start = self._composed(operator, channel, [each.start for each in chosen])
            if operator.in_place:
                return self._in_place(site, start, end)
            if not operator.moves:
                found.append(Block(channel, BASE, end))
            elif start.precedes(end):
                found.append(Block(channel, _delta_kind(operator, output, chosen), end, start))
        return tuple(found)

    def _composed(
        self, operator: Operator, channel: str, parts: Sequence[Provenance]
    ) -> Provenance:
        if len(parts) > 1:
            names = [port.channel for port in operator.ports]
            return self._workflow.composed(channel, zip(names, parts, strict=True))
        # Of one input the same ends come again and again, in chains.
        known = self._renamed.get((channel, parts[0]))
        if known is None:
            name = operator.ports[0].channel
            known = self._workflow.composed(channel, ((name, parts[0]),))
            self._renamed[channel, parts[0]] = known
        return known

    def _in_place(self, site: _Site, start: Provenance, end: Provenance) -> tuple[Block, ...]:
        """The new state, and the delta from the one before."""
        if site.own is None:
            return (Block(site.channel, BASE, end),)
        held = site.own.block.end
        if site.operator.moves:
            if not held.convertible(start, end):
                return ()
            end = held.converted(start, end)
        if not held.precedes(end):
            return ()
        return (Block(site.channel, BASE, end), Block(site.channel, STRONG, end, held))

    # --- on one channel --------------------------------------------------------------------------

    def _chains(self, holding: Holding, lane: _Lane) -> Iterable[Invocation]:
        """Chains of two that the delta is part of; longer ones are chains of chains."""
        block = holding.block
        assert block.start is not None
        pairs = [(before, holding) for before in lane.by_end.get(block.start, ())]
        pairs += [(holding, after) for after in lane.by_start.get(block.end, ())]
        for first, last in pairs:
            kind = _chain_kind(first.block.kind, last.block.kind)
            if kind is None:
                continue
            chain = joined((first.block, last.block))
            if chain.start is not None and chain.start.precedes(chain.end):
                made = Block(
                    chain.channel, kind, chain.end, chain.start, chain.rows, chain.versions
                )
                yield Invocation(_chain_operator(chain.channel), (first, last), (), (made,))

    def _conversions(
        self, converter: Converter, holding: Holding, lane: _Lane
    ) -> Iterable[Invocation]:
        block, source, target = holding.block, converter.source, converter.target
        if source == BASE:
            if block.kind == BASE:
                for other in lane.bases:
                    yield from self._difference(converter, other, holding)
                    yield from self._difference(converter, holding, other)
        elif block.kind == BASE:
            deltas = lane.deltas if target == BASE else lane.by_start.get(block.end, ())
            for delta in deltas:
                if fits(delta.block.kind, source):
                    yield from self._convert(converter, holding, delta)
        elif fits(block.kind, source):
            assert block.start is not None
            if not converter.reads_base:
                made = Block(block.channel, target, block.end, block.start)
                yield Invocation(
                    converter.operator, (holding,), (Reading(0.0, block.rows),), (made,)
                )
                return
            for base in lane.bases if target == BASE else lane.bases_at.get(block.start, ()):
                yield from self._convert(converter, base, holding)

    @staticmethod
    def _difference(converter: Converter, old: Holding, new: Holding) -> Iterable[Invocation]:
        first, last = old.block, new.block
        if first.end.precedes(last.end):
            made = Block(last.channel, converter.target, last.end, first.end)
            yield Invocation(
                converter.operator, (old, new), (Reading(first.rows, last.rows),), (made,)
            )

    @staticmethod
    def _convert(converter: Converter, base: Holding, delta: Holding) -> Iterable[Invocation]:
        block, held = delta.block, base.block.end
        assert block.start is not None
        if converter.target == BASE:
            if not held.convertible(block.start, block.end):
                return
            end = held.converted(block.start, block.end)
            if not held.precedes(end):
                return
            made = Block(block.channel, BASE, end)
        else:
            made = Block(block.channel, converter.target, block.end, block.start)
        rows = (Reading(base.block.rows, block.rows),)
        yield Invocation(converter.operator, (base, delta), rows, (made,))


def _delta_kind(operator: Operator, output: Output, chosen: Sequence[Filling]) -> Kind:
    if operator.keeps_monotone and output.kind == STRONG:
        moved = [each.delta.block.kind for each in chosen if each.delta is not None]
        if all(kind == MONOTONE for kind in moved):
            return MONOTONE
    return output.kind


def _chain_kind(one: Kind, other: Kind) -> Kind | None:
    if one == other:
        return one
    both_strong = fits(one, STRONG) and fits(other, STRONG)
    return STRONG if both_strong else None


def _chain_operator(channel: str) -> Operator:
    return Operator(f"{channel}: chain", Variant.CHAIN, (), ())
