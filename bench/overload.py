"""Is the default policy stable on random workloads, at loads from 0.3 to 3?

Every trial is a random workload from its seed (see `bench/_trials.py`), in the simulator of
`simulate/pretend_schedule.py`: pure Python, no Spark. Each trial runs under the default policy,
under FIFO, and under plain Max Benefit with inherited priority (paper 001: one queue, no chopping,
no promises). The measure is staleness weighted by priority. Staleness that a promise allows counts
as allowed. The goals:

    never above 1.1 x FIFO
    against plain Max Benefit at most 1.1 x at the median and 1.3 x at worst
    never staler in the second half than in the first, where FIFO is not
    an impossible promise of a table of priority 0.001 changes the others by less than a tenth

Run: `python bench/overload.py [--trials 2000] [--first 20000] [--jobs 2]` (20 minutes on two busy
cores). It writes `bench/results/overload.md`. `--seed N` replays one trial, and prints its tables.
"""

import argparse
import functools
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median

from _trials import PLAIN, TrialVerdict, draw, judge, others_with_a_guest

from springhouse.refresh.policy import Policy
from springhouse.simulate.policy_words import FIFO
from springhouse.simulate.pretend_schedule import PretendWarehouse

RESULTS = Path(__file__).parent / "results" / "overload.md"
POLICIES = {"default": Policy(), "FIFO": FIFO, "plain": PLAIN}
CLASSES: dict[str, Callable[[TrialVerdict], bool]] = {
    "all": lambda v: True,
    "load up to 1": lambda v: v.trial.load <= 1,
    "load above 1": lambda v: v.trial.load > 1 and not v.trial.is_hopeless,
    "hopeless (more data than all tracks can load)": lambda v: v.trial.is_hopeless,
    "with promises": lambda v: any(t.promise_seconds for t in v.trial.workload.tables),
    "without promises": lambda v: not any(t.promise_seconds for t in v.trial.workload.tables),
    "with slowdowns": lambda v: v.trial.conditions.slowdowns.times > 1,
    "prior costs wrong, learned": lambda v: (
        bool(v.trial.conditions.wrong) and v.trial.conditions.learning
    ),
    "prior costs wrong, never learned": lambda v: (
        bool(v.trial.conditions.wrong) and not v.trial.conditions.learning
    ),
}


def main() -> None:
    """Run all trials, or one; print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--first", type=int, default=20_000, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--seed", type=int, help="replay one trial")
    options = parser.parse_args()
    if options.seed is not None:
        print(replayed(options.seed))
        return
    seeds = range(options.first, options.first + options.trials)
    guests = range(options.first, options.first + options.trials // 5)
    began = time.time()
    with ProcessPoolExecutor(options.jobs) as pool:
        verdicts = list(pool.map(functools.partial(judge, policy=Policy()), seeds, chunksize=8))
        beside = functools.partial(others_with_a_guest, policy=Policy())
        changes = {
            seed: after / before
            for seed, (before, after) in zip(
                guests, pool.map(beside, guests, chunksize=8), strict=True
            )
        }
    page = told(verdicts, changes, time.time() - began)
    print(page)
    if options.trials >= 2000:
        RESULTS.write_text(page, encoding="utf-8")


def told(verdicts: Sequence[TrialVerdict], changes: dict[int, float], seconds: float) -> str:
    """The page."""
    first, last = verdicts[0].trial.seed, verdicts[-1].trial.seed
    lines = [
        "# Overload: random workloads",
        "",
        (
            f"`bench/overload.py`, seeds {first} to {last}, {os.cpu_count()} cores, "
            f"{time.strftime('%Y-%m-%d')}, {seconds / 60:.0f} minutes. Staleness weighted by "
            "priority under the default policy, as a ratio; what a promise allows is allowed "
            "(`bench/_trials.py` has the family, and how it came about)."
        ),
        "",
        (
            "| trials | | of FIFO's: median | 99 % | worst | above 1.1 "
            "| of plain Max Benefit's: median | 99 % | worst | above 1.3 |"
        ),
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, belongs in CLASSES.items():
        some = [each for each in verdicts if belongs(each)]
        if some:
            fifo = sorted(each.ours.times(each.fifo) for each in some)
            plain = sorted(each.ours.times(each.plain) for each in some)
            lines.append(f"| {name} | {len(some)} | {_row(fifo, 1.1)} | {_row(plain, 1.3)} |")
    beyond = [v for v in verdicts if v.ours.times(v.fifo) > 1.1 or v.ours.times(v.plain) > 1.3]
    growing = [str(each.trial.seed) for each in verdicts if each.grows]
    worst = max(changes.values())
    lines += [
        "",
        (
            f"Staler in the second half than in the first, where FIFO is not: {len(growing)}"
            f"{' (' + ', '.join(growing) + ')' if growing else ''}."
        ),
        "",
        (
            f"An impossible promise of a table of priority 0.001, beside {len(changes)} of them, "
            f"changes the staleness of the others by {worst - 1:+.1%} at worst "
            f"(a tenth or more: {sum(each >= 1.1 for each in changes.values())})."
        ),
        "",
        f"Beyond a bound: {len(beyond)} of {len(verdicts)}.",
        "",
        *(
            f"- `python bench/overload.py --seed {v.trial.seed}`: {v.ours.times(v.fifo):.2f} of "
            f"FIFO's, {v.ours.times(v.plain):.2f} of plain's, load {v.trial.load:.2f}"
            f"{', hopeless' if v.trial.is_hopeless else ''}"
            for v in beyond
        ),
    ]
    return "\n".join(lines) + "\n"


def _row(ratios: Sequence[float], bound: float) -> str:
    late = ratios[int(0.99 * (len(ratios) - 1))]
    above = sum(each > bound for each in ratios)
    return f"{median(ratios):.3f} | {late:.2f} | {ratios[-1]:.2f} | {above}"


def replayed(seed: int) -> str:
    """One trial: its tables, and how stale each is under each policy."""
    trial = draw(seed)
    verdict = judge(seed, Policy())
    world = trial.conditions
    lines = [
        (
            f"seed {seed}: {trial.shape}, load {trial.load:.2f}, {world.tracks} tracks, "
            f"{world.slowdowns.times:.1f} times as slow for {world.slowdowns.share:.0%}, "
            f"learning {world.learning}, {trial.seconds:,.0f} s"
        ),
        (
            f"{verdict.ours.times(verdict.fifo):.3f} of FIFO's, "
            f"{verdict.ours.times(verdict.plain):.3f} of plain Max Benefit's; "
            f"default {verdict.ours}, FIFO {verdict.fifo}, plain {verdict.plain}"
        ),
    ]
    outcomes = {}
    for name, policy in POLICIES.items():
        pretend = PretendWarehouse(trial.workload, world, policy)
        pretend.run(until=trial.seconds)
        outcomes[name] = {each.name: each for each in pretend.outcome().tables}
    for table in trial.workload.tables:
        assert table.cost is not None
        fared = ", ".join(
            f"{name} {each[table.name].average_staleness:.1f} s ({each[table.name].refreshes})"
            for name, each in outcomes.items()
        )
        lines.append(
            f"{table.name} <- {','.join(table.upstream) or '-'}: "
            f"every {trial.workload.periods[table.name]:.1f} s, "
            f"{table.cost.alpha:.3g} + {table.cost.beta:.3g} n, priority {table.priority:.3g}, "
            f"promise {table.promise_seconds or 0:.3g}: {fared}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
