"""The cache decodes columns of unchanging files once, as long as it has room for them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from springhouse.lake.delta.column_cache import ColumnCache
from springhouse.lake.storage.presence import FileLost
from springhouse.lake.storage.storage import Storage

ID, WORD = pa.field("id", pa.int64()), pa.field("word", pa.string())


@pytest.fixture
def place(tmp_path: Path) -> Storage:
    for name, start in (("a", 0), ("b", 100)):
        ids = pa.array(range(start, start + 100), pa.int64())
        pq.write_table(pa.table({"id": ids}), tmp_path / f"{name}.parquet")
    return Storage.at(str(tmp_path))


def gone(place: Storage) -> None:
    for file in Path(place.root).glob("*.parquet"):
        file.unlink()


def test_what_was_read_once_needs_no_file(place: Storage) -> None:
    cache = ColumnCache(10_000)
    first = cache.read(place, "a.parquet", [ID])
    gone(place)
    assert cache.read(place, "a.parquet", [ID]) == first
    assert first["id"].to_pylist() == list(range(100))


def test_a_column_that_a_file_lacks_is_null(place: Storage) -> None:
    rows = ColumnCache(10_000).read(place, "a.parquet", [WORD, ID])
    assert rows.schema.names == ["word", "id"]
    assert rows["word"].null_count == len(rows) == 100


def test_the_same_column_as_another_type_is_another_column(place: Storage) -> None:
    cache = ColumnCache(10_000)
    cache.read(place, "a.parquet", [ID])
    narrow = cache.read(place, "a.parquet", [pa.field("id", pa.int16())])
    assert narrow.schema.field("id").type == pa.int16()


def test_what_was_not_asked_for_longest_is_forgotten(place: Storage) -> None:
    cache = ColumnCache(800)
    cache.read(place, "a.parquet", [ID])
    cache.read(place, "b.parquet", [ID])
    gone(place)
    assert cache.read(place, "b.parquet", [ID])["id"][0].as_py() == 100
    with pytest.raises(FileLost):
        cache.read(place, "a.parquet", [ID])


def test_one_table_does_not_drive_all_others_out() -> None:
    cache = ColumnCache(16_000)
    assert cache.holds([ID], 1_000)
    assert not cache.holds([ID], 1_001)
    assert not cache.holds([ID, WORD], 1_000)
