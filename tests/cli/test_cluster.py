"""`springhouse cluster`: commands to a node without Spark, over loopback."""

import json
import socket
import threading
from contextlib import closing

import pytest
from typer.testing import CliRunner

from patience import patience
from springhouse.cli import cluster
from springhouse.cli.app import app
from springhouse.cluster.cluster_report import ClusterReport, NodeReport
from springhouse.cluster.members import Members
from springhouse.cluster.messages import LoadMeasured, UnitsDeclared
from springhouse.cluster.node_load import NodeLoad
from springhouse.cluster.run import Agent
from springhouse.cluster.state import Assignment, SnapshotVersion
from springhouse.cluster.timing import Timing
from springhouse.units import Seconds

TIMING = Timing(
    heartbeat_seconds=Seconds(0.05), election_seconds=Seconds(0.3), keep_alive_seconds=Seconds(0.3)
)
LOAD = NodeLoad(0.5, 0.25, 1.0, 7.0)
HOLDINGS = {"orders": Assignment("a", None, 3, 120), "sales": Assignment("a", "b", 4, 7)}


def node(name, role, **said):
    version = SnapshotVersion(2, 9)
    shares = said.pop("shares", {})
    return NodeReport(
        name, role, "a", 2, version, version, True, Seconds(0.2), said.pop("load", LOAD),
        tuple(HOLDINGS) if name == "a" else (), True, HOLDINGS, shares,
    )  # fmt: skip


class Hands:
    def __init__(self):
        self.taken = threading.Event()

    def take(self, units):
        self.taken.set()

    def let_go(self, units, *, at_once):
        pass


@pytest.fixture
def address(tmp_path):
    """The address of a cluster of one node with two units."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    hands = Hands()
    agent = Agent(Members("shop", "a", address), TIMING, tmp_path / "memory", hands)
    agent.notify(UnitsDeclared({"orders": 1.0, "sales": 1.0}))
    agent.notify(LoadMeasured(LOAD))
    agent.start()
    assert hands.taken.wait(patience(60.0))
    yield address
    agent.stop()


@pytest.fixture
def run(tmp_path):
    (tmp_path / "spark-pipeline.yml").write_text("name: shop\nstorage: storage\n")

    def run(*words):
        given = ["cluster", *words, "--project", str(tmp_path), "--without-tls"]
        return CliRunner().invoke(app, given)

    return run


def test_status_of_a_cluster(run, address):
    told = run("status", "--at", address, "--json")
    report = json.loads(told.output)
    assert (report["leader"], report["term"], report["problems"]) == ("a", 1, {})
    assert {unit: each["owner"] for unit, each in report["units"].items()} == {
        "orders": "a",
        "sales": "a",
    }
    assert report["nodes"][0]["load"] == {
        "cpu": 0.5, "memory": 0.25, "tracks": 1.0, "backlog_seconds": 7.0,
    }  # fmt: skip
    assert "a leads, term 1" in run("status", "--at", address).output


def test_the_leader_carries_a_drain_out(run, address):
    drained = run("drain", "a", "--at", address).output
    assert "a leads, and moves the units of a to other nodes" in drained
    assert "gives units to a again" in run("drain", "a", "--undo", "--at", address).output


def test_nobody_answers(run):
    told = run("status", "-c", "springhouse.cluster.nodes=a=127.0.0.1:1,b=127.0.0.1:2")
    assert told.exception is not None
    assert "no node answers: 127.0.0.1:1: it can't be reached" in str(told.exception)


def test_nobody_is_named(run):
    assert "there is no node to ask" in str(run("status").exception)


def rows(picture):
    return [
        list(cells) for cells in zip(*(column.cells for column in picture.columns), strict=True)
    ]


def test_nodes_and_what_is_the_matter_with_them():
    drained = node("b", "SynchronizedFollower", shares={"b": 0.0})
    report = ClusterReport("a", (node("a", "Leader", shares={"b": 0.0}), drained), {"c": "away"})
    shown = [[str(cell) for cell in row] for row in rows(cluster.nodes_table(report))]
    assert shown[0] == ["a", "Leader", "2", "9", "2", "0.2 s ago", "50%", "25%", "100%", "7 s"]
    assert shown[1][1] == "SynchronizedFollower, drained"
    assert shown[2][:2] == ["c", "does not answer"]
    assert "c: away" in str(cluster.remarks(report)[0])


def test_a_node_whose_spark_starts_is_not_ready():
    report = ClusterReport("a", (node("a", "Leader", load=NodeLoad(able=False)),), {})
    assert rows(cluster.nodes_table(report))[0][1] == "Leader, not ready"


def test_units_that_change_hands():
    report = ClusterReport("a", (node("a", "Leader"),), {})
    assert rows(cluster.units_table(report)) == [
        ["orders", "a", "120"],
        ["sales", "a, then b", "7"],
    ]
