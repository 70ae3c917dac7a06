"""What do simpler planners do?

Section 7.2 of 004. GREEDY looks at the blocks that can be made directly from existing ones (without
old blocks, with compulsory chains, within the propagated bounds) and makes the cheapest. RANDOM
takes one that costs nothing if there is any, else any of them. Both return plans of one step.
"""

from collections.abc import Callable, Container

from springhouse.planner.blocks import Block
from springhouse.planner.costs import Costs
from springhouse.planner.plan import Plan, Situation, Step
from springhouse.planner.planner import Planner
from springhouse.planner.pruning import Switches
from springhouse.planner.search import Search
from springhouse.units import Dice

_DIRECTLY = Switches(overkill=False, long_term=False)

Candidate = tuple[float, Step]


def greedy(candidates: list[Candidate]) -> Step:
    """The cheapest; of several, the one that was found first."""
    return min(candidates, key=lambda each: each[0])[1]


def random(dice: Dice) -> Callable[[list[Candidate]], Step]:
    """One that costs nothing, else any."""

    def pick(candidates: list[Candidate]) -> Step:
        free = [step for cost, step in candidates if cost == 0.0]
        return free[0] if free else dice.pick(candidates)[1]

    return pick


def one_step(
    planner: Planner,
    situation: Situation,
    costs: Costs,
    pick: Callable[[list[Candidate]], Step],
    made: Container[Block] = (),
) -> Plan:
    """A plan of the one step that is picked; of none if nothing can be made, or nothing is asked.

    A block that exists already and grants a wish is handed out before anything is made. Nothing is
    made again that was `made` before, and is part of a chain by now, or was too old to be kept.
    """
    wishes = planner.wishes(situation)
    if not wishes:
        return Plan()
    search = Search(planner.task(situation, wishes, _DIRECTLY), costs)
    candidates = [
        (cost, step)
        for cost, step in search.directly()
        if any(block not in made for block in step.outputs)
    ]
    granted = [search.granted_by_existing(wish) for wish in wishes]
    if any(wish.blocks for wish in granted) or not candidates:
        return Plan((), tuple(granted), 0.0, search.explored)
    step = pick(candidates)
    found = [
        search.granting(wish, [b for b in step.outputs if b.channel == wish.channel])
        for wish in wishes
    ]
    return Plan((step,), tuple(found), step.cost, search.explored)
