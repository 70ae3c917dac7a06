"""What is the cheapest plan that brings every stale output within its bounds?

A `Planner` knows a workflow, its bounds and its outputs. Each request comes with a `Situation`: the
existing blocks, and the states of consumers. The planner finds the stale outputs (wishes), lets
`search` find the cheapest plan, and says which blocks are still useful.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from springhouse.planner.bounds import (
    NO_LIMITS,
    Bound,
    Times,
    limits_of,
    propagate_limits,
    strictest_staleness,
)
from springhouse.planner.provenance import Provenance
from springhouse.planner.search.blocks import BASE, Block, Kind
from springhouse.planner.search.invocation_costs import Costs
from springhouse.planner.search.part import Part
from springhouse.planner.search.pruning import (
    BASIC,
    Switches,
    frontiers,
    prune_blocks,
    reached_by_all,
    without_delivered,
)
from springhouse.planner.search.search import Search, SearchTask
from springhouse.planner.search.workflow import Workflow
from springhouse.planner.search.workflow_plan import Situation, Wish, WorkflowPlan
from springhouse.units import Instant

_MOST_BLOCKS_OF_A_WIDE_SEARCH = 1_000
"""A search without pruning stops here, because it could make very many blocks."""


_MOST_PARTS = 256
"""The maximum number of remembered parts of a workflow."""


class Planner:
    """Plans for one workflow, with its bounds, and its outputs with the kinds they accept."""

    def __init__(
        self,
        workflow: Workflow,
        bounds: Iterable[Bound],
        outputs: Mapping[str, Sequence[Kind]],
        switches: Switches | None = None,
    ) -> None:
        self.workflow = workflow
        self._inputs = frozenset(workflow.inputs)
        self.outputs = outputs
        self.switches = switches or Switches()
        # Outputs that take deltas and that no operator reads.
        self._ends = [
            channel
            for channel, kinds in outputs.items()
            if not workflow.readers[channel]
            and channel not in workflow.whole
            and any(kind != BASE for kind in kinds)
        ]
        self.limits = limits_of(workflow, bounds)
        self.propagated = propagate_limits(workflow, self.limits)
        self.tightest = propagate_limits(workflow, self.limits, tightest=True)
        self._parts: dict[tuple[tuple[str, ...], bool], Part] = {}

    @cached_property
    def asked(self) -> Mapping[str, Mapping[str, float]]:
        """How long data may wait on each pathway of a channel, for it and for channels below it."""
        return strictest_staleness(self.workflow, self.limits)

    def wishes(self, situation: Situation, among: Iterable[str] | None = None) -> list[Wish]:
        """The outputs that are not within their bounds now, and the pathways that are stale."""
        return self._wishes(situation, Times(situation.channels, situation.now), among)

    def _wishes(
        self, situation: Situation, times: Times, among: Iterable[str] | None
    ) -> list[Wish]:
        wishes = []
        for channel in self.outputs if among is None else among:
            limits = self.limits.get(channel, NO_LIMITS)
            held = situation.held.get(channel)
            if held is None:
                wishes.append(Wish(channel, tuple(limits.staleness)))
            elif stale := times.violated(limits, held):
                wishes.append(Wish(channel, stale))
        return wishes

    def due(self, situation: Situation, channel: str) -> Instant:
        """When the first bound on the staleness of an output breaks; infinite if none will."""
        held = situation.held.get(channel)
        if held is None:
            return situation.now
        times = Times(situation.channels, situation.now)
        return Instant(times.due(self.limits.get(channel, NO_LIMITS), held))

    def plan(
        self,
        situation: Situation,
        costs: Costs,
        among: Iterable[str] | None = None,
        *,
        alternatives: bool = True,
    ) -> WorkflowPlan:
        """The cheapest plan that grants all wishes, of all outputs or those `among` them.

        If the search grants no plan for a wish, it runs again without the pruning rules that may
        drop useful blocks. Without `alternatives` the plan does not list other last steps.
        """
        times = Times(situation.channels, situation.now)
        wishes = self._wishes(situation, times, among)
        if not wishes:
            return WorkflowPlan()
        task = self.task(situation, wishes, self.switches, times)
        plan = Search(task, costs, alternatives=alternatives).run()
        if plan.missed and self.switches != BASIC:
            wider = replace(
                self.switches,
                propagate=False,
                overkill=False,
                long_term=False,
                most_blocks=_MOST_BLOCKS_OF_A_WIDE_SEARCH,
            )
            task = self.task(situation, wishes, wider)
            second = Search(task, costs, alternatives=alternatives).run()
            if len(second.missed) < len(plan.missed):
                return second
        return plan

    def task(
        self,
        situation: Situation,
        wishes: Sequence[Wish],
        switches: Switches,
        times: Times | None = None,
    ) -> SearchTask:
        """The question to the search, over the part of the workflow that the wishes concern."""
        times = times or Times(situation.channels, situation.now)
        wished = dict.fromkeys(wish.channel for wish in wishes)
        channels = tuple(self._to_be_made(wished, situation, times, switches))
        part = self._part(channels, switches.propagate)
        frontier_of = frontiers(self.workflow, situation.held, part.channels)
        blocks = self._narrowed(switches, situation, frontier_of)
        return SearchTask(
            self.workflow,
            self.outputs,
            self.limits,
            self.propagated,
            self.tightest,
            switches,
            situation,
            times,
            blocks,
            {channel: reached_by_all(each) for channel, each in frontier_of.items()},
            part,
            self._ends if switches.old_blocks else (),
            wishes,
        )

    def _part(self, channels: tuple[str, ...], propagate: bool) -> Part:
        """The part of the workflow for a search that may make blocks on these channels."""
        known = self._parts.get((channels, propagate))
        if known is None:
            if len(self._parts) >= _MOST_PARTS:
                self._parts.clear()
            limits = self.propagated if propagate else self.limits
            known = self._parts[channels, propagate] = Part(self.workflow, channels, limits)
        return known

    def _to_be_made(
        self, wished: Iterable[str], situation: Situation, times: Times, switches: Switches
    ) -> Mapping[str, None]:
        """The channels on which blocks may be planned: wished channels, and channels they need."""
        channels: dict[str, None] = {}
        waiting = list(wished)
        while waiting:
            channel = waiting.pop()
            if channel in channels or channel in self._inputs:
                continue
            may_rest = switches.overkill and channel not in wished
            if may_rest and self._rests(channel, situation, times):
                continue
            channels[channel] = None
            waiting.extend(self.workflow.reads[channel])
        return channels

    def _rests(self, channel: str, situation: Situation, times: Times) -> bool:
        limits = self.tightest[channel]
        # The newest block is most likely good enough, and usually it is the last one.
        for block in reversed(situation.blocks.get(channel, ())):
            if block.start is None and times.keeps(limits, block.end):
                return True
        return False

    def useful(self, situation: Situation) -> dict[str, list[Block]]:
        """The blocks that may be useful, now or later; deltas that abut become one."""
        frontier_of = frontiers(self.workflow, situation.held, self.workflow.order)
        return self._narrowed(self.switches, situation, frontier_of)

    def _narrowed(
        self,
        switches: Switches,
        situation: Situation,
        frontier_of: Mapping[str, Sequence[Provenance]],
    ) -> dict[str, list[Block]]:
        blocks = prune_blocks(switches, situation, frontier_of)
        if switches.old_blocks:
            for channel in self._ends:
                if channel in blocks and channel in situation.held:
                    blocks[channel] = without_delivered(blocks[channel], situation.held[channel])
        return blocks
