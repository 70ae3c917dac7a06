"""000, Figure 12: the Mixed policy against the best single policy, on three composed workflows.

    tree        five joins; three long lines (8 to 12 activities) and two short ones (3 to 6) before
                them, a line of four behind
    butterfly   four lines of 3 to 7 heavy computations; a sorted union and two aggregates in the
                body
    forks       three forks into 2, 3 and 6 targets, with 14 lines before and behind

In TPC-H one table has most of the rows, so one subflow of a stratum has most of the work. The paper
does not describe its tables. So butterfly and forks also run over tables of the same length.

Single policies run as in the paper, one activity at a time on one thread. They also run on as many
threads as Mixed has, because this engine allows it; Mixed runs on one thread, too. Packs have the
paper's size (about 400 rows), a middle size, and this engine's default. The paper: Mixed saves up
to 40 % of the time, on average 35 to 53 %, with the same resources.

The best possible saving of Mixed is computed from the times of its activities on one thread: strata
run one after the other, and in a stratum each subflow has a thread, the longest first. The actual
saving depends on how much of the work releases the interpreter. The page shows how many processors
were busy on average, and how often a thread had to wait for another.

Run, in parts if it is too long for one sitting:

    python bench/papers/etl_mixed.py [--scales 0.1,1] [--only "tree;forks"] [--rounds 3]
                                     [--threads 2] [--packs paper,256 KB,default] [--data FOLDER]
    python bench/papers/etl_mixed.py --again

Each adds to `bench/results/000/mixed.csv` and writes `mixed.md`.
It fails if a finding moved (`_finding`).
"""

import argparse
import csv
import os
import platform
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

sys.path.insert(0, str(Path(__file__).parent))
from _finding import Finding, Page, add_hold_option, findings_table
from _flows import PACKS, RESULTS, add_data_option, data_folder, run, table, tpch_sources

from springhouse.flows.activities.sort import Sort, by_name
from springhouse.flows.declare import Draft, Flow, flow
from springhouse.flows.flow_graph import (
    FlowGraph,
    FlowNode,
    NodeKind,
    Output,
    add_readers_and_writers,
)
from springhouse.flows.flow_rows import Rows
from springhouse.flows.flow_settings import Settings
from springhouse.flows.monitor import ActivityStatistics
from springhouse.flows.policy_choice import PolicyName, execute_siss

HERE = RESULTS / "000"
SIZES = {"paper": PACKS["paper"], "256 KB": (100, 2**18), "default": PACKS["default"]}
CEILING = (
    "Two processors could save 2 to 26 % over TPC-H's tables, where one subflow has most of the "
    "work, and 32 to 42 % over even ones (the next table)."
)
INTERPRETER = (
    f"{CEILING} Of that, threads that wait for Python's interpreter eat up all: up to 23,000 "
    "waits a second."
)
WHY: dict[tuple[str, str], Mapping[str, str]] = {
    ("2", "1"): {
        "paper": INTERPRETER,
        "256 KB": f"{INTERPRETER} Not so in the butterfly, whose computations are heavy: it saves "
        "what it could.",
        "default": f"{CEILING} The butterfly saves most of it. Forks and tree do little per pack, "
        "and the interpreter is most of that.",
    },
    ("2", "2"): dict.fromkeys(
        ("paper", "256 KB", "default"),
        "This engine lets a single policy run any two activities at once, which the paper's does "
        "not: it uses both processors without strata, and starts what follows sooner.",
    ),
    ("1", "1"): dict.fromkeys(
        ("paper", "256 KB", "default"),
        "What Mixed saves is time in which one of two processors waits; one thread has none.",
    ),
}
"""Why Mixed need not save as much: by the threads of Mixed and of the single policy, and packs."""
SINGLE = (PolicyName.ROUND_ROBIN, PolicyName.MINIMUM_COST, PolicyName.MINIMUM_MEMORY)


def line(rows: Rows, column: str, length: int) -> Rows:
    """This many light activities, one after the other: computations, filters, schema changes."""
    for step in range(length):
        if step % 3 == 0:
            rows = rows.compute(**{column: f"{column} + 0"})
        elif step % 3 == 1:
            rows = rows.where(f"{column} >= 0")
        else:
            rows = rows.select(*rows.schema.names)
    return rows


def hard_line(rows: Rows, column: str, length: int) -> Rows:
    """This many heavy computations: each writes the number as text and back."""
    for _ in range(length):
        rows = rows.compute(**{column: pc.field(column).cast("string").cast("double")})
    return rows


class SortedUnion(Sort):
    """Rows of two inputs in order, when both have ended."""

    ended = 0

    def end(self, port: int) -> Iterable[Output]:
        self.ended += 1
        return super().end(port) if self.ended == 2 else ()


def sorted_union(flow: Draft, one: Rows, other: Rows, columns: list[str]) -> Rows:
    """A binary activity with two blocking inputs, so a boundary of subflows (000 section 5.1).

    Flows have no verb for it; a union with a sort behind would leave both inputs in one subflow.
    """
    keys = [by_name(column) for column in columns]
    made = FlowNode(
        flow.fresh("sorted union"),
        NodeKind.ACTIVITY,
        (one.schema, one.schema),
        (one.schema,),
        partial(SortedUnion, one.schema, keys),
        blocking=frozenset({0, 1}),
        memory_intensive=True,
    )
    flow.add(made, [one, other])
    return Rows(flow, made.name, 0)


@flow
def tree(flow: Draft) -> None:
    lines = line(flow.read("lineitem"), "l_extendedprice", 12)
    offers = line(flow.read("partsupp"), "ps_supplycost", 10)
    suppliers = line(flow.read("supplier"), "s_suppkey", 8)
    part_keys = line(flow.read("part_keys"), "part_sk", 6)
    supplier_keys = line(flow.read("supplier_keys"), "supplier_sk", 3)
    offers = offers.join(suppliers, on={"ps_suppkey": "s_suppkey"})
    offers = offers.join(part_keys, on={"ps_partkey": "partkey"})
    named = supplier_keys.join(suppliers, on={"suppkey": "s_suppkey"}, take="s_phone")
    sold = lines.join(
        offers, on={"l_partkey": "ps_partkey", "l_suppkey": "ps_suppkey"}, take=["ps_supplycost"]
    )
    sold = sold.join(named, on={"l_suppkey": "suppkey"}, take="supplier_sk")
    line(sold, "l_extendedprice", 4).write("sold")


@flow
def butterfly(flow: Draft) -> None:
    offers = hard_line(flow.read("partsupp"), "ps_supplycost", 7).select(
        "ps_suppkey AS supplier", "ps_supplycost AS price"
    )
    sales = hard_line(flow.read("lineitem"), "l_extendedprice", 5).select(
        "l_suppkey AS supplier", "l_extendedprice AS price"
    )
    both = sorted_union(flow, offers, sales, ["supplier", "price"])
    by_supplier = both.aggregate("supplier", price="sum(price)", rows="count(*)")
    total = both.aggregate(price="max(price)")
    hard_line(by_supplier, "price", 4).write("by_supplier")
    hard_line(total, "price", 3).write("total")


@flow
def forks(flow: Draft) -> None:
    def fork(rows: Rows, column: str, limits: list[int], name: str) -> None:
        ways = line(rows, column, 3).route(*(f"{column} < {limit}" for limit in limits))
        for number, way in enumerate(ways):
            line(way, column, 4).write(f"{name}_{number}")

    fork(flow.read("supplier"), "s_suppkey", [500], "supplier")
    fork(flow.read("partsupp"), "ps_supplycost", [300, 700], "offers")
    fork(flow.read("lineitem"), "l_quantity", [8, 16, 24, 32, 40], "lines")


EVEN = ", even tables"
WORKFLOWS: dict[str, Flow] = {
    "tree": tree,
    "butterfly": butterfly,
    "forks": forks,
    f"butterfly{EVEN}": butterfly,
    f"forks{EVEN}": forks,
}


def even(sources: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Each table repeated until it has as many rows as the largest."""
    most = max(rows.num_rows for rows in sources.values())
    return {
        name: pa.concat_tables([rows] * -(-most // rows.num_rows)).slice(0, most).combine_chunks()
        for name, rows in sources.items()
    }


FIGURES = ("seconds", "processor_seconds", "waits", "average_mb", "at_best")
FIELDS = ("scale", "packs", "workflow", "policy", "threads", "rounds", *FIGURES)
Key = tuple[str, str, str, str, str]
Way = tuple[PolicyName, int]
"""A policy on so many threads."""


def at_best(graph: FlowGraph, did: Mapping[str, ActivityStatistics], threads: int) -> float:
    """The part of its time that Mixed would save if its subflows did not hinder each other."""
    plan = execute_siss(add_readers_and_writers(graph))
    shortest, total = 0.0, 0.0
    for numbers in plan.strata:
        took = [
            sum(did[name].seconds for name in plan.subflows[number].nodes if name in did)
            for number in numbers
        ]
        busy = [0.0] * threads
        for seconds in sorted(took, reverse=True):
            busy[busy.index(min(busy))] += seconds
        shortest, total = shortest + max(busy), total + sum(took)
    return 1 - shortest / total


class Found:
    """All figures so far: by scale, packs, workflow, policy and threads."""

    def __init__(self) -> None:
        path = HERE / "mixed.csv"
        rows = csv.DictReader(path.open()) if path.exists() else ()
        self._by = {_key(row): row for row in rows}

    def add(
        self, one: tuple[str, str, str], rounds: int, figures: Mapping[Way, list[float]]
    ) -> None:
        for (policy, threads), medians in figures.items():
            told = (*one, policy.value, threads, rounds, *(f"{each:.5g}" for each in medians))
            row = dict(zip(FIELDS, map(str, told), strict=True))
            self._by[_key(row)] = row
            print(*row.values(), sep="  ", flush=True)
        self.write()

    def write(self) -> None:
        HERE.mkdir(exist_ok=True)
        with (HERE / "mixed.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows())

    def rows(self) -> list[dict[str, str]]:
        return sorted(
            self._by.values(),
            key=lambda r: (
                float(r["scale"]),
                [*SIZES].index(r["packs"]),
                [*WORKFLOWS].index(r["workflow"]),
            ),
        )

    def runs(self) -> list[tuple[str, str, str]]:
        """Scale, packs and workflow of all runs."""
        return list(dict.fromkeys((r["scale"], r["packs"], r["workflow"]) for r in self.rows()))

    def best(self, one: tuple[str, str, str], threads: set[str]) -> dict[str, str]:
        """The fastest single policy on this many threads."""
        single = {policy.value for policy in SINGLE}
        mine = [r for key, r in self._by.items() if key[:3] == one]
        fitting = [r for r in mine if r["policy"] in single and r["threads"] in threads]
        return min(fitting, key=lambda row: float(row["seconds"]))

    def mixed(self, one: tuple[str, str, str], threads: str) -> dict[str, str]:
        return self._by[(*one, PolicyName.MIXED.value, threads)]


def _key(row: dict[str, str]) -> Key:
    return row["scale"], row["packs"], row["workflow"], row["policy"], row["threads"]


def saved(found: Found, one: tuple[str, str, str], mixed_on: str, single_on: str) -> float:
    """The part of the best single policy's time that Mixed saves."""
    best = float(found.best(one, {single_on})["seconds"])
    return 1 - float(found.mixed(one, mixed_on)["seconds"]) / best


def findings(found: Found) -> Iterator[Finding]:
    """The statements of section 7.4, against our results."""
    for packs in dict.fromkeys(one[1] for one in found.runs()):
        runs = [one for one in found.runs() if one[1] == packs]
        threads = max((r["threads"] for r in found.rows()), key=int)
        for mixed_on, single_on, note in (
            (threads, "1", "as the paper counts: single policies run one activity at a time"),
            (threads, threads, "the same threads for both"),
            ("1", "1", "one thread for both"),
        ):
            parts = [saved(found, one, mixed_on, single_on) for one in runs]
            each = ", ".join(
                f"{one[2]} at {one[0]} {part:.0%}" for one, part in zip(runs, parts, strict=True)
            )
            yield Finding(
                f"Mixed saves up to 40 % of the time, with {packs} packs ({note}).",
                f"{each}; on average {statistics.mean(parts):.0%}",
                statistics.mean(parts) >= 0.35,
                WHY.get((mixed_on, single_on), {}).get(packs, ""),
                {"of the best single policy's time": 1 - statistics.mean(parts)},
                0.3,
            )


def reasons(found: Found) -> str:
    """The possible saving of Mixed on several threads, its actual saving, and the reasons."""
    threads = max((r["threads"] for r in found.rows()), key=int)
    rows = []
    for one in found.runs():
        alone, beside = found.mixed(one, "1"), found.mixed(one, threads)
        one_thread, more = float(alone["seconds"]), float(beside["seconds"])
        of_all = {
            key[3]: row for row in found.rows() if (key := _key(row))[:3] == one and key[4] == "1"
        }
        rows.append(
            [
                *one,
                f"{float(alone['at_best']):.0%}",
                f"{1 - more / one_thread:.0%}",
                f"{float(beside['processor_seconds']) / more:.2f}",
                f"{float(beside['processor_seconds']) / float(alone['processor_seconds']):.2f}",
                f"{float(beside['waits']) / more:,.0f}",
                f"{float(alone['average_mb']):.1f}",
                " / ".join(f"{float(of_all[p.value]['average_mb']):.1f}" for p in SINGLE),
            ]
        )
    header = [
        "scale",
        "packs",
        "workflow",
        "Mixed could save",
        "Mixed saves",
        "processors busy",
        "processor time, of one thread's",
        "waits per second",
        "average MB",
        "of single policies",
    ]
    return table(header, rows)


def page(found: Found, held: Page, *, hold: bool) -> tuple[str, bool]:
    """The page, and whether every finding equals the stored one."""
    checked = list(findings(found))
    settled = held.settle(checked, hold=hold)
    rows = []
    for row in found.rows():
        mixed = float(found.mixed(_key(row)[:3], max(("1", row["threads"]), key=int))["seconds"])
        less = f"{1 - mixed / float(row['seconds']):.0%}"
        rows.append([*(row[field] for field in FIELDS[:-1]), less])
    text = (
        "# 000, Figure 12: the Mixed policy\n\n"
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}; "
        "medians, by the clock. Packs of the paper have about 400 rows, those of the default 4 MB. "
        "[CSV](mixed.csv).\n\n"
        + findings_table(held, checked)
        + "\n\n## Mixed on two threads against Mixed on one\n\n"
        + ABOUT_REASONS
        + "\n\n"
        + reasons(found)
        + "\n\n## All figures\n\n"
        + table([*FIELDS[:-1], "saved by Mixed on as many threads"], rows)
        + "\n"
    )
    return text, settled


ABOUT_REASONS = (
    "What it could save follows from what its activities took on one thread: the strata one after "
    "the other, each as long as its longest thread. What it does save is less as far as threads "
    "wait for the interpreter: `processors busy` is processor time by time, and a thread waits "
    "whenever it has to give up its processor."
)


def measured(
    graph: FlowGraph,
    sources: Mapping[str, pa.Table],
    packs: tuple[int, ...],
    options: argparse.Namespace,
) -> dict[Way, list[float]]:
    """Run every policy on one thread and on several, in turn; return medians."""
    ways = [(p, n) for p in (*SINGLE, PolicyName.MIXED) for n in sorted({1, options.threads})]
    took: dict[Way, list[tuple[float, ...]]] = {way: [] for way in ways}
    for _ in range(options.rounds):
        for policy, threads in ways:
            found, used = run(graph, sources, Settings(policy, threads, *packs))
            best = at_best(graph, found.activities, options.threads)
            took[policy, threads].append((*used, found.average_bytes / 2**20, best))
    return {
        way: [statistics.median(column) for column in zip(*figures, strict=True)]
        for way, figures in took.items()
    }


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scales", default="0.1,1")
    parser.add_argument("--only", type=lambda text: text.split(";"), default=list(WORKFLOWS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--packs", default=",".join(SIZES))
    parser.add_argument("--again", action="store_true")
    add_data_option(parser)
    add_hold_option(parser)
    options = parser.parse_args()
    found = Found()
    with data_folder(options.data) as folder:
        for scale in () if options.again else options.scales.split(","):
            sources = tpch_sources(float(scale), folder)
            schemas = {name: rows.schema for name, rows in sources.items()}
            for name in options.only:
                given = even(sources) if name.endswith(EVEN) else sources
                for packs in options.packs.split(","):
                    graph = WORKFLOWS[name].graph(schemas)
                    figures = measured(graph, given, SIZES[packs], options)
                    found.add((scale, packs, name), options.rounds, figures)
    text, settled = page(found, Page("000-mixed"), hold=options.hold)
    print(text)
    (HERE / "mixed.md").write_text(text)
    if not settled:
        sys.exit(1)


if __name__ == "__main__":
    main()
