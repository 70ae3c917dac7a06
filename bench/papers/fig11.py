"""Figure 11 of 001: does chopping help after an overload?

Section 4.7: fifteen chains of two tables, base tables with priority 1 and derived ones with 10; one
refresh loads at most three periods of data, or all. One global queue, Max Benefit, S = 3.

Run: `python bench/papers/fig11.py [--events 1000000] [--jobs 2]`.
"""

from _figure import Curves, Finding, Point, figure

from springhouse.refresh.policy import Global, Policy
from springhouse.simulate.slowdowns import Slowdowns
from springhouse.simulate.workload import Workload, chains

UTILISATIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
WORKLOAD = Workload(chains(15, [(1.0, 10.0)]))
CHOPPING = {"no chopping": None, "chopping at 3": 3.0}


def findings(curves: Curves) -> list[Finding]:
    gains = [
        1 - curves.at("chopping at 3", u) / curves.at("no chopping", u) for u in curves.utilisations
    ]
    return [
        Finding(
            "Update chopping is an effective strategy after an overload.",
            "it lowers the lateness by " + ", ".join(f"{gain:.1%}" for gain in gains),
            max(gains) > 0.02 and min(gains) > -0.01,
        )
    ]


if __name__ == "__main__":
    points = [
        Point(name, u, WORKLOAD, Policy(tracks=Global(), chopping=chopping), Slowdowns())
        for name, chopping in CHOPPING.items()
        for u in UTILISATIONS
    ]
    figure(11, "update chopping with two priority classes", points, findings)
