"""A stranger gets in nowhere, leaves a line in the log, and changes nothing."""

import logging
import os
import queue
import re
import socket
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import replace

import grpc
import pytest

from patience import patience
from springhouse.cluster import cluster_pb2 as pb
from springhouse.cluster import wire
from springhouse.cluster.members import Credentials, Members, read_credentials
from springhouse.cluster.messages import AppendEntries, AskForVote, SendTime
from springhouse.cluster.network import SERVICE, MessageLimits, PeerChannel
from springhouse.cluster.run import Agent
from springhouse.cluster.state import NO_CHANGES, Assignment, ClusterState, SnapshotVersion
from springhouse.cluster.timing import Timing
from springhouse.errors import SpringhouseError
from springhouse.units import Instant, Seconds

TIMING = Timing(
    heartbeat_seconds=Seconds(0.06),
    election_seconds=Seconds(0.6),
    keep_alive_seconds=Seconds(0.6),
)
MOST_BYTES = 64 * 1024
PATIENT = MessageLimits(call_seconds=Seconds(patience(20.0)))


class Idle:
    def take(self, units):
        pass

    def let_go(self, units, *, at_once):
        pass


@pytest.fixture(scope="module")
def authority(authority_class, tmp_path_factory):
    return authority_class(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def stranger(authority_class, tmp_path_factory):
    """Another authority, with the same names."""
    return authority_class(tmp_path_factory.mktemp("stranger"))


@pytest.fixture(scope="module")
def address(free_port):
    return f"127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def node(authority, address, free_port, tmp_path_factory):
    """A node "a" whose peer "b" is away, so that only the test changes its state."""
    credentials = read_credentials(*authority.sign("shop", "a"))
    members = Members("shop", "a", address, {"b": f"127.0.0.1:{free_port()}"}, credentials)
    folder = tmp_path_factory.mktemp("memory")
    agent = Agent(members, TIMING, folder, Idle(), limits=MessageLimits(most_bytes=MOST_BYTES))
    agent.start()
    yield agent
    agent.stop()


@pytest.fixture
def line(authority, address):
    """A connection to the node for a member of the cluster."""
    made = PeerChannel("shop", address, read_credentials(*authority.sign("shop", "b")), PATIENT)
    yield made
    made.close()


@pytest.fixture
def unchanged(node):
    """Checks that the node's state is the same after the test."""
    before = node.describe()
    yield
    after = node.describe()
    assert (after.term, after.accepted, after.leader) == (
        before.term,
        before.accepted,
        before.leader,
    )


def told(caplog):
    return " ".join(record.message for record in caplog.records)


class Heard(logging.Handler):
    """The lines of the log, from any thread: a line may come after its caller's answer."""

    def __init__(self):
        super().__init__()
        self._lines = queue.Queue()

    def emit(self, record):
        self._lines.put(record.getMessage())

    def line_with(self, text):
        while text not in (line := self._lines.get(timeout=patience(10.0))):
            pass
        return line


@pytest.fixture
def heard():
    handler = Heard()
    logger = logging.getLogger("springhouse.cluster")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def test_one_of_the_cluster_is_answered(node, line):
    report = wire.decode_cluster_report(line.call("Status", wire.encode_question("shop")))
    assert [each.name for each in report.nodes] == ["a"]
    assert "b" in report.problems


def test_no_certificate(node, address, authority, unchanged, capfd):
    shown = grpc.ssl_channel_credentials(authority.file.read_bytes())
    options = [("grpc.ssl_target_name_override", "shop")]
    with (
        grpc.secure_channel(address, shown, options) as channel,
        pytest.raises(grpc.RpcError) as refused,
    ):
        channel.unary_unary(f"/{SERVICE}/Status")(
            wire.encode_question("shop"), timeout=patience(20.0)
        )
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "PEER_DID_NOT_RETURN_A_CERTIFICATE" in capfd.readouterr().err


def test_no_tls_at_all(node, address, unchanged, capfd):
    with (
        closing(PeerChannel("shop", address, None, PATIENT)) as plain,
        pytest.raises(SpringhouseError, match=r"closed the connection|can't be reached"),
    ):
        plain.call("Status", wire.encode_question("shop"))
    assert "WRONG_VERSION_NUMBER" in capfd.readouterr().err


def test_a_certificate_that_somebody_else_signed(
    node, address, authority, stranger, unchanged, capfd
):
    theirs = read_credentials(*stranger.sign("shop", "b"))
    credentials = Credentials(theirs.certificate, theirs.key, authority.file.read_bytes())
    with (
        closing(PeerChannel("shop", address, credentials, PATIENT)) as line,
        pytest.raises(SpringhouseError, match=r"does not accept our certificate|reached"),
    ):
        line.call("Status", wire.encode_question("shop"))
    assert "certificate" in capfd.readouterr().err


def test_a_node_that_somebody_else_signed_is_not_talked_to(node, address, stranger, unchanged):
    with (
        closing(
            PeerChannel("shop", address, read_credentials(*stranger.sign("shop", "b")), PATIENT)
        ) as line,
        pytest.raises(SpringhouseError, match="does not prove that it is of this cluster"),
    ):
        line.call("Status", wire.encode_question("shop"))


def test_another_clusters_certificate_of_the_same_authority(
    node, address, authority, unchanged, caplog
):
    theirs = read_credentials(*authority.sign("search", "b"))
    with (
        closing(PeerChannel("shop", address, theirs, PATIENT)) as line,
        pytest.raises(SpringhouseError, match='for search, not for the cluster "shop"'),
    ):
        line.call(
            "Deliver",
            wire.encode_message("shop", "b", "a", AskForVote(9, SnapshotVersion(9, 9), False)),
        )
    assert 'the certificate is for search, not for the cluster "shop"' in told(caplog)


@pytest.mark.parametrize(
    ("cluster", "sender", "receiver", "problem"),
    [
        ("search", "b", "a", 'of the cluster "search", this node is of the cluster "shop"'),
        ("shop", "x", "a", '"x" is not a node of this cluster'),
        ("shop", "a", "a", '"a" is not a node of this cluster'),
        ("shop", "b", "c", 'a message from "b" to "c" arrived at "a"'),
    ],
)
def test_a_message_for_others(line, unchanged, caplog, cluster, sender, receiver, problem):
    message = AskForVote(9, SnapshotVersion(9, 9), False)
    with pytest.raises(SpringhouseError) as refused:
        line.call("Deliver", wire.encode_message(cluster, sender, receiver, message))
    assert problem in refused.value.problem
    assert problem in told(caplog)


def test_another_version_of_the_protocol(line, unchanged, caplog):
    envelope = pb.Envelope(protocol=wire.PROTOCOL + 1, cluster="shop", sender="b", receiver="a")
    with pytest.raises(SpringhouseError, match="speaks version 2 of the protocol"):
        line.call("Deliver", envelope.SerializeToString())
    assert "Run the same version of springhouse on all nodes" in told(caplog)


@pytest.mark.parametrize(
    "garbage",
    [b"\xff" * 100, b"\x00", b"not protobuf at all", bytes(range(256))],
    ids=["ones", "zero", "text", "all bytes"],
)
def test_garbage_in_a_message(line, unchanged, caplog, garbage):
    with pytest.raises(SpringhouseError):
        line.call("Deliver", garbage)
    assert "refused a message from" in told(caplog)


def test_garbage_instead_of_tls(node, address, unchanged, line, capfd):
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=patience(5.0)) as connection:
        connection.sendall(b"\x00garbage\xff" * 1000)
        connection.settimeout(patience(5.0))
        with suppress(ConnectionResetError):
            assert connection.recv(1) == b""
    assert "Handshake failed" in capfd.readouterr().err
    line.call("Status", wire.encode_question("shop"))


TRACED = """
import sys
from pathlib import Path
from springhouse.cluster.members import Members, read_credentials
from springhouse.cluster.run import Agent
from springhouse.cluster.timing import Timing

class Idle:
    def let_go(self, units, *, at_once):
        pass

address, memory, *credentials = sys.argv[1:]
members = Members("shop", "a", address, {}, read_credentials(*map(Path, credentials)))
agent = Agent(members, Timing(), Path(memory), Idle())
agent.start()
print("listens", flush=True)
sys.stdin.read()
agent.stop()
"""


def test_with_grpcs_trace_the_log_says_whose_handshake_failed(authority, free_port, tmp_path):
    """Only gRPC's own trace shows it; docs/cluster.md explains how."""
    port = free_port()
    credentials = map(str, authority.sign("shop", "traced"))
    node = subprocess.Popen(
        [sys.executable, "-c", TRACED, f"127.0.0.1:{port}", str(tmp_path), *credentials],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "GRPC_TRACE": "handshaker"},
    )
    try:
        assert node.stdout.readline() == "listens\n"
        with socket.create_connection(("127.0.0.1", port), timeout=patience(20.0)) as stranger:
            _, own_port = stranger.getsockname()
            stranger.sendall(b"not TLS at all")
            stranger.settimeout(patience(20.0))
            with suppress(ConnectionResetError):
                assert stranger.recv(1) == b""
        _, told = node.communicate("", timeout=patience(20.0))
    finally:
        node.kill()
        node.wait(timeout=patience(20.0))
    who = rf"endpoint_peer_address=ipv4:127\.0\.0\.1:{own_port}\b"
    assert re.search(rf"Ssl handshake failed.*{who}", told, re.DOTALL), told


def test_a_message_that_is_too_large(line, unchanged, heard):
    assignments = {f"unit {number}": Assignment("b") for number in range(10_000)}
    message = _entries(9, ClusterState(SnapshotVersion(9, 9), {"a": 1, "b": 2}, assignments))
    data = wire.encode_message("shop", "b", "a", message)
    assert len(data) > MOST_BYTES
    with pytest.raises(SpringhouseError, match="larger than max"):
        line.call("Deliver", data)
    assert "refused a message from ipv4:127.0.0.1" in heard.line_with(
        "the message has more than 65,536 bytes"
    )


def test_numbers_that_are_none(line, unchanged, caplog):
    message = _entries(9, None)
    data = wire.encode_message(
        "shop", "b", "a", replace(message, sent=SendTime(1, Instant(float("nan"))))
    )
    with pytest.raises(SpringhouseError, match="nan is not a finite number"):
        line.call("Deliver", data)


def test_a_repeated_message_of_an_old_term(node, line, caplog):
    line.call("Deliver", wire.encode_message("shop", "b", "a", _entries(7, None)))
    assert node.describe().term == 7
    caplog.clear()
    old = _entries(6, ClusterState(SnapshotVersion(6, 99), {"b": 1}, {"unit": Assignment("b")}))
    with caplog.at_level(logging.INFO, "springhouse.cluster"):
        for _ in range(3):
            line.call("Deliver", wire.encode_message("shop", "b", "a", old))
        after = node.describe()
    assert (after.term, after.accepted, dict(after.assignments)) == (7, SnapshotVersion(0, 0), {})
    assert "refused AppendEntries of b: it is of term 6, and this node is in term 7" in told(caplog)


def _entries(term, state):
    version = SnapshotVersion(term, 99)
    return AppendEntries(
        term, SendTime(1, Instant(1.0)), None, SnapshotVersion(term, 98), version, NO_CHANGES,
        state, version, version, True, Seconds(0.0),
    )  # fmt: skip
