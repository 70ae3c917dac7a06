"""002, Figure 3: the Locality policy against the simple scheduler, for 1 to 64 requests at once.

A plan of about 170 operators, 64 times in all: 64 x 1 is one after the other, 1 x 64 all at once.
The simple scheduler has a FIFO list per thread, steals in turn, has one semaphore for all threads
and packs of a fixed size that respects no cache. The paper: Locality is 8 to 12 % faster, on 48
logical processors in four nodes. Both sides take turns, and the medians are told.

Run, in parts if it is too long for one sitting:

    python bench/papers/concurrent_requests.py [--scale 0.01] [--rounds 5] [--requests 64]
        [--at-once 1,2,4,8,16,32,64] [--threads 2] [--fixed 65536]
    python bench/papers/concurrent_requests.py --again

Each adds to `bench/results/002/concurrent.csv` and writes `concurrent.md`; a finding of the paper
that does not agree makes it fail, unless it is known why.
"""

import argparse
import csv
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))
from _figure import Finding
from _flows import RESULTS, findings_table, request_for, table, tpch_sources
from archetypes import SCHEMAS
from etl_mixed import line

from springhouse.flows.declare import Draft, flow
from springhouse.flows.execution import PolicyName
from springhouse.flows.graph import Graph, extended
from springhouse.flows.run import Pool
from springhouse.flows.settings import Settings

HERE = RESULTS / "002"
WHY = {"simple": "", "simple, same packs": ""}


@flow
def plan(flow: Draft) -> None:
    """Sixteen branches of eight light activities and an aggregate, united again."""
    ways = flow.read("lineitem").route(*(f"l_quantity < {3 * n}" for n in range(1, 16)))
    made = [
        line(way, "l_extendedprice", 8).aggregate("l_suppkey", price="sum(l_extendedprice)")
        for way in ways
    ]
    whole = made[0].union(*made[1:])
    whole.aggregate("l_suppkey", price="sum(price)").write("by_supplier")


def seconds_of(
    graph: Graph, sources: Mapping[str, pa.Table], settings: Settings, total: int, at_once: int
) -> float:
    """How long it takes to run the plan `total` times, `at_once` beside each other."""
    with tempfile.TemporaryDirectory() as folder, Pool(settings) as pool:
        began = time.perf_counter()
        for group in range(total // at_once):
            running = []
            for number in range(at_once):
                place = Path(folder) / f"{group}-{number}"
                place.mkdir()
                running.append(pool.submit(request_for(graph, sources, settings, place)))
            for one in running:
                one.wait()
        return time.perf_counter() - began


SIDES = ("locality", "simple", "simple, same packs")
FIELDS = ("at_once", "requests", "rounds", "side", "seconds", "fastest", "slowest")
Found = dict[tuple[int, str], dict[str, str]]


def read() -> Found:
    path = HERE / "concurrent.csv"
    rows = csv.DictReader(path.open()) if path.exists() else ()
    return {(int(row["at_once"]), row["side"]): row for row in rows}


def write(found: Found) -> None:
    HERE.mkdir(exist_ok=True)
    with (HERE / "concurrent.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found[key] for key in sorted(found))


def gains(found: Found, other: str) -> list[float]:
    """The part of the other's time that Locality saves, for every number of requests."""
    counts = sorted({at_once for at_once, _ in found})
    return [
        1 - float(found[n, "locality"]["seconds"]) / float(found[n, other]["seconds"])
        for n in counts
    ]


def findings(found: Found) -> Iterator[Finding]:
    """What section 6 says, against what came out here."""
    for other, why in WHY.items():
        parts = gains(found, other)
        yield Finding(
            f"The new scheduler is 8 to 12 % faster than the simple one ({other}).",
            f"{', '.join(f'{part:.1%}' for part in parts)}; median {statistics.median(parts):.1%}",
            statistics.median(parts) >= 0.08,
            why,
        )


def page(found: Found, operators: int) -> tuple[str, bool]:
    """The page, and whether every finding agrees or is known to differ."""
    checked = list(findings(found))
    rows = []
    for n, *parts in zip(
        sorted({n for n, _ in found}), *(gains(found, other) for other in SIDES[1:]), strict=True
    ):
        told = found[n, SIDES[0]]
        seconds = [f"{float(found[n, side]['seconds']):.2f}" for side in SIDES]
        label = f"{int(told['requests']) // n} x {n}"
        rows.append([label, told["rounds"], *seconds, *(f"{part:.1%}" for part in parts)])
    header = ["requests", "rounds", *(f"{side}, s" for side in SIDES), "gain", "gain, same packs"]
    text = (
        "# 002, Figure 3: locality against the simple scheduler\n\n"
        f"{os.cpu_count()} threads, one node, {platform.machine()}, Python "
        f"{platform.python_version()}; {operators} operators, lineitem of TPC-H at scale 0.01, "
        "medians. [CSV](concurrent.csv).\n\n"
        + findings_table(checked)
        + "\n\n"
        + table(header, rows)
        + "\n"
    )
    return text, all(finding.agrees or finding.differs for finding in checked)


def main() -> None:
    """Measure, tell, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--at-once", default="1,2,4,8,16,32,64")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--fixed", type=int, default=2**16)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    settings = (
        Settings(PolicyName.LOCALITY, options.threads),
        Settings(PolicyName.FIRST_COME, options.threads, pack_bytes=options.fixed),
        Settings(PolicyName.FIRST_COME, options.threads),
    )
    found = read()
    graph = plan.graph(SCHEMAS)
    with tempfile.TemporaryDirectory() as folder:
        sources = {} if options.again else tpch_sources(options.scale, Path(folder))
        for at_once in () if options.again else map(int, options.at_once.split(",")):
            took: dict[str, list[float]] = {name: [] for name in SIDES}
            for _ in range(options.rounds):
                for name, chosen in zip(SIDES, settings, strict=True):
                    one = seconds_of(graph, sources, chosen, options.requests, at_once)
                    took[name].append(one)
            for name, each in took.items():
                numbers = statistics.median(each), min(each), max(each)
                told = (at_once, options.requests, options.rounds, name)
                values = [*map(str, told), *(f"{number:.3f}" for number in numbers)]
                found[at_once, name] = dict(zip(FIELDS, values, strict=True))
                print(*values, sep="  ", flush=True)
            write(found)
    text, agrees = page(found, len(extended(graph).nodes))
    print(text)
    (HERE / "concurrent.md").write_text(text)
    if not agrees:
        sys.exit(1)


if __name__ == "__main__":
    main()
