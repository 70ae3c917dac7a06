"""The cheapest plan by trying everything: an oracle for the search, which shares no code with it.

The oracle first makes every possible block: it applies all operators to all combinations of blocks
until no new block appears. Then it tries sets of invocations, the cheapest first, until one grants
all wishes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import product
from math import inf

from springhouse.planner.bounds import ChannelBounds
from springhouse.planner.provenance import Channel, Provenance, source_of
from springhouse.planner.search.blocks import BASE, MONOTONE, STRONG, Block
from springhouse.planner.search.operators import Base, Operator
from springhouse.planner.search.workflow import Workflow
from springhouse.planner.search.workflow_plan import Situation


@dataclass(frozen=True)
class Invocation:
    operator: str
    inputs: tuple[Block, ...]
    outputs: tuple[Block, ...]
    cost: float
    in_place: str | None = None


class TooManyError(Exception):
    """The case is too large to try everything."""


def span(provenance: Provenance, channels: Mapping[str, Channel]) -> tuple[float, float]:
    pairs = [(channels[source_of(k)], v) for k, vs in provenance.reflected.items() for v in vs]
    return (
        max((channel.since(v) for channel, v in pairs), default=-inf),
        min((channel.until(v) for channel, v in pairs), default=inf),
    )


def kept(limits: ChannelBounds, provenance: Provenance, situation: Situation) -> bool:
    for key, seconds in limits.staleness.items():
        channel = situation.channels[source_of(key)]
        versions = provenance.reflected.get(key, frozenset())
        if any(channel.until(version) + seconds <= situation.now for version in versions):
            return False
    left, right = span(provenance, situation.channels)
    return left < right + limits.inconsistency


def takes(kind: str, wanted: str) -> bool:
    return kind == wanted or (kind, wanted) == (MONOTONE, STRONG)


def legal(
    workflow: Workflow,
    limits: Mapping[str, ChannelBounds],
    situation: Situation,
    blocks: Sequence[Block],
    cost_of: Mapping[str, float],
) -> Iterator[Invocation]:
    """Every invocation that is legal on these blocks."""
    on: dict[str, list[Block]] = {}
    for block in blocks:
        on.setdefault(block.channel, []).append(block)
    for operator in workflow.operators:
        for inputs, start, end in readings(workflow, limits, situation, on, operator):
            yield from made(workflow, limits, situation, operator, inputs, start, end, cost_of)
    for channel, there in on.items():
        yield from chains(channel, there, limits, situation)
        for converter in workflow.converters.get(channel, ()):
            for one, other in product(there, repeat=2):
                result = converted(converter.source, converter.target, one, other)
                if result is not None and kept(
                    limits.get(channel, ChannelBounds()), result.end, situation
                ):
                    inputs = (other,) if one is other else (one, other)
                    yield Invocation(converter.name, inputs, (result,), cost_of[converter.name])


def converted(source, target, one: Block, other: Block) -> Block | None:
    """Convert `other`; `one` is the old base."""
    if source == STRONG and target not in (BASE, STRONG):
        if one is other and takes(one.kind, STRONG):
            return Block(one.channel, target, one.end, one.start)
        return None
    if one is other or one.kind != BASE or not takes(other.kind, source):
        return None
    if source == BASE:
        return (
            Block(one.channel, target, other.end, one.end) if one.end.precedes(other.end) else None
        )
    if target == BASE:
        if not one.end.convertible(other.start, other.end):
            return None
        end = one.end.converted(other.start, other.end)
        return Block(one.channel, BASE, end) if one.end.precedes(end) else None
    return Block(one.channel, target, other.end, other.start) if one.end == other.start else None


def chains(channel, there, limits, situation) -> Iterator[Invocation]:
    deltas = [block for block in there if block.kind != BASE]
    for one, other in product(deltas, repeat=2):
        if one.end != other.start or not one.start.precedes(other.end):
            continue
        if one.kind == other.kind:
            kind = one.kind
        elif takes(one.kind, STRONG) and takes(other.kind, STRONG):
            kind = STRONG
        else:
            continue
        if kept(limits.get(channel, ChannelBounds()), other.end, situation):
            made_block = Block(channel, kind, other.end, one.start)
            yield Invocation(f"{channel}: chain", (one, other), (made_block,), 0.0)


def readings(workflow, limits, situation, on, operator: Operator):
    """For each way to fill all ports: the blocks, and per port the channel, start and end."""
    ways = []
    for port in operator.ports:
        there = on.get(port.channel, [])
        bases = [block for block in there if block.kind == BASE]
        deltas = [b for b in there if any(takes(b.kind, kind) for kind in port.deltas)]
        found = []
        if port.base is Base.NONE and not port.deltas:
            found.append(((), Provenance(), Provenance()))
        elif port.base is Base.NONE:
            found += [((d,), d.start, d.end) for d in deltas]
            found += [((), end, end) for end in {block.end for block in there}]
        else:
            found += [((b,), b.end, b.end) for b in bases]
            for base, delta in product(bases, deltas):
                if base.end == (delta.start if port.base is Base.OLD else delta.end):
                    found.append(((base, delta), delta.start, delta.end))
        allowed = limits.get(port.channel, ChannelBounds())
        ways.append([way for way in found if kept(allowed, way[2], situation)])
    names = [port.channel for port in operator.ports]
    for chosen in product(*ways):
        moving = any(any(b.kind != BASE for b in blocks) for blocks, _, _ in chosen)
        if operator.moves and not moving:
            continue
        yield (
            tuple(block for blocks, _, _ in chosen for block in blocks),
            [(name, start) for name, (_, start, _) in zip(names, chosen, strict=True)],
            [(name, end) for name, (_, _, end) in zip(names, chosen, strict=True)],
        )


def made(workflow, limits, situation, operator, inputs, starts, ends, cost_of):
    outputs = []
    for output in operator.outputs:
        start = workflow.composed(output.channel, starts)
        end = workflow.composed(output.channel, ends)
        if operator.synchronous:
            for each in (start, end):
                left, right = span(each, situation.channels)
                if not left < right:
                    return
        if not operator.moves:
            block = Block(output.channel, BASE, end)
        elif start.precedes(end):
            kinds = {block.kind for block in inputs if block.kind != BASE}
            monotone = operator.keeps_monotone and output.kind == STRONG and kinds == {MONOTONE}
            block = Block(output.channel, MONOTONE if monotone else output.kind, end, start)
        else:
            continue
        if kept(limits.get(output.channel, ChannelBounds()), end, situation):
            outputs.append(block)
    if outputs:
        yield Invocation(operator.name, inputs, tuple(outputs), cost_of[operator.name])


def closure(workflow, limits, situation, cost_of, most=40) -> list[Invocation]:
    """All invocations that can ever become possible."""
    blocks = dict.fromkeys(block for each in situation.blocks.values() for block in each)
    existing = set(blocks)
    found: dict[Invocation, None] = {}
    while True:
        before = len(found)
        for each in legal(workflow, limits, situation, tuple(blocks), cost_of):
            if not set(each.outputs) <= existing:
                found[each] = None
            if len(found) > most:
                raise TooManyError
        for each in found:
            blocks.update(dict.fromkeys(each.outputs))
        if len(found) == before:
            return list(found)


def cheapest(
    workflow: Workflow,
    limits: Mapping[str, ChannelBounds],
    situation: Situation,
    cost_of: Mapping[str, float],
    granted,
    most_sets: int = 30_000,
) -> float:
    """The cost of the cheapest set of invocations that `granted` accepts; infinite if none."""
    possible = closure(workflow, limits, situation, cost_of)
    existing = frozenset(block for each in situation.blocks.values() for block in each)
    queue = [(0.0, 0)]
    seen = {0}
    tick = 0
    while queue:
        cost, mask = heappop(queue)
        tick += 1
        if tick > most_sets:
            raise TooManyError
        there = set(existing)
        for number, each in enumerate(possible):
            if mask >> number & 1:
                there.update(each.outputs)
        if granted(there):
            return cost
        for number, each in enumerate(possible):
            grown = mask | 1 << number
            if grown in seen or grown == mask or set(each.outputs) <= there:
                continue
            if all(block in there for block in each.inputs):
                seen.add(grown)
                heappush(queue, (cost + each.cost, grown))
    return inf
