"""The choice of the way under a pretend machine, 0.25 to 10 times as fast as the formula's.

Over random worlds (`pretend_machine`), two bounds hold. After the third refresh, at least 95 % of
the refreshes take the best way. All worlds together take at most 1.1 times the best fixed ways.

The goal for every single world is 1.1 times its best fixed way and one change of state. 6 in 100
worlds miss this goal, and 2 or 3 would miss it if all costs were known (docs/decisions/0083). The
bounds here keep that from getting worse. No number of the planner was set by the seeds used here.

Replay one: `python tests/planner/pretend_machine.py SEED`.
"""

import pytest
from pretend_machine import ALLOWED, FIRST, Outcome, run, world

SEED = 20_000
WORLDS = 600
BEST = 0.95
OVER = 0.08
FAR = 2.0


def replay(seed: int) -> str:
    return f"replay: PYTHONPATH=src python tests/planner/pretend_machine.py {seed}"


def over(outcomes: list[Outcome]) -> float:
    """One world's cost as a multiple of its best fixed ways, without the cost of new states."""
    took = sum(each.seconds - each.state for each in outcomes)
    return took / sum(min(each.fixed.values()) for each in outcomes)


@pytest.fixture(scope="module")
def worlds() -> dict[int, list[Outcome]]:
    return {seed: run(world(seed)) for seed in range(SEED, SEED + WORLDS)}


def test_the_best_way_is_taken(worlds: dict[int, list[Outcome]]) -> None:
    good = [(seed, g) for seed, found in worlds.items() for o in found for g in o.good[FIRST:]]
    worst = min(worlds, key=lambda seed: min(each.share for each in worlds[seed]))
    assert sum(g for _, g in good) >= BEST * len(good), replay(worst)


def test_the_total_is_near_that_of_the_best_fixed_way(worlds: dict[int, list[Outcome]]) -> None:
    found = {seed: over(outcomes) for seed, outcomes in worlds.items()}
    worst = max(found, key=lambda seed: found[seed])
    beyond = [seed for seed, each in found.items() if each > ALLOWED]
    assert len(beyond) <= OVER * WORLDS, f"{beyond}; {replay(worst)}"
    assert found[worst] <= FAR, replay(worst)
    took = sum(each.seconds for outcomes in worlds.values() for each in outcomes)
    best = sum(min(each.fixed.values()) for outcomes in worlds.values() for each in outcomes)
    assert took <= ALLOWED * best


def test_a_change_of_speed_is_no_reason_to_leave_a_way(worlds: dict[int, list[Outcome]]) -> None:
    changing = [seed for seed in worlds if len(set(world(seed).speeds)) > 1]
    good = [g for seed in changing for o in worlds[seed] for g in o.good[FIRST:]]
    assert len(changing) > WORLDS / 4
    assert sum(good) >= (BEST - 0.01) * len(good), replay(changing[0])


def test_most_refreshes_read_nothing_only_to_decide(worlds: dict[int, list[Outcome]]) -> None:
    looks = sum(each.looks for found in worlds.values() for each in found)
    assert looks < sum(len(each.good) for found in worlds.values() for each in found) / 2


def test_worlds_are_what_their_seeds_say() -> None:
    assert run(world(7)) == run(world(7))
