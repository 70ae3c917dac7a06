"""The knowledge about a table's log, and the number of requests to the storage for it."""

import json

import pytest

from springhouse.lake.delta.log import TableLog, one_look
from springhouse.lake.delta.note import Note
from springhouse.lake.storage.storage import Storage
from springhouse.planner.provenance import Provenance
from springhouse.units import Instant


@pytest.fixture
def log(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    commit(tmp_path, 0)
    return TableLog(Storage.at(str(tmp_path), tmp_path), "orders")


def commit(folder, version, table_id=None):
    """Write a commit as another writer would."""
    entry = {"commitInfo": {"timestamp": 1_700_000_000_000 + version, "operation": "WRITE"}}
    text = json.dumps(entry) + '\n{"add": {"path": "a", "dataChange": true}}\n'
    if table_id is not None:
        text += json.dumps({"metaData": {"id": table_id}}) + "\n"
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


def test_a_table_that_is_made_anew_is_another_one(log, tmp_path):
    commit(tmp_path, 0, "first")
    commit(tmp_path, 1)
    assert (log.newest().version, log.table_id(), log.channel().versions) == (1, "first", (0, 1))
    for entry in (tmp_path / "_delta_log").iterdir():
        entry.unlink()
    assert (log.newest(), log.table_id(), log.has_id("first")) == (None, None, False)
    for version in range(3):
        commit(tmp_path, version, "second" if version == 0 else None)
    assert (log.newest().version, log.table_id()) == (2, "second")
    assert (log.has_id("second"), log.has_id("first")) == (True, False)
    assert log.channel().versions == (0, 1, 2)


def test_a_table_that_was_given_another_id_goes_on(log, tmp_path):
    commit(tmp_path, 0, "first")
    commit(tmp_path, 1, "second")
    assert log.table_id() == "second"
    assert log.has_id("first")


def test_what_a_table_of_another_warehouse_reflects_is_that_ones_affair(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    note = Note("replace", Instant(1.0), after=Provenance.of(orders=3), ids={"orders": "theirs"})
    entry = {"commitInfo": {"springhouse": note.as_json()}}
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text(json.dumps(entry) + "\n")
    place = Storage.at(str(tmp_path), tmp_path)
    assert TableLog(place, "total").newest().note.ids == {"orders": "theirs"}
    assert TableLog(place, "delta.`total`").newest().note.ids == {}
