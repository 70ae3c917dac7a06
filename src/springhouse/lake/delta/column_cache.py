"""Which columns of which files are already in memory?

Every refresh looks up keys in the same large tables. For most rows it only checks whether a key is
among a few values. To decode a column takes ten times as long as this check. Files never change, so
a decoded column stays valid. The cache drops the least recently used columns first.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from springhouse.lake.storage.presence import reading
from springhouse.lake.storage.storage import Storage

_SHARE_OF_MEMORY = 1 / 16
_MOST_BYTES = 2**30


class ColumnCache:
    """Columns of Parquet files, up to `most_bytes` in total."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._bytes = 0
        self._columns: OrderedDict[tuple[str, pa.Field], pa.Array] = OrderedDict()
        self._lock = threading.Lock()

    def holds(self, fields: Sequence[pa.Field], rows: int) -> bool:
        """Whether columns with this number of rows take at most half of the cache."""
        return rows * sum(map(_width, fields)) <= self.most_bytes // 2

    def read(self, storage: Storage, path: str, fields: Sequence[pa.Field]) -> pa.Table:
        """Columns of a file, with the types of these fields; NULL if the file lacks a column."""
        place = f"{storage.root}/{path}"
        found = {
            each: column for each in fields if (column := self._known(place, each)) is not None
        }
        missing = [each for each in fields if each not in found]
        if missing:
            with (
                reading(storage, path),
                storage.filesystem.open_input_file(f"{storage.path}/{path}") as file,
            ):
                parquet = pq.ParquetFile(file)
                present = [each for each in missing if each.name in parquet.schema_arrow.names]
                table = parquet.read(columns=[each.name for each in present])
                rows = parquet.metadata.num_rows
            for each in missing:
                column = pa.nulls(rows, each.type)
                if each in present:
                    column = table[each.name].combine_chunks().cast(each.type)
                found[each] = _as_array(column)
                self._keep(place, each, found[each])
        return pa.Table.from_arrays([found[each] for each in fields], schema=pa.schema(fields))

    def _known(self, place: str, field: pa.Field) -> pa.Array | None:
        with self._lock:
            column = self._columns.get((place, field))
            if column is not None:
                self._columns.move_to_end((place, field))
            return column

    def _keep(self, place: str, field: pa.Field, column: pa.Array) -> None:
        with self._lock:
            old = self._columns.pop((place, field), None)
            self._columns[place, field] = column
            self._bytes += column.nbytes - (old.nbytes if old is not None else 0)
            while self._bytes > self.most_bytes and self._columns:
                _, forgotten = self._columns.popitem(last=False)
                self._bytes -= forgotten.nbytes


def _as_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array: a column of long texts may have several chunks, even after combining them."""
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


def _width(field: pa.Field) -> int:
    """About how many bytes a value takes."""
    try:
        return max(int(field.type.bit_width) // 8, 1)
    except ValueError:
        return 32


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


COLUMNS = ColumnCache(min(int(_memory_bytes() * _SHARE_OF_MEMORY), _MOST_BYTES))
"""The decoded columns of this process, of all tables together."""
