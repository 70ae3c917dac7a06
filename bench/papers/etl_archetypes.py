"""000, Figures 8 to 11 and A1: time and memory of the archetypes under three policies.

Each archetype runs over TPC-H in this process, on one thread, as in the paper: one activity at a
time, row packs of about 400 rows, queues of 100 packs, and a time slot of 2 ms for Minimum Memory,
which are about as many packs as the paper's 70 ms were.
Memory is what waits in queues, averaged over time and at its peak. Policies take turns in each
round, and medians are told.

The paper: Minimum Memory needs 1/2 to 1/10 of the average memory of the others and is slowest;
Minimum Cost is a little faster than Round Robin and needs less memory.

Run: `python bench/papers/etl_archetypes.py [--scales 0.1,1] [--rounds 3] [--keep]`. `--keep` writes
`bench/results/000/archetypes.md`, `.csv` and `appendix_a.svg`.
"""

import argparse
import csv
import os
import platform
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))
from _flows import RESULTS, request_for, run, table, tpch_sources
from archetypes import ARCHETYPES

from springhouse.flows.execution import PolicyName
from springhouse.flows.monitor import Measured
from springhouse.flows.run import run_here
from springhouse.flows.settings import Settings
from springhouse.simulate.chart import line_chart

POLICIES = (PolicyName.ROUND_ROBIN, PolicyName.MINIMUM_COST, PolicyName.MINIMUM_MEMORY)
PACK_BYTES = 400 * 48
FIGURES = ("seconds", "average packs", "most packs", "average MB", "most MB")
SELECTIVITIES = (0.2, 0.4, 0.6, 0.8, 1.0)


def figures(took: Measured) -> tuple[float, ...]:
    mega = 2**20
    sizes = took.average_bytes / mega, took.most_bytes / mega
    return (took.seconds, took.average_packs, took.most_packs, *sizes)


def selective(sources: dict[str, pa.Table], selectivity: float) -> dict[str, pa.Table]:
    """The same sources, of which the first filter lets only this part through."""
    chance = np.random.default_rng(1)
    parts, lines = sources["partsupp"], sources["lineitem"]
    cost = parts["ps_supplycost"].to_numpy()
    gone = chance.random(len(cost)) >= selectivity
    quantity = np.where(chance.random(lines.num_rows) < selectivity, 50.0, 0.0)
    at = parts.schema.get_field_index("ps_supplycost")
    parts = parts.set_column(at, "ps_supplycost", pa.array(cost, mask=gone))
    at = lines.schema.get_field_index("l_quantity")
    return sources | {
        "partsupp": parts,
        "lineitem": lines.set_column(at, "l_quantity", pa.array(quantity)),
    }


def measured(name: str, sources: dict[str, pa.Table], rounds: int) -> dict[PolicyName, list[float]]:
    """The median figures of an archetype under each policy."""
    graph = ARCHETYPES[name].flow.graph({n: rows.schema for n, rows in sources.items()})
    found: dict[PolicyName, list[tuple[float, ...]]] = {policy: [] for policy in POLICIES}
    for _ in range(rounds):
        for policy in POLICIES:
            took = run(graph, sources, Settings(policy, 1, pack_bytes=PACK_BYTES))
            found[policy].append(figures(took))
    return {p: [statistics.median(c) for c in zip(*f, strict=True)] for p, f in found.items()}


def appendix_a(sources: dict[str, pa.Table]) -> str:
    """What waits in the butterfly over time, under each policy."""
    graph = ARCHETYPES["butterfly"].flow.graph({n: rows.schema for n, rows in sources.items()})
    curves = {}
    for policy in POLICIES:
        settings = Settings(policy, 1, pack_bytes=PACK_BYTES)
        with tempfile.TemporaryDirectory() as folder:
            request = request_for(graph, sources, settings, Path(folder), traced=True)
            run_here(request, settings)
        curve, began = request.monitor.curve or [], request.monitor.began
        step = max(1, len(curve) // 400)
        curves[policy.value] = [(at - began, packs + 1) for at, packs, _ in curve[::step]]
    return line_chart(
        "000, Figure A1: the butterfly", "seconds", "row packs waiting, plus 1", curves
    )


def main() -> None:
    """Measure, tell, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scales", default="0.1,1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for scale in [float(text) for text in options.scales.split(",")]:
            sources = tpch_sources(scale, Path(folder))
            for name in ARCHETYPES:
                rows += told(f"{scale:g}", name, measured(name, sources, options.rounds))
            for name in ("butterfly", "primary flow"):
                for selectivity in SELECTIVITIES:
                    chosen = selective(sources, selectivity)
                    label = f"{name}, selectivity {selectivity:g}"
                    rows += told(f"{scale:g}", label, measured(name, chosen, 1))
        drawn = appendix_a(sources)
    text = report(rows, options.rounds)
    print(text)
    if options.keep:
        folder_of_results = RESULTS / "000"
        folder_of_results.mkdir(exist_ok=True)
        (folder_of_results / "archetypes.md").write_text(text)
        (folder_of_results / "appendix_a.svg").write_text(drawn)
        with (folder_of_results / "archetypes.csv").open("w") as file:
            csv.writer(file).writerows([["scale", "archetype", "policy", *FIGURES], *rows])


def told(scale: str, name: str, found: dict[PolicyName, list[float]]) -> list[list[object]]:
    made: list[list[object]] = [
        [scale, name, policy.value, *(f"{number:.3g}" for number in numbers)]
        for policy, numbers in found.items()
    ]
    for row in made:
        print(*row, sep="  ", flush=True)
    return made


def report(rows: list[list[object]], rounds: int) -> str:
    def ratio(figure: int) -> float:
        by = {(r[0], r[1], r[2]): float(str(r[3 + figure])) for r in rows}
        keys = {(r[0], r[1]) for r in rows}
        memory, robin = PolicyName.MINIMUM_MEMORY.value, PolicyName.ROUND_ROBIN.value
        return statistics.geometric_mean(by[(*k, memory)] / by[(*k, robin)] for k in keys)

    return (
        "# 000, Figures 8 to 11: the archetypes under three policies\n\n"
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"{rounds} rounds, medians; one thread, packs of {PACK_BYTES} bytes.\n\n"
        f"Minimum Memory against Round Robin, geometric mean over all rows: {ratio(1):.2f} of the "
        f"average packs (paper: 0.1 to 0.5), {ratio(2):.2f} of the most packs, {ratio(0):.2f} of "
        "the time (paper: slowest of the three).\n\n"
        + table(["scale", "archetype", "policy", *FIGURES], rows)
        + "\n"
    )


if __name__ == "__main__":
    main()
