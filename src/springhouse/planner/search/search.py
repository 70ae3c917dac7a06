"""Which invocations grant all wishes at the lowest cost?

Algorithm 1 of paper 004 (section 6.1) is like Dijkstra's shortest paths, with blocks as places and
operator invocations as roads. In each step the search takes the cheapest block off a queue
(`_is_new`). Then it puts all blocks on the queue that operators can make from this block and from
the blocks taken before (`generation`, `_offer`). A plan is a set of invocations, kept as the bits
of a number. Its cost counts each invocation once, even if several blocks need its result:

    cost(p ∪ q) = cost(p) + cost(q - p)      never less than either, so blocks come off in order

`granting` says which blocks grant a wish. The search is over when it knows, for each wish, a way to
grant it that costs no more than the cheapest block on the queue. Then `_chosen` picks a way for
each wish, so that the total cost is low.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import NamedTuple

from springhouse.planner.bounds import NO_LIMITS, ChannelBounds, Times
from springhouse.planner.provenance import Provenance
from springhouse.planner.search.blocks import BASE, MONOTONE, STRONG, Block, Kind
from springhouse.planner.search.generation import Generation
from springhouse.planner.search.granting import Granting
from springhouse.planner.search.invocation import Invocation, PlannedBlock
from springhouse.planner.search.invocation_costs import Costs, Estimate
from springhouse.planner.search.laziness import Laziness
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.search.part import Part
from springhouse.planner.search.pruning import Switches, is_older, is_outdated, superseded_bases
from springhouse.planner.search.workflow import Workflow
from springhouse.planner.search.workflow_plan import (
    Alternative,
    PlanStep,
    Situation,
    Wish,
    WorkflowPlan,
)

_MOST_CHOICES = 4096


@dataclass(frozen=True)
class SearchTask:
    """The question: wishes, existing blocks, and bounds."""

    workflow: Workflow
    outputs: Mapping[str, Sequence[Kind]]
    limits: Mapping[str, ChannelBounds]
    propagated: Mapping[str, ChannelBounds]
    tightest: Mapping[str, ChannelBounds]
    switches: Switches
    situation: Situation
    times: Times
    blocks: Mapping[str, Sequence[Block]]
    reached: Mapping[str, Mapping[str, int]]
    part: Part
    ends: Collection[str]
    wishes: Sequence[Wish]


class _SearchNode:
    """A block in the search, with the plans for it that were taken off the queue."""

    __slots__ = ("best", "block", "done", "exists")

    def __init__(self, block: Block, exists: bool) -> None:
        self.block, self.exists = block, exists
        self.done: list[PlannedBlock] = []
        self.best = inf


class _Registered(NamedTuple):
    """An invocation that has a number, with its cost and the blocks that it makes."""

    invocation: Invocation
    estimate: Estimate
    blocks: tuple[Block, ...]


class _Candidate(NamedTuple):
    """A way to grant a wish: the blocks, their plan, and the pathways left broken."""

    left: frozenset[str]
    cost: float
    mask: int
    holdings: tuple[PlannedBlock, ...]


class _PartialPlan(NamedTuple):
    """A way for each of some wishes: the way of the last one, and the choice before it."""

    cost: float
    mask: int
    last: "tuple[str, _Candidate, _PartialPlan] | None"


class Search:
    """One run of the algorithm."""

    def __init__(self, task: SearchTask, costs: Costs, *, alternatives: bool = True) -> None:
        workflow, switches, situation = task.workflow, task.switches, task.situation
        self._task, self._costs = task, costs
        self._switches, self._wishes = switches, task.wishes
        self._held = situation.held
        self._times = task.times
        own = self._own_bases(task.part.in_place)
        superseded = superseded_bases(task.blocks) if switches.long_term else ()
        self._generation = Generation(workflow, task.part, own, self._times, superseded)
        self._nodes: dict[Block, _SearchNode] = {}
        # Ordered by cost, and then the fresher block first, also among existing blocks: a chain of
        # deltas then grows from its new end, and chains with older ends are outdated (section 6.3).
        self._queue: list[tuple[float, int, int, PlannedBlock]] = []
        self._ticks = count()
        self._numbers: dict[tuple[str, tuple[Block, ...]], int] = {}
        self._registered: list[_Registered] = []
        self._in_place: dict[str, int] = {}
        self._planned: dict[tuple[str, Kind], list[Provenance]] = {}
        self._tried: dict[str, list[tuple[str, Block, float]]] = {}
        self._mending: dict[str, list[PlannedBlock]] = {}
        self._ways: dict[str, list[_Candidate]] = {}
        self._unsettled = [wish.channel for wish in task.wishes]
        self._granting = Granting(
            task.outputs, task.limits, situation.held, task.times, task.wishes
        )
        for wish in task.wishes:
            self._mending[wish.channel] = []
            self._ways[wish.channel] = []
            if alternatives:
                self._tried[wish.channel] = []
        self._enough: dict[tuple[str, Kind], list[Provenance]] = {}
        self.explored = 0
        self._most_blocks = inf if switches.most_blocks is None else switches.most_blocks
        # Only at the end is it known which of several plans for a block suits several wishes best.
        keeps_all = switches.plans_per_block is None and len(task.wishes) > 1
        self._stops_early = switches.stop_early and not keeps_all

    def run(self) -> WorkflowPlan:
        """Search, and choose the plan."""
        self._fill_queue(lazily=self._switches.stop_early)
        while self._queue and not self._is_over(self._queue[0][0]):
            cost, *_, holding = heappop(self._queue)
            # The block that settles the last wish needs no successors.
            if self._is_new(holding) and not self._is_over(cost):
                for invocation in self._generation.add(holding):
                    self._offer(invocation)
        return self._chosen()

    def directly(self) -> list[tuple[float, PlanStep]]:
        """All steps that read only existing blocks, each with its cost."""
        self._fill_queue()
        steps: dict[tuple[str, tuple[Block, ...]], tuple[float, PlanStep]] = {}
        while self._queue:
            *_, holding = heappop(self._queue)
            if not self._nodes[holding.block].exists or not self._is_new(holding):
                continue
            for invocation in self._generation.add(holding):
                if number := self._offer(invocation):
                    step = self._step(number - 1)
                    steps[step.operator.name, step.inputs] = (step.cost, step)
        return list(steps.values())

    def granted_by_existing(self, wish: Wish) -> Wish:
        """The wish, granted if an existing block grants it."""
        return self._granted(wish, next(iter(self._ways[wish.channel]), None))

    def _own_bases(self, channels: Iterable[str]) -> dict[str, PlannedBlock]:
        bases = {}
        for channel in channels:
            held = self._held.get(channel)
            for block in self._task.blocks[channel]:
                if block.kind == BASE and block.end == held:
                    bases[channel] = PlannedBlock(block, 0, 0.0)
        return bases

    # --- The queue -------------------------------------------------------------------------------

    def _fill_queue(self, *, lazily: bool = False) -> None:
        task = self._task
        lazy = None
        if lazily and task.reached and task.workflow.converters:
            lazy = Laziness(
                task.workflow,
                task.part,
                task.blocks,
                task.reached,
                self._costs,
                task.outputs,
            )
        for blocks in task.blocks.values():
            for block in blocks:
                self._nodes[block] = _SearchNode(block, exists=True)
                at = lazy.least(block) if lazy is not None else 0.0
                fresh = sum(block.end.latest.values())
                self._queue.append((at, -fresh, next(self._ticks), PlannedBlock(block, 0, 0.0)))
        heapify(self._queue)

    def _is_new(self, holding: PlannedBlock) -> bool:
        """Whether a block taken off the queue is new and useful; then the search remembers it."""
        block = holding.block
        node = self._nodes[block]
        if node.done and self._is_dominated(node, holding.mask):
            return False
        if not node.exists and self._is_outdated(block):
            return False
        node.done.append(holding)
        self.explored += 1
        mending = self._mending.get(block.channel)
        if mending is not None and self._granting.may_help(block.channel, block):
            mending.append(holding)
            if self._switches.stop_early:
                self._ways[block.channel] = self._ways_to_grant(block.channel)
        return True

    def _is_dominated(self, node: _SearchNode, mask: int) -> bool:
        most = self._switches.plans_per_block
        if most is not None and len(node.done) >= most:
            return True
        return any(settled.mask & mask == settled.mask for settled in node.done)

    def _is_over(self, cheapest: float) -> bool:
        """Whether the search can end: all further blocks cost at least `cheapest`."""
        if self.explored >= self._most_blocks:
            return True
        if not self._stops_early:
            return False
        while self._unsettled:
            ways = self._ways[self._unsettled[-1]]
            if not ways or ways[0].left or ways[0].cost > cheapest:
                return False
            # Costs on the queue only grow, so a settled wish stays settled.
            self._unsettled.pop()
        return True

    def _offer(self, invocation: Invocation) -> int:
        """Put the outputs on the queue; its number plus one, or 0 if no output is useful."""
        outputs = [each if self._is_worth(each) else None for each in invocation.makes]
        if not any(outputs):
            return 0
        together = self._together(invocation.holdings)
        if together is None:
            return 0
        number = self._number(invocation)
        registered = self._registered[number]
        mask, cost = together[0] | 1 << number, together[1] + registered.estimate.cost
        for output, block in zip(outputs, registered.blocks, strict=True):
            if output is None:
                continue
            node = self._nodes.get(block)
            if node is None:
                node = self._nodes[block] = _SearchNode(block, exists=False)
            if block.channel in self._tried:
                tried = (invocation.operator.name, node.block, cost)
                self._tried[block.channel].append(tried)
            if self._switches.plans_per_block == 1:
                if node.best <= cost:
                    continue
                node.best = cost
            if not node.done or not self._is_dominated(node, mask):
                holding = PlannedBlock(node.block, mask, cost)
                fresh = sum(block.end.latest.values())
                heappush(self._queue, (cost, -fresh, next(self._ticks), holding))
        return number + 1

    def _number(self, invocation: Invocation) -> int:
        """The bit of an invocation; the same operator on the same blocks keeps its bit."""
        key = (invocation.operator.name, tuple(each.block for each in invocation.holdings))
        number = self._numbers.get(key)
        if number is not None:
            return number
        number = self._numbers[key] = len(self._registered)
        operator = invocation.operator
        if operator.variant is WidgetVariant.CHAIN:
            estimate = Estimate(0.0, tuple(block.rows for block in invocation.makes))
        else:
            estimate = self._costs.estimate(operator, invocation.readings)
        outputs = zip(invocation.makes, estimate.rows, strict=False)
        blocks = tuple([block.with_rows(rows) for block, rows in outputs])
        self._registered.append(_Registered(invocation, estimate, blocks))
        if operator.in_place:
            channel = operator.outputs[0].channel
            self._in_place[channel] = self._in_place.get(channel, 0) | 1 << number
        return number

    # --- Useful blocks ---------------------------------------------------------------------------

    def _is_worth(self, block: Block) -> bool:
        node = self._nodes.get(block)
        if node is not None:
            settled = node.done and self._switches.plans_per_block == 1
            return not (node.exists or settled)
        if not self._generation.may_end(block.channel, block.end):
            return False
        if self._switches.overkill and block.kind == STRONG and self._is_monotone(block):
            return False
        if not self._is_applicable(block):
            return False
        if any(is_older(end, block.end) for end in self._good_enough(block.channel, block.kind)):
            return False
        if self._is_outdated(block):
            return False
        if self._switches.long_term:
            planned = self._planned.setdefault((block.channel, block.kind), [])
            if block.end not in planned:
                planned.append(block.end)
        return True

    def _is_applicable(self, block: Block) -> bool:
        """Whether consumers can apply a block that no operator reads."""
        if block.channel not in self._task.ends or block.start is None:
            return True
        # A delta that only consumers read has to begin at their state.
        held = self._held.get(block.channel)
        return held is not None and held.convertible(block.start, block.end)

    def _is_monotone(self, block: Block) -> bool:
        """Whether a monotone delta with the same ends is at hand, which holds the same rows."""
        same = self._nodes.get(Block(block.channel, MONOTONE, block.end, block.start))
        return same is not None and (same.exists or bool(same.done))

    def _good_enough(self, channel: str, kind: Kind) -> list[Provenance]:
        """The ends of existing blocks of a kind within all limits; none on an output."""
        ends = self._enough.get((channel, kind))
        if ends is None:
            ends = self._enough[channel, kind] = []
            if self._switches.overkill and channel not in self._mending:
                limits = self._task.tightest.get(channel, NO_LIMITS)
                pathways = len(self._task.workflow.pathways(channel))
                for block in self._task.blocks[channel]:
                    whole = block.kind == kind and len(block.end.reflected) == pathways
                    if whole and self._times.keeps(limits, block.end):
                        ends.append(block.end)
        return ends

    def _is_outdated(self, block: Block) -> bool:
        """Whether a fresher block of its kind is planned (section 6.3)."""
        if not self._switches.long_term:
            return False
        planned = self._planned.get((block.channel, block.kind))
        if planned is None:
            return False
        reached = self._task.reached[block.channel]
        return any(is_outdated(block.end, end, reached) for end in planned if end is not block.end)

    # --- Plans as sets ---------------------------------------------------------------------------

    def _together(self, holdings: Iterable[PlannedBlock]) -> tuple[int, float] | None:
        """The union of all plans, and its cost; None if one run can't do all of them."""
        mask, cost = 0, 0.0
        for each in holdings:
            if each.mask == 0:
                continue
            merged = self._merged(mask, cost, each.mask, each.cost)
            if merged is None:
                return None
            mask, cost = merged
        return mask, cost

    def _merged(
        self, one: int, one_cost: float, other: int, other_cost: float
    ) -> tuple[int, float] | None:
        both = one & other
        if both == other:
            return one, one_cost
        if both == one:
            return other, other_cost
        only_one, only_other = one & ~other, other & ~one
        if only_one.bit_count() < only_other.bit_count():
            rest, into, cost = only_one, other, other_cost
        else:
            rest, into, cost = only_other, one, one_cost
        mask = into | rest
        while rest:
            bit = rest & -rest
            rest ^= bit
            registered = self._registered[bit.bit_length() - 1]
            cost += registered.estimate.cost
            operator = registered.invocation.operator
            # A plan writes a table once: two states can't both follow the present state.
            if operator.in_place and self._in_place[operator.outputs[0].channel] & into:
                return None
        return mask, cost

    # --- The choice ------------------------------------------------------------------------------

    def _ways_to_grant(self, channel: str) -> list["_Candidate"]:
        """All ways to grant a wish; ways that leave the fewest pathways broken come first."""
        mending = self._mending[channel]
        ways = []
        for left, row in self._granting.rows(channel, [each.block for each in mending]):
            holdings = tuple(mending[number] for number in row)
            together = self._together(holdings)
            if together is not None:
                ways.append(_Candidate(left, together[1], together[0], holdings))
        ways.sort(key=lambda way: (len(way.left), way.cost))
        return ways[:_MOST_CHOICES]

    def _chosen(self) -> WorkflowPlan:
        """A plan with a way for each wish, with a low total cost (`selectOutputBlocks`).

        Wishes downstream choose first: blocks that they need may grant other wishes.
        """
        most = self._switches.plans_per_block or _MOST_CHOICES
        position = self._task.workflow.position
        choices: list[_PartialPlan] = [_PartialPlan(0.0, 0, None)]
        for wish in sorted(self._wishes, key=lambda w: -position[w.channel]):
            grown = []
            ways = self._ways[wish.channel] or self._ways_to_grant(wish.channel)
            for way in ways:
                if len(way.left) > len(ways[0].left):
                    break
                for before in choices:
                    merged = self._merged(before.mask, before.cost, way.mask, way.cost)
                    if merged is not None:
                        grown.append(
                            _PartialPlan(merged[1], merged[0], (wish.channel, way, before))
                        )
            if grown:
                grown.sort(key=lambda each: each.cost)
                choices = grown[:most]
        best = choices[0]
        picked: dict[str, _Candidate] = {}
        choice = best
        while choice.last is not None:
            channel, way, choice = choice.last
            picked[channel] = way
        return WorkflowPlan(
            self._steps(best.mask),
            tuple(self._granted(wish, picked.get(wish.channel)) for wish in self._wishes),
            best.cost,
            self.explored,
        )

    def _granted(self, wish: Wish, way: "_Candidate | None") -> Wish:
        alternatives = {
            Alternative(operator, reaches, cost)
            for operator, block, cost in self._tried.get(wish.channel, ())
            if (reaches := self._granting.reaches(wish.channel, block)) is not None
        }
        in_order = tuple(sorted(alternatives, key=lambda each: (each.cost, each.operator)))
        if way is None:
            return Wish(wish.channel, wish.asked, alternatives=in_order)
        blocks = tuple(each.block for each in way.holdings)
        reaches = self._granting.reached(wish.channel, blocks)
        left = tuple(sorted(way.left))
        return Wish(wish.channel, wish.asked, blocks, reaches, left, in_order)

    def granting(self, wish: Wish, blocks: Sequence[Block]) -> Wish:
        """The wish, granted by these blocks if they can grant it."""
        every = tuple(range(len(blocks)))
        if not every:
            return wish
        rows = self._granting.rows(wish.channel, blocks)
        left = next((left for left, row in rows if row == every), None)
        if left is None:
            return wish
        reaches = self._granting.reached(wish.channel, blocks)
        return replace(wish, blocks=tuple(blocks), reaches=reaches, left=tuple(sorted(left)))

    def _steps(self, mask: int) -> tuple[PlanStep, ...]:
        """The invocations of a plan, each after the invocations that make its blocks."""
        waiting = []
        while mask:
            bit = mask & -mask
            mask ^= bit
            waiting.append(self._step(bit.bit_length() - 1))
        outputs = {block for step in waiting for block in step.outputs}
        steps: list[PlanStep] = []
        available: set[Block] = set()
        while waiting:
            later = []
            for step in waiting:
                if all(block in available or block not in outputs for block in step.inputs):
                    steps.append(step)
                    available.update(step.outputs)
                else:
                    later.append(step)
            assert len(later) < len(waiting), "steps of a plan wait for each other"
            waiting = later
        return tuple(steps)

    def _step(self, number: int) -> PlanStep:
        registered = self._registered[number]
        invocation = registered.invocation
        inputs = tuple(each.block for each in invocation.holdings)
        return PlanStep(invocation.operator, inputs, registered.blocks, registered.estimate.cost)
