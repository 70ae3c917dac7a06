"""Figure 11 of 001: does chopping help after an overload?

Section 4.7: fifteen chains of two tables, base tables with priority 1 and derived ones with 10. One
refresh loads at most three periods of data, or all. One global queue, Max Benefit, S = 3. Slow
periods last 5,000 s, so that much more than three periods of data wait at their end.

The paper does not say whether base tables inherit priority here. Its figure is called "with two
priority classes", and its reason is that deferred low-priority jobs block high-priority ones. So
base tables do not inherit in the curves for comparison. Two more curves show the effect of
inheritance (Max), and two show tables that do not read each other. The paper does not say either
whether a chopped job ranks by the data that it loads or by all waiting data. Here it ranks by all
waiting data (decision 0026).

Run: `python bench/papers/fig11.py [--events 1000000] [--jobs 2]`.
"""

from _chains import chains
from _figure import Curves, Figure, Point, figure, paper
from _finding import Finding

from springhouse.refresh.policy import Global, read_inheritance
from springhouse.refresh.ranking.chopping import Chopping
from springhouse.simulate.slowdowns import Slowdowns
from springhouse.simulate.workload import Workload, equal_tables

UTILISATIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SLOWDOWNS = Slowdowns(cycle_seconds=10_000.0)
CHAINS = Workload(chains(15, [(1.0, 10.0)]))
APART = Workload(
    equal_tables(15, prefix="low", priority=1.0) + equal_tables(15, prefix="high", priority=10.0)
)
WORLDS = {"chains": (CHAINS, "none"), "inheriting chains": (CHAINS, "max"), "apart": (APART, "max")}


def gains(curves: Curves, world: str) -> list[float]:
    return [1 - curves.at(f"{world}, at 3", u) / curves.at(world, u) for u in curves.utilisations]


def extremes(gained: list[float]) -> dict[str, float]:
    """The lateness with chopping over that without, where it helps most and least."""
    return {"at best": 1 - max(gained), "at worst": 1 - min(gained)}


def findings(curves: Curves) -> list[Finding]:
    found = {world: gains(curves, world) for world in WORLDS}
    texts = {
        world: "the lateness changes by " + ", ".join(f"{-gain:+.1%}" for gain in each)
        for world, each in found.items()
    }
    return [
        Finding(
            "Update chopping is an effective strategy after an overload.",
            texts["chains"],
            max(found["chains"]) > 0.05 and min(found["chains"]) > -0.01,
            numbers=extremes(found["chains"]),
            tolerance=0.05,
        ),
        Finding(
            "It keeps deferred low-priority jobs from blocking high-priority ones.",
            f"tables that do not read each other: {texts['apart']}",
            max(found["apart"]) > 0.05 and min(found["apart"]) > -0.01,
            numbers=extremes(found["apart"]),
            tolerance=0.05,
        ),
        Finding(
            "(The paper does not say how this goes with inherited priority.)",
            f"chains that inherit by Max: {texts['inheriting chains']}",
            min(found["inheriting chains"]) > -0.02,
            numbers=extremes(found["inheriting chains"]),
            tolerance=0.05,
        ),
    ]


POINTS = [
    Point(
        world + chopped,
        u,
        workload,
        paper(tracks=Global(), inheritance=read_inheritance(rule), chopping=periods),
        SLOWDOWNS,
    )
    for world, (workload, rule) in WORLDS.items()
    for chopped, periods in (("", None), (", at 3", Chopping(3.0, fixed=True)))
    for u in UTILISATIONS
]
FIGURE = Figure(11, "update chopping with two priority classes", POINTS, findings)


if __name__ == "__main__":
    figure(FIGURE)
