"""Figure 9 of 001: does partitioning protect short jobs from long ones?

Section 4.6: half of the tables have a period of 100, half of 10,000; priorities are the inverse of
the periods, 100 and 1. Max Benefit on one queue, EDF-Partitioned and Proportional, both of them not
aggressive, Proportional with as few tracks as will do and k = 1. S = 3.

Run: `python bench/papers/fig09.py [--events 1000000] [--jobs 2]`.
"""

from _figure import Curves, Figure, Point, figure, paper
from _finding import Finding
from _heterogeneous import SLOWDOWNS, WORKLOAD

from springhouse.refresh.policy import EdfPartitioned, Global, Proportional

UTILISATIONS = (0.4, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9, 1.0)
POLICIES = {
    "global": paper(tracks=Global(), chopping=None),
    "edf-partitioned": paper(tracks=EdfPartitioned(), chopping=None),
    "proportional": paper(tracks=Proportional(allotted=0, aggressive=False, k=1.0), chopping=None),
}


def findings(curves: Curves) -> list[Finding]:
    low = [u for u in curves.utilisations if u <= 0.55]
    high = [u for u in curves.utilisations if u >= 0.7]
    means = {name: curves.mean(name) for name in POLICIES}
    short_low = {name: _short(curves, name, low) for name in POLICIES}
    short_high = {name: _short(curves, name, high) for name in POLICIES}
    return [
        Finding(
            "The algorithm without partitions incurs a large relative lateness.",
            curves.text(*POLICIES),
            max(curves.curve("global")) > 2,
            numbers={"global, at most": max(curves.curve("global"))},
        ),
        Finding(
            "Partitioning protects short jobs.",
            f"lateness of the short ones up to 0.55: {_numbers(short_low)}; from 0.7 on: "
            f"{_numbers(short_high)}. Proportional leaves two of four tracks free below 0.5, one "
            "below 0.75, and protects no better than one queue there: hence Figure 10",
            short_low["edf-partitioned"] < 0.9 * short_low["global"]
            and short_high["proportional"] < 0.9 * short_high["global"],
            numbers={
                "EDF-Partitioned over global, low": short_low["edf-partitioned"]
                / short_low["global"],
                "Proportional over global, high": short_high["proportional"] / short_high["global"],
            },
        ),
        Finding(
            "EDF-Partitioned is significantly better at lower utilisations, worse at higher ones.",
            f"against global: {_ratios(curves)}",
            sum(curves.at("edf-partitioned", u) - curves.at("global", u) for u in low) < 0
            and all(curves.at("edf-partitioned", u) > curves.at("global", u) for u in high),
            numbers={
                name: sum(curves.at("edf-partitioned", u) for u in among)
                / sum(curves.at("global", u) for u in among)
                for name, among in (("low", low), ("high", high))
            },
        ),
        Finding(
            "Proportional is best overall.",
            f"mean lateness {_numbers(means)}",
            means["proportional"] == min(means.values()),
            numbers={"over global": means["proportional"] / means["global"]},
        ),
    ]


def _short(curves: Curves, name: str, utilisations: list[float]) -> float:
    """The mean lateness of tables with the short period."""
    return sum(curves.of_class(name, u, "short") for u in utilisations) / len(utilisations)


def _numbers(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())


def _ratios(curves: Curves) -> str:
    return ", ".join(
        f"{curves.at('edf-partitioned', u) / curves.at('global', u) - 1:+.0%} at {u}"
        for u in curves.utilisations
    )


POINTS = [
    Point(name, u, WORKLOAD, policy, SLOWDOWNS)
    for name, policy in POLICIES.items()
    for u in UTILISATIONS
]
FIGURE = Figure(9, "effects of heterogeneous jobs", POINTS, findings)


if __name__ == "__main__":
    figure(FIGURE)
