"""How are Avro files read?

`fastavro` reads them in Spark's tasks, a few files in each task. Every file has its schema; columns
are matched by name, so files may differ. A value that does not fit the column makes a bad record,
and so does the rest of a file that can't be read to its end. A file with none of the columns is one
bad record. Arrow would accept 1.5 for an INT, 1e300 for a FLOAT, a timestamp for a DATE and a
number for a TIMESTAMP, and store another value: such records are bad, too.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from springhouse.errors import SchemaError
from springhouse.lake.delta.tables import arrow_schema
from springhouse.lake.sources.avro_types import fastavro, spark_schema
from springhouse.lake.sources.file_batch import FileBatch
from springhouse.lake.sources.json_rows import json_value
from springhouse.lake.sources.records import strange_file
from springhouse.lake.sources.source import BAD, ORIGIN, RECORD
from springhouse.lake.storage.storage import Storage
from springhouse.project.options.file_options import FileOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATH = "path"
_MARKS = (BAD, RECORD, ORIGIN)
_MISFITS = (pa.ArrowException, TypeError, ValueError, OverflowError)
_ROWS_AT_ONCE = 5_000
_FILES_PER_TASK = 8


class AvroFiles:
    """Files of Avro records."""

    def __init__(self, options: FileOptions) -> None:
        fastavro()  # If it is missing, the error has the place of the declaration.

    def infer(self, spark: "SparkSession", batch: FileBatch) -> list[StructType]:
        """The columns of the files, one schema for each distinct schema in them."""
        schemas = []
        for text, group in batch.grouped(_written_schema).items():
            try:
                if text is not None:
                    schemas.append(spark_schema(fastavro().schema.parse_schema(json.loads(text))))
            except SchemaError as error:
                raise SchemaError(
                    error.problem, where=group.full(group.paths[0]), hint=error.hint
                ) from error
        return schemas

    def rows(
        self, spark: "SparkSession", batch: FileBatch, schema: StructType, *, why: bool
    ) -> DataFrame:
        """The records as rows."""
        marks = [StructField(name, StringType()) for name in _MARKS]
        nullable = [StructField(field.name, field.dataType) for field in schema.fields]
        result = StructType([*nullable, *marks])
        paths = spark.createDataFrame([(path,) for path in batch.paths], f"{_PATH} STRING")
        tasks = max(1, len(batch.paths) // _FILES_PER_TASK)
        required = frozenset(field.name for field in schema.fields if not field.nullable)
        reading = AvroReadTask(batch.folder.root, arrow_schema(StructType(nullable)), required)
        return paths.repartition(tasks, sf.col(_PATH)).mapInArrow(reading.rows, result)


def _written_schema(filesystem: fs.FileSystem, path: str) -> str | None:
    """The schema in a file, as text; None if it is no Avro file."""
    with filesystem.open_input_file(path) as file:
        try:
            return str(fastavro().reader(file).metadata["avro.schema"])
        except (ValueError, KeyError, EOFError, IndexError):
            return None  # `rows` makes a bad record of it.


@dataclass(frozen=True)
class AvroReadTask:
    """The work of a task: from batches of paths in the folder `root` to batches of rows."""

    root: str
    columns: pa.Schema
    required: frozenset[str]

    @cached_property
    def _whole(self) -> pa.Schema:
        return pa.schema([*self.columns, *(pa.field(m, pa.string()) for m in _MARKS)])

    def rows(self, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        folder = Storage(self.root)
        for batch in batches:
            for path in batch.column(0).to_pylist():
                yield from self._file(folder, path)

    def _file(self, folder: Storage, path: str) -> "Iterator[pa.RecordBatch]":
        named = {name.casefold(): name for name in self.columns.names}
        origin = f"{self.root}/{path}"
        held: list[dict[str, Any]] = []
        problem = None
        as_written = True
        with folder.filesystem.open_input_file(f"{folder.path}/{path}") as file:
            try:
                reader = fastavro().reader(file)
                problem = self._no_column(reader.writer_schema)
                as_written = self._is_as_written(reader.writer_schema)
                for record in reader if problem is None else ():
                    held.append({named.get(key.casefold(), key): v for key, v in record.items()})
                    if len(held) == _ROWS_AT_ONCE:
                        yield self._rows_of(held, origin, as_written)
                        held = []
            # A broken file makes the reader fail in nearly any way.
            except Exception as error:  # noqa: BLE001
                cause = str(error) or type(error).__name__
                problem = f"not readable as Avro from here on: {cause}"
        if held:
            yield self._rows_of(held, origin, as_written)
        if problem is not None:
            yield self._batch([{BAD: problem, ORIGIN: origin}])

    def _no_column(self, written: Any) -> str | None:
        """The problem of a file with none of the columns; None if it has one."""
        names = [str(field["name"]) for field in written.get("fields", ())]
        wanted = {name.casefold() for name in self.columns.names}
        if not names or not wanted or wanted & {name.casefold() for name in names}:
            return None
        return strange_file(", ".join(names), self.columns.names)

    def _is_as_written(self, written: Any) -> bool:
        """Whether the columns have the types of the file: then no value can change."""
        try:
            schema = arrow_schema(spark_schema(written))
        except SchemaError:
            return False
        types = {field.name.casefold(): field.type for field in schema}
        return all(types.get(f.name.casefold(), f.type) == f.type for f in self.columns)

    def _rows_of(
        self, records: list[dict[str, Any]], origin: str, as_written: bool
    ) -> pa.RecordBatch:
        """The records as rows: all at once, or one by one if some of them do not fit."""
        try:
            good = pa.RecordBatch.from_pylist(records, schema=self.columns)
        except _MISFITS:
            return self._batch([self._row_of(record, origin) for record in records])
        missing = any(good[name].null_count for name in self.required)
        if missing or not as_written:
            return self._batch([self._row_of(record, origin) for record in records])
        nothing = [pa.nulls(good.num_rows, pa.string())] * len(_MARKS)
        return pa.RecordBatch.from_arrays([*good.columns, *nothing], schema=self._whole)

    def _row_of(self, record: dict[str, Any], origin: str) -> dict[str, Any]:
        """The record as a row, or as a bad row with the reason."""
        misfits = (self._misfit(field, record.get(field.name)) for field in self.columns)
        reasons = [misfit for misfit in misfits if misfit]
        if not reasons:
            return {name: record.get(name) for name in self.columns.names}
        return {BAD: "; ".join(reasons), RECORD: json_value(record), ORIGIN: origin}

    def _misfit(self, field: pa.Field, value: Any) -> str | None:
        if value is None:
            return f"{field.name}: missing" if field.name in self.required else None
        try:
            fits = _is_same(value, pa.array([value], field.type)[0].as_py())
        except _MISFITS:
            fits = False
        return None if fits else f"{field.name}: {json_value(value)[:60]} is not {field.type}"

    def _batch(self, rows: list[dict[str, Any]]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(rows, schema=self._whole)


def _is_same(value: Any, stored: Any) -> bool:
    """Whether Arrow stores a value as it is, and does not change it."""
    if isinstance(stored, dict) and isinstance(value, dict):
        return all(_is_same(value.get(name), each) for name, each in stored.items())
    if isinstance(stored, list) and isinstance(value, (list, dict)):
        items = list(value.items()) if isinstance(value, dict) else value
        return all(_is_same(one, other) for one, other in zip(items, stored, strict=True))
    if isinstance(stored, tuple) and isinstance(value, tuple):
        return all(_is_same(one, other) for one, other in zip(value, stored, strict=True))
    if isinstance(stored, float):
        return math.isinf(stored) == math.isinf(value)
    if isinstance(stored, datetime) and isinstance(value, datetime):
        return True
    if isinstance(stored, str | bytes):
        return isinstance(value, str | bytes)
    return bool(stored == value)
