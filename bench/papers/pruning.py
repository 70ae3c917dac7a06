"""How often, and by how much, does pruning make a plan dearer?

On random small workflows (those of tests/planner), the cheapest plan, found by the basic algorithm,
against plans with one rule of section 6.2 and 6.3 at a time, and with all of them. A plan that is
dearer now may be cheaper in the long run: that is what 6.3 is for.

Run: `python bench/papers/pruning.py [--cases 400]`.
"""

import argparse
import csv
import sys
from dataclasses import replace
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "planner"))

from exhaustive import TooManyError, closure
from random_workflows import random_case

from springhouse.planner.bounds import limits_of
from springhouse.planner.search.planner import Planner
from springhouse.planner.search.pruning import BASIC, Switches

RESULTS = Path(__file__).parents[1] / "results" / "004"
RULES = {
    "old blocks (6.2.1)": replace(BASIC, old_blocks=True),
    "compulsory chains (6.2.2)": replace(BASIC, compulsory_chains=True),
    "bounds propagated (6.2.3)": replace(BASIC, propagate=True),
    "overkill (6.2.4)": replace(BASIC, overkill=True),
    "long term (6.3)": replace(BASIC, long_term=True),
    "one plan per block": replace(BASIC, plans_per_block=1),
    "all": Switches(),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=400)
    options = parser.parse_args()
    ratios = {name: [] for name in RULES}
    explored = {name: [] for name in ("basic", *RULES)}
    missed = dict.fromkeys(RULES, 0)
    seed = cases = 0
    while cases < options.cases:
        seed += 1
        case = random_case(seed)
        try:
            closure(
                case.workflow, limits_of(case.workflow, case.bounds), case.situation, case.cost_of
            )
        except TooManyError:
            continue
        best = Planner(case.workflow, case.bounds, case.outputs, BASIC).plan(case.situation, case)
        if best.missed or best.cost == 0:
            continue
        cases += 1
        explored["basic"].append(best.explored)
        for name, switches in RULES.items():
            planner = Planner(case.workflow, case.bounds, case.outputs, switches)
            plan = planner.plan(case.situation, case)
            missed[name] += bool(plan.missed)
            explored[name].append(plan.explored)
            if not plan.missed:
                ratios[name].append(plan.cost / best.cost)
    rows = []
    for name, found in ratios.items():
        dearer = [each for each in found if each > 1 + 1e-9]
        rows.append(
            [
                name,
                cases,
                missed[name],
                len(dearer),
                f"{len(dearer) / cases:.3f}",
                f"{fmean(found):.4f}",
                f"{fmean(dearer) if dearer else 1.0:.3f}",
                f"{max(found):.3f}",
                f"{fmean(explored[name]) / fmean(explored['basic']):.3f}",
            ]
        )
        print(*rows[-1], flush=True)
    headers = ["rule", "cases", "no plan", "dearer", "share", "mean times", "mean times if dearer"]
    headers += ["worst times", "blocks looked at"]
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "pruning.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([headers, *rows])
    lines = ["## What pruning costs", "", "| " + " | ".join(headers) + " |"]
    lines += ["|---|" + "---:|" * (len(headers) - 1)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    (RESULTS / "pruning.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if any(missed.values()) or min(min(found) for found in ratios.values()) < 1 - 1e-9:
        sys.exit("a plan is missing, or cheaper than the cheapest")


if __name__ == "__main__":
    main()
