"""How long does a warehouse pause when its nodes are killed, and is it right afterwards?

Three nodes on `examples/shop`, each a process with a Spark of its own, on one storage. Every 10 s
one of them, picked by dice, is killed with its JVM (SIGKILL) and started again at once, while the
shop trades. Then the shop closes, the nodes catch up and are stopped, and it is checked, with
nothing of Springhouse's, that

    every base table holds every row that was sent exactly once, bad ones are in quarantine
    every view equals its recomputation, and no version of the diamond mixed two states

Of every table the longest pause between two commits is reported, as it was while nodes were killed;
of a view, less what its promise allows it to wait. Goal: under three election time-outs (9 s).

Run: `python bench/failover.py [--seconds 120] [--every 10] [--json FILE] [--keep FOLDER]`; about
five minutes. A machine needs about a core per node; on less, Spark's start takes longer than a node
lives.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHOP = ROOT / "examples" / "shop"
sys.path.insert(0, str(SHOP))

import checks  # noqa: E402  of the example, whose folder is no package
import ledger  # noqa: E402
from _nodes import Nodes, waited  # noqa: E402

import springhouse  # noqa: E402

NODES = ("a", "b", "c")
ELECTION_SECONDS = 3.0
GOAL_SECONDS = 3 * ELECTION_SECONDS
SETTINGS = {
    "springhouse.spark.master": "local[2]",
    "spark.driver.memory": "1g",
    # As in the example's demo: nodes do not live long enough here for compilers to pay off.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


def start(nodes: Nodes, name: str) -> None:
    """A node of the shop, with its Spark."""
    addresses = ",".join(f"{each}={at}" for each, at in nodes.addresses.items())
    given = SETTINGS | {"springhouse.cluster.nodes": addresses}
    options = [part for key, value in given.items() for part in ("-c", f"{key}={value}")]
    project = ("--project", str(nodes.folder), "--without-tls")
    nodes.start(name, "-m", "springhouse", "node", "--name", name, *project, *options)


@contextmanager
def trading(folder: Path) -> Iterator[None]:
    """The shop's trade, until the block is left."""
    ledger_file = folder / "ledger.json"
    process = subprocess.Popen(
        [
            *(sys.executable, str(SHOP / "generator.py"), str(folder / "data")),
            *("--ledger", str(ledger_file), "--seconds", "3600"),
            *("--products", str(folder / "reference" / "products.csv")),
        ],
        start_new_session=True,
    )
    try:
        waited(ledger_file.exists, "first order", 60.0)
        yield
    finally:
        process.terminate()
        process.wait(timeout=20.0)


def all_made(house: springhouse.House) -> bool:
    """Whether every table and view has its first version."""
    return all(house.lake.log(name).newest() is not None for name in house.watch.graph.order)


def up_to_date(house: springhouse.House) -> bool:
    """Whether all that was sent is everywhere; clicks never end."""
    behind = {each.name for each in house.status() if each.state != "up to date"}
    return behind <= {"clicks", "product_conversion"}


def pauses(house: springhouse.House, begin: float, end: float) -> dict[str, dict[str, float]]:
    """Of every table the longest time without a commit, and how much of it was beyond its promise.

    Only of tables to which something came in all the time; others have nothing to commit.
    """
    found = {}
    for name in house.watch.graph.order:
        declared = house.project.tables.get(name) or house.project.views[name]
        inside = [each.at for each in house.lake.log(name).commits() if begin <= each.at <= end]
        if name == "products":
            continue
        gap = max(later - earlier for earlier, later in pairwise([begin, *inside, end]))
        allowed = declared.promise.staleness_seconds or 0.0
        found[name] = {
            "seconds": gap,
            "allowed": allowed,
            "beyond": max(gap - allowed, 0.0),
            "commits": len(inside),
        }
    return found


def check(folder: Path) -> list[str]:
    """Everything that is wrong with what the tables hold."""
    accounts = ledger.from_json((folder / "ledger.json").read_text())
    with springhouse.open(folder, configuration=SETTINGS) as house:
        order = house.watch.graph.order
        views = [house.project.views[name] for name in order if name in house.project.views]
        # What came in after the last look of a node is taken in now, by this House alone.
        house.refresh()
        read = checks.reader(lambda name: str(folder / "storage" / "tables" / name))
        spark = house.query("SELECT 1").sparkSession
        findings = [
            *checks.check_tables(accounts, read),
            *checks.check_clicks(read),
            *checks.check_quarantines(accounts, read),
            *checks.check_views(spark, list(house.project.tables), views, read),
            *checks.check_diamond(str(folder / "storage" / "tables" / "reconciliation")),
        ]
    return [f"{each.claim}: {each.problem}" for each in findings if not each.ok]


def perform(folder: Path, seconds: float, every: float, seed: int) -> dict[str, object]:
    # It reads the logs, and never starts a Spark.
    with springhouse.open(folder) as watcher:
        found = kill_and_watch(watcher, folder, seconds, every, random.Random(seed))
    left = [f"a node left with exit code {code}" for code in found["exit_codes"] if code]
    return found | {"wrong": [*left, *check(folder)]}


def kill_and_watch(
    watcher: springhouse.House, folder: Path, seconds: float, every: float, dice: random.Random
) -> dict[str, object]:
    """What was done to the nodes, and how long tables stood still."""
    nodes, kills = Nodes("shop", NODES, folder), []
    try:
        with trading(folder):
            for name in NODES:
                start(nodes, name)
            print("waiting for all tables and views to be made …", flush=True)
            waited(lambda: all_made(watcher), "first version of everything", 900.0)
            print(f"killing a node every {every:g} s for {seconds:g} s …", flush=True)
            begin = time.time()
            while time.time() - begin < seconds:
                time.sleep(every)
                name = dice.choice(NODES)
                nodes.kill(name)
                kills.append((time.time() - begin, name))
                start(nodes, name)
                report = nodes.report()
                told = "nobody answers" if report is None else f"{report.leader} leads"
                print(f"{time.time() - begin:6.1f} s  {name} killed; {told}", flush=True)
            time.sleep(every)
            end = time.time()
        print("the shop is closed; the nodes catch up …", flush=True)
        waited(lambda: up_to_date(watcher), "table up to date", 300.0)
        codes = nodes.leave(*NODES)
    except BaseException:
        print(nodes.last_words(), file=sys.stderr)
        raise
    finally:
        nodes.end()
    waits = pauses(watcher, begin, end)
    return {
        "seconds": end - begin,
        "kills": kills,
        "exit_codes": codes,
        "pauses": waits,
        "longest_beyond": max(each["beyond"] for each in waits.values()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--every", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path, help="work here, and leave everything")
    given = parser.parse_args()
    folder = given.keep or Path(tempfile.mkdtemp(prefix="springhouse-failover-"))
    shutil.copytree(
        SHOP, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".demo", "__pycache__")
    )
    try:
        found = perform(folder, given.seconds, given.every, given.seed)
    finally:
        if given.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n")
    print(f"\n{'table':<22} longest pause   allowed    beyond")
    for name, each in found["pauses"].items():
        print(
            f"{name:<22} {each['seconds']:10.1f} s {each['allowed']:7.0f} s {each['beyond']:7.1f} s"
        )
    longest, wrong = found["longest_beyond"], found["wrong"]
    kept = "kept" if longest < GOAL_SECONDS else "missed"
    print(f"{len(found['kills'])} kills; longest pause beyond a promise {longest:.1f} s")
    print(f"goal under {GOAL_SECONDS:g} s: {kept}")
    print("\n".join(wrong) or "every row exactly once, every view equals its recomputation")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
