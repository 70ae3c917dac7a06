"""Section 7.2: GREEDY takes the cheapest step, RANDOM any, and neither looks further."""

from _linear_costs import Linear, Price
from random_workflows import random_case

from springhouse.planner.bounds import BoundStaleness
from springhouse.planner.provenance import Channel, Provenance
from springhouse.planner.search.blocks import BASE, STRONG, Block
from springhouse.planner.search.planner import Planner
from springhouse.planner.search.widgets import workflow
from springhouse.planner.search.workflow_plan import ANY_DELTA, Situation
from springhouse.simulate.baseline_planners import greedy, plan_one_step, random
from springhouse.simulate.paper_widgets import stateless
from springhouse.units import Dice, Instant

FLOW = workflow(["a"], [stateless("u", "a"), stateless("v", "u")])
AT = [Provenance.of(a=version) for version in range(3)]
THROUGH = [Provenance({"a>u": frozenset({version})}) for version in range(3)]
PRICES = {"u: incremental": Price(2.0), "v: incremental": Price(1.0)}
COSTS = Linear(PRICES, Price(50.0))


def planner():
    return Planner(FLOW, [BoundStaleness("v", None, 0.0)], {"v": ANY_DELTA})


def situation(*more):
    blocks = {
        "a": [Block("a", BASE, AT[0]), Block("a", STRONG, AT[1], AT[0])],
        "u": [Block("u", BASE, AT[0])],
        "v": [Block("v", BASE, THROUGH[0])],
    }
    for block in more:
        blocks[block.channel].append(block)
    channel = Channel((0, 1), (Instant(0.0), Instant(10.0)))
    return Situation(Instant(11.0), {"a": channel}, blocks, {"v": THROUGH[0]})


def test_greedy_goes_one_step_at_a_time():
    first = plan_one_step(planner(), situation(), COSTS, greedy)
    assert [step.operator.name for step in first.steps] == ["u: incremental"]
    assert first.granted == ()
    second = plan_one_step(planner(), situation(*first.steps[0].outputs), COSTS, greedy)
    assert [step.operator.name for step in second.steps] == ["v: incremental"]
    assert second.granted[0].reaches == THROUGH[1]


def test_what_was_made_is_not_made_again():
    first = plan_one_step(planner(), situation(), COSTS, greedy)
    again = plan_one_step(planner(), situation(), COSTS, greedy, made=set(first.steps[0].outputs))
    assert again.steps[0].operator.name == "a: base from strong delta"


def test_what_exists_is_handed_out_first():
    ready = Block("v", STRONG, THROUGH[1], THROUGH[0])
    plan = plan_one_step(planner(), situation(ready), COSTS, greedy)
    assert plan.steps == ()
    assert plan.granted[0].blocks == (ready,)


def test_random_takes_what_is_free_first():
    chain = Block("u", STRONG, AT[1], AT[0])
    pick = random(Dice(1))
    free, dear = ((cost, object()) for cost in (0.0, 5.0))
    assert pick([dear, free]) is free[1]
    names = {
        plan_one_step(planner(), situation(chain), COSTS, random(Dice(seed))).steps[0].operator.name
        for seed in range(30)
    }
    assert len(names) > 2


def test_nothing_to_do():
    held = {"v": THROUGH[1]}
    calm = Situation(Instant(11.0), situation().channels, situation().blocks, held)
    assert plan_one_step(planner(), calm, COSTS, greedy).wishes == ()


def test_a_step_of_greedy_costs_no_more_than_the_whole_plan():
    """So a repair that takes GREEDY r times as long takes it at least r steps (bench/results/004).

    GREEDY may also take the first step of the plan that the search finds.
    """
    compared = 0
    for seed in range(200):
        case = random_case(seed)
        found = Planner(case.workflow, case.bounds, case.outputs)
        plan = found.plan(case.situation, case)
        step = plan_one_step(found, case.situation, case, greedy)
        if plan.steps and step.steps and not plan.missed:
            assert step.cost <= plan.cost + 1e-9, seed
            compared += 1
    assert compared > 50
