"""A scan fails if a file is missing, and a commit never names a missing file."""

from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from springhouse.lake.delta.commits import Change, commit, create
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.requirements import CommitPermit
from springhouse.lake.delta.tables import arrow_schema, open_table
from springhouse.lake.delta.writing import write_arrow
from springhouse.lake.storage.presence import (
    FileLost,
    lost_files,
    validate_file,
    validate_files,
)
from springhouse.lake.storage.storage import Storage
from springhouse.units import Instant

SCHEMA = StructType([StructField("id", LongType())])


@pytest.fixture
def place(tmp_path: Path) -> Storage:
    return Storage.at(str(tmp_path / "orders"))


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())}, arrow_schema(SCHEMA))


def note(**more: object) -> Note:
    return Note(kind="append", at=Instant(1.0), **more)  # type: ignore[arg-type]


def test_a_missing_file_is_named_with_its_table(place: Storage) -> None:
    add = write_arrow(place, rows(1))
    validate_files(place, {add.path: add.size})
    (Path(place.root) / add.path).unlink()
    with pytest.raises(FileLost, match=f'the file "{add.path}" of the table "orders" is missing'):
        validate_files(place, {add.path: add.size})


def test_a_file_of_another_size_is_damaged(place: Storage) -> None:
    add = write_arrow(place, rows(1))
    with (Path(place.root) / add.path).open("ab") as file:
        file.write(b"x")
    (lost,) = lost_files(place, {add.path: add.size})
    assert f"has {add.size + 1} bytes instead of {add.size}" in lost.problem
    assert lost_files(place, {add.path: None}) == []


def test_a_file_with_other_bytes_is_damaged(place: Storage) -> None:
    add = write_arrow(place, rows(*range(10_000)))
    path = Path(place.root) / add.path
    data = bytearray(path.read_bytes())
    data[4:2_000] = b"\xff" * 1_996
    path.write_bytes(bytes(data))
    with pytest.raises(FileLost, match="is damaged"):
        validate_file(place, add.path)


@pytest.mark.parametrize("first", [True, False])
def test_a_commit_names_no_file_that_is_gone(place: Storage, first: bool) -> None:
    if not first:
        create(place, SCHEMA, Change(note()))
    add = write_arrow(place, rows(1, 2))
    (Path(place.root) / add.path).unlink()
    ground = open_table(place)
    begin = partial(create, place, SCHEMA) if ground is None else partial(commit, ground)
    with pytest.raises(FileLost, match="is missing"):
        begin(Change(note(), [add]))
    stored = open_table(place)
    assert (stored.version if stored is not None else None) == (None if first else 0)


@pytest.mark.parametrize("named", [{"changes": ("_changes/x",)}, {"state": {"t": ("_state/x",)}}])
def test_a_note_names_no_file_that_is_gone(place: Storage, named: dict[str, object]) -> None:
    with pytest.raises(FileLost, match="is missing"):
        create(place, SCHEMA, Change(note(**named)))


def test_what_a_server_scanned_is_there_when_its_result_is_committed(place: Storage) -> None:
    """The server may read a file that vanishes during the scan as an empty one."""
    source = place.inside("source")
    read = write_arrow(source, rows(1))
    result = write_arrow(place, rows(1))
    permit = CommitPermit()
    permit.scans.add(source, {read.path: read.size})
    (Path(source.root) / read.path).unlink()
    with pytest.raises(FileLost, match=read.path):
        create(place, SCHEMA, Change(note(), [result]), permit.requirements())
    assert open_table(place) is None


def test_a_footer_that_lies_is_found(place: Storage) -> None:
    Path(place.root).mkdir()
    pq.write_table(rows(1), Path(place.root) / "a.parquet")
    with (Path(place.root) / "a.parquet").open("r+b") as file:
        file.truncate(20)
    with pytest.raises(FileLost, match="is damaged"):
        validate_file(place, "a.parquet")
