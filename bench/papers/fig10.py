"""Figure 10 of 001: which variation of Proportional is best?

Section 4.6, the workload of Figure 9. "basic" leaves tracks free, "all" divides all of them, "all
aggressive" promotes as well whenever a track is available. Max Benefit inside, k = 1, S = 3.

Run: `python bench/papers/fig10.py [--events 1000000] [--jobs 2]`.
"""

from _figure import Curves, Figure, Point, figure, paper
from _finding import Finding
from _heterogeneous import SLOWDOWNS, WORKLOAD

from springhouse.refresh.policy import Proportional

UTILISATIONS = (0.4, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9, 1.0)
VARIATIONS = {
    "basic": Proportional(allotted=0, aggressive=False, k=1.0),
    "all": Proportional(aggressive=False, k=1.0),
    "all, aggressive": Proportional(aggressive=True, k=1.0),
}


def findings(curves: Curves) -> list[Finding]:
    low = [u for u in curves.utilisations if u <= 0.55]
    best = [
        curves.at("all, aggressive", u) / min(curves.at(name, u) for name in VARIATIONS)
        for u in curves.utilisations
    ]
    return [
        Finding(
            "Allotting all tracks is significantly better at lower utilisations.",
            "up to 0.55: "
            + ", ".join(f"{curves.at('all', u):.3f} to {curves.at('basic', u):.3f}" for u in low),
            sum(curves.at("all", u) for u in low) < sum(curves.at("basic", u) for u in low),
            numbers={
                "all over basic": sum(curves.at("all", u) for u in low)
                / sum(curves.at("basic", u) for u in low)
            },
        ),
        Finding(
            "All and aggressive is good at every utilisation.",
            f"at most {max(best) - 1:.0%} above the best of the three anywhere; "
            + curves.text(*VARIATIONS),
            max(best) < 1.15,
            numbers={"over the best, at most": max(best)},
            tolerance=0.05,
        ),
    ]


POINTS = [
    Point(name, u, WORKLOAD, paper(tracks=rule, chopping=None), SLOWDOWNS)
    for name, rule in VARIATIONS.items()
    for u in UTILISATIONS
]
FIGURE = Figure(10, "variations of Proportional", POINTS, findings)


if __name__ == "__main__":
    figure(FIGURE)
