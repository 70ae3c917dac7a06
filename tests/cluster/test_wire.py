"""A message is the same after its way between machines."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from springhouse.cluster import wire
from springhouse.cluster.cluster_report import ClusterReport, NodeReport
from springhouse.cluster.messages import (
    Appended,
    AppendEntries,
    AskForVote,
    Introduce,
    Introduced,
    SendTime,
    Vote,
)
from springhouse.cluster.node_load import NodeLoad
from springhouse.cluster.state import (
    Assignment,
    ClusterState,
    PersistentState,
    SnapshotVersion,
    StateChanges,
)
from springhouse.units import Instant, Seconds

NUMBERS = some.integers(0, 2**52)
AMOUNTS = some.floats(0, 1e9)
NAMES = some.text(min_size=1, max_size=8)
FLAGS = some.booleans()
STAMPS = some.builds(SnapshotVersion, NUMBERS, NUMBERS)
SENT = some.builds(SendTime, NUMBERS, AMOUNTS.map(Instant))
HOLDINGS = some.builds(Assignment, NAMES, some.none() | NAMES, NUMBERS, NUMBERS)
DISKS = some.dictionaries(NAMES, NUMBERS, max_size=4)
SHARES = some.dictionaries(NAMES, AMOUNTS, max_size=4)
STATES = some.builds(ClusterState, STAMPS, DISKS, some.dictionaries(NAMES, HOLDINGS), SHARES)
CHANGES = some.builds(
    StateChanges,
    some.dictionaries(NAMES, some.none() | HOLDINGS),
    some.none() | DISKS,
    some.none() | SHARES,
)
LOADS = some.builds(NodeLoad, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, FLAGS)
MESSAGES = some.one_of(
    some.builds(AskForVote, NUMBERS, STAMPS, FLAGS),
    some.builds(Vote, NUMBERS, NUMBERS, FLAGS, FLAGS, NUMBERS),
    some.builds(
        AppendEntries, NUMBERS, SENT, some.none() | SENT, STAMPS, STAMPS, CHANGES,
        some.none() | STATES, STAMPS, STAMPS, some.just(True), AMOUNTS.map(Seconds),
    ),
    some.builds(
        Appended, NUMBERS, NUMBERS, SENT, SENT, FLAGS, FLAGS, STAMPS, STAMPS,
        some.lists(NAMES).map(tuple), some.lists(some.tuples(NAMES, NUMBERS)).map(tuple), LOADS,
    ),
    some.builds(Introduce, SENT),
    some.builds(Introduced, SENT, NUMBERS, some.none() | DISKS),
)  # fmt: skip
REPORTS = some.builds(
    NodeReport, NAMES, NAMES, some.none() | NAMES, NUMBERS, STAMPS, STAMPS, FLAGS,
    some.none() | AMOUNTS.map(Seconds), LOADS, some.lists(NAMES).map(tuple), FLAGS,
    some.dictionaries(NAMES, HOLDINGS), SHARES,
)  # fmt: skip


@given(MESSAGES)
def test_every_message_arrives_as_it_was_sent(message):
    data = wire.encode_message("shop", "b", "a", message)
    assert wire.decode_message(data, "shop", "a", ["b"]) == ("b", message)


def test_a_leader_without_quorum_may_have_none_since_ever():
    zero = SnapshotVersion(0, 0)
    message = AppendEntries(
        1, SendTime(1, Instant(2.0)), None, zero, zero, StateChanges(), None, zero, zero, False,
        Seconds(float("inf")),
    )  # fmt: skip
    data = wire.encode_message("shop", "b", "a", message)
    assert wire.decode_message(data, "shop", "a", ["b"]) == ("b", message)


@given(some.builds(PersistentState, NUMBERS, NUMBERS, some.none() | NAMES, STATES))
def test_every_memory_is_recalled_as_it_was(memory):
    data = wire.encode_persistent_state("shop", "a", memory)
    assert wire.decode_persistent_state(data) == ("shop", "a", memory)


@given(some.lists(REPORTS, min_size=1, max_size=3))
def test_every_report_arrives_as_it_was(reports):
    report = ClusterReport("a", tuple(reports), {"c": "it can't be reached"})
    assert wire.decode_cluster_report(wire.encode_cluster_report(report)) == report


@given(some.binary(max_size=200))
def test_whatever_bytes_come_they_are_refused_or_a_message(data):
    try:
        sender, _ = wire.decode_message(data, "shop", "a", ["b"])
    except wire.MessageRefused:
        return
    assert sender == "b"


def test_an_envelope_without_a_message_says_nothing():
    from springhouse.cluster import cluster_pb2 as pb

    empty = pb.Envelope(protocol=wire.PROTOCOL, cluster="shop", sender="b", receiver="a")
    with pytest.raises(wire.MessageRefused, match='a message from "b" is not valid: it is empty'):
        wire.decode_message(empty.SerializeToString(), "shop", "a", ["b"])
