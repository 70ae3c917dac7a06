"""What do simpler planners do?

These are the baselines of 004 section 7.2. GREEDY looks at the blocks that one step can make from
existing ones (without old blocks, with compulsory chains, within the propagated bounds) and makes
the cheapest. RANDOM makes one that costs nothing if there is one, else any of them. Both return
plans of one step.
"""

from collections.abc import Callable, Container

from springhouse.planner.search.blocks import Block
from springhouse.planner.search.invocation_costs import Costs
from springhouse.planner.search.planner import Planner
from springhouse.planner.search.pruning import Switches
from springhouse.planner.search.search import Search
from springhouse.planner.search.workflow_plan import PlanStep, Situation, WorkflowPlan
from springhouse.units import Dice

_DIRECTLY = Switches(overkill=False, long_term=False)

Candidate = tuple[float, PlanStep]


def greedy(candidates: list[Candidate]) -> PlanStep:
    """The cheapest step; of several, the first one."""
    return min(candidates, key=lambda each: each[0])[1]


def random(dice: Dice) -> Callable[[list[Candidate]], PlanStep]:
    """A function that picks a step that costs nothing, or else any."""

    def pick(candidates: list[Candidate]) -> PlanStep:
        free = [step for cost, step in candidates if cost == 0.0]
        return free[0] if free else dice.pick(candidates)[1]

    return pick


def plan_one_step(
    planner: Planner,
    situation: Situation,
    costs: Costs,
    pick: Callable[[list[Candidate]], PlanStep],
    made: Container[Block] = (),
) -> WorkflowPlan:
    """A plan of the one step that is picked, or of none if there is no wish or no step.

    A block that exists already and grants a wish comes first. The plan does not make a block again
    that is in `made`: such a block is part of a chain by now, or was dropped because of its age.
    """
    wishes = planner.wishes(situation)
    if not wishes:
        return WorkflowPlan()
    search = Search(planner.task(situation, wishes, _DIRECTLY), costs)
    candidates = [
        (cost, step)
        for cost, step in search.directly()
        if any(block not in made for block in step.outputs)
    ]
    granted = [search.granted_by_existing(wish) for wish in wishes]
    if any(wish.blocks for wish in granted) or not candidates:
        return WorkflowPlan((), tuple(granted), 0.0, search.explored)
    step = pick(candidates)
    found = [
        search.granting(wish, [b for b in step.outputs if b.channel == wish.channel])
        for wish in wishes
    ]
    return WorkflowPlan((step,), tuple(found), step.cost, search.explored)
