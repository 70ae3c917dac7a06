"""Is the default policy stable on random workloads, and never much worse than simple ones?

`python bench/overload.py` runs thousands of them; `--seed N` replays one.
"""

from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from statistics import median

import pytest
from _lateness import simulate
from _trials import SHAPES, TrialVerdict, draw, judge, others_with_a_guest

from springhouse.refresh.policy import Policy
from springhouse.refresh.ranking.chopping import Chopping
from springhouse.refresh.table.load_cost import LoadCost
from springhouse.simulate.policy_words import FIFO
from springhouse.simulate.pretend_schedule import ScheduleConditions
from springhouse.simulate.workload import Workload, equal_tables
from springhouse.units import Seconds

SEEDS = range(10_000, 10_160)
GUESTS = range(10_000, 10_040)


def judged(seed: int) -> TrialVerdict:
    return judge(seed, Policy())


def guests(seed: int) -> tuple[float, float]:
    return others_with_a_guest(seed, Policy())


def replays(seeds: Iterable[int]) -> str:
    return "; ".join(f"python bench/overload.py --seed {seed}" for seed in seeds)


@pytest.fixture(scope="module")
def verdicts() -> list[TrialVerdict]:
    with ProcessPoolExecutor(2) as pool:
        return list(pool.map(judged, SEEDS, chunksize=8))


def test_a_trial_is_drawn_from_its_seed_alone() -> None:
    assert draw(7) == draw(7)
    assert draw(7) != draw(8)
    shapes = {draw(seed).shape for seed in range(40)}
    assert shapes == {*SHAPES}


def test_hardly_ever_much_staler_than_with_fifo(verdicts: list[TrialVerdict]) -> None:
    """`bench/results/overload.md` lists the exceptions among thousands of trials."""
    hopeful = [v for v in verdicts if not v.trial.is_hopeless]
    worse = [v.trial.seed for v in hopeful if v.ours.times(v.fifo) > 1.1]
    assert len(worse) <= len(hopeful) // 50, replays(worse)
    assert median(v.ours.times(v.fifo) for v in verdicts) < 1.0


def test_hardly_ever_much_staler_than_with_plain_max_benefit(verdicts: list[TrialVerdict]) -> None:
    hopeful = [v for v in verdicts if not v.trial.is_hopeless]
    assert median(v.ours.times(v.plain) for v in verdicts) <= 1.1
    worse = [v.trial.seed for v in hopeful if v.ours.times(v.plain) > 1.3]
    assert len(worse) <= len(hopeful) // 50, replays(worse)


def test_never_staler_and_staler_where_fifo_is_not(verdicts: list[TrialVerdict]) -> None:
    growing = [v.trial.seed for v in verdicts if v.grows]
    assert not growing, replays(growing)


def test_an_impossible_promise_of_a_table_of_no_weight_changes_little_for_others() -> None:
    with ProcessPoolExecutor(2) as pool:
        found = dict(zip(GUESTS, pool.map(guests, GUESTS, chunksize=4), strict=True))
    changed = [s for s, (without, with_it) in found.items() if with_it > 1.1 * without]
    assert not changed, replays(changed)


@pytest.mark.parametrize(
    "policy", [Policy(), Policy(chopping=None), Policy(chopping=Chopping(1.0))], ids=str
)
def test_four_tables_that_fifo_keeps_up_with(policy: Policy) -> None:
    """alpha 4, beta 0.4, every 10 s on two tracks: each refresh has to load all waiting data."""
    workload = Workload(equal_tables(4, period_seconds=Seconds(10.0), cost=LoadCost(4.0, 0.4)))
    hours = 72 if policy == Policy() else 8
    until = hours * 3600.0
    ours = simulate(workload, ScheduleConditions(2), policy, until=until)
    fifo = simulate(workload, ScheduleConditions(2), FIFO, until=until)
    assert fifo.weighted_staleness == pytest.approx(48.0, abs=1.0)
    assert ours.weighted_staleness <= 1.01 * fifo.weighted_staleness
