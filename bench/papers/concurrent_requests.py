"""002, Figure 3: the Locality policy against the simple scheduler, for 1 to 64 requests at once.

A plan of about 170 operators, 64 times in all: 64 x 1 is one after the other, 1 x 64 all at once.
The simple scheduler has a FIFO list per thread, steals in turn, has one semaphore for all threads
and packs of a fixed size that respects no cache. The paper: Locality is 8 to 12 % faster, on 48
logical processors in four nodes. Both sides take turns, and the medians are told.

Run: `python bench/papers/concurrent_requests.py [--scale 0.01] [--rounds 5] [--requests 64]
[--threads 2] [--fixed 1048576] [--keep]`. `--keep` writes `bench/results/002/concurrent.md`.
"""

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))
from _flows import RESULTS, request_for, table, tpch_sources
from etl_mixed import line

from springhouse.flows.declare import Draft, flow
from springhouse.flows.execution import PolicyName
from springhouse.flows.graph import Graph, extended
from springhouse.flows.run import Pool
from springhouse.flows.settings import Settings


@flow
def plan(flow: Draft) -> None:
    """Sixteen branches of eight light activities and an aggregate, united again."""
    ways = flow.read("lineitem").route(*(f"l_quantity < {3 * n}" for n in range(1, 16)))
    made = [
        line(way, "l_extendedprice", 8).aggregate("l_suppkey", price="sum(l_extendedprice)")
        for way in ways
    ]
    whole = made[0].union(*made[1:])
    whole.aggregate("l_suppkey", price="sum(price)").write("by_supplier")


def seconds_of(
    graph: Graph, sources: Mapping[str, pa.Table], settings: Settings, total: int, at_once: int
) -> float:
    """How long it takes to run the plan `total` times, `at_once` beside each other."""
    with tempfile.TemporaryDirectory() as folder, Pool(settings) as pool:
        began = time.perf_counter()
        for group in range(total // at_once):
            running = []
            for number in range(at_once):
                place = Path(folder) / f"{group}-{number}"
                place.mkdir()
                running.append(pool.submit(request_for(graph, sources, settings, place)))
            for one in running:
                one.wait()
        return time.perf_counter() - began


def main() -> None:
    """Measure, tell, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--fixed", type=int, default=2**20)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    sides = {
        "locality": Settings(PolicyName.LOCALITY, options.threads),
        "simple": Settings(PolicyName.FIRST_COME, options.threads, pack_bytes=options.fixed),
        "simple, packs as locality": Settings(PolicyName.FIRST_COME, options.threads),
    }
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        sources = tpch_sources(options.scale, Path(folder))
        graph = plan.graph({name: rows.schema for name, rows in sources.items()})
        operators = len(extended(graph).nodes)
        at_once = 1
        while at_once <= options.requests:
            found: dict[str, list[float]] = {name: [] for name in sides}
            for _ in range(options.rounds):
                for name, settings in sides.items():
                    took = seconds_of(graph, sources, settings, options.requests, at_once)
                    found[name].append(took)
            medians = {name: statistics.median(seconds) for name, seconds in found.items()}
            gains = [f"{1 - medians['locality'] / medians[n]:.1%}" for n in list(sides)[1:]]
            label = f"{options.requests // at_once} x {at_once}"
            rows.append([label, *(f"{m:.2f}" for m in medians.values()), *gains])
            print(*rows[-1], sep="  ", flush=True)
            at_once *= 2
    header = ["requests", *(f"{name}, s" for name in sides), "gain", "gain, same packs"]
    text = (
        "# 002, Figure 3: locality against the simple scheduler\n\n"
        f"{options.threads} threads, one node, {platform.machine()}, Python "
        f"{platform.python_version()}; {operators} operators, lineitem of TPC-H at scale "
        f"{options.scale:g}, {options.rounds} rounds, medians. Paper: 8 to 12 %.\n\n"
        + table(header, rows)
        + "\n"
    )
    print(text)
    if options.keep:
        (RESULTS / "002").mkdir(exist_ok=True)
        (RESULTS / "002" / "concurrent.md").write_text(text)


if __name__ == "__main__":
    main()
