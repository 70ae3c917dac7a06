"""000, Figures 8 to 11 and A1: time and memory of the archetypes under three policies.

Each archetype runs over TPC-H in this process, on one thread, as in the paper: one activity at a
time, row packs of about 400 rows, and queues of 100 packs. The time slot for Minimum Memory was
found by the paper's method (`etl_time_slot.py`). A second series uses the default packs and queues
of flows. Memory is the amount that waits in queues, averaged over time and at its peak. Policies
take turns in each round, and the page shows medians.

Run, in parts if it is too long for one sitting:

    python bench/papers/etl_archetypes.py [--scales 0.1,1] [--only "line;fork"] [--rounds 3]
                                          [--packs default] [--data FOLDER]
    python bench/papers/etl_archetypes.py --selectivities [--scales 1]
    python bench/papers/etl_archetypes.py --curves [--scales 0.1]
    python bench/papers/etl_archetypes.py --again

Each adds to `bench/results/000/archetypes.csv` (or draws `appendix_a.svg`) and writes
`archetypes.md`.
It fails if a finding moved (`_finding`).
Time is that of the processor: it hardly depends on what else runs. Seconds by the clock are beside
it in the CSV.
"""

import argparse
import csv
import os
import platform
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))
from _finding import Finding, Page, add_hold_option, findings_table
from _flows import (
    PACKS,
    RESULTS,
    Used,
    add_data_option,
    data_folder,
    request_for,
    run,
    table,
    tpch_sources,
)
from archetypes import ARCHETYPES

from springhouse.flows.flow_settings import Settings
from springhouse.flows.monitor import FlowMeasurements
from springhouse.flows.policy_choice import PolicyName
from springhouse.flows.run import run_here
from springhouse.simulate.chart import line_chart

HERE = RESULTS / "000"
OF_TIME, OF_MEMORY = 0.3, 0.5
"""By how much ratios may move: of time, and of packs that wait, which differ more between runs."""
ROBIN, COST, MEMORY = (
    PolicyName.ROUND_ROBIN.value,
    PolicyName.MINIMUM_COST.value,
    PolicyName.MINIMUM_MEMORY.value,
)
POLICIES = (PolicyName.ROUND_ROBIN, PolicyName.MINIMUM_COST, PolicyName.MINIMUM_MEMORY)
TIME = "processor seconds"
FIGURES = (TIME, "seconds", "average packs", "most packs", "average MB", "most MB")
KEYS = ("packs", "scale", "selectivity", "archetype", "policy")
SELECTIVITIES = (0.2, 0.4, 0.6, 0.8, 1.0)


TITLES = {
    "paper": "Packs of the paper: about 400 rows, queues of 100 packs",
    "default": "Packs as flows have them by default: 4 MB, queues of 30 packs",
}
_SLOTS = (
    "A turn without a time slot fills a queue, and Minimum Memory's slots end before: with slots "
    "of 70 ms its peaks are 1.03 times those of Minimum Cost, with ours 0.25 "
    "([measured](time_slot.md))."
)
_FEW_PACKS = (
    "At scale 0.1 lineitem has 7 packs of 4 MB and supplier one: queues of 30 packs never fill, "
    "and what waits is as much as there is."
)
WHY: dict[tuple[str, str], str] = defaultdict(str)
"""Why a finding need not agree, by packs and finding."""
WHY |= {
    ("paper", "quick"): (
        "In the paper it switches activities less. Here both do as often: a turn of either lasts "
        "until a queue is empty or full, 498 and 510 turns for 32,000 packs over all archetypes "
        "([CSV](slots.csv))."
    ),
    ("paper", f"memory of {COST}"): (
        "It is the primary flow alone. Its lookups give about 164 packs at once; with keys that "
        "are assigned pack by pack it needs 0.17 of either ([measured](time_slot.md))."
    ),
    ("paper", "stable"): "Its lookups again: see above.",
    ("paper", "peaks"): _SLOTS,
    ("default", "peaks"): "A slot of 0.2 ms is one pack of 4 MB here; see above.",
    ("default", "stable"): _FEW_PACKS,
    ("default", "indifferent"): _FEW_PACKS,
    ("default", "linear"): (
        "With few packs joins are most of the time, and a lookup builds a table of all keys for "
        "each portion of rows: ten times the rows make as many portions, over ten times the keys."
    ),
}


class Case(NamedTuple):
    """A run under three policies; the selectivity is empty for unchanged data."""

    packs: str
    scale: str
    selectivity: str
    archetype: str

    def at(self, scale: str) -> "Case":
        return self._replace(scale=scale)


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
            key=lambda r: (
                r["packs"] != "paper",
                r["selectivity"],
                float(r["scale"]),
                names.index(r["archetype"]),
            ),
        )

    def cases(self, packs: str, *, selective: bool = False) -> list[Case]:
        """The cases of Figures 8 to 10, or those of Figure 11."""
        found = dict.fromkeys(Case(*(row[key] for key in KEYS[:-1])) for row in self.rows())
        return [c for c in found if c.packs == packs and bool(c.selectivity) is selective]

    def at(self, case: Case, policy: str, figure: str) -> float:
        return float(self._by[(*case, policy)][figure])

    def ratios(self, cases: list[Case], figure: str, policy: str, other: str) -> list[float]:
        """One policy relative to another, case by case."""
        return [self.at(c, policy, figure) / self.at(c, other, figure) for c in cases]


def figures(took: FlowMeasurements, used: Used) -> tuple[float, ...]:
    mega = 2**20
    sizes = took.average_bytes / mega, took.most_bytes / mega
    times = used.processor_seconds, used.seconds
    return (*times, took.average_packs, took.most_packs, *sizes)


def selective(sources: dict[str, pa.Table], selectivity: float) -> dict[str, pa.Table]:
    """The same sources, changed so that the first filter passes only this part."""
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
    graph = ARCHETYPES[case.archetype].flow.graph({n: rows.schema for n, rows in sources.items()})
    took: dict[PolicyName, list[tuple[float, ...]]] = {policy: [] for policy in POLICIES}
    for _ in range(rounds):
        for policy in POLICIES:
            took[policy].append(
                figures(*run(graph, sources, Settings(policy, 1, *PACKS[case.packs])))
            )
    for policy, each in took.items():
        medians = [statistics.median(column) for column in zip(*each, strict=True)]
        found.add(case, policy.value, rounds, medians)
    found.write()


def appendix_a(sources: dict[str, pa.Table]) -> str:
    """The memory that waits in the butterfly over time, under each policy."""
    graph = ARCHETYPES["butterfly"].flow.graph({n: rows.schema for n, rows in sources.items()})
    curves = {}
    for policy in POLICIES:
        settings = Settings(policy, 1, *PACKS["paper"])
        with tempfile.TemporaryDirectory() as folder:
            request = request_for(graph, sources, settings, Path(folder), traced=True)
            run_here(request, settings)
        curve, began = request.monitor.curve or [], request.monitor.began
        step = max(1, len(curve) // 400)
        curves[policy.value] = [(at - began, float(packs)) for at, packs, _ in curve[::step]]
    return line_chart(
        "000, Figure A1: the butterfly", "seconds", "row packs waiting", curves, linear=True
    )


def told(ratios: list[float]) -> str:
    mean = statistics.geometric_mean(ratios)
    return f"{mean:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def on_time(found: Found, packs: str) -> Iterator[Finding]:
    """Figure 8."""
    cases = found.cases(packs)
    mean = statistics.geometric_mean
    slow = [found.ratios(cases, TIME, MEMORY, other) for other in (ROBIN, COST)]
    yield Finding(
        "Typically Minimum Memory takes longest.",
        f"against Round Robin {told(slow[0])}, against Minimum Cost {told(slow[1])}",
        min(map(mean, slow)) > 1,
        WHY[packs, "slow"],
        {
            f"{packs} packs, over {other}": mean(ratios)
            for other, ratios in zip((ROBIN, COST), slow, strict=True)
        },
        OF_TIME,
    )
    quick = found.ratios(cases, TIME, COST, ROBIN)
    yield Finding(
        "Minimum Cost is slightly faster than Round Robin; the difference is small.",
        f"it takes {told(quick)} of the time",
        0.9 <= mean(quick) <= 1.0,
        WHY[packs, "quick"],
        {f"{packs} packs": mean(quick)},
        OF_TIME,
    )
    growth = {
        case.archetype: mean(
            found.at(case.at("1"), p.value, TIME) / found.at(case, p.value, TIME) for p in POLICIES
        )
        for case in cases
        if case.scale == "0.1" and case.at("1") in cases
    }
    if growth:
        yield Finding(
            "Time is linear in the data size in almost all occasions.",
            "ten times the data take "
            + ", ".join(f"{n} {times:.1f}" for n, times in growth.items())
            + " times as long",
            sum(7 <= times <= 14 for times in growth.values()) >= len(growth) - 1,
            WHY[packs, "linear"],
            {f"{packs} packs, {name}": times for name, times in growth.items()},
            OF_TIME,
        )


def on_average_memory(found: Found, packs: str) -> Iterator[Finding]:
    """Figure 9."""
    cases = found.cases(packs)
    mean = statistics.geometric_mean
    for other in (ROBIN, COST):
        saved = found.ratios(cases, "average packs", MEMORY, other)
        worst = cases[saved.index(max(saved))]
        yield Finding(
            f"Average memory of Minimum Memory is 1/2 to 1/10 of that of {other.title()}.",
            f"packs: {told(saved)}, most in the {worst.archetype} at scale {worst.scale}; bytes: "
            f"{told(found.ratios(cases, 'average MB', MEMORY, other))}",
            0.1 <= mean(saved) <= 0.5 and max(saved) <= 0.6,
            WHY[packs, f"memory of {other}"],
            {f"{packs} packs, mean": mean(saved), f"{packs} packs, most": max(saved)},
            OF_MEMORY,
        )
    fuller = found.ratios(cases, "average packs", ROBIN, COST)
    yield Finding(
        "Average memory of Round Robin is worse than that of Minimum Cost.",
        f"Round Robin has {told(fuller)} times the packs",
        mean(fuller) > 1,
        WHY[packs, "fuller"],
        {f"{packs} packs": mean(fuller)},
        OF_MEMORY,
    )

    def spread(policy: str, among: list[Case] = cases) -> float:
        waiting = [found.at(case, policy, "average packs") for case in among]
        return max(waiting) / min(waiting)

    def spreads(among: list[Case]) -> str:
        return ", ".join(f"{p.value} {spread(p.value, among):.1f}" for p in POLICIES)

    others = [c for c in cases if c.scale == "1" and c.archetype != "primary flow"]
    yield Finding(
        "Minimum Memory remains practically stable, independently of the type of workflow.",
        f"largest to smallest average over all workflows: {spreads(cases)}; at scale 1 without the "
        f"primary flow: {spreads(others)}",
        spread(MEMORY) < min(spread(ROBIN), spread(COST)),
        WHY[packs, "stable"],
        {f"{packs} packs, {p.value}": spread(p.value) for p in POLICIES},
        OF_MEMORY,
    )
    wing = {
        case.scale: found.at(case, ROBIN, "average packs")
        / statistics.median(
            found.at(other, ROBIN, "average packs") for other in cases if other.scale == case.scale
        )
        for case in cases
        if case.archetype == "fork"
    }
    yield Finding(
        "Workflows with many activities, those with a right wing (fork) above all, need more.",
        "the fork under Round Robin, against the median of all: "
        + ", ".join(f"{times:.1f} times at scale {scale}" for scale, times in wing.items()),
        min(wing.values()) > 1,
        numbers={f"{packs} packs, scale {scale}": times for scale, times in wing.items()},
        tolerance=OF_MEMORY,
    )


def on_most_memory(found: Found, packs: str) -> Iterator[Finding]:
    """Figure 10."""
    cases = found.cases(packs)
    peaks = [min(POLICIES, key=lambda p: found.at(c, p.value, "most packs")).value for c in cases]
    yield Finding(
        "In most cases Minimum Cost has the lowest peaks.",
        ", ".join(f"{p.value} in {peaks.count(p.value)}" for p in POLICIES)
        + f" of {len(cases)} cases",
        peaks.count(COST) > len(cases) / 2,
        WHY[packs, "peaks"],
        {f"{packs} packs, {p.value}": peaks.count(p.value) / len(cases) for p in POLICIES},
        OF_MEMORY,
    )
    both = [
        sorted(found.at(each, p.value, "most packs") for each in (case, case.at("1")))
        for case in cases
        if case.scale == "0.1" and case.at("1") in cases
        for p in POLICIES
    ]
    if both:
        apart = [larger / smaller for smaller, larger in both]
        yield Finding(
            "Peaks are practically indifferent to the data size.",
            f"peaks at scale 0.1 and 1 are {told(apart)} apart",
            statistics.geometric_mean(apart) < 1.5,
            WHY[packs, "indifferent"],
            {f"{packs} packs": statistics.geometric_mean(apart)},
            OF_MEMORY,
        )


def on_selectivity(found: Found) -> Iterator[Finding]:
    """Figure 11."""
    cases = found.cases("paper", selective=True)
    if not cases:
        return
    saved = found.ratios(cases, "average packs", MEMORY, ROBIN)
    yield Finding(
        "The effect on average memory is the same if the selectivity varies (Figure 11).",
        f"Minimum Memory's average packs against Round Robin's: {told(saved)} over "
        f"{len(cases)} cases",
        max(saved) < 1,
        numbers={"mean": statistics.geometric_mean(saved), "most": max(saved)},
        tolerance=OF_MEMORY,
    )
    slow = [found.ratios(cases, TIME, MEMORY, other) for other in (ROBIN, COST)]
    yield Finding(
        "The effect on time is similar (Figure 11).",
        f"Minimum Memory takes {told(slow[0])} of Round Robin's time, {told(slow[1])} of Minimum "
        f"Cost's, which takes {told(found.ratios(cases, TIME, COST, ROBIN))} of Round Robin's",
        min(map(statistics.geometric_mean, slow)) > 1,
        numbers={
            f"over {other}": statistics.geometric_mean(ratios)
            for other, ratios in zip((ROBIN, COST), slow, strict=True)
        },
        tolerance=OF_TIME,
    )


def page(found: Found, held: Page, *, hold: bool) -> tuple[str, bool]:
    """The page, and whether every finding equals the stored one."""
    checked: list[Finding] = []
    told_so_far: list[tuple[str, list[Finding]]] = []
    for packs, title in TITLES.items():
        if not found.cases(packs):
            continue
        mine = [
            *on_time(found, packs),
            *on_average_memory(found, packs),
            *on_most_memory(found, packs),
            *(on_selectivity(found) if packs == "paper" else ()),
        ]
        checked += mine
        told_so_far.append((title, mine))
    settled = held.settle(checked, hold=hold)
    sections = [f"## {title}\n\n{findings_table(held, mine)}" for title, mine in told_so_far]
    rounds = sorted({row["rounds"] for row in found.rows()})
    rows = [
        [row["packs"], row["scale"], _named(row), row["policy"], *(row[f] for f in FIGURES)]
        for row in found.rows()
    ]
    text = (
        "# 000, Figures 8 to 11 and A1: the archetypes under three policies\n\n"
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}; "
        f"medians of {' or '.join(rounds)} rounds, one thread. Ratios are geometric means over all "
        "archetypes and scales, with the smallest and the largest; time is that of the processor. "
        "[CSV](archetypes.csv).\n\n"
        + "\n\n".join(sections)
        + "\n\n## Figure A1\n\n![What waits in the butterfly over time](appendix_a.svg)\n\n"
        "What waits in the butterfly over time.\n\n## All figures\n\n"
        + table(["packs", "scale", "archetype", "policy", *FIGURES], rows)
        + "\n"
    )
    return text, settled


def _named(row: dict[str, str]) -> str:
    of = row["selectivity"]
    return f"{row['archetype']}, selectivity {of}" if of else row["archetype"]


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scales", default="0.1,1")
    parser.add_argument("--only", type=lambda text: text.split(";"), default=list(ARCHETYPES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--packs", choices=list(PACKS), default="paper")
    parser.add_argument("--selectivities", action="store_true")
    parser.add_argument("--curves", action="store_true")
    parser.add_argument("--again", action="store_true")
    add_data_option(parser)
    add_hold_option(parser)
    options = parser.parse_args()
    found = Found()
    with data_folder(options.data) as folder:
        for scale in [] if options.again else options.scales.split(","):
            sources = tpch_sources(float(scale), folder)
            if options.curves:
                (HERE / "appendix_a.svg").write_text(appendix_a(sources))
                break
            if not options.selectivities:
                for name in options.only:
                    case = Case(options.packs, scale, "", name)
                    measure(found, case, sources, options.rounds)
                continue
            for selectivity in SELECTIVITIES:
                chosen = selective(sources, selectivity)
                for name in ("butterfly", "primary flow"):
                    if name in options.only:
                        case = Case(options.packs, scale, f"{selectivity:g}", name)
                        measure(found, case, chosen, options.rounds)
    text, settled = page(found, Page("000-archetypes"), hold=options.hold)
    print(text)
    (HERE / "archetypes.md").write_text(text)
    if not settled:
        sys.exit(1)


if __name__ == "__main__":
    main()
