"""002, Figure 1: how large should a row pack be?

A line of filters and computations over `lineitem` under the Locality policy, with packs from 4 KB
to 16 MB, on one thread; times are processor times. The paper: the best size is a little below the
L2 cache, and the authors choose half of it.

Run: `python bench/papers/packet_size.py [--scale 0.3] [--rounds 3]`. It writes
`bench/results/002/packet_size.md` and `.svg`.
It fails if a finding moved (`_finding`).
"""

import argparse
import platform
import statistics
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from _finding import Finding, Page, add_hold_option, findings_table
from _flows import RESULTS, add_data_option, data_folder, run, table, tpch_sources
from etl_mixed import line

from springhouse.flows.declare import Draft, flow
from springhouse.flows.flow_settings import Settings
from springhouse.flows.policy_choice import PolicyName
from springhouse.flows.topology import read_topology
from springhouse.simulate.chart import line_chart

HERE = RESULTS / "002"
OVERHEAD = (
    "An activity costs about 0.1 ms per pack here, however small: the engine's step and the calls "
    "into Arrow are Python. It takes packs of some megabytes until that is little."
)
SIZES = [2**power for power in range(12, 25)]


@flow
def plan(flow: Draft) -> None:
    rows = line(flow.read("lineitem"), "l_extendedprice", 9)
    rows.aggregate("l_suppkey", price="sum(l_extendedprice)").write("by_supplier")
    rows.where("l_quantity > 49").write("large")


def findings(medians: Mapping[int, float], l2_bytes: int, default: int) -> Iterator[Finding]:
    """The statements of sections 4.1 and 5.2, against our results."""
    best = min(medians.values())

    def told(size: int) -> str:
        return f"{size // 1024} KB take {medians[size] / best:.2f} times the best"

    smallest, largest = SIZES[0], SIZES[-1]
    yield Finding(
        "With smaller packets the overhead grows.",
        f"{told(smallest)}, {told(2**16)}",
        medians[smallest] > 1.5 * best,
        numbers={"4 KB": medians[smallest] / best, "64 KB": medians[2**16] / best},
        tolerance=0.5,
    )
    yield Finding(
        "With larger packets there is an overhead with cache misses.",
        told(largest),
        medians[largest] > 1.05 * best,
        OVERHEAD,
        {"the largest": medians[largest] / best},
    )
    fastest = min(medians, key=medians.__getitem__)
    yield Finding(
        "The ideal size is slightly lower than the size of the L2 cache.",
        f"the best is {fastest // 1024} KB, and the cache has {l2_bytes // 1024} KB",
        l2_bytes / 8 <= fastest <= l2_bytes,
        OVERHEAD,
        {"of the cache": fastest / l2_bytes},
        # One size up or down.
        1.0,
    )
    half = min(medians, key=lambda size: abs(size - l2_bytes // 2))
    yield Finding(
        "Half of the L2 cache gave the best results in all experiments.",
        f"{told(half)}; our default, {told(min(medians, key=lambda s: abs(s - default)))}",
        medians[half] <= 1.05 * best,
        OVERHEAD,
        {"half of the cache": medians[half] / best},
        0.3,
    )


def page(medians: Mapping[int, float], options: argparse.Namespace, held: Page) -> tuple[str, bool]:
    """The page, and whether every finding equals the stored one."""
    topology = read_topology()
    checked = list(findings(medians, topology.l2_bytes or 0, topology.pack_bytes))
    settled = held.settle(checked, hold=options.hold)
    best = min(medians.values())
    rows = [
        [size // 1024, f"{seconds:.3f}", f"{seconds / best:.2f}"]
        for size, seconds in medians.items()
    ]
    text = (
        "# 002, Figure 1: the size of row packs\n\n"
        f"{platform.machine()}, Python {platform.python_version()}, TPC-H at scale "
        f"{options.scale:g}, {options.rounds} rounds, medians of processor time, one thread. "
        "![Time by size](packet_size.svg)\n\n"
        + findings_table(held, checked)
        + "\n\n"
        + table(["KB", "seconds", "times the best"], rows)
        + "\n"
    )
    return text, settled


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=3)
    add_data_option(parser)
    add_hold_option(parser)
    options = parser.parse_args()
    took: dict[int, list[float]] = {size: [] for size in SIZES}
    with data_folder(options.data) as folder:
        sources = tpch_sources(options.scale, folder)
        graph = plan.graph({name: rows.schema for name, rows in sources.items()})
        for _ in range(options.rounds):
            for size in SIZES:
                settings = Settings(PolicyName.LOCALITY, 1, pack_bytes=size)
                _, used = run(graph, sources, settings)
                took[size].append(used.processor_seconds)
    medians = {size: statistics.median(seconds) for size, seconds in took.items()}
    text, settled = page(medians, options, Page("002-packet_size"))
    print(text)
    HERE.mkdir(exist_ok=True)
    (HERE / "packet_size.md").write_text(text)
    curve = {"time": [(size / 1024, seconds) for size, seconds in medians.items()]}
    drawn = line_chart("002, Figure 1", "KB per row pack", "seconds", curve)
    (HERE / "packet_size.svg").write_text(drawn)
    if not settled:
        sys.exit(1)


if __name__ == "__main__":
    main()
