"""Section 6.1: the basic algorithm finds the cheapest plan. Compared with trying everything."""

from dataclasses import replace
from math import inf

import pytest
from exhaustive import TooManyError, cheapest, legal
from random_workflows import Case, random_case

from springhouse.planner.bounds import NO_LIMITS, Times, limits_of
from springhouse.planner.search.blocks import apply_block, fits
from springhouse.planner.search.planner import Planner
from springhouse.planner.search.pruning import BASIC, Switches


def granted_by(case: Case, blocks) -> bool:
    """Whether these blocks bring each output that is out of bounds back within its bounds."""
    limits = limits_of(case.workflow, case.bounds)
    times = Times(case.situation.channels, case.situation.now)

    def within(channel, provenance):
        own = limits.get(channel, NO_LIMITS)
        return times.keeps(own, provenance) and not times.violated(own, provenance)

    def repaired(channel, held, broken):
        """Whether some blocks, one after the other, repair the broken bound and break no other."""
        own = limits.get(channel, NO_LIMITS)
        for block in blocks:
            if block.channel != channel or not any(
                fits(block.kind, kind) for kind in case.outputs[channel]
            ):
                continue
            reaches = apply_block(held, block)
            if not reaches or not held.precedes(reaches):
                continue
            if not times.within_inconsistency(own, reaches):
                continue
            left = set(times.violated(own, reaches))
            if not left or (left < broken and repaired(channel, reaches, left)):
                return True
        return False

    stale = [c for c in case.outputs if not within(c, case.situation.held[c])]
    return all(
        repaired(
            channel,
            case.situation.held[channel],
            set(times.violated(limits[channel], case.situation.held[channel])),
        )
        for channel in stale
    )


@pytest.fixture(scope="module")
def small() -> list[tuple[int, Case, float]]:
    """Seeds of workflows small enough to try everything, and the costs of their best plans."""
    found = []
    for seed in range(400):
        case = random_case(seed)
        limits = limits_of(case.workflow, case.bounds)
        try:
            least = cheapest(
                case.workflow,
                limits,
                case.situation,
                case.cost_of,
                lambda there, case=case: granted_by(case, there),
                most_sets=1_500,
            )
        except TooManyError:
            continue
        found.append((seed, case, least))
    return found


def test_the_basic_algorithm_is_optimal(small):
    assert len(small) > 200
    assert sum(least > 0 for _, _, least in small) > 150
    for seed, case, least in small:
        plan = Planner(case.workflow, case.bounds, case.outputs, BASIC).plan(case.situation, case)
        assert bool(plan.missed) == (least == inf), f"seed {seed}"
        if least < inf:
            assert plan.cost == pytest.approx(least), f"seed {seed}"


def prove_valid(case: Case, plan, seed: int) -> None:
    """Every step is legal at its turn, costs add up, and all wishes are granted."""
    limits = limits_of(case.workflow, case.bounds)
    there = [block for each in case.situation.blocks.values() for block in each]
    for step in plan.steps:
        assert set(step.inputs) <= set(there), f"seed {seed}: a step reads what is not there"
        possible = {
            (each.operator, frozenset(each.inputs)): frozenset(each.outputs)
            for each in legal(case.workflow, limits, case.situation, there, case.cost_of)
        }
        made = possible[step.operator.name, frozenset(step.inputs)]
        assert made <= set(step.outputs), f"seed {seed}: {step}"
        there += [block for block in made if block not in there]
    assert granted_by(case, there), f"seed {seed}"
    assert plan.cost == pytest.approx(sum(step.cost for step in plan.steps))


@pytest.mark.parametrize("usual", [Switches(), replace(BASIC, plans_per_block=1)], ids=str)
def test_stopping_early_and_looking_late_changes_no_cost(small, usual):
    for seed, case, _ in small:
        early, late = (
            Planner(case.workflow, case.bounds, case.outputs, replace(usual, stop_early=stop))
            .plan(case.situation, case)
            .cost
            for stop in (True, False)
        )
        # With several wishes, the search that continues may find a plan that shares more.
        if len(case.outputs) == 1 and not usual.long_term:
            assert early == pytest.approx(late), f"seed {seed}"
        else:
            assert early >= late - 1e-9 or usual.long_term, f"seed {seed}"


ONE_OFF = [
    Switches(),
    replace(BASIC, plans_per_block=1, stop_early=True),
    *(
        replace(Switches(), **{name: False})
        for name in ("old_blocks", "compulsory_chains", "propagate", "overkill", "long_term")
    ),
]


@pytest.mark.parametrize("switches", ONE_OFF, ids=str)
def test_a_pruned_plan_is_valid_and_never_cheaper_than_the_cheapest(small, switches):
    for seed, case, least in small[:120]:
        # Chains consist of existing blocks, so the check of the plan must know them, too.
        case = with_chains(case)
        plan = Planner(case.workflow, case.bounds, case.outputs, switches).plan(
            case.situation, case
        )
        assert not plan.missed, f"seed {seed}"
        prove_valid(case, plan, seed)
        assert plan.cost >= least - 1e-9, f"seed {seed}"


def with_chains(case: Case) -> Case:
    planner = Planner(case.workflow, case.bounds, case.outputs)
    useful = planner.useful(case.situation)
    blocks = {
        channel: list(dict.fromkeys([*found, *useful[channel]]))
        for channel, found in case.situation.blocks.items()
    }
    return replace(case, situation=replace(case.situation, blocks=blocks))
