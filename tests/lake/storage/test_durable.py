"""All files that a commit names are on the disk, in this order, before the commit is reported."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql.types import LongType, StringType, StructField, StructType

from disk import Disk
from springhouse.lake.delta.commits import Change, add_columns, commit, create, describe, ensure
from springhouse.lake.delta.log import TableLog
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.tables import open_table
from springhouse.lake.delta.writing import write_arrow
from springhouse.lake.sources import file_log
from springhouse.lake.sources.delta_source import DeltaSource
from springhouse.lake.sources.source import Range, SourceContext
from springhouse.lake.storage.durable import sync_entries, sync_files
from springhouse.lake.storage.presence import FileLost
from springhouse.lake.storage.storage import Storage
from springhouse.units import Instant

SCHEMA = StructType([StructField("id", LongType())])


@pytest.fixture
def place(tmp_path: Path) -> Storage:
    return Storage.at(str(tmp_path / "storage" / "tables" / "orders"))


@pytest.fixture
def disk(place: Storage, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(Path(place.root), monkeypatch)


def note(kind: str = "append", **more: object) -> Note:
    return Note(kind, Instant(1.0), **more)  # type: ignore[arg-type]


def entry(version: int) -> str:
    return f"_delta_log/{version:020}.json"


def test_files_come_first_then_the_entry_then_the_folder_of_the_log(place, disk):
    ground = ensure(place, SCHEMA, note("schema"))
    add = write_arrow(place, pa.table({"id": [1]}), "part-a")
    change = write_arrow(place, pa.table({"id": [1]}), "_changes")
    state = write_arrow(place, pa.table({"id": [1]}), "_state/sums")
    told = note("merge", changes=(change.path,), state={"sums": (state.path,)})
    disk.synced.clear()
    commit(ground, Change(told, [add]))
    before, after = disk.before(1), disk.before(2)
    assert {add.path, change.path, state.path} <= before
    assert {"part-a", "_changes", "_state/sums", "_state", "."} <= before
    assert after == {entry(1), "_delta_log"}


def test_a_new_table_is_synced_with_the_way_to_it(place, disk):
    add = write_arrow(place, pa.table({"id": [1]}))
    create(place, SCHEMA, Change(note(), [add]))
    assert {add.path, ".", "..", "../..", "../../.."} <= disk.before(0)
    assert {entry(0), "_delta_log", "."} <= disk.before(1)


def test_new_columns_are_synced(place, disk):
    ground = ensure(place, SCHEMA, note("schema"))
    disk.synced.clear()
    add_columns(ground, [StructField("name", StringType())], note("schema"))
    assert disk.before(2) == {entry(1), "_delta_log"}


def test_entries_of_others_below_ours_are_synced_with_it(place, disk):
    ground = ensure(place, SCHEMA, note("schema"))
    write_deltalake(place.root, pa.table({"id": [7]}), mode="append")
    disk.synced.clear()
    commit(ground, Change(note(changes=())))
    assert {entry(1), entry(2)} <= disk.before(3)


def test_entries_of_others_that_a_commit_stands_on_are_synced_too(place, disk):
    """Otherwise a power cut may keep our log entry and lose the one below it."""
    ensure(place, SCHEMA, note("schema"))
    for _ in range(3):
        write_deltalake(place.root, pa.table({"id": [7]}), mode="append")
    ground = open_table(place)
    disk.synced.clear()
    commit(ground, Change(note(changes=())))
    assert {entry(1), entry(2), entry(3), entry(4)} <= disk.before(5)


def test_what_was_computed_from_the_entries_of_others_is_not_committed_before_they_are_synced(
    place, disk
):
    for _ in range(3):
        write_deltalake(place.root, pa.table({"id": [7]}), mode="append")
    disk.synced.clear()
    DeltaSource(TableLog(place, "orders")).sync({"0": Range(0, 2)})
    assert {entry(0), entry(1), "_delta_log"} == disk.before(3)
    # The folder is synced only once.
    disk.synced.clear()
    DeltaSource(TableLog(place, "orders")).sync({"0": Range(0, 3)})
    assert {entry(2), "_delta_log"} == disk.before(3)


def test_a_table_where_nobody_can_write_has_nothing_to_be_synced(place, monkeypatch):
    write_deltalake(place.root, pa.table({"id": [7]}))

    def refused(number: int) -> Callable[[int], None]:
        def fsync(descriptor: int) -> None:
            raise OSError(number, "no")

        return fsync

    monkeypatch.setattr(os, "fsync", refused(errno.EROFS))
    sync_entries(place, 0)
    monkeypatch.setattr(os, "fsync", refused(errno.EIO))
    with pytest.raises(OSError, match="no"):
        sync_entries(place, 0)


def test_a_description_is_synced(place, disk):
    ground = ensure(place, SCHEMA, note("schema"))
    disk.synced.clear()
    describe(ground, "all orders", {"owner": "sales"}, {"id": "its number"}, note("schema"))
    assert disk.before(4) == {entry(1), entry(2), entry(3), "_delta_log"}


def test_the_list_of_files_is_synced_when_it_is_compacted(place, disk, tmp_path, monkeypatch):
    monkeypatch.setattr(file_log, "COMPACT_AT", 1)
    context = SourceContext("orders", tmp_path, place, lambda: Instant(1.0))
    for number in range(3):
        log = file_log.FileLog(context)
        log.see([file_log.FoundFile(f"{number}.json", 1, number)])
        log.admit()
    files = {file.path for file in open_table(place).files}
    synced = {os.path.relpath(path, place.root) for path, _ in disk.synced}
    assert files | {entry(version) for version in range(disk.entries())} <= synced
    assert open_table(place).to_arrow().num_rows == 3


def test_a_table_that_is_made_once_more_is_synced_with_the_way_to_it(place, disk):
    for _ in range(2):
        ground = ensure(place, SCHEMA, note("schema"))
        assert {"_delta_log", ".", "..", "../.."} <= disk.before(1)
        disk.synced.clear()
        add = write_arrow(place, pa.table({"id": [1]}), "_changes")
        told = note("merge", changes=(add.path,))
        commit(ground, Change(told))
        assert {add.path, "_changes", "."} <= disk.before(1)
        place.remove()
        disk.synced.clear()


def test_a_checkpoint_is_synced_before_older_entries_may_go(place, disk):
    ground = ensure(place, SCHEMA, note("schema"))
    for _ in range(20):
        commit(ground, Change(note(changes=())))
        ground = open_table(place)
    assert f"_delta_log/{19:020}.checkpoint.parquet" in disk.before(20)
    assert "_delta_log/_last_checkpoint" in disk.before(20)
    # Entries younger than the retention stay.
    assert disk.entries() == 21


def test_files_that_were_synced_are_not_synced_again(place, disk):
    ground = ensure(place, SCHEMA, note("schema"))
    state = write_arrow(place, pa.table({"id": [1]}), "_state/sums")
    for _ in range(2):
        disk.synced.clear()
        commit(ground, Change(note("merge", state={"sums": (state.path,)}, changes=())))
        ground = open_table(place)
    assert state.path not in disk.before(2)


def test_what_is_gone_is_named(place):
    ensure(place, SCHEMA, note("schema"))
    with pytest.raises(FileLost, match="missing"):
        sync_files(place, ["gone.parquet"])


def test_an_object_store_is_asked_for_nothing(bucket, monkeypatch):
    place = Storage.at(f"{bucket}/orders")
    disk = Disk(Path("/nowhere"), monkeypatch)
    ground = ensure(place, SCHEMA, note("schema"))
    commit(ground, Change(note(), [write_arrow(place, pa.table({"id": [1]}))]))
    assert disk.synced == []
    assert open_table(place).rows == 1
