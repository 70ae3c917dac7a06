"""The pretend world of the planner keeps its laws, and methods differ as in 004."""

import pytest

from springhouse.planner.search.blocks import BASE
from springhouse.planner.search.operators import WidgetVariant
from springhouse.simulate.paper_workflows import (
    PAPER_WORKFLOWS,
    crawl_selection,
    feedback_prioritization,
    search_preprocessing,
)
from springhouse.simulate.workflow_run import (
    Algorithm,
    Method,
    WorkflowConditions,
    WorkflowRun,
    restrict,
)

SHORT = WorkflowConditions(hours=30.0)


def run(model, method=Method.ASYNC_INCR, algorithm=Algorithm.DYNAMIC, conditions=SHORT):
    return WorkflowRun(model, conditions, method, algorithm).run()


@pytest.mark.parametrize("make", PAPER_WORKFLOWS.values())
@pytest.mark.parametrize("method", Method)
def test_every_method_repairs_every_workflow(make, method):
    outcome = run(make(), method)
    assert outcome.missed == 0
    assert outcome.published > 0
    assert outcome.repairs
    if method in (Method.SYNC_INCR, Method.SYNC_BATCH):
        assert outcome.worst_inconsistency_hours <= 0.0
    else:
        assert 1.0 < outcome.worst_inconsistency_hours < 7 * 24


@pytest.mark.parametrize("make", PAPER_WORKFLOWS.values())
def test_asynchronous_incremental_processing_is_fresher_and_cheaper(make):
    best, *others = (run(make(), method) for method in Method)
    for other in others:
        assert other.median_lag > 3 * best.median_lag
        assert other.cost_cpu_hours > best.cost_cpu_hours


def test_the_same_seed_brings_the_same_run():
    first, again, other = (
        run(feedback_prioritization(), conditions=WorkflowConditions(12.0, seed=seed))
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_without_noise_a_repair_takes_what_was_expected():
    """A batch of news: one split and one union, with a start each."""
    outcome = run(feedback_prioritization(), conditions=WorkflowConditions(12.0, noise=False))
    rows = 2.5e6
    split = 0.001 + rows * 2000 * 0.01 / (20e6 * 3600)
    union = 0.001 + 2 * 0.02 * rows * 2000 / (20e6 * 3600)
    assert outcome.median_lag == pytest.approx(split + union, rel=0.1)
    assert outcome.variants == {
        "split: incremental": outcome.plans,
        "output: asynchronous, driven by news": outcome.plans,
    }


def test_noise_is_half_of_what_is_expected_on_average():
    noisy, exact = (
        run(feedback_prioritization(), conditions=WorkflowConditions(20.0, noise=noise))
        for noise in (True, False)
    )
    # A repair is two invocations, so their sum is a little less off than each of them.
    pairs = zip(noisy.repairs, exact.repairs, strict=True)
    off = [abs(one.lag_cpu_hours / other.lag_cpu_hours - 1.0) for one, other in pairs]
    assert 0.2 < sum(off) / len(off) < 0.6


def test_old_searches_wait_for_a_day_and_news_do_not():
    outcome = run(feedback_prioritization(), conditions=WorkflowConditions(80.0))
    counts = outcome.variants
    assert counts["output: asynchronous, driven by news"] > 150
    assert 3 <= counts["output: asynchronous, driven by other"] <= 4
    assert "output: batch" not in counts


def test_click_scores_are_refreshed_once_a_day_and_joined_from_one_side():
    counts = run(search_preprocessing(), conditions=WorkflowConditions(80.0)).variants
    assert counts["output: asynchronous, driven by digests"] > 300
    assert 2 <= counts.get("scores: incremental", 0) + counts.get("scores: batch", 0) <= 4
    assert counts.get("output: incremental", 0) < 5


def test_the_full_join_comes_back_before_a_week_has_passed():
    outcome = run(search_preprocessing(), conditions=WorkflowConditions(15 * 24.0))
    assert 1 <= outcome.variants["output: batch"] <= 3
    assert 100.0 < outcome.worst_inconsistency_hours < 7 * 24


def test_crawl_selection_runs_each_selection_at_its_own_pace():
    counts = run(crawl_selection(), conditions=WorkflowConditions(80.0)).variants
    top, periodic, adaptive = (
        counts[f"{name}: batch"]
        for name in ("top unfetched", "periodic recrawl", "adaptive recrawl")
    )
    assert top > adaptive > periodic >= 2
    assert "indegree: incremental" not in counts


@pytest.mark.parametrize("algorithm", [Algorithm.GREEDY, Algorithm.RANDOM])
def test_simpler_planners_repair_too(algorithm):
    outcome = run(feedback_prioritization(), Method.ASYNC_INCR, algorithm, WorkflowConditions(4.0))
    best = run(feedback_prioritization(), conditions=WorkflowConditions(4.0))
    assert outcome.repairs
    assert outcome.median_lag >= best.median_lag
    assert outcome.plans > best.plans


def test_batch_permits_only_bases():
    model = restrict(search_preprocessing(), Method.SYNC_BATCH)
    assert {each.variant for each in model.workflow.operators} == {WidgetVariant.BATCH}
    assert set(model.workflow.converters) == {"pages", "clicks"}
    assert model.outputs == {"output": (BASE,)}
    synchronous = {each.name for each in model.workflow.operators if each.synchronous}
    assert synchronous == {"output: batch"}
    loose = restrict(search_preprocessing(), Method.ASYNC_BATCH)
    assert not any(each.synchronous for each in loose.workflow.operators)


def test_a_run_can_be_watched_and_given_up():
    told = []
    world = WorkflowRun(feedback_prioritization(), SHORT)
    world.run(told.append)
    assert told == sorted(told)
    assert len(told) > 20
    assert told[-1] <= 30.0
    given_up = WorkflowRun(feedback_prioritization(), SHORT).run(give_up=lambda: len(told) > 0)
    assert given_up.hours == 0.0


def test_planning_is_timed_by_the_stopwatch_that_is_given():
    ticks = iter(range(1_000_000))
    world = WorkflowRun(
        feedback_prioritization(), WorkflowConditions(4.0), stopwatch=lambda: float(next(ticks))
    )
    outcome = world.run()
    assert outcome.planning_seconds >= outcome.plans
    assert outcome.worst_planning_seconds == 1.0


def test_sizes_wander_where_converters_are_off_too():
    """Each batch merges into the earlier base, and is off again: half of all bases become small."""
    plain, noisy = (
        run(
            feedback_prioritization(),
            Method.ASYNC_BATCH,
            conditions=WorkflowConditions(100.0, noisy_converters=each),
        )
        for each in (False, True)
    )
    assert noisy.median_lag < 0.1 * plain.median_lag
    assert noisy.published > 0


def test_who_plans_one_step_and_is_asked_on_arrival_only_does_not_keep_up():
    """Section 6.1 literally: a whole plan is as good as ever, single steps never catch up."""
    asked = WorkflowConditions(12.0, on_arrival=True)
    model = feedback_prioritization()
    whole = run(model, conditions=asked)
    assert whole.median_lag == run(model, conditions=WorkflowConditions(12.0)).median_lag
    steps = run(model, algorithm=Algorithm.GREEDY, conditions=asked)
    again_and_again = run(model, algorithm=Algorithm.GREEDY, conditions=WorkflowConditions(12.0))
    assert steps.plans <= 24 < again_and_again.plans
    assert steps.median_lag > 1_000 * again_and_again.median_lag


def test_a_run_that_begins_warm_measures_what_comes_after():
    """Hours 18 to 30 hold the daily work, which hours 0 to 12 do not."""
    whole = run(feedback_prioritization(), conditions=WorkflowConditions(30.0))
    warm = run(feedback_prioritization(), conditions=WorkflowConditions(12.0, warm_hours=18.0))
    assert warm.hours == pytest.approx(12.0, abs=0.1)
    assert warm.repairs == tuple(each for each in whole.repairs if each.at > 18 * 3600.0)
    assert 0 < warm.cost_cpu_hours < whole.cost_cpu_hours
    cold = run(feedback_prioritization(), conditions=WorkflowConditions(12.0))
    assert warm.cost_cpu_hours > 2 * cold.cost_cpu_hours


def test_a_simple_planner_takes_over_what_dynamic_programming_left():
    conditions = WorkflowConditions(6.0, warm_hours=6.0)
    taken_over = run(feedback_prioritization(), algorithm=Algorithm.GREEDY, conditions=conditions)
    assert taken_over.repairs
    assert all(each.at > 6 * 3600.0 for each in taken_over.repairs)
    assert taken_over.plans > len(taken_over.repairs)


def test_greedy_that_may_make_a_block_again_makes_nothing_else():
    """The cheapest block joins a chain as soon as it is made, and could be made once more."""
    conditions = WorkflowConditions(2.0, makes_again=True)
    again = WorkflowRun(feedback_prioritization(), conditions, algorithm=Algorithm.GREEDY)
    outcome = again.run(give_up=lambda: again.explored > 2_000)
    assert outcome.hours < 2.0
    assert outcome.variants["split: incremental"] > 20 * len(outcome.repairs)


def test_a_plan_over_many_old_bases_looks_at_each_block_a_few_times():
    """After a week of batches, the base that the link counts reflect is 70 bases behind."""
    run = WorkflowRun(crawl_selection(), WorkflowConditions(hours=170.0), Method.ASYNC_BATCH)
    run.run(give_up=lambda: run.now > 168.5 * 3600.0)
    situation = run.situation()
    plan = run.planner.plan(situation, run.model)
    stored = sum(len(blocks) for blocks in situation.blocks.values())
    assert stored > 100
    assert plan.granted
    assert plan.explored <= 4 * stored
