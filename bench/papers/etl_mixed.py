"""000, Figure 12: the Mixed policy against the best single policy, on three composed workflows.

    tree        five joins; three long lines (8 to 12 activities) and two short ones (3 to 6) before
                them, a line of four behind
    butterfly   four lines of 3 to 7 computations; a sorted union and two aggregates in the body
    forks       three forks into 2, 3 and 6 targets, with 14 lines before and behind

Single policies run as in the paper, one activity at a time on one thread, and also on as many
threads as Mixed has, because this engine lets them; Mixed runs on one thread, too. Packs are the
paper's (about 400 rows), and this engine's default. The paper: Mixed saves up to 40 % of the time,
on average 35 to 53 %, with the same resources.

Run, in parts if it is too long for one sitting:

    python bench/papers/etl_mixed.py [--scale 0.1] [--only "tree;forks"] [--rounds 3] [--threads 2]
                                     [--packs paper]
    python bench/papers/etl_mixed.py --again

Each adds to `bench/results/000/mixed.csv` and writes `mixed.md`; a finding of the paper that does
not agree makes it fail, unless it is known why.
"""

import argparse
import csv
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from _figure import Finding
from _flows import RESULTS, findings_table, run, table, tpch_sources

from springhouse.flows.declare import Draft, Flow, flow
from springhouse.flows.execution import PolicyName
from springhouse.flows.rows import Rows
from springhouse.flows.settings import Settings

HERE = RESULTS / "000"
PACK_BYTES = 400 * 48
QUEUE_PACKS = 100
PACKS = {"paper": (QUEUE_PACKS, PACK_BYTES), "default": ()}
WHY: dict[tuple[str, bool], str] = {}
SINGLE = (PolicyName.ROUND_ROBIN, PolicyName.MINIMUM_COST, PolicyName.MINIMUM_MEMORY)


def line(rows: Rows, column: str, length: int) -> Rows:
    """So many light activities, one after the other: computations, filters, schema changes."""
    for step in range(length):
        if step % 3 == 0:
            rows = rows.compute(**{column: f"{column} + 0"})
        elif step % 3 == 1:
            rows = rows.where(f"{column} >= 0")
        else:
            rows = rows.select(*rows.schema.names)
    return rows


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
    offers = line(flow.read("partsupp"), "ps_supplycost", 7).select(
        "ps_suppkey AS supplier", "ps_supplycost AS price"
    )
    sales = line(flow.read("lineitem"), "l_extendedprice", 5).select(
        "l_suppkey AS supplier", "l_extendedprice AS price"
    )
    both = offers.union(sales).sort("supplier", "price")
    by_supplier = both.aggregate("supplier", price="sum(price)", rows="count(*)")
    total = both.aggregate(price="max(price)")
    line(by_supplier, "price", 4).write("by_supplier")
    line(total, "price", 3).write("total")


@flow
def forks(flow: Draft) -> None:
    def fork(rows: Rows, column: str, limits: list[int], name: str) -> None:
        ways = line(rows, column, 3).route(*(f"{column} < {limit}" for limit in limits))
        for number, way in enumerate(ways):
            line(way, column, 4).write(f"{name}_{number}")

    fork(flow.read("supplier"), "s_suppkey", [500], "supplier")
    fork(flow.read("partsupp"), "ps_supplycost", [300, 700], "offers")
    fork(flow.read("lineitem"), "l_quantity", [8, 16, 24, 32, 40], "lines")


WORKFLOWS: dict[str, Flow] = {"tree": tree, "butterfly": butterfly, "forks": forks}


FIELDS = ("scale", "packs", "workflow", "policy", "threads", "rounds", "seconds", "average_mb")
Key = tuple[str, str, str, str, str]


class Found:
    """All figures so far: by scale, packs, workflow, policy and threads."""

    def __init__(self) -> None:
        path = HERE / "mixed.csv"
        rows = csv.DictReader(path.open()) if path.exists() else ()
        self._by = {_key(row): row for row in rows}

    def add(self, row: dict[str, str]) -> None:
        self._by[_key(row)] = row
        print(*row.values(), sep="  ", flush=True)

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
                r["packs"] != "paper",
                [*WORKFLOWS].index(r["workflow"]),
            ),
        )

    def runs(self) -> list[tuple[str, str, str]]:
        """Scale, packs and workflow of all that was run."""
        return list(dict.fromkeys((r["scale"], r["packs"], r["workflow"]) for r in self.rows()))

    def best(self, one: tuple[str, str, str], threads: set[str]) -> dict[str, str]:
        """The fastest single policy on so many threads."""
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
    """What section 7.4 says, against what came out here."""
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
                WHY.get((packs, mixed_on == single_on), ""),
            )


def page(found: Found) -> tuple[str, bool]:
    """The page, and whether every finding agrees or is known to differ."""
    checked = list(findings(found))
    rows = []
    for row in found.rows():
        mixed = float(found.mixed(_key(row)[:3], max(("1", row["threads"]), key=int))["seconds"])
        less = f"{1 - mixed / float(row['seconds']):.0%}"
        rows.append([*(row[field] for field in FIELDS), less])
    text = (
        "# 000, Figure 12: the Mixed policy\n\n"
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}; "
        f"medians. Packs of the paper have {PACK_BYTES} bytes (about 400 rows), those of "
        "the default 4 MB. [CSV](mixed.csv).\n\n"
        + findings_table(checked)
        + "\n\n"
        + table([*FIELDS, "saved by Mixed on as many threads"], rows)
        + "\n"
    )
    return text, all(finding.agrees or finding.differs for finding in checked)


def main() -> None:
    """Measure, tell, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--only", type=lambda text: text.split(";"), default=list(WORKFLOWS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--packs", choices=list(PACKS), default="paper")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    found = Found()
    ways = [(p, n) for p in (*SINGLE, PolicyName.MIXED) for n in sorted({1, options.threads})]
    with tempfile.TemporaryDirectory() as folder:
        sources = {} if options.again else tpch_sources(options.scale, Path(folder))
        for name in () if options.again else options.only:
            graph = WORKFLOWS[name].graph({n: rows.schema for n, rows in sources.items()})
            took: dict[tuple[PolicyName, int], list[tuple[float, float]]] = {w: [] for w in ways}
            for _ in range(options.rounds):
                for policy, threads in ways:
                    settings = Settings(policy, threads, *PACKS[options.packs])
                    measured = run(graph, sources, settings)
                    took[policy, threads].append((measured.seconds, measured.average_bytes))
            for (policy, threads), figures in took.items():
                seconds, size = (statistics.median(c) for c in zip(*figures, strict=True))
                key = (f"{options.scale:g}", options.packs, name, policy.value, str(threads))
                told = (*key, str(options.rounds), f"{seconds:.3f}", f"{size / 2**20:.1f}")
                found.add(dict(zip(FIELDS, told, strict=True)))
            found.write()
    text, agrees = page(found)
    print(text)
    (HERE / "mixed.md").write_text(text)
    if not agrees:
        sys.exit(1)


if __name__ == "__main__":
    main()
