"""Figure 6 of 001: does partitioning cost anything when all jobs are equal?

Section 4.3, the sanity check: uniform jobs, no slowdowns, five tracks. Max Benefit and Random share
one queue; EDF-Partitioned and Proportional divide the tracks (not aggressive, as few as will do,
k = 1), with Max Benefit inside.

Run: `python bench/papers/fig06.py [--events 1000000] [--jobs 2]`.
"""

from _figure import Curves, Figure, Point, figure, paper
from _finding import Finding

from springhouse.refresh.policy import EdfPartitioned, Global, Proportional
from springhouse.refresh.ranking.basic import Basic
from springhouse.simulate.workload import Workload, equal_tables

UTILISATIONS = (0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05)
POLICIES = {
    "max benefit": paper(tracks=Global(), chopping=None),
    "random": paper(basic=Basic.RANDOM, tracks=Global(), chopping=None),
    "edf-partitioned": paper(tracks=EdfPartitioned(), chopping=None),
    "proportional": paper(tracks=Proportional(allotted=0, aggressive=False, k=1.0), chopping=None),
}


def findings(curves: Curves) -> list[Finding]:
    loaded = [u for u in curves.utilisations if 0.7 <= u <= 1.0]
    partitioned = [curves.at("edf-partitioned", u) for u in loaded]
    random = [curves.at("random", u) for u in loaded]
    apart = max(
        abs(curves.at("proportional", u) / curves.at("max benefit", u) - 1)
        for u in curves.utilisations
    )
    early = max(curves.at("max benefit", u) for u in curves.utilisations if u <= 0.85)
    return [
        Finding(
            "EDF-Partitioned is the worst, even worse than Random: it wastes tracks.",
            f"from 0.7 to 1.0: edf-partitioned {', '.join(f'{v:.3f}' for v in partitioned)}; "
            f"random {', '.join(f'{v:.3f}' for v in random)}; at 1.05 "
            f"{curves.at('edf-partitioned', 1.05):.2f} and {curves.at('random', 1.05):.2f}, but "
            "from 0.86 on no partition of five tracks is feasible, and the paper's would not run",
            all(p > r for p, r in zip(partitioned, random, strict=True)),
            numbers={"edf-partitioned over random": sum(partitioned) / sum(random)},
        ),
        Finding(
            "Proportional is on par with Max Benefit on one queue.",
            f"never more than {apart:.2%} apart",
            apart < 0.02,
            numbers={"at most": 1 + apart},
            tolerance=0.02,
        ),
        Finding(
            "Lateness starts only near 100 % utilisation.",
            f"max benefit is at most {early:.3f} up to 0.85, {curves.at('max benefit', 1.0):.3f} "
            "at 1.0",
            early < 1.1 and curves.at("max benefit", 1.0) > early,
            numbers={"up to 0.85": early, "at 1.0": curves.at("max benefit", 1.0)},
        ),
        Finding(
            "More than 100 % can be offered: what waited starts only once.",
            f"max benefit {curves.at('max benefit', 1.05):.2f} at 1.05",
            curves.at("max benefit", 1.05) < 20,
            numbers={"at 1.05": curves.at("max benefit", 1.05)},
        ),
    ]


POINTS = [
    Point(name, u, Workload(equal_tables(30)), policy, tracks=5)
    for name, policy in POLICIES.items()
    for u in UTILISATIONS
]
FIGURE = Figure(6, "no slowdowns, uniform jobs, five tracks", POINTS, findings)


if __name__ == "__main__":
    figure(FIGURE)
