"""Which blocks can operators make from a new block and the blocks at hand?

This is `blockGen` of Algorithm 1 in paper 004. (`channel_blocks` makes blocks on the channel of the
new block.) A *filling* is the data that one input of an operator gets in an invocation: a base, a
delta, or both. A filling moves the input from a start to an end, or leaves it in place. A new block
brings new fillings, and each new filling is combined with the known fillings of the other inputs.
So each invocation appears once, when the last block that it needs arrives.

A block that an operator reads has to end within the bounds of its channel. It may start outside,
because an input was behind before the refresh.
"""

from collections.abc import Collection, Mapping, Sequence
from math import inf

from springhouse.planner.bounds import Times
from springhouse.planner.provenance import Provenance
from springhouse.planner.search.blocks import BASE, MONOTONE, STRONG, Block, Kind
from springhouse.planner.search.channel_blocks import ChannelBlocks
from springhouse.planner.search.invocation import Invocation, PlannedBlock
from springhouse.planner.search.invocation_costs import InputRead
from springhouse.planner.search.operators import Base, Operator, Output, Port
from springhouse.planner.search.part import Outlet, Part, Socket
from springhouse.planner.search.workflow import Workflow

MOST_COMBINATIONS = 256
"""The maximum number of combinations of fillings kept for one operator with many inputs."""


_ALWAYS = (-inf, inf)

_Parts = Sequence[tuple[str, Provenance]]


class Filling:
    """The data for one input: its start and end, and the blocks that move it.

    `starts` and `ends` are the intervals `(T+, T-)` in which start and end were right.
    """

    __slots__ = ("base", "delta", "end", "ends", "start", "starts")

    def __init__(
        self,
        start: Provenance,
        end: Provenance,
        base: PlannedBlock | None = None,
        delta: PlannedBlock | None = None,
        times: Times | None = None,
    ) -> None:
        self.start, self.end, self.base, self.delta = start, end, base, delta
        self.ends = _ALWAYS if times is None else times.interval(end)
        self.starts = self.ends if times is None or start is end else times.interval(start)


_UNTOUCHED = Filling(Provenance(), Provenance())


class _Site:
    """An operator, and the fillings found so far for each of its ports."""

    __slots__ = ("fillings", "held", "outlet", "own", "seen_still", "times")

    def __init__(self, outlet: Outlet, own: PlannedBlock | None, times: Times) -> None:
        self.outlet = outlet
        # A single input is always consistent with itself.
        self.times = times if outlet.is_joining else None
        self.own = own
        self.held = None if own is None else own.block.end.reflected
        self.fillings: list[list[Filling]] = [[] for _ in outlet.sources]
        for number in outlet.untouched:
            self.fillings[number].append(_UNTOUCHED)
        self.seen_still: set[tuple[int, Provenance]] = set()


class Generation:
    """The blocks at hand in one search, and the invocations that they make possible."""

    def __init__(
        self,
        workflow: Workflow,
        part: Part,
        own: Mapping[str, PlannedBlock],
        times: Times,
        superseded: Collection[Block] = (),
    ) -> None:
        """`own` are the newest bases of channels that are written in place.

        `superseded` are older bases: an operator reads one only if consistency needs it.
        """
        self._workflow = workflow
        self._part = part
        self._own = own
        self._times = times
        self._superseded = superseded
        self._lanes = {
            channel: ChannelBlocks(limits, times, has_one_pathway=channel in part.with_one_pathway)
            for channel, limits in part.limits.items()
        }
        self._sites: dict[Outlet, _Site | None] = {}

    def _site(self, outlet: Outlet) -> _Site | None:
        """The fillings of an operator; None if it should change a state that does not exist."""
        if outlet in self._sites:
            return self._sites[outlet]
        own = self._own.get(outlet.channel) if outlet.operator.in_place else None
        # Without a state, an operator in place has nothing to change.
        is_idle = outlet.operator.in_place and outlet.operator.moves and own is None
        site = self._sites[outlet] = None if is_idle else _Site(outlet, own, self._times)
        return site

    def may_end(self, channel: str, end: Provenance) -> bool:
        """Whether the channel is in the search, and a block on it may have this end."""
        lane = self._lanes.get(channel)
        return lane is not None and lane.may_end(end)

    def add(self, holding: PlannedBlock) -> list[Invocation]:
        """Add a block; returns all invocations that it makes possible."""
        channel, kind = holding.block.channel, holding.block.kind
        lane = self._lanes[channel]
        invocations = lane.add(holding, self._part.converters(channel, kind))
        fill = self._with_base if kind == BASE else self._with_delta
        for outlet, socket in self._part.readers(channel, kind):
            site = self._site(outlet)
            if site is not None:
                for filling in fill(site, socket, holding, lane):
                    site.fillings[socket.number].append(filling)
                    invocations += self._combined(site, socket.number, filling)
        return invocations

    # --- Fillings of one input -------------------------------------------------------------------

    def _with_base(
        self, site: _Site, socket: Socket, base: PlannedBlock, lane: ChannelBlocks
    ) -> list[Filling]:
        port, end = socket.port, base.block.end
        if BASE not in socket.kinds:
            return self._standing(site, socket, end, lane)
        fillings = []
        if self._is_read_alone(site, port, base.block) and self._stands(site, port, end, lane):
            fillings.append(Filling(end, end, base, None, site.times))
        if port.deltas:
            partners = lane.by_start if port.base is Base.OLD else lane.by_end
            for delta in partners.get(end, ()):
                if delta.block.kind in socket.kinds and lane.may_end(delta.block.end):
                    fillings += self._moving(site, port, (base,), delta)
        return fillings

    def _with_delta(
        self, site: _Site, socket: Socket, delta: PlannedBlock, lane: ChannelBlocks
    ) -> list[Filling]:
        port, block = socket.port, delta.block
        assert block.start is not None
        if not lane.may_end(block.end):
            return []
        fillings = []
        if block.kind in socket.kinds:
            bases: Sequence[PlannedBlock | None] = (None,)
            if port.base is not Base.NONE:
                meets = block.start if port.base is Base.OLD else block.end
                bases = lane.bases_at.get(meets, ())
            fillings = self._moving(site, port, bases, delta)
        return fillings + self._standing(site, socket, block.end, lane)

    def _is_read_alone(self, site: _Site, port: Port, base: Block) -> bool:
        """Whether an input may get a base and no delta."""
        if port.moves:
            return site.outlet.is_joining
        return site.outlet.operator.synchronous or base not in self._superseded

    def _moving(
        self, site: _Site, port: Port, bases: Sequence[PlannedBlock | None], delta: PlannedBlock
    ) -> list[Filling]:
        """An input moved by a delta, together with each of these bases."""
        start, end = delta.block.start, delta.block.end
        assert start is not None
        if not bases or not self._continues(site, port, start):
            return []
        return [Filling(start, end, base, delta, site.times) for base in bases]

    def _standing(
        self, site: _Site, socket: Socket, end: Provenance, lane: ChannelBlocks
    ) -> list[Filling]:
        """The filling of an input that stands still at `end` and is not read."""
        if not socket.stands_without_base or (socket.number, end) in site.seen_still:
            return []
        site.seen_still.add((socket.number, end))
        if not self._stands(site, socket.port, end, lane):
            return []
        return [Filling(end, end, times=site.times)]

    def _stands(self, site: _Site, port: Port, end: Provenance, lane: ChannelBlocks) -> bool:
        """Whether an input may be read at `end`, without moving."""
        # An operator in place reads the versions that its state reflects. If another input drives
        # it, it may read any version within the bounds.
        return lane.may_end(end) and (not port.moves or self._continues(site, port, end))

    def _continues(self, site: _Site, port: Port, start: Provenance) -> bool:
        """Whether the state of an operator in place reflects this input up to `start`."""
        held = site.held
        if held is None:
            return True
        part = self._workflow.composed(site.outlet.channel, ((port.channel, start),)).reflected
        return all(held.get(key) == versions for key, versions in part.items())

    # --- Invocations of all inputs together ------------------------------------------------------

    def _combined(self, site: _Site, number: int, filling: Filling) -> list[Invocation]:
        """The invocations of an operator with this filling."""
        invocations = []
        moves = site.outlet.operator.moves
        for chosen in self._combinations(site, number, filling):
            if moves and all(each.delta is None for each in chosen):
                continue
            outputs = self._made(site, chosen)
            if outputs:
                invocations.append(self._invocation(site, chosen, outputs))
        return invocations

    @staticmethod
    def _combinations(site: _Site, number: int, filling: Filling) -> list[list[Filling]]:
        """The filling, with compatible fillings of the other ports."""
        if not site.outlet.is_joining:
            return [[filling]]
        synchronous, slack = site.outlet.operator.synchronous, site.outlet.slack
        partial: list[tuple[list[Filling], float, float, float, float]] = [
            ([filling], *filling.starts, *filling.ends)
        ]
        for other, known in enumerate(site.fillings):
            if other == number:
                continue
            if not known:
                return []
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
        combinations = [chosen for chosen, *_ in partial]
        for chosen in combinations:
            chosen.insert(number, chosen.pop(0))
        return combinations

    def _invocation(
        self, site: _Site, chosen: Sequence[Filling], outputs: tuple[Block, ...]
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
            readings.append(InputRead(base_rows, delta_rows))
        if site.own is not None:
            readings.append(InputRead(site.own.block.rows))
            holdings.append(site.own)
        return Invocation(site.outlet.operator, tuple(holdings), tuple(readings), outputs)

    def _made(self, site: _Site, chosen: Sequence[Filling]) -> tuple[Block, ...]:
        """The resulting blocks; none if no block ends within bounds."""
        outlet, compose = site.outlet, self._workflow.composed
        operator = outlet.operator
        ends = starts = list(zip(outlet.sources, [each.end for each in chosen], strict=True))
        if operator.moves:
            starts = list(zip(outlet.sources, [each.start for each in chosen], strict=True))
        if operator.in_place:
            return self._in_place(site, starts, ends, chosen)
        outputs = []
        useful = False
        for output in operator.outputs:
            end = compose(output.channel, ends)
            useful = useful or self.may_end(output.channel, end)
            if not operator.moves:
                outputs.append(Block(output.channel, BASE, end))
                continue
            start = compose(output.channel, starts)
            if start.precedes(end):
                kind = _delta_kind(operator, output, chosen)
                outputs.append(Block(output.channel, kind, end, start))
        return tuple(outputs) if useful else ()

    def _in_place(
        self, site: _Site, starts: _Parts, ends: _Parts, chosen: Sequence[Filling]
    ) -> tuple[Block, ...]:
        """The new state, and the delta that leads to it from the present state."""
        channel, compose = site.outlet.channel, self._workflow.composed
        end = compose(channel, ends)
        held = site.own.block.end if site.own is not None else None
        if held is not None and site.outlet.operator.moves:
            start = compose(channel, starts)
            if not held.convertible(start, end):
                return ()
            end = held.converted(start, end)
        if not self.may_end(channel, end):
            return ()
        if held is None:
            return (Block(channel, BASE, end),)
        if not held.precedes(end):
            return ()
        operator = site.outlet.operator
        kind = _delta_kind(operator, operator.outputs[0], chosen) if operator.moves else STRONG
        return (Block(channel, BASE, end), Block(channel, kind, end, held))


def _delta_kind(operator: Operator, output: Output, chosen: Sequence[Filling]) -> Kind:
    if output.kind != STRONG or not operator.keeps_monotone:
        return output.kind
    for each in chosen:
        if each.delta is not None and each.delta.block.kind != MONOTONE:
            return STRONG
    return MONOTONE
