"""What is known of a table's log, and how often the storage is asked for it."""

import json

import pytest

from springhouse.lake.log import TableLog, one_look
from springhouse.lake.storage import Storage


@pytest.fixture
def log(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    commit(tmp_path, 0)
    return TableLog(Storage.at(str(tmp_path), tmp_path), "orders")


def commit(folder, version):
    """What another writer commits."""
    entry = {"commitInfo": {"timestamp": 1_800_000_000_000 + version, "operation": "WRITE"}}
    text = json.dumps(entry) + '\n{"add": {"path": "a", "dataChange": true}}\n'
    (folder / "_delta_log" / f"{version:020}.json").write_text(text)


def test_what_others_commit_is_seen_at_once(log, tmp_path):
    assert log.newest().version == 0
    commit(tmp_path, 1)
    assert log.newest().version == 1


def test_one_look_asks_the_storage_once(log, tmp_path):
    with one_look():
        assert log.newest().version == 0
        commit(tmp_path, 1)
        assert log.newest().version == 0
    assert log.newest().version == 1
