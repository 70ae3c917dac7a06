"""000, Figures 8 to 11 and A1: time and memory of the archetypes under three policies.

Each archetype runs over TPC-H in this process, on one thread, as in the paper: one activity at a
time, row packs of about 400 rows, queues of 100 packs, and a time slot of 2 ms for Minimum Memory,
which are about as many packs as the paper's 70 ms were. Memory is what waits in queues, averaged
over time and at its peak. Policies take turns in each round, and medians are told.

Run, in parts if it is too long for one sitting:

    python bench/papers/etl_archetypes.py [--scales 0.1,1] [--only "line;fork"] [--rounds 3]
    python bench/papers/etl_archetypes.py --selectivities [--scales 1]
    python bench/papers/etl_archetypes.py --curves [--scales 0.1]
    python bench/papers/etl_archetypes.py --again

Each adds to `bench/results/000/archetypes.csv` (or draws `appendix_a.svg`) and writes
`archetypes.md`; a finding of the paper that does not agree makes it fail, unless it is known why.
"""

import argparse
import csv
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))
from _figure import Finding
from _flows import RESULTS, findings_table, request_for, run, table, tpch_sources
from archetypes import ARCHETYPES

from springhouse.flows.execution import PolicyName
from springhouse.flows.monitor import Measured
from springhouse.flows.run import run_here
from springhouse.flows.settings import Settings
from springhouse.simulate.chart import line_chart

HERE = RESULTS / "000"
ROBIN, COST, MEMORY = (
    PolicyName.ROUND_ROBIN.value,
    PolicyName.MINIMUM_COST.value,
    PolicyName.MINIMUM_MEMORY.value,
)
POLICIES = (PolicyName.ROUND_ROBIN, PolicyName.MINIMUM_COST, PolicyName.MINIMUM_MEMORY)
PACK_BYTES = 400 * 48
QUEUE_PACKS = 100
FIGURES = ("seconds", "average packs", "most packs", "average MB", "most MB")
KEYS = ("scale", "selectivity", "archetype", "policy")
TIMED_ROUNDS = 3
SELECTIVITIES = (0.2, 0.4, 0.6, 0.8, 1.0)
Case = tuple[str, str, str]
"""Scale, selectivity (empty: as the data is) and archetype."""


class Found:
    """All figures so far, by case and policy."""

    def __init__(self) -> None:
        self._by: dict[tuple[str, ...], dict[str, str]] = {}
        path = HERE / "archetypes.csv"
        for row in csv.DictReader(path.open()) if path.exists() else ():
            self._by[tuple(row[key] for key in KEYS)] = row

    def add(self, case: Case, policy: str, rounds: int, figures: list[float]) -> None:
        keys = (*case, policy)
        told = dict(zip(FIGURES, (f"{figure:.4g}" for figure in figures), strict=True))
        self._by[keys] = {**dict(zip(KEYS, keys, strict=True)), "rounds": str(rounds), **told}
        print(*self._by[keys].values(), sep="  ", flush=True)

    def write(self) -> None:
        HERE.mkdir(exist_ok=True)
        with (HERE / "archetypes.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, [*KEYS, "rounds", *FIGURES], lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows())

    def rows(self) -> list[dict[str, str]]:
        names = list(ARCHETYPES)
        return sorted(
            self._by.values(),
            key=lambda r: (r["selectivity"], float(r["scale"]), names.index(r["archetype"])),
        )

    def cases(self, *, selective: bool) -> list[Case]:
        """Those of Figures 8 to 10, or those of Figure 11."""
        found = dict.fromkeys((r["scale"], r["selectivity"], r["archetype"]) for r in self.rows())
        return [case for case in found if bool(case[1]) is selective]

    def at(self, case: Case, policy: str, figure: str) -> float:
        return float(self._by[(*case, policy)][figure])

    def rounds(self, case: Case) -> int:
        return min(int(self._by[(*case, policy.value)]["rounds"]) for policy in POLICIES)

    def ratios(self, cases: list[Case], figure: str, policy: str, other: str) -> list[float]:
        """A policy against another, case by case."""
        return [self.at(c, policy, figure) / self.at(c, other, figure) for c in cases]


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


def measure(found: Found, case: Case, sources: dict[str, pa.Table], rounds: int) -> None:
    """The median figures of an archetype under each policy."""
    graph = ARCHETYPES[case[2]].flow.graph({n: rows.schema for n, rows in sources.items()})
    took: dict[PolicyName, list[tuple[float, ...]]] = {policy: [] for policy in POLICIES}
    for _ in range(rounds):
        for policy in POLICIES:
            measured = run(graph, sources, Settings(policy, 1, QUEUE_PACKS, PACK_BYTES))
            took[policy].append(figures(measured))
    for policy, each in took.items():
        medians = [statistics.median(column) for column in zip(*each, strict=True)]
        found.add(case, policy.value, rounds, medians)
    found.write()


def appendix_a(sources: dict[str, pa.Table]) -> str:
    """What waits in the butterfly over time, under each policy."""
    graph = ARCHETYPES["butterfly"].flow.graph({n: rows.schema for n, rows in sources.items()})
    curves = {}
    for policy in POLICIES:
        settings = Settings(policy, 1, QUEUE_PACKS, PACK_BYTES)
        with tempfile.TemporaryDirectory() as folder:
            request = request_for(graph, sources, settings, Path(folder), traced=True)
            run_here(request, settings)
        curve, began = request.monitor.curve or [], request.monitor.began
        step = max(1, len(curve) // 400)
        curves[policy.value] = [(at - began, float(packs)) for at, packs, _ in curve[::step]]
    return line_chart(
        "000, Figure A1: the butterfly", "seconds", "row packs waiting", curves, linear=True
    )


def findings(found: Found) -> Iterator[Finding]:
    """What section 7.3 says, against what came out here."""
    cases, selected = found.cases(selective=False), found.cases(selective=True)
    mean = statistics.geometric_mean

    def told(ratios: list[float]) -> str:
        return f"{mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"

    # One round says nothing about time: whoever else used the processor may be in it.
    timed = [case for case in cases if found.rounds(case) >= TIMED_ROUNDS]
    if timed:
        slow = [found.ratios(timed, "seconds", MEMORY, other) for other in (ROBIN, COST)]
        yield Finding(
            "Typically Minimum Memory takes longest.",
            f"against Round Robin {told(slow[0])}, against Minimum Cost {told(slow[1])}",
            min(map(mean, slow)) > 1,
        )
        quick = found.ratios(timed, "seconds", COST, ROBIN)
        yield Finding(
            "Minimum Cost is slightly faster than Round Robin; the difference is small.",
            f"it takes {told(quick)} of the time",
            0.9 <= mean(quick) <= 1.0,
        )
    small = [case for case in cases if case[0] == "0.1" and ("1", *case[1:]) in cases]
    growth = {
        case[2]: mean(
            found.at(("1", *case[1:]), p.value, "seconds") / found.at(case, p.value, "seconds")
            for p in POLICIES
        )
        for case in small
        if case in timed
    }
    if growth:
        yield Finding(
            "Time is linear in the data size in almost all occasions.",
            "ten times the data take "
            + ", ".join(f"{n} {times:.1f}" for n, times in growth.items())
            + " times as long",
            sum(7 <= times <= 14 for times in growth.values()) >= len(growth) - 1,
        )
    for other in (ROBIN, COST):
        saved = found.ratios(cases, "average packs", MEMORY, other)
        worst = cases[saved.index(max(saved))]
        yield Finding(
            f"Average memory of Minimum Memory is 1/2 to 1/10 of that of {other.title()}.",
            f"packs: {told(saved)}, most in the {worst[2]} at scale {worst[0]}; bytes: "
            f"{told(found.ratios(cases, 'average MB', MEMORY, other))}",
            0.1 <= mean(saved) <= 0.5 and max(saved) <= 0.6,
        )
    fuller = found.ratios(cases, "average packs", ROBIN, COST)
    yield Finding(
        "Average memory of Round Robin is worse than that of Minimum Cost.",
        f"Round Robin has {told(fuller)} times the packs",
        mean(fuller) > 1,
    )

    def spread(policy: str) -> float:
        packs = [found.at(case, policy, "average packs") for case in cases]
        return max(packs) / min(packs)

    yield Finding(
        "Minimum Memory remains practically stable, independently of the type of workflow.",
        "largest to smallest average over all workflows: "
        + ", ".join(f"{p.value} {spread(p.value):.1f}" for p in POLICIES),
        spread(MEMORY) < min(spread(ROBIN), spread(COST)),
    )
    peaks = [min(POLICIES, key=lambda p: found.at(c, p.value, "most packs")).value for c in cases]
    yield Finding(
        "In most cases Minimum Cost has the lowest peaks.",
        ", ".join(f"{p.value} in {peaks.count(p.value)}" for p in POLICIES)
        + f" of {len(cases)} cases",
        peaks.count(COST) > len(cases) / 2,
        "A turn without a time slot fills a queue up to its 100 packs, and Minimum Memory's slots "
        "end before. Tried, at scale 0.02: with slots of 70 ms instead of 2 ms its peaks are those "
        "of the others (fork 400 instead of 73 packs, tree 100 instead of 87).",
    )
    indifferent = [
        max(found.at(("1", *c[1:]), p.value, "most packs"), found.at(c, p.value, "most packs"))
        / min(found.at(("1", *c[1:]), p.value, "most packs"), found.at(c, p.value, "most packs"))
        for c in small
        for p in POLICIES
    ]
    if indifferent:
        yield Finding(
            "Peaks are practically indifferent to the data size.",
            f"peaks at scale 0.1 and 1 are {told(indifferent)} apart",
            mean(indifferent) < 1.5,
        )
    heavy = [c for c in cases if c[2] == "fork"]
    wing = {
        c[0]: found.at(c, ROBIN, "average packs")
        / statistics.median(found.at(o, ROBIN, "average packs") for o in cases if o[0] == c[0])
        for c in heavy
    }
    yield Finding(
        "Workflows with many activities, those with a right wing (fork) above all, need more.",
        "the fork under Round Robin, against the median of all: "
        + ", ".join(f"{times:.1f} times at scale {scale}" for scale, times in wing.items()),
        bool(wing) and min(wing.values()) > 1,
    )
    if selected:
        saved = found.ratios(selected, "average packs", MEMORY, ROBIN)
        yield Finding(
            "The effect is the same if the selectivity varies (Figure 11).",
            f"Minimum Memory's average packs against Round Robin's: {told(saved)} over "
            f"{len(selected)} cases",
            max(saved) < 1,
        )


def page(found: Found) -> tuple[str, bool]:
    """The page, and whether every finding agrees or is known to differ."""
    checked = list(findings(found))
    rounds = sorted({row["rounds"] for row in found.rows()})
    rows = [
        [row["scale"], _named(row), row["policy"], row["rounds"], *(row[f] for f in FIGURES)]
        for row in found.rows()
    ]
    text = (
        "# 000, Figures 8 to 11 and A1: the archetypes under three policies\n\n"
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}; "
        f"medians of {' or '.join(rounds)} rounds; one thread, packs of {PACK_BYTES} bytes "
        "(about 400 rows), queues of 100 packs. Ratios are geometric means over all archetypes and "
        "scales, with the smallest and the largest. [CSV](archetypes.csv).\n\n"
        + findings_table(checked)
        + _missing(found)
        + "\n\n![What waits in the butterfly over time](appendix_a.svg)\n\n"
        "Figure A1: what waits in the butterfly over time.\n\n"
        + table(["scale", "archetype", "policy", "rounds", *FIGURES], rows)
        + "\n"
    )
    return text, all(finding.agrees or finding.differs for finding in checked)


def _missing(found: Found) -> str:
    """What was not run yet, as a sentence."""
    cases = found.cases(selective=False)
    missing = []
    if not any(found.rounds(case) >= TIMED_ROUNDS for case in cases):
        missing.append("time (which takes three rounds on a machine that does nothing else)")
    if not any(case[0] == "1" for case in cases):
        missing.append("Figures 8 to 10 at scale 1")
    return f"\n\n**Not compared yet:** {'; '.join(missing)}." if missing else ""


def _named(row: dict[str, str]) -> str:
    of = row["selectivity"]
    return f"{row['archetype']}, selectivity {of}" if of else row["archetype"]


def main() -> None:
    """Measure, tell, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scales", default="0.1,1")
    parser.add_argument("--only", type=lambda text: text.split(";"), default=list(ARCHETYPES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--selectivities", action="store_true")
    parser.add_argument("--curves", action="store_true")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    found = Found()
    with tempfile.TemporaryDirectory() as folder:
        for scale in [] if options.again else options.scales.split(","):
            sources = tpch_sources(float(scale), Path(folder))
            if options.curves:
                (HERE / "appendix_a.svg").write_text(appendix_a(sources))
                break
            if not options.selectivities:
                for name in options.only:
                    measure(found, (scale, "", name), sources, options.rounds)
                continue
            for selectivity in SELECTIVITIES:
                chosen = selective(sources, selectivity)
                for name in ("butterfly", "primary flow"):
                    if name in options.only:
                        case = (scale, f"{selectivity:g}", name)
                        measure(found, case, chosen, options.rounds)
    text, agrees = page(found)
    print(text)
    (HERE / "archetypes.md").write_text(text)
    if not agrees:
        sys.exit(1)


if __name__ == "__main__":
    main()
