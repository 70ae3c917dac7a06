"""What is known of a table's log, and how often the storage is asked for it."""

import json
import shutil

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from springhouse.errors import LakeError
from springhouse.lake.delta.commits import Change, ensure
from springhouse.lake.delta.commits import commit as write
from springhouse.lake.delta.log import TableLog, one_look
from springhouse.lake.delta.note import FORMAT, KEY, Note
from springhouse.lake.delta.tables import open_table
from springhouse.lake.delta.writing import write_arrow
from springhouse.lake.storage.clock import AHEAD
from springhouse.lake.storage.storage import Storage
from springhouse.planner.provenance import Provenance
from springhouse.units import Instant


@pytest.fixture
def log(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    commit(tmp_path, 0)
    return TableLog(Storage.at(str(tmp_path), tmp_path), "orders")


def commit(folder, version, table_id=None):
    """What another writer commits."""
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


# Damage

CHECKPOINT = 19
NEWEST = 25


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A table with a checkpoint and some commits after it, to be copied and damaged."""
    place = Storage.at(str(tmp_path_factory.mktemp("written") / "orders"))
    ensure(place, StructType([StructField("id", LongType())]), Note("schema", Instant(1.0)))
    for number in range(NEWEST):
        note = Note("append", Instant(2.0 + number), channel=True)
        add = write_arrow(place, pa.table({"id": [number]}))
        write(open_table(place), Change(note, [add], transactions={"in": number}))
    return place


@pytest.fixture
def orders(written, tmp_path):
    shutil.copytree(written.root, tmp_path / "orders")
    return tmp_path / "orders"


def entry(table, version):
    return table / "_delta_log" / f"{version:020}.json"


def without_last_line(text):
    return text.rstrip("\n").rpartition("\n")[0] + "\n"


def with_note(text, **fields):
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"][KEY] |= fields
    return "".join(json.dumps(line) + "\n" for line in lines)


DAMAGES = {
    "an empty file": lambda text: "",
    "half a file": lambda text: text[: len(text) // 2],
    "the last line gone": without_last_line,
    "no JSON": lambda text: "<html>Not found</html>",
    "no objects": lambda text: "[1]\n",
    "an action that is no object": lambda text: '{"add": 3}\n',
    "nonsense in the note": lambda text: with_note(text, at="never"),
    "a number that no clock shows": lambda text: with_note(text, at=1e200),
    "not even text": lambda text: "\udcff\udcfe",
}


@pytest.mark.parametrize("version", [NEWEST - 2, NEWEST])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_named_by_all_who_read(orders, damage, version):
    file = entry(orders, version)
    file.write_bytes(damage(file.read_text()).encode(errors="surrogateescape"))
    place = Storage.at(str(orders))
    for read in (lambda: open_table(place), TableLog(place, "orders").prove_whole):
        with pytest.raises(LakeError, match=f"damaged at version {version}") as told:
            read()
        assert told.value.where == str(file)
        assert '"orders"' in told.value.problem
        assert told.value.hint
        assert "\n" not in told.value.problem


@pytest.mark.parametrize("version", [CHECKPOINT + 1, NEWEST - 2])
def test_a_missing_entry_is_named(orders, version):
    entry(orders, version).unlink()
    place = Storage.at(str(orders))
    for read in (lambda: open_table(place), TableLog(place, "orders").prove_whole):
        with pytest.raises(LakeError, match="missing") as told:
            read()
        assert told.value.where == str(entry(orders, version))


def test_what_stands_before_the_damage_is_still_known(orders):
    entry(orders, NEWEST - 2).write_text("")
    log = TableLog(Storage.at(str(orders)), "orders")
    assert log.newest().version == NEWEST - 3
    assert log.damage() is not None


def test_a_log_that_was_mended_is_read_on(orders):
    text = entry(orders, NEWEST - 2).read_text()
    entry(orders, NEWEST - 2).write_text("")
    log = TableLog(Storage.at(str(orders)), "orders")
    assert log.damage() is not None
    entry(orders, NEWEST - 2).write_text(text)
    assert log.damage() is None
    assert log.newest().version == NEWEST


@pytest.mark.parametrize("size", [0, 300, None])
def test_a_damaged_checkpoint_is_named_and_can_be_deleted(orders, size):
    file = orders / "_delta_log" / f"{CHECKPOINT:020}.checkpoint.parquet"
    if size is None:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:size])
    place = Storage.at(str(orders))
    with pytest.raises(LakeError, match=f'checkpoint of "orders" at version {CHECKPOINT}') as told:
        open_table(place)
    assert told.value.where == str(file)
    assert "_last_checkpoint" in told.value.hint
    file.unlink(missing_ok=True)
    (orders / "_delta_log" / "_last_checkpoint").unlink()
    assert open_table(place).rows == NEWEST


def test_a_note_of_a_newer_release_is_one_clear_sentence(orders):
    file = entry(orders, NEWEST)
    file.write_text(with_note(file.read_text(), format=FORMAT + 1))
    place = Storage.at(str(orders))
    for read in (lambda: open_table(place), TableLog(place, "orders").prove_whole):
        with pytest.raises(LakeError, match=f"format {FORMAT + 1}") as told:
            read()
        assert told.value.where == str(file)
        assert "update" in told.value.hint


def test_fields_of_a_newer_release_change_nothing(orders):
    for version in range(NEWEST + 1):
        file = entry(orders, version)
        file.write_text(with_note(file.read_text(), colour="red"))
    place = Storage.at(str(orders))
    assert open_table(place).rows == NEWEST
    log = TableLog(place, "orders")
    log.prove_whole()
    assert log.commits()[-1].note.unknown == {"colour": "red"}


# Dates


NOW = 1_700_000_000.0
TEN_YEARS = 10 * 365.25 * 86_400


def dated(folder, *dates):
    """A table whose commits have these dates."""
    place = Storage.at(str(folder / "orders"))
    columns = StructType([StructField("id", LongType())])
    for number, at in enumerate(dates):
        note = Note("append", Instant(at), channel=True, freshness=Instant(at))
        if number == 0:
            ensure(place, columns, note)
        else:
            add = write_arrow(place, pa.table({"id": [number]}))
            write(open_table(place), Change(note, [add]))
    return place


def test_a_commit_dated_ten_years_ahead_counts_as_made_before_the_next(tmp_path):
    place = dated(tmp_path, NOW - 100, NOW + TEN_YEARS, NOW - 50)
    log = TableLog(place, "orders", lambda: Instant(NOW))
    assert [each.at for each in log.commits()] == [NOW - 100, NOW - 50, NOW - 50]
    assert [each.dated for each in log.commits()] == [NOW - 100, NOW + TEN_YEARS, NOW - 50]
    assert log.newest().note.freshness == NOW - 50
    assert log.dated_ahead() is None


def test_the_newest_commit_dated_ahead_counts_as_made_now_and_is_told(tmp_path):
    place = dated(tmp_path, NOW - 100, NOW + TEN_YEARS)
    log = TableLog(place, "orders", lambda: Instant(NOW))
    assert [each.at for each in log.commits()] == [NOW - 100, NOW]
    assert log.newest().note.freshness == NOW
    assert log.dated_ahead() == NOW + TEN_YEARS


def test_after_a_clock_went_back_an_hour_no_commit_is_older_than_the_one_before(tmp_path):
    place = dated(tmp_path, NOW, NOW + 3600, NOW + 1, NOW + 2)
    log = TableLog(place, "orders", lambda: Instant(NOW + 2 * 3600))
    at = [each.at for each in log.commits()]
    assert at == sorted(at)
    assert log.newest().note.freshness == at[-1]


def test_machines_may_differ_a_little(tmp_path):
    place = dated(tmp_path, NOW, NOW + AHEAD - 1)
    log = TableLog(place, "orders", lambda: Instant(NOW))
    assert log.commits()[-1].at == NOW + AHEAD - 1
    assert log.dated_ahead() is None


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
