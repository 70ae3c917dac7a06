"""Figure 5 of 001: is Max Benefit better than EDF-P when tables load at different speeds?

Section 4.2: half of the tables have beta = 0.1, half beta = 0.01. One global queue, S = 3.

Run: `python bench/papers/fig05.py [--events 1000000] [--jobs 2]`.
"""

from _figure import Curves, Finding, Point, figure

from springhouse.refresh.basic import Basic
from springhouse.refresh.cost import Cost
from springhouse.refresh.policy import Global, Policy
from springhouse.simulate.slowdowns import Slowdowns
from springhouse.simulate.workload import Workload, equal_tables

UTILISATIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
WORKLOAD = Workload(
    equal_tables(15, prefix="heavy", cost=Cost(1.0, 0.1))
    + equal_tables(15, prefix="light", cost=Cost(1.0, 0.01))
)
BASICS = (Basic.EDF_P, Basic.MAX_BENEFIT, Basic.LOOKAHEAD)


def findings(curves: Curves) -> list[Finding]:
    gaps = [curves.at("max-benefit", u) / curves.at("edf-p", u) - 1 for u in curves.utilisations]
    ahead = [
        1 - curves.at("lookahead", u) / curves.at("max-benefit", u) for u in curves.utilisations
    ]
    return [
        Finding(
            "When the lateness first starts to increase, EDF-P is better.",
            f"Max Benefit's lateness against EDF-P's, by utilisation: {_percents(gaps)}",
            any(gap > 0 for gap in gaps[: len(gaps) // 2]),
            differs="With equal priorities and periods Max Benefit starts the short jobs first, "
            "which lowers the mean wait at any load. The paper says neither how the two classes "
            "are mixed nor how long slow periods are.",
        ),
        Finding(
            "Max Benefit is better at higher utilisations.",
            f"{_percents(gaps[-3:])} at the three highest",
            all(gap < 0 for gap in gaps[-3:]),
        ),
        Finding(
            "Lookahead almost always chooses as Max Benefit does; its gain is very minor.",
            f"it lowers Max Benefit's lateness by {_percents(ahead)}",
            max(map(abs, ahead)) < 0.02,
            differs="The gain is small, but not too small to measure here: half of the jobs are "
            "short, and one of them is about to come nearly always when a long one would start.",
        ),
    ]


def _percents(numbers: list[float]) -> str:
    return ", ".join(f"{number:+.1%}" for number in numbers)


if __name__ == "__main__":
    points = [
        Point(basic.value, u, WORKLOAD, Policy(basic, Global(), chopping=None), Slowdowns())
        for basic in BASICS
        for u in UTILISATIONS
    ]
    figure(5, "Max Benefit against EDF-P, two betas", points, findings)
