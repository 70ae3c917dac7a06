"""Two weeks of a search engine in two minutes: how much is saved by not joining everything anew?

    python examples/search/run.py [--days 15] [--speed 10000] [--only declared]

Pages and clicks stream in, under a clock that runs ten thousand times too fast. The index is
refreshed in four ways, each time from nothing:

    declared       as its promises allow: new pages are joined with the scores as they are, and all
                   pages with new scores only when they would become a week apart
    synchronous    never apart, and new pages at once: scores are made anew with every few pages,
                   and a refresh joins everything that is new, by increments only
    batch          the same, computed anew each time
    patient        never apart, and scores a day old as declared: new pages wait for them

What it prints comes from the Delta logs: how the index was refreshed, how long it and the scores
took, how long new pages waited, and how far apart the data was that the index reflected.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import springhouse
from springhouse.house import House
from springhouse.lake.note import Note
from springhouse.units import Instant, Seconds

PROJECT = Path(__file__).resolve().parent
DAY = 86_400.0
WEEK = 7 * DAY
RELAXED = "'springhouse.staleness.click_score' = '1 week', 'springhouse.inconsistency' = '1 week'"
A_DAY_OLD = "TBLPROPERTIES ('springhouse.staleness' = '1 day')"
STRICT = "'springhouse.inconsistency' = '0 seconds'"
INCREMENTAL = "'springhouse.refresh' = 'incremental'"
FULL = "'springhouse.refresh' = 'full'"
WAYS: dict[str, dict[str, str]] = {
    "declared": {},
    "synchronous": {RELAXED: f"{STRICT}, {INCREMENTAL}", A_DAY_OLD: ""},
    "batch": {RELAXED: f"{STRICT}, {FULL}", A_DAY_OLD: f"TBLPROPERTIES ({FULL})"},
    "patient": {RELAXED: STRICT},
}
"""What each way puts in the place of a promise of the project."""

QUICK = {
    # Two minutes are too short for compilers to pay: the JVM's second one, and Spark's for queries.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
WARM_UP = 4
"""How often everything is refreshed before the clock starts: a cold Spark takes seconds."""


class FastClock:
    """A clock that stands until it is started, and then runs so many times too fast."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._shown = time.time()
        self._started: float | None = None

    def __call__(self) -> Instant:
        passed = 0.0 if self._started is None else time.time() - self._started
        return Instant(round(self._shown + passed * self._speed, 3))

    def forward(self, seconds: float) -> None:
        """Turn it on by hand."""
        self._shown += seconds

    def start(self) -> Instant:
        self._started = time.time()
        return self()


@dataclass(frozen=True)
class Told:
    """What the logs tell about the index after a run. Times are those of the fast clock."""

    variants: tuple[str, ...]
    cost: Seconds
    lag: Seconds
    apart: tuple[float, ...]
    rows: int

    @property
    def counted(self) -> Counter[str]:
        return Counter(self.variants)


def run(folder: Path, way: str, days: float, speed: float) -> Told:
    """Let the search engine run under one way of refreshing."""
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("*.py", "storage", "*.txt"))
    sql = folder / "transformations" / "search.sql"
    declared = sql.read_text()
    for promise, other in WAYS[way].items():
        assert promise in declared, f"the promise that is to be replaced is not there: {promise}"
        declared = declared.replace(promise, other)
    sql.write_text(declared)
    clock = FastClock(speed)
    with springhouse.open(folder, clock=clock, configuration=QUICK) as house:
        for _ in range(WARM_UP):
            clock.forward(DAY / 12)
            refreshed = house.refresh()
            assert refreshed.ok, refreshed.failures
        began = clock.start()
        house.run(seconds=days * DAY)
        return told(house, began)


def told(house: House, began: Instant) -> Told:
    """The story of the index since it began."""

    def refreshes(table: str) -> list[Note]:
        commits = house.lake.log(table).commits()
        return [c.note for c in commits if c.note and c.note.seconds and c.at > began]

    notes, scores = refreshes("output"), refreshes("click_score")
    channels = house.watch.chooser.channels()
    apart = []
    for snapshot in house.lake.log("output").snapshots():
        left, right = snapshot.provenance.interval(channels)
        apart.append(max(left - right, 0.0))
    return Told(
        tuple(note.variant for note in notes),
        Seconds(sum(note.seconds for note in (*notes, *scores))),
        Seconds(statistics.median(waits(house, notes))),
        tuple(apart),
        notes[-1].rows if notes else 0,
    )


def waits(house: House, notes: Sequence[Note]) -> list[Seconds]:
    """How long each batch of new pages waited from its commit until the index had it."""
    came = {s.made: s.at for s in house.lake.log("pages").snapshots()}
    return [
        Seconds(after.at - at)
        for before, after in pairwise(notes)
        for made, at in came.items()
        if before.read["pages"] < made <= after.read["pages"]
    ] or [Seconds(0.0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=float, default=15.0, help="how long, by the fast clock")
    parser.add_argument("--speed", type=float, default=10_000.0)
    parser.add_argument("--only", choices=tuple(WAYS), help="one of the ways")
    asked = parser.parse_args()
    heads = ("", "refreshes of the index", "cost", "pages wait", "most apart")
    line = "{:<12}  {:<52}  {:>8}  {:>10}  {:>10}"
    print(line.format(*heads), flush=True)
    for way in [asked.only] if asked.only else WAYS:
        with tempfile.TemporaryDirectory() as place:
            found = run(Path(place) / "search", way, asked.days, asked.speed)
        counted = ", ".join(f"{count} {variant}" for variant, count in found.counted.most_common())
        cells = (
            f"{found.cost / 3600:.0f} h",
            f"{found.lag / 60:.0f} min",
            f"{max(found.apart, default=0.0) / DAY:.1f} d",
        )
        print(line.format(way, counted, *cells), flush=True)
    print("\nTimes are by the fast clock, waits are medians. The promise: at most a week apart.")


if __name__ == "__main__":
    main()
