"""How do tasks read a Delta table by themselves?

Spark reads Parquet into rows, converts the rows to Arrow batches one value at a time, and sends the
batches to Python. If Spark has nothing to compute first, a task can read the files into Arrow
batches directly, and no row passes through the JVM. Spark then gives the task only numbers, one for
each portion of the table. A portion is a file, or some row groups of a large file, so that every
task has work.

This works only for tables whose files contain all values. The paths of a partitioned table contain
some of its values, and nested columns may have other fields in old files. Spark reads such tables.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from springhouse.errors import LakeError
from springhouse.lake.delta.tables import TableVersion, open_table
from springhouse.lake.storage.presence import FileLost, reading, validate_files
from springhouse.lake.storage.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PORTION_BYTES = 16 * 2**20
"""Tasks read a file in portions of about this size, if its row groups allow that."""

TASK_BYTES = 64 * 2**20
"""A task reads about this much of a large table, since a failed task must read it again."""

_MANY_TASKS = 32
MOST_FOOTERS = 100
"""With more files than this, every file is one portion: there are enough files for every task."""

_BATCH_ROWS = 2**16


@dataclass(frozen=True)
class Portion:
    """A file, or some of its row groups."""

    file: str
    groups: tuple[int, ...] | None = None


class TableSource:
    """One version of a Delta table as a source of a flow."""

    def __init__(self, location: str, version: int | None = None) -> None:
        storage = Storage.at(location)
        opened = open_table(storage, version)
        if opened is None:
            raise LakeError(
                "there is no Delta table to read",
                where=storage.root,
                hint="A source is the folder of a Delta table, or a DataFrame.",
            )
        self._opened: TableVersion = opened
        self._is_pinned = version is not None
        self.schema: pa.Schema = opened.arrow_schema
        self.is_plain = opened.is_plain and not any(map(pa.types.is_nested, self.schema.types))

    @property
    def version(self) -> int:
        """The version of the table."""
        return self._opened.version

    @property
    def identity(self) -> str:
        """The table's id. A new table in the same place has another id."""
        return str(self._opened.delta.metadata().id)

    @property
    def files(self) -> tuple[str, ...]:
        """The full paths of the table's files."""
        return tuple(f"{self._opened.storage.root}/{file.path}" for file in self._opened.files)

    def validate_files(self) -> None:
        """Raise an error if a file of this version is missing or damaged."""
        storage = self._opened.storage
        try:
            validate_files(storage, {file.path: file.size for file in self._opened.files})
        except FileLost as lost:
            if not self._is_pinned:
                raise
            raise LakeError(
                f"{lost.problem}, and version {self.version}, which the first attempt of this "
                "batch read, has it",
                where=storage.root,
                hint="The table was vacuumed since. Targets that lack the batch can't be given the "
                "same rows: run the flow under another name, into new tables.",
            ) from lost

    def portions(self) -> tuple[Portion, ...]:
        """The portions of the table that tasks read."""
        sizes = [file.size for file in self._opened.files]
        if len(sizes) > MOST_FOOTERS:
            return tuple(map(Portion, self.files))
        result: list[Portion] = []
        for file, size in zip(self.files, sizes, strict=True):
            result += _portions_of(file) if size > PORTION_BYTES else [Portion(file)]
        return tuple(result)

    def numbers(self, spark: "SparkSession", portions: Sequence[Portion]) -> "DataFrame":
        """The numbers of the portions, for one task per core, or for more with a large table."""
        tasks = self._opened.size // TASK_BYTES
        return spark.range(0, len(portions), 1, tasks if tasks > _MANY_TASKS else None)

    def read(self, spark: "SparkSession") -> "DataFrame":
        """The table's rows as Spark reads them."""
        return self._opened.read(spark)


def rows_in(
    portions: Sequence[Portion], numbers: Iterable[pa.RecordBatch], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows of the portions with these numbers."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from rows_of_portion(portions[number], schema)


def rows_of_portion(portion: Portion, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of one portion with exactly this schema. A column that the file lacks is NULL."""
    folder, _, path = portion.file.rpartition("/")
    storage = Storage(folder)
    with (
        reading(storage, path),
        storage.filesystem.open_input_file(f"{storage.path}/{path}") as opened,
    ):
        # One thread is enough: every core has its own task already.
        file = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
        wanted = {name.lower() for name in schema.names}
        present = [name for name in file.schema_arrow.names if name.lower() in wanted]
        for batch in file.iter_batches(
            _BATCH_ROWS, row_groups=portion.groups, columns=present, use_threads=False
        ):
            yield _with_columns(batch, schema)


def _with_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema.equals(schema):
        return batch
    # As in Spark, a file may spell a column's name in upper or lower case.
    places = {name.lower(): place for place, name in enumerate(batch.schema.names)}
    columns = []
    for field in schema:
        place = places.get(field.name.lower())
        if place is None:
            columns.append(pa.nulls(batch.num_rows, field.type))
        else:
            values = batch.column(place)
            columns.append(values if values.type == field.type else values.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _portions_of(file: str) -> Iterator[Portion]:
    storage = Storage(file)
    with storage.filesystem.open_input_file(storage.path) as opened:
        footer = pq.read_metadata(opened)
    gathered: list[int] = []
    size = 0
    for group in range(footer.num_row_groups):
        gathered.append(group)
        size += footer.row_group(group).total_byte_size
        if size >= PORTION_BYTES:
            yield Portion(file, tuple(gathered))
            gathered, size = [], 0
    if gathered:
        yield Portion(file, tuple(gathered))
