"""Are the defaults of flows, the size of row packs and the policy, the measured best?

All archetypes of paper 000, and a line of nine light activities, over TPC-H in this process, on one
thread, as in a Spark task:

    packs     from 256 KB to 32 MB, under the default policy
    policies  all of them, with packs of the default size

Times are processor times, because there is only one thread: on a shared machine they say more than
the clock does. Each time is compared with the fastest of its flow, and the memory (the most bytes
that waited in queues) with the least. Ratios are geometric means over all flows, of medians over
the rounds. Each default has to be within 10 % of the choice that is fastest over all flows, and the
policy has to need the least memory of all.

Run: `python bench/flow_defaults.py [--scale 0.3] [--rounds 3] [--keep]`. `--keep` writes
`bench/results/flow_defaults.md`. It fails if a default is not the best.
"""

import argparse
import os
import platform
import statistics
import sys
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent / "papers"))
from _flows import RESULTS, add_data_option, data_folder, run, table, tpch_sources
from archetypes import ARCHETYPES
from packet_size import plan

from springhouse.flows.declare import Flow
from springhouse.flows.flow_settings import Settings
from springhouse.flows.policy_choice import PolicyName
from springhouse.flows.topology import read_topology

FLOWS: dict[str, Flow] = {"nine steps": plan, **{n: a.flow for n, a in ARCHETYPES.items()}}
SIZES = [2**power for power in range(18, 26)]
POLICIES = [policy for policy in PolicyName if policy is not PolicyName.FIRST_COME]
CLOSE = 1.10


class Compared:
    """Choices over all flows: seconds, and the most bytes that waited."""

    def __init__(self, took: Mapping[tuple[str, Hashable], Sequence[tuple[float, float]]]) -> None:
        self._medians = {
            key: [statistics.median(column) for column in zip(*each, strict=True)]
            for key, each in took.items()
        }
        self.choices = list(dict.fromkeys(choice for _, choice in took))

    def times(self, choice: Hashable, flow: str, figure: int) -> float:
        """The figure of a choice against the best of that flow."""
        best = min(self._medians[flow, other][figure] for other in self.choices)
        return self._medians[flow, choice][figure] / max(best, 1e-9)

    def mean(self, choice: Hashable, figure: int) -> float:
        return statistics.geometric_mean(self.times(choice, flow, figure) for flow in FLOWS)

    def behind(self, choice: Hashable) -> float:
        """The time of a choice against that of the choice that is fastest over all flows."""
        return self.mean(choice, 0) / min(self.mean(other, 0) for other in self.choices)

    def rows(self, name: Mapping[Hashable, str]) -> list[list[str]]:
        return [
            [
                name[choice],
                f"{self.mean(choice, 0):.2f}",
                *(f"{self.times(choice, flow, 0):.2f}" for flow in FLOWS),
                f"{self.mean(choice, 1):.1f}",
            ]
            for choice in self.choices
        ]


def compared(
    choices: Mapping[Hashable, Settings], sources: Mapping[str, pa.Table], rounds: int
) -> Compared:
    """Run every choice in turn, over every flow."""
    took: dict[tuple[str, Hashable], list[tuple[float, float]]] = {}
    for flow, declared in FLOWS.items():
        graph = declared.graph({n: rows.schema for n, rows in sources.items()})
        for _ in range(rounds):
            for choice, settings in choices.items():
                measured, used = run(graph, sources, settings)
                figures = (used.processor_seconds, measured.most_bytes)
                took.setdefault((flow, choice), []).append(figures)
        print(flow, file=sys.stderr, flush=True)
    return Compared(took)


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", action="store_true")
    add_data_option(parser)
    options = parser.parse_args()
    topology, default = read_topology(), Settings()
    with data_folder(options.data) as folder:
        sources = tpch_sources(options.scale, folder)
        sizes: dict[Hashable, Settings] = {s: Settings(pack_bytes=s) for s in SIZES}
        packs = compared(sizes, sources, options.rounds)
        named: dict[Hashable, Settings] = {p: Settings(policy=p) for p in POLICIES}
        policies = compared(named, sources, options.rounds)
    near = min(SIZES, key=lambda size: abs(size - topology.pack_bytes))
    least = min(policies.choices, key=lambda choice: policies.mean(choice, 1))
    slower, later = packs.behind(near), policies.behind(default.policy)
    checks = [
        ["packs: within 10 % of the fastest size", slower, slower <= CLOSE],
        ["policy: within 10 % of the fastest policy", later, later <= CLOSE],
        [
            "policy: the least memory",
            policies.mean(default.policy, 1) / policies.mean(least, 1),
            least is default.policy,
        ],
    ]
    header = ["", "time", *FLOWS, "memory"]
    text = (
        "# The defaults of flows\n\n"
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"L2 cache of {(topology.l2_bytes or 0) // 1024} KB, TPC-H at scale {options.scale:g}, "
        f"{options.rounds} rounds. The default: packs of {topology.pack_bytes // 1024} KB under "
        f'"{default.policy.value}". Times the best of each flow; "time" and "memory" (the most '
        "bytes in queues) are geometric means.\n\n"
        + table(
            ["the default is", "times the best", ""],
            [
                [text, f"{ratio:.2f}", "kept" if good else "**missed**"]
                for text, ratio, good in checks
            ],
        )
        + "\n\n## Packs\n\n"
        + table(header, packs.rows({size: f"{size // 1024} KB" for size in SIZES}))
        + "\n\n## Policies\n\n"
        + table(header, policies.rows({policy: policy.value for policy in POLICIES}))
        + "\n"
    )
    print(text)
    if options.keep:
        (RESULTS / "flow_defaults.md").write_text(text)
    if not all(good for _, _, good in checks):
        sys.exit(1)


if __name__ == "__main__":
    main()
