"""Every reader names the damaged log file and the remedy. No Spark needed."""

import json
import shutil

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from springhouse.errors import LakeError
from springhouse.lake.delta.commits import Change, ensure
from springhouse.lake.delta.commits import commit as write
from springhouse.lake.delta.log import TableLog
from springhouse.lake.delta.note import FORMAT, KEY, Note
from springhouse.lake.delta.tables import open_table
from springhouse.lake.delta.writing import write_arrow
from springhouse.lake.storage.storage import Storage
from springhouse.units import Instant

CHECKPOINT = 19
NEWEST = 25


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A table with a checkpoint and later commits; each test damages a copy."""
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
    for read in (lambda: open_table(place), TableLog(place, "orders").validate_log):
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
    for read in (lambda: open_table(place), TableLog(place, "orders").validate_log):
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
    for read in (lambda: open_table(place), TableLog(place, "orders").validate_log):
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
    log.validate_log()
    assert log.commits()[-1].note.unknown == {"colour": "red"}
