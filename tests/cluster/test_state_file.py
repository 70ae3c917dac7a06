"""A node's memory on its disk."""

from contextlib import closing

import pytest

from springhouse.cluster.state import (
    EMPTY,
    Assignment,
    ClusterState,
    PersistentState,
    SnapshotVersion,
)
from springhouse.cluster.state_file import StateFile
from springhouse.errors import SpringhouseError

STATE = ClusterState(
    SnapshotVersion(3, 14),
    {"a": 1, "b": 2},
    {"orders/0": Assignment("a", "b", 13, 4711)},
    {"b": 0.0},
)
MEMORY = PersistentState(7, 3, "b", STATE)


@pytest.fixture
def state_file(tmp_path):
    made = StateFile(tmp_path, "shop", "a")
    yield made
    made.close()


def test_an_empty_disk_has_no_memory(state_file):
    assert state_file.load() is None


@pytest.mark.parametrize(
    "memory", [MEMORY, PersistentState(1, 0, None, EMPTY)], ids=["full", "first"]
)
def test_what_was_saved_is_there(state_file, memory):
    state_file.save(PersistentState(7, 2, "c", EMPTY))
    state_file.save(memory)
    assert state_file.load() == memory


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:20],
        lambda data: data[:-1],
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: data + b"\x00",
        lambda data: b"something else entirely, and long enough to be a memory, if it were one",
    ],
    ids=["empty", "its beginning", "cut short", "one bit", "longer", "another file"],
)
def test_a_damaged_memory_is_an_error_and_not_an_empty_disk(state_file, damage):
    state_file.save(MEMORY)
    state_file.file.write_bytes(damage(state_file.file.read_bytes()))
    with pytest.raises(
        SpringhouseError, match='the file with the state of node "a" is damaged'
    ) as error:
        state_file.load()
    assert str(state_file.file) in str(error.value)
    assert "delete the file" in str(error.value)


def test_a_file_that_was_being_written_when_the_power_failed_changes_nothing(state_file):
    state_file.save(MEMORY)
    state_file.file.with_name("memory.new").write_bytes(b"half")
    assert state_file.load() == MEMORY


def test_the_memory_of_another_node_is_not_taken_for_ours(tmp_path):
    with closing(StateFile(tmp_path, "shop", "a")) as ours:
        ours.save(MEMORY)
    with (
        closing(StateFile(tmp_path, "shop", "b")) as other,
        pytest.raises(SpringhouseError, match='file belongs to node "a" of the cluster "shop"'),
    ):
        other.load()


def test_two_processes_can_not_share_a_memory(state_file, tmp_path):
    with pytest.raises(SpringhouseError, match='another process already runs as node "a"'):
        StateFile(tmp_path, "shop", "a")
