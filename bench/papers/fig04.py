"""Figure 4 of 001: how much does the strength of slowdowns matter?

Section 4.1: all jobs are equal, and the share of slow time makes the average execution twice as
long as a normal one, whatever the factor S. One global queue, Max Benefit. The paper does not give
the length of periods. Here a slow one is 1,000 s, ten periods of data, as in all figures, and the
normal one S - 2 times as long.

Run: `python bench/papers/fig04.py [--events 1000000] [--jobs 2]`.
"""

from _figure import Curves, Figure, Point, figure, paper
from _finding import Finding

from springhouse.refresh.policy import Global
from springhouse.simulate.slowdowns import Slowdowns
from springhouse.simulate.workload import Workload, equal_tables

UTILISATIONS = (0.4, 0.55, 0.7, 0.8, 0.9, 1.0)
FACTORS = (2, 3, 5, 10)
POLICY = paper(tracks=Global(), chopping=None)


def doubling(times: float, slow_seconds: float = 1_000.0) -> Slowdowns:
    """Slow periods so far apart that the average refresh takes twice as long.

    >>> doubling(5.0).mean, doubling(5.0).cycle_seconds
    (2.0, 4000.0)
    """
    share = 1.0 / (times - 1.0)
    return Slowdowns(times, share, slow_seconds / share)


def findings(curves: Curves) -> list[Finding]:
    names = [f"S={factor}" for factor in FACTORS]
    means = [curves.mean(name) for name in names]
    return [
        Finding(
            "The slowdown factor S can have a significant effect on the lateness.",
            "mean relative lateness "
            + ", ".join(f"{m:.2f} ({n})" for n, m in zip(names, means, strict=True)),
            means == sorted(means) and means[-1] > 1.5 * means[0],
            numbers=dict(zip(names, means, strict=True)),
        ),
        Finding(
            "Lateness grows with the utilisation, for every S.",
            curves.text(*names),
            all(curves.curve(name) == sorted(curves.curve(name)) for name in names),
            numbers={
                f"{name}, highest over lowest": curves.curve(name)[-1] / curves.curve(name)[0]
                for name in names
            },
        ),
    ]


POINTS = [
    Point(f"S={factor}", u, Workload(equal_tables(30)), POLICY, doubling(factor))
    for factor in FACTORS
    for u in UTILISATIONS
]
FIGURE = Figure(4, "effects of slowdown on relative lateness", POINTS, findings)


if __name__ == "__main__":
    figure(FIGURE)
