"""002, Figure 1: how large should a row pack be?

A line of filters and computations over `lineitem` under the Locality policy, with packs from 4 KB
to 16 MB. The paper: the best size is a little below the L2 cache; half of it is what it settles on.

Run: `python bench/papers/packet_size.py [--scale 0.1] [--rounds 3] [--keep]`. `--keep` writes
`bench/results/002/packet_size.md` and `.svg`.
"""

import argparse
import platform
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from _flows import RESULTS, run, table, tpch_sources
from etl_mixed import line

from springhouse.flows.declare import Draft, flow
from springhouse.flows.execution import PolicyName
from springhouse.flows.settings import Settings
from springhouse.flows.topology import read_topology
from springhouse.simulate.chart import line_chart

SIZES = [2**power for power in range(12, 25)]


@flow
def plan(flow: Draft) -> None:
    rows = line(flow.read("lineitem"), "l_extendedprice", 9)
    rows.aggregate("l_suppkey", price="sum(l_extendedprice)").write("by_supplier")
    rows.where("l_quantity > 49").write("large")


def main() -> None:
    """Measure, tell, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    found: dict[int, list[float]] = {size: [] for size in SIZES}
    with tempfile.TemporaryDirectory() as folder:
        sources = tpch_sources(options.scale, Path(folder))
        graph = plan.graph({name: rows.schema for name, rows in sources.items()})
        for _ in range(options.rounds):
            for size in SIZES:
                settings = Settings(PolicyName.LOCALITY, 1, pack_bytes=size)
                found[size].append(run(graph, sources, settings).seconds)
    medians = {size: statistics.median(seconds) for size, seconds in found.items()}
    best = min(medians.values())
    l2_bytes = read_topology().l2_bytes or 0
    rows = [
        [size // 1024, f"{seconds:.3f}", f"{seconds / best:.2f}"]
        for size, seconds in medians.items()
    ]
    half = min(medians, key=lambda size: abs(size - l2_bytes // 2))
    text = (
        "# 002, Figure 1: the size of row packs\n\n"
        f"{platform.machine()}, Python {platform.python_version()}, TPC-H at scale "
        f"{options.scale:g}, {options.rounds} rounds, medians. The L2 cache has "
        f"{l2_bytes // 1024} KB; half of it takes {medians[half] / best:.2f} times the best.\n\n"
        + table(["KB", "seconds", "times the best"], rows)
        + "\n"
    )
    print(text)
    if options.keep:
        (RESULTS / "002").mkdir(exist_ok=True)
        (RESULTS / "002" / "packet_size.md").write_text(text)
        curve = {"time": [(size / 1024, seconds) for size, seconds in medians.items()]}
        drawn = line_chart("002, Figure 1", "KB per row pack", "seconds", curve)
        (RESULTS / "002" / "packet_size.svg").write_text(drawn)


if __name__ == "__main__":
    main()
