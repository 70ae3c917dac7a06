"""002, Figure 3: the Locality policy against the simple scheduler, for 1 to 64 requests at once.

A plan of about 170 operators over 10 MB, 64 times in all: 64 x 1 is one after the other, 1 x 64 all
at once. The simple scheduler has a FIFO list per thread, steals in turn, and has one semaphore for
all threads. Its packs have a fixed size that ignores the caches. The paper: Locality is 8 to 12 %
faster, on 48 logical processors in four nodes. Here both run with packs of half the L2 cache, which
is the paper's size, and with the default. The simple one also runs with packs of 256 KB, because
the paper does not give its fixed size. All sides take turns, and the page shows the medians.

Locality gains from packs that are still in the cache, and from semaphores that it does not touch.
`--cache` measures the first effect alone: how long an activity takes for a pack that was just made,
and for one that was made many packs ago.

Run, in parts if it is too long for one sitting:

    python bench/papers/concurrent_requests.py [--scale 0.035] [--rounds 5] [--requests 64]
        [--at-once 1,2,4,8,16,32,64] [--threads 2] [--sides "locality, half L2;…"] [--data FOLDER]
    python bench/papers/concurrent_requests.py --cache
    python bench/papers/concurrent_requests.py --again

Each adds to `bench/results/002/concurrent.csv` (or `cache.csv`) and writes `concurrent.md`.
It fails if a finding moved (`_finding`).
"""

import argparse
import csv
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))
from _finding import Finding, Page, add_hold_option, findings_table
from _flows import RESULTS, Usage, add_data_option, data_folder, request_for, table, tpch_sources
from archetypes import SCHEMAS
from etl_mixed import line

from springhouse.flows.activities.per_pack import filter_rows, project_columns
from springhouse.flows.declare import Draft, flow
from springhouse.flows.flow_graph import FlowGraph, add_readers_and_writers
from springhouse.flows.flow_settings import Settings
from springhouse.flows.policy_choice import PolicyName
from springhouse.flows.row_expressions import compile_expression, place_or_compile
from springhouse.flows.row_pack import LEAST_BYTES
from springhouse.flows.run import Pool
from springhouse.flows.topology import read_topology

HERE = RESULTS / "002"
HALF_L2 = (read_topology().l2_bytes or 2**18) // 2
FIXED = 2**18
SIDES: dict[str, tuple[PolicyName, int | None]] = {
    "locality, half L2": (PolicyName.LOCALITY, HALF_L2),
    "simple, half L2": (PolicyName.FIRST_COME, HALF_L2),
    "locality, default": (PolicyName.LOCALITY, None),
    "simple, default": (PolicyName.FIRST_COME, None),
    "simple, 256 KB": (PolicyName.FIRST_COME, FIXED),
}
"""Who decides, and the bytes of a pack."""
COMPARED = (
    ("locality, half L2", "simple, half L2"),
    ("locality, default", "simple, default"),
    ("locality, half L2", "simple, 256 KB"),
)
_LESS = (
    "With 4 to 64 requests at once it gains 6.6 to 9.7 %, one at a time 1.5 to 4.4 %. What it "
    "gains is less of each step than in C++: a step takes 100 to 140 µs here, most of it Python, "
    "and a pack that is still in the cache saves 0.3 to 2.5 µs of that (last table). The more "
    "requests, the more waits: with 64 at once 45 to 54 MB instead of 780 to 962, and a step of "
    "the simple one takes 8 to 12 % longer than with one."
)
WHY: dict[str, str] = {"simple, half L2": _LESS, "simple, default": _LESS}
"""Why Locality need not gain as much, by the side that it is compared with."""


@flow
def plan(flow: Draft) -> None:
    """Sixteen branches of nine light activities and an aggregate, united again.

    Each branch chooses its own rows: a router would be one activity with most of the work.
    """
    lines = flow.read("lineitem")
    made = [
        line(
            lines.where(f"l_quantity > {3 * n} AND l_quantity <= {3 * n + 3}"), "l_extendedprice", 8
        ).aggregate("l_suppkey", price="sum(l_extendedprice)")
        for n in range(16)
    ]
    whole = made[0].union(*made[1:])
    whole.aggregate("l_suppkey", price="sum(price)").write("by_supplier")


class Took(NamedTuple):
    """All requests together; `megabytes` wait on average, `steps` are packs that were worked on."""

    seconds: float
    processor_seconds: float
    waits: int
    megabytes: float
    steps: int


def took(
    graph: FlowGraph, sources: Mapping[str, pa.Table], settings: Settings, total: int, at_once: int
) -> Took:
    """Run the plan `total` times, `at_once` of them together; return the costs."""
    byte_seconds, steps = 0.0, 0
    with tempfile.TemporaryDirectory() as folder, Pool(settings) as pool, Usage() as usage:
        for group in range(total // at_once):
            running = []
            for number in range(at_once):
                place = Path(folder) / f"{group}-{number}"
                place.mkdir()
                running.append(pool.submit(request_for(graph, sources, settings, place)))
            for one in running:
                measured = one.wait()
                byte_seconds += measured.average_bytes * measured.seconds
                steps += sum(each.packs_in for each in measured.activities.values())
    return Took(*usage.used, byte_seconds / usage.used.seconds / 2**20, steps)


FIELDS = ("at_once", "requests", "rounds", "side", *Took._fields, "fastest", "slowest")
Found = dict[tuple[int, str], dict[str, str]]


def read() -> Found:
    path = HERE / "concurrent.csv"
    rows = csv.DictReader(path.open()) if path.exists() else ()
    return {(int(row["at_once"]), row["side"]): row for row in rows}


def write(found: Found) -> None:
    HERE.mkdir(exist_ok=True)
    order = [*SIDES]
    with (HERE / "concurrent.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found[k] for k in sorted(found, key=lambda k: (k[0], order.index(k[1]))))


def counts(found: Found, *sides: str) -> list[int]:
    """The numbers of requests at once that all these sides ran with."""
    every = sorted({at_once for at_once, _ in found})
    return [n for n in every if all((n, side) in found for side in sides)]


def gains(found: Found, mine: str, other: str, field: str = "seconds") -> list[float]:
    """The part of the other's time that Locality saves, for every number of requests."""
    return [
        1 - float(found[n, mine][field]) / float(found[n, other][field])
        for n in counts(found, mine, other)
    ]


def findings(found: Found) -> Iterator[Finding]:
    """The statements of section 6, against our results."""
    for mine, other in COMPARED:
        parts = gains(found, mine, other)
        if not parts:
            continue
        work = gains(found, mine, other, "processor_seconds")
        yield Finding(
            f"The new scheduler is 8 to 12 % faster than the simple one ({mine}; {other}).",
            f"{', '.join(f'{part:.1%}' for part in parts)}; median {statistics.median(parts):.1%}; "
            f"of the processor time {statistics.median(work):.1%}",
            statistics.median(parts) >= 0.08,
            WHY.get(other, ""),
            {"of the simple one's time": 1 - statistics.median(parts)},
            0.05,
        )


def sides_table(found: Found) -> str:
    """Seconds of each side, and gains."""
    rows = []
    for n in sorted({n for n, _ in found}):
        mine = {side: found[n, side] for side in SIDES if (n, side) in found}
        requests = int(next(iter(mine.values()))["requests"])
        cells = [
            f"{float(mine[s]['seconds']):.2f} ({float(mine[s]['fastest']):.2f} to "
            f"{float(mine[s]['slowest']):.2f})"
            if s in mine
            else ""
            for s in SIDES
        ]
        gained = [
            f"{1 - float(mine[a]['seconds']) / float(mine[b]['seconds']):.1%}"
            if a in mine and b in mine
            else ""
            for a, b in COMPARED[:2]
        ]
        rows.append([f"{requests // n} x {n}", *cells, *gained])
    return table(["requests", *SIDES, "gain, half L2", "gain, default"], rows)


def reasons_table(found: Found) -> str:
    """Other costs of the sides: processors, waits, memory."""
    rows = []
    for side in SIDES:
        for n in counts(found, side):
            row = found[n, side]
            seconds = float(row["seconds"])
            rows.append(
                [
                    side,
                    f"{int(row['requests']) // n} x {n}",
                    f"{float(row['processor_seconds']):.2f}",
                    f"{float(row['processor_seconds']) / float(row['steps']) * 1e6:.0f}",
                    f"{float(row['processor_seconds']) / seconds:.2f}",
                    f"{float(row['waits']) / seconds:,.0f}",
                    f"{float(row['megabytes']):.1f}",
                ]
            )
    header = [
        "",
        "requests",
        "processor s",
        "µs per step",
        "processors busy",
        "waits per second",
        "MB waiting",
    ]
    return table(header, rows)


CACHE_FIELDS = ("kilobytes", "activity", "just_made", "long_ago")
BETWEEN_BYTES = 2**26
"""Of other packs, before a pack is worked on again: 32 times the L2 cache that we measure on."""


def activities(schema: pa.Schema) -> dict[str, Callable[[pa.RecordBatch], pa.RecordBatch]]:
    """The activities of a branch of the plan."""
    same = [place_or_compile(name, schema, "select") for name in schema.names]
    computed = [compile_expression("a + 0", schema, "compute"), *same[1:]]
    return {
        "compute": project_columns(schema, schema, computed),
        "where": filter_rows(compile_expression("a >= 0", schema, "where")),
        "select": project_columns(schema, schema, same),
    }


def cache(rounds: int) -> list[dict[str, str]]:
    """Microseconds of each activity: for a pack that was just used, and for one of 64 MB ago."""
    rows = []
    schema = pa.schema({name: pa.float64() for name in "abcdef"})
    for size in (HALF_L2 // 16, HALF_L2, LEAST_BYTES):
        numbers = np.arange(size // 48, dtype=np.float64)
        packs = [
            pa.RecordBatch.from_arrays([pa.array(numbers + i) for _ in schema], schema=schema)
            for i in range(max(2, BETWEEN_BYTES // size))
        ]
        for name, work in activities(schema).items():
            just_made, long_ago = [], []
            for pack in packs * rounds:
                long_ago.append(microseconds(work, pack))
                just_made.append(microseconds(work, pack))
            medians = (f"{statistics.median(each):.1f}" for each in (just_made, long_ago))
            rows.append(dict(zip(CACHE_FIELDS, (str(size // 1024), name, *medians), strict=True)))
            print(*rows[-1].values(), sep="  ", flush=True)
    with (HERE / "cache.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, CACHE_FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return rows


def microseconds(work: Callable[[pa.RecordBatch], pa.RecordBatch], pack: pa.RecordBatch) -> float:
    began = perf_counter()
    work(pack)
    return (perf_counter() - began) * 1e6


def cache_section() -> str:
    path = HERE / "cache.csv"
    if not path.exists():
        return ""
    rows = [
        [
            row["kilobytes"],
            row["activity"],
            row["just_made"],
            row["long_ago"],
            f"{float(row['long_ago']) - float(row['just_made']):.1f}",
        ]
        for row in csv.DictReader(path.open())
    ]
    return (
        "\n\n## What a pack is worth that is still in the cache\n\n"
        + ABOUT_CACHE
        + "\n\n"
        + table(["KB", "activity", "just made, µs", "64 MB ago, µs", "gain, µs"], rows)
    )


ABOUT_CACHE = (
    "Microseconds of one activity of the plan, without the engine: for a pack that was used right "
    "before, and for one after 64 MB of others. A branch of the plan has a sixteenth of each pack. "
    "[CSV](cache.csv)."
)


def page(found: Found, operators: int, held: Page, *, hold: bool) -> tuple[str, bool]:
    """The page, and whether every finding equals the stored one."""
    checked = list(findings(found))
    settled = held.settle(checked, hold=hold)
    rounds = sorted({row["rounds"] for row in found.values()})
    text = (
        "# 002, Figure 3: locality against the simple scheduler\n\n"
        f"{os.cpu_count()} threads, one node, {platform.machine()}, Python "
        f"{platform.python_version()}; {operators} operators over 10 MB of TPC-H's lineitem; "
        f"medians of {' or '.join(rounds)} rounds, with the fastest and the slowest. Half of the "
        f"L2 cache are {HALF_L2 // 1024} KB. [CSV](concurrent.csv).\n\n"
        + findings_table(held, checked)
        + "\n\n## Seconds\n\n"
        + sides_table(found)
        + "\n\n## What else was measured\n\n"
        + reasons_table(found)
        + cache_section()
        + "\n"
    )
    return text, settled


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.035)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--at-once", default="1,2,4,8,16,32,64")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--sides", type=lambda text: text.split(";"), default=list(SIDES))
    parser.add_argument("--cache", action="store_true")
    parser.add_argument("--again", action="store_true")
    add_data_option(parser)
    add_hold_option(parser)
    options = parser.parse_args()
    found = read()
    graph = plan.graph(SCHEMAS)
    if options.cache:
        cache(options.rounds)
    elif not options.again:
        with data_folder(options.data) as folder:
            sources = tpch_sources(options.scale, folder)
        for at_once in map(int, options.at_once.split(",")):
            compare(found, graph, sources, at_once, options)
    operators = len(add_readers_and_writers(graph).nodes)
    text, settled = page(found, operators, Page("002-concurrent"), hold=options.hold)
    print(text)
    (HERE / "concurrent.md").write_text(text)
    if not settled:
        sys.exit(1)


def compare(
    found: Found,
    graph: FlowGraph,
    sources: Mapping[str, pa.Table],
    at_once: int,
    options: argparse.Namespace,
) -> None:
    """Run all sides in turn, with this many requests at once; return medians."""
    each: dict[str, list[Took]] = {side: [] for side in options.sides}
    for _ in range(options.rounds):
        for side, runs in each.items():
            policy, size = SIDES[side]
            settings = Settings(policy, options.threads, pack_bytes=size)
            runs.append(took(graph, sources, settings, options.requests, at_once))
    for side, runs in each.items():
        medians = [statistics.median(column) for column in zip(*runs, strict=True)]
        seconds = [run.seconds for run in runs]
        figures = (f"{number:.6g}" for number in (*medians, min(seconds), max(seconds)))
        told = (at_once, options.requests, options.rounds, side, *figures)
        found[at_once, side] = dict(zip(FIELDS, map(str, told), strict=True))
        print(*told, sep="  ", flush=True)
    write(found)


if __name__ == "__main__":
    main()
