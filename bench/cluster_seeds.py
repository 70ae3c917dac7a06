"""Do nodes keep their laws in 100,000 bad worlds?

Each seed is one run of `springhouse simulate cluster`: a cluster of 2 to 7 nodes. Nodes crash with
and without their disk, Sparks end, messages are lost, late or repeated, and there are partitions,
pauses and drifting clocks. Separate checkers watch the nodes. The first broken law stops everything
and prints the command that replays it.

Run: `python bench/cluster_seeds.py [--seeds 100000] [--first 0] [--jobs 2] [--json FILE]`; about
14 milliseconds of a core per seed, 24 minutes of a core in all. Seeds run in order, so `--first`
continues an interrupted run.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import perf_counter

from springhouse.simulate.cluster_checkers import BrokenLaw
from springhouse.simulate.cluster_model import ClusterConditions
from springhouse.simulate.cluster_run import ClusterRun

SIZES = (3, 5, 3, 4, 5, 3, 2, 5, 3, 7)
BATCH = 100
TELL_SECONDS = 10.0


def batch(first: int, count: int) -> tuple[int, float, str | None]:
    """The events of these seeds, the longest time without a leader, and the broken law, if any."""
    events, worst = 0, 0.0
    for seed in range(first, first + count):
        try:
            outcome = ClusterRun(ClusterConditions(SIZES[seed % len(SIZES)], seed=seed)).run()
        except BrokenLaw as broken:
            return events, worst, f"seed {seed}: {broken}"
        events += outcome.events
        worst = max(worst, outcome.leader_after_seconds)
    return events, worst, None


def batches(first: int, seeds: int) -> Iterator[tuple[int, int]]:
    for start in range(first, first + seeds, BATCH):
        yield start, min(BATCH, first + seeds - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    begin = told = perf_counter()
    done, events, worst = 0, 0, 0.0
    parts = list(batches(given.first, given.seeds))
    with ProcessPoolExecutor(given.jobs) as pool:
        results = pool.map(batch, *zip(*parts, strict=True))
        for (_, count), (happened, longest, broken) in zip(parts, results, strict=True):
            if broken is not None:
                pool.shutdown(cancel_futures=True, wait=False)
                sys.exit(broken)
            done, events, worst = done + count, events + happened, max(worst, longest)
            if perf_counter() - told > TELL_SECONDS:
                told = perf_counter()
                left = (told - begin) / done * (given.seeds - done)
                print(f"  {done:,} of {given.seeds:,} seeds, {left:.0f} s left", flush=True)
    took = perf_counter() - begin
    print(
        f"seeds {given.first:,} to {given.first + done - 1:,}, no law broken: {events:,} events, "
        f"{took:.0f} s; a leader at most {worst:.1f} s after the last trouble"
    )
    if given.json:
        found = {"first": given.first, "seeds": done, "events": events, "seconds": took}
        given.json.write_text(json.dumps(found | {"worst_leader_seconds": worst}, indent=2) + "\n")


if __name__ == "__main__":
    main()
