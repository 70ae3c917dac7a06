"""Three nodes run one project; one is killed, and nothing is lost, doubled or left undone.

The nodes share a Spark Connect server, so that they start in seconds. `bench/failover.py` kills
nodes of the shop in the same way, for longer, with one Spark per node.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from patience import patience

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
from _nodes import Nodes, waited

NODES = ("a", "b", "c")
PARTITIONS = 3
SQL = f"""
CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_files('data/orders', format => 'json',
  schema => 'id BIGINT, amount BIGINT');

CREATE STREAMING TABLE clicks AS SELECT partition, offset
  FROM STREAM sample(rate => '20', partitions => '{PARTITIONS}');

CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS orders, sum(amount) AS amount FROM orders;
CREATE MATERIALIZED VIEW averages AS SELECT amount / orders AS average FROM totals;
"""
UNITS = {"orders", "totals", "averages", *(f"clicks/{number}" for number in range(PARTITIONS))}
ORDERS_PER_FILE = 5


class Cluster:
    """The nodes of a project, and the orders that they received."""

    def __init__(self, project: Path, spark: str, drop: Callable[..., None]) -> None:
        self.nodes = Nodes("project", NODES, project)
        self._spark = spark
        self._drop = drop
        self._files = 0

    def start(self, *names: str) -> None:
        addresses = ",".join(f"{name}={at}" for name, at in self.nodes.addresses.items())
        settings = (f"springhouse.spark.remote={self._spark}", "springhouse.cluster.tls=off")
        for name in names:
            self.nodes.start(
                name,
                *("-m", "springhouse", "node", "--project", str(self.nodes.folder)),
                *("--name", name, "-c", f"springhouse.cluster.nodes={addresses}"),
                *(part for setting in settings for part in ("-c", setting)),
            )

    def order(self, files: int = 1) -> None:
        """Write this number of files with orders."""
        for _ in range(files):
            first = self._files * ORDERS_PER_FILE
            ids = range(first, first + ORDERS_PER_FILE)
            lines = "\n".join(json.dumps({"id": id, "amount": id % 7}) for id in ids)
            self._drop(self.nodes.folder / "data" / "orders", f"{self._files:04}.json", lines)
            self._files += 1

    @property
    def ids(self) -> list[int]:
        """The orders that arrived."""
        return list(range(self._files * ORDERS_PER_FILE))

    def await_owners(self, *names: str) -> dict[str, str]:
        """Wait until these nodes own all units, and each node owns some; return the owners."""

        def found() -> dict[str, str] | None:
            report = self.nodes.report()
            held = {} if report is None else report.newest.assignments
            owners = {unit: of.owner for unit, of in held.items() if of.heir is None}
            return owners if (set(owners), set(owners.values())) == (UNITS, set(names)) else None

        owners = waited(found, f"work for {', '.join(names)} alone", 120.0)
        assert owners is not None
        return owners


@pytest.fixture
def cluster(
    write_project: Callable[..., Path], spark_server: str, drop: Callable[..., None]
) -> Iterator[Cluster]:
    made = Cluster(write_project(SQL), spark_server, drop)
    made.order()
    yield made
    sys.stderr.write(made.nodes.last_words())  # Shown only if the test failed.
    made.nodes.end()


def drain(address: str, project: Path, *words: str) -> None:
    subprocess.run(
        [
            *(sys.executable, "-m", "springhouse", "cluster", "drain", *words),
            *("--at", address, "--without-tls", "--project", str(project)),
        ],
        check=True,
        timeout=patience(60.0),
    )


def test_a_killed_node_is_replaced_and_a_drained_one_has_nothing(
    cluster: Cluster, rows_of: Callable[..., list[dict[str, Any]]]
) -> None:
    nodes, project = cluster.nodes, cluster.nodes.folder

    def orders_in(table: str, column: str) -> int:
        place = project / "storage" / "tables" / table
        if not (place / "_delta_log").exists():
            return 0
        return sum(row[column] for row in rows_of(project, table))

    def await_orders() -> None:
        waited(lambda: orders_in("totals", "orders") == len(cluster.ids), "order in a view", 120.0)

    cluster.start(*NODES)
    cluster.await_owners(*NODES)
    await_orders()

    report = nodes.report()
    assert report is not None
    assert report.leader is not None
    killed = report.leader
    cluster.order(files=3)
    nodes.kill(killed)
    cluster.order(files=3)
    others = [name for name in NODES if name != killed]
    cluster.await_owners(*others)
    await_orders()

    cluster.start(killed)
    cluster.await_owners(*NODES)
    drain(nodes.addresses[killed], project, others[0])
    cluster.await_owners(killed, others[1])
    cluster.order(files=3)
    await_orders()
    assert nodes.leave(*NODES) == [0, 0, 0]

    assert sorted(row["id"] for row in rows_of(project, "orders")) == cluster.ids
    (totals,) = rows_of(project, "totals")
    assert totals == {"orders": len(cluster.ids), "amount": sum(id % 7 for id in cluster.ids)}
    for number in range(PARTITIONS):
        clicks = [each for each in rows_of(project, "clicks") if int(each["partition"]) == number]
        offsets = sorted(each["offset"] for each in clicks)
        assert offsets == list(range(len(offsets)))
        assert len(offsets) > 0
