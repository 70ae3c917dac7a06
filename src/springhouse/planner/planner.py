"""How is everything that is stale brought within its bounds, and when is that due?

The door of this room: a `Planner` knows a workflow, its bounds and its outputs, and is asked again
and again with a `Situation`. It finds what is wanted, lets `search` find the cheapest way, and says
which blocks may be forgotten.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from springhouse.planner.blocks import Block, Kind
from springhouse.planner.bounds import NO_LIMITS, Bound, Times, limits_of, propagated
from springhouse.planner.costs import Costs
from springhouse.planner.plan import Plan, Situation, Wish
from springhouse.planner.pruning import Switches, narrowed
from springhouse.planner.search import Search, Task
from springhouse.planner.workflow import Workflow
from springhouse.units import Instant


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
        self.outputs = outputs
        self.switches = switches or Switches()
        self.limits = limits_of(workflow, bounds)
        self.propagated = propagated(workflow, self.limits)
        self.tightest = propagated(workflow, self.limits, tightest=True)

    def wishes(self, situation: Situation, among: Iterable[str] | None = None) -> list[Wish]:
        """The outputs that are not within their bounds now, and the pathways that are stale."""
        times = Times(situation.channels, situation.now)
        found = []
        for channel in self.outputs if among is None else among:
            limits = self.limits.get(channel, NO_LIMITS)
            held = situation.held.get(channel)
            if held is None:
                found.append(Wish(channel, tuple(limits.staleness)))
            elif asked := times.violated(limits, held):
                found.append(Wish(channel, asked))
        return found

    def due(self, situation: Situation, channel: str) -> Instant:
        """When the first bound on the staleness of an output breaks; infinite if none will."""
        held = situation.held.get(channel)
        if held is None:
            return situation.now
        times = Times(situation.channels, situation.now)
        return Instant(times.due(self.limits.get(channel, NO_LIMITS), held))

    def plan(self, situation: Situation, costs: Costs, among: Iterable[str] | None = None) -> Plan:
        """The cheapest plan that grants all wishes, of all outputs or those `among` them.

        If pruning leaves a wish ungranted, those rules are dropped that only say what is unlikely
        to be of use.
        """
        wishes = self.wishes(situation, among)
        if not wishes:
            return Plan()
        plan = Search(self.task(situation, wishes, self.switches), costs).run()
        wider = replace(self.switches, propagate=False, overkill=False, long_term=False)
        if plan.missed and wider != self.switches:
            second = Search(self.task(situation, wishes, wider), costs).run()
            if len(second.missed) < len(plan.missed):
                return second
        return plan

    def task(self, situation: Situation, wishes: Sequence[Wish], switches: Switches) -> Task:
        """What is to be searched, over the part of the workflow that the wishes can touch."""
        relevant = self.workflow.above(wish.channel for wish in wishes)
        blocks = narrowed(self.workflow, switches, situation, relevant)
        return Task(
            self.workflow,
            self.outputs,
            self.limits,
            self.propagated,
            self.tightest,
            switches,
            situation,
            blocks,
            wishes,
        )

    def useful(self, situation: Situation) -> dict[str, list[Block]]:
        """The blocks that may be of use, now or later; deltas that abut are one (section 6.2)."""
        return narrowed(self.workflow, self.switches, situation, self.workflow.order)
