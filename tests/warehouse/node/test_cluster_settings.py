"""Which cluster does a configuration describe?"""

from pathlib import Path

import pytest

from springhouse.errors import SpringhouseError
from springhouse.warehouse.node.cluster_settings import Joining

NODES = "a=127.0.0.1:7100, b=127.0.0.1:7101"


def joining(**settings):
    said = {f"springhouse.cluster.{key}": value for key, value in settings.items()}
    return Joining("My shop", Path("/projects/shop"), said)


def test_a_node_finds_itself_and_the_others_in_the_configuration():
    members = joining(nodes=NODES, tls="off").members("a", None, None)
    assert members.cluster == "my-shop"
    assert members.listen == "127.0.0.1:7100"
    assert members.peers == {"b": "127.0.0.1:7101"}


def test_what_a_node_is_told_counts_more():
    members = joining(nodes=NODES, tls="off", name="shop").members(
        "a", "127.0.0.1:9000", "c=127.0.0.1:9001"
    )
    assert (members.cluster, members.listen) == ("shop", "127.0.0.1:9000")
    assert members.peers == {"c": "127.0.0.1:9001"}


def test_a_node_alone_has_no_peers():
    assert joining(tls="off").members("a", "127.0.0.1:9000", None).peers == {}


def test_an_unknown_node_has_to_say_where_it_listens():
    with pytest.raises(SpringhouseError, match='no address for node "x"') as error:
        joining(nodes=NODES, tls="off").members("x", None, None)
    assert "Configured are: a, b." in error.value.hint


def test_tls_is_left_out_only_when_asked_for():
    with pytest.raises(SpringhouseError, match="nodes need certificates"):
        _ = joining(nodes=NODES).credentials
    assert joining(nodes=NODES, tls="off").credentials is None


def test_time_outs_are_those_of_the_paper_unless_set():
    assert joining().timing.election_seconds == 3.0
    shorter = {"heartbeat.seconds": "0.1", "election.seconds": "1", "keep-alive.seconds": "1"}
    assert joining(**shorter).timing.keep_alive_seconds == 1.0
    with pytest.raises(SpringhouseError, match="too slow"):
        _ = joining(**{"heartbeat.seconds": "5"}).timing


def test_a_memory_is_in_the_project_unless_set():
    assert joining().memory("a") == Path("/projects/shop/.springhouse/a")
    assert joining(memory="/var/lib/springhouse").memory("a") == Path("/var/lib/springhouse/a")
