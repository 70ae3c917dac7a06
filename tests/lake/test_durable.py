"""When a commit is reported, everything that it names is on the disk, in this order."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql.types import LongType, StringType, StructField, StructType

from disk import Disk
from springhouse.lake.commits import Change, add_columns, commit, create, ensure
from springhouse.lake.durable import sync_files
from springhouse.lake.note import Note
from springhouse.lake.presence import FileLost
from springhouse.lake.storage import Storage
from springhouse.lake.tables import open_table
from springhouse.lake.writing import write_arrow
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


def test_a_checkpoint_is_synced_before_older_entries_may_go(place, disk):
    ground = ensure(place, SCHEMA, note("schema"))
    for _ in range(20):
        commit(ground, Change(note(changes=())))
        ground = open_table(place)
    assert f"_delta_log/{19:020}.checkpoint.parquet" in disk.before(20)
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
