"""000, Figure 12: the Mixed policy against the best single policy, on three composed workflows.

    tree        five joins; three long lines (8 to 12 activities) and two short ones (3 to 6) before
                them, a line of four behind
    butterfly   four lines of 3 to 7 computations; a sorted union and two aggregates in the body
    forks       three forks into 2, 3 and 6 targets, with 14 lines before and behind

Single policies run as in the paper, one activity at a time, and also on as many threads as Mixed
has, because this engine lets them. The paper: Mixed saves up to 40 %, on average 35 to 53 %.

Run: `python bench/papers/etl_mixed.py [--scale 0.1] [--rounds 3] [--threads 2] [--keep]`. `--keep`
writes `bench/results/000/mixed.md`.
"""

import argparse
import os
import platform
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from _flows import RESULTS, run, table, tpch_sources

from springhouse.flows.declare import Draft, Flow, flow
from springhouse.flows.execution import PolicyName
from springhouse.flows.rows import Rows
from springhouse.flows.settings import Settings

PACK_BYTES = 400 * 48
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


def main() -> None:
    """Measure, tell, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        sources = tpch_sources(options.scale, Path(folder))
        for name, workflow in WORKFLOWS.items():
            graph = workflow.graph({n: rows.schema for n, rows in sources.items()})
            ways = [(policy, threads) for policy in SINGLE for threads in {1, options.threads}]
            ways.append((PolicyName.MIXED, options.threads))
            found: dict[tuple[PolicyName, int], list[tuple[float, float]]] = {w: [] for w in ways}
            for _ in range(options.rounds):
                for policy, threads in ways:
                    took = run(graph, sources, Settings(policy, threads, pack_bytes=PACK_BYTES))
                    found[policy, threads].append((took.seconds, took.average_packs))
            medians = {
                way: [statistics.median(column) for column in zip(*figures, strict=True)]
                for way, figures in found.items()
            }
            mixed = medians[PolicyName.MIXED, options.threads][0]
            for (policy, threads), (seconds, packs) in medians.items():
                saved = f"{1 - mixed / seconds:.0%}"
                rows.append([name, policy.value, threads, f"{seconds:.2f}", f"{packs:.0f}", saved])
                print(*rows[-1], sep="  ", flush=True)
    text = (
        "# 000, Figure 12: the Mixed policy\n\n"
        f"{platform.machine()}, Python {platform.python_version()}, TPC-H at scale "
        f"{options.scale:g}, {options.rounds} rounds, medians.\n\n"
        + table(
            ["workflow", "policy", "threads", "seconds", "average packs", "saved by Mixed"], rows
        )
        + "\n"
    )
    print(text)
    if options.keep:
        (RESULTS / "000").mkdir(exist_ok=True)
        (RESULTS / "000" / "mixed.md").write_text(text)


if __name__ == "__main__":
    main()
