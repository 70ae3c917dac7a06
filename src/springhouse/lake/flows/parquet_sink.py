"""How does a task write the rows of a target so that each row counts only once?

Each attempt of a task writes files with unique names and reports these names to the driver. Spark
accepts the report of one attempt per task, and only the files in that report are committed. No
commit names the files of failed or repeated attempts. A failed attempt removes its own files.
"""

import logging
import uuid
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from springhouse.lake.delta.writing import add_action
from springhouse.lake.storage.storage import Storage
from springhouse.logged_errors import passing

LOG = logging.getLogger("springhouse.flows")

FILE_BYTES = 128 * 2**20
"""A sink closes its file and begins another one after about this many bytes of rows."""

GROUP_BYTES = 16 * 2**20
"""A row group has about this many bytes. Row groups as small as one pack would make poor files."""

SAMPLE_ROWS = 16_384
"""The number of rows to look at, to see whether the values of a column repeat."""


class ParquetSink:
    """Writes the packs of one target, in one task."""

    def __init__(self, root: str, schema: pa.Schema) -> None:
        self._storage = Storage(root)
        self._schema = schema
        self._writer: pq.ParquetWriter | None = None
        self._stream: pa.NativeFile | None = None
        self._path = ""
        self._gathered: list[pa.RecordBatch] = []
        self._group_bytes = 0
        self._file_bytes = 0
        self.adds: list[dict[str, Any]] = []

    def write(self, pack: pa.RecordBatch) -> None:
        self._gathered.append(pa.RecordBatch.from_arrays(pack.columns, schema=self._schema))
        self._group_bytes += pack.nbytes
        if self._group_bytes >= GROUP_BYTES:
            self._write_group()
        if self._file_bytes >= FILE_BYTES:
            self._finish_file()

    def close(self) -> None:
        self._write_group()
        self._finish_file()

    def abandon(self) -> None:
        """Remove the files of this failed attempt, as far as that is possible."""
        self._gathered = []
        with passing(LOG, "the attempt failed before", Exception):
            self._finish_file()
        for add in self.adds:
            with passing(LOG, "vacuum removes what is left", Exception):
                self._storage.filesystem.delete_file(f"{self._storage.path}/{add['path']}")
        self.adds = []

    def _write_group(self) -> None:
        if not self._gathered:
            return
        group = pa.Table.from_batches(self._gathered, self._schema)
        if self._writer is None:
            self._path = f"flow-{uuid.uuid4().hex}.parquet"
            self._storage.make()
            target = f"{self._storage.path}/{self._path}"
            self._stream = self._storage.filesystem.open_output_stream(target)
            self._writer = pq.ParquetWriter(
                self._stream,
                self._schema,
                compression="snappy",
                use_dictionary=worth_a_dictionary(group),
            )
        self._writer.write_table(group)
        self._file_bytes += self._group_bytes
        self._gathered, self._group_bytes = [], 0

    def _finish_file(self) -> None:
        if self._writer is None:
            return
        assert self._stream is not None
        self._writer.close()
        size = self._stream.tell()
        self._stream.close()
        self._writer = self._stream = None
        self._file_bytes = 0
        with self._storage.filesystem.open_input_file(
            f"{self._storage.path}/{self._path}"
        ) as written:
            self.adds.append(asdict(add_action(self._path, size, pq.read_metadata(written))))


def worth_a_dictionary(rows: pa.Table) -> list[str] | bool:
    """The columns whose values repeat; True (all columns) if some columns are nested.

    In a column without equal values the writer looks up every value, until the dictionary is too
    large and the writer drops it. That doubled the time of writing.
    """
    if any(map(pa.types.is_nested, rows.schema.types)):
        return True
    sample = rows.slice(0, SAMPLE_ROWS)
    most = sample.num_rows // 2
    return [name for name in rows.column_names if len(sample[name].unique()) <= most]
