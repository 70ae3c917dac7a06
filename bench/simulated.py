"""Does the simulator tell what a House does?

The shop (`examples/shop`) runs live; then the same is asked of a simulator that knows only what the
logs recorded meanwhile. For each table: how much of the time its promise was kept, and how long
what had arrived waited on average. Both worlds measure themselves, second by second, after
everything was made once.

Goals: for each table the kept share within 5 points, the mean lag within 20 % (or 0.3 s, which is
about what a clock that looks once a second can tell).
Run: `python bench/simulated.py [--seconds 120] [--rounds 3]`; it writes
`bench/results/simulated.md`. It takes two minutes a round more than the seconds. On a busy machine
both worlds are slow, but only the real one is uneven.
"""

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from springhouse.refresh.policy import Policy
from springhouse.simulate.fate import TableFate, fate_of, promise_of
from springhouse.simulate.pretend_project import WhatIf
from springhouse.simulate.recorded import record_of

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "simulated.md"
SHOP = ROOT / "examples" / "shop"
sys.path.insert(0, str(SHOP))

POINTS, SHARE, LEAST_SECONDS = 0.05, 0.2, 0.3


@dataclass(frozen=True)
class Pair:
    """One table, live and simulated."""

    name: str
    promise: float | None
    kept: tuple[float | None, float | None]
    lag: tuple[float, float]
    refreshes: tuple[int, int]

    @property
    def agrees(self) -> bool:
        live, pretend = self.lag
        near = abs(live - pretend) <= max(SHARE * live, LEAST_SECONDS)
        kept = [0.0 if each is None else each for each in self.kept]
        return near and abs(kept[0] - kept[1]) <= POINTS


def main() -> None:
    """Run, compare, print, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    rounds = [shop(asked.seconds, seed) for seed in range(7, 7 + asked.rounds)]
    lines = [
        "# The simulator beside the House",
        "",
        (
            f"`bench/simulated.py`, the shop, {asked.rounds} rounds of {asked.seconds:g} s, "
            f"{os.cpu_count()} cores ({platform.machine()}), {time.strftime('%Y-%m-%d')}. "
            "Live, then simulated from what the logs recorded; medians over the rounds."
        ),
        "",
        "| table | promise | kept | mean lag (s) | refreshes | rounds within the goal |",
        "|---|---|---|---|---|---|",
    ]
    for pairs in zip(*rounds, strict=True):
        lines.append(row(pairs))
        print(lines[-1], flush=True)
    all_pairs = [pair for each in rounds for pair in each]
    within = sum(pair.agrees for pair in all_pairs)
    lines += ["", f"Within the goal: {within} of {len(all_pairs)} tables and rounds."]
    print(lines[-1])
    RESULTS.write_text("\n".join(lines) + "\n")


def shop(seconds: float, seed: int) -> list[Pair]:
    """The shop, live and then simulated."""
    import demo
    from rich.console import Console

    import springhouse

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "shop"
        demo.fresh_copy(place)
        trade = demo.Demo(place, 2 * seconds, seed, Console(quiet=True))
        with springhouse.open(place, configuration=demo.QUICK) as house:
            with trade._generator():  # noqa: SLF001  the demo's own
                for _ in range(3):
                    assert house.refresh().ok
                began = house.lake.now()
                assert house.run(seconds).ok
            recorded = record_of(house.project, house.lake, began)
            offered = {name: house.watch.offers.offered(name) for name in house.watch.graph.order}
            live = {
                name: (
                    each.share(promise_of(house.project, name).strictest_seconds),
                    statistics.fmean(each.lags),
                    sum(commit.at >= began for commit in house.lake.log(name).commits()),
                )
                for name, each in house.kept.items()
            }
            fate = fate_of(house.project, recorded, offered, Policy(), WhatIf(2), seconds)
    return [paired(each, *live[each.name]) for each in fate.tables]


def paired(fate: TableFate, kept: float | None, lag: float, refreshes: int) -> Pair:
    return Pair(
        fate.name,
        fate.promise_seconds,
        (kept, fate.kept_share),
        (lag, fate.mean_lag),
        (refreshes, fate.refreshes),
    )


def row(pairs: tuple[Pair, ...]) -> str:
    """A table over all rounds."""
    first = pairs[0]

    def both(values: list[tuple[float, float]], form: str) -> str:
        live, pretend = (statistics.median(each) for each in zip(*values, strict=True))
        return f"{live:{form}} / {pretend:{form}}"

    promise, kept = "", ""
    if first.promise is not None:
        promise = f"{first.promise:g} s"
        kept = both([(p.kept[0] or 0.0, p.kept[1] or 0.0) for p in pairs], ".1%")
    lags, counts = both([p.lag for p in pairs], ".2f"), both([p.refreshes for p in pairs], ".0f")
    within = sum(pair.agrees for pair in pairs)
    return f"| {first.name} | {promise} | {kept} | {lags} | {counts} | {within} of {len(pairs)} |"


if __name__ == "__main__":
    main()
