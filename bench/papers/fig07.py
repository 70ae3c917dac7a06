"""Figure 7 of 001: do priorities matter?

Section 4.4: two classes of tables that differ only in their priority, 1 and 10. One global queue,
S = 3: Max Benefit heeds priorities, EDF and Random do not.

Run: `python bench/papers/fig07.py [--events 1000000] [--jobs 2]`.
"""

from _figure import Curves, Figure, Point, figure, paper
from _finding import Finding

from springhouse.refresh.policy import Global
from springhouse.refresh.ranking.basic import Basic
from springhouse.simulate.slowdowns import Slowdowns
from springhouse.simulate.workload import Workload, equal_tables

UTILISATIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
WORKLOAD = Workload(
    equal_tables(15, prefix="low", priority=1.0) + equal_tables(15, prefix="high", priority=10.0)
)
BASICS = (Basic.MAX_BENEFIT, Basic.EDF, Basic.RANDOM)


def findings(curves: Curves) -> list[Finding]:
    loaded = [u for u in curves.utilisations if u >= 0.7]
    best = {u: curves.at("max-benefit", u) for u in loaded}
    others = {u: min(curves.at("edf", u), curves.at("random", u)) for u in loaded}
    return [
        Finding(
            "A prioritised algorithm incurs a far lower lateness than EDF and Random.",
            curves.text("max-benefit", "edf", "random"),
            all(best[u] < others[u] for u in loaded)
            and all((others[u] - 1) > 1.5 * (best[u] - 1) for u in loaded if u >= 0.8),
            numbers={f"better of the others, at {u}": others[u] / best[u] for u in loaded},
        )
    ]


POINTS = [
    Point(
        basic.value,
        u,
        WORKLOAD,
        paper(basic=basic, tracks=Global(), chopping=None),
        Slowdowns(),
    )
    for basic in BASICS
    for u in UTILISATIONS
]
FIGURE = Figure(7, "effects of prioritised jobs", POINTS, findings)


if __name__ == "__main__":
    figure(FIGURE)
