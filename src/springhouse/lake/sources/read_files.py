"""How does a folder that others put files into become a stream?

There is one partition, and an offset counts files: `file_log` says which file has which offset.
`latest` lists the folder, and `admit` notes the new files. `read` takes the files of a range,
checks that they have not changed, and has their format read them.

A file must be complete when it appears, and must not change. Write it under a name that is ignored
(`_x`, `.x`, `x.tmp`, `x.part`) and rename it.

Without a `schema` the columns come from the first range. From then on they keep their types, new
columns are added at the end, and a value that does not fit makes a bad record.
"""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import reduce
from glob import escape
from typing import TYPE_CHECKING, Any, Protocol

from pyarrow import fs
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from springhouse.errors import SchemaError, SourceError
from springhouse.lake.delta.alignment import parsed_schema
from springhouse.lake.delta.requirements import Requirement
from springhouse.lake.sources.avro_files import AvroFiles
from springhouse.lake.sources.csv_files import CsvFiles
from springhouse.lake.sources.file_batch import FileBatch
from springhouse.lake.sources.file_log import FileLog, FoundFile
from springhouse.lake.sources.json_files import JsonFiles
from springhouse.lake.sources.parquet_files import ParquetFiles
from springhouse.lake.sources.records import no_rows
from springhouse.lake.sources.source import Range, Source, SourceContext
from springhouse.lake.sources.text_files import TextFiles
from springhouse.lake.storage.storage import Storage
from springhouse.project.options.built_in import read_files
from springhouse.project.options.file_options import FileOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

_PARTITION = "0"
_UNFINISHED = re.compile(
    r".*(\.(tmp|temp|part|partial|crdownload|inprogress|swp|_copying_)|~)", re.IGNORECASE
)


class FileFormat(Protocol):
    """One format of files."""

    def infer(self, spark: "SparkSession", batch: FileBatch) -> list[StructType]:
        """Schemas of the files, perhaps none; each may add columns to those before it."""
        ...

    def rows(
        self, spark: "SparkSession", batch: FileBatch, schema: StructType, *, why: bool
    ) -> "DataFrame":
        """The records of the files as rows; bad records are marked, with the reason if `why`."""
        ...


_FORMATS: "Mapping[str, Callable[[FileOptions], FileFormat]]" = {
    "json": JsonFiles,
    "csv": CsvFiles,
    "parquet": ParquetFiles,
    "text": TextFiles,
    "avro": AvroFiles,
}


class ReadFiles(Source):
    """`read_files('folder', format => 'json', …)`: the records of every file that appears there."""

    def __init__(self, path: str, *, context: SourceContext, **options: str) -> None:
        self._options = read_files(path, **options)
        self._format = _FORMATS[self._options.format](self._options)
        self._path = path
        self._context = context
        self._folder, self._pattern = self._place()
        self._log = FileLog(context)
        self.memory: dict[str, Any] = dict(context.memory)
        self.largest_range = self._options.max_files

    @property
    def warning(self) -> str | None:  # type: ignore[override]  # looked up every time
        """The folder does not exist, or not yet."""
        if self._folder.exists():
            return None
        return f'the folder "{self._folder.root}" that "{self._path}" names does not exist'

    must_be_there = True
    """Offsets count the files in the log: without it nobody knows which files were read."""

    def incarnation(self) -> str | None:
        """The id of the log of files; None if there is none."""
        return self._log.incarnation()

    def begin_anew(self) -> None:
        """Create an empty log of files."""
        self._log.make()

    def mark(self, end: int) -> str | None:
        """The fingerprint of the last file below an offset."""
        return self._log.mark(end)

    def has_mark(self, mark: str) -> bool:
        """Whether the log has the file with this fingerprint, at its offset."""
        return self._log.mark(int(mark.partition(":")[0])) == mark

    def latest(self) -> Mapping[str, int]:
        """The number of files so far, including those that are new in the folder."""
        return {_PARTITION: self._log.see(self._found())}

    def admit(self) -> None:
        """Note which file has which offset, for all files that `latest` has counted."""
        self._log.admit()

    def admit_under(self, requires: Sequence[Requirement]) -> None:
        """The same; the commit that notes the offsets requires this."""
        self._log.admit(requires)

    def size(self, ranges: Mapping[str, Range]) -> int:
        """The bytes of the files."""
        return sum(file.size for file in self._files(ranges))

    def identity(self, ranges: Mapping[str, Range]) -> object:
        """The files of the ranges, whatever their offsets are, and the columns so far."""
        return frozenset(self._files(ranges)), self.memory

    def read(self, spark: "SparkSession", ranges: Mapping[str, Range]) -> "DataFrame":
        """The records of the files at these offsets."""
        return self._rows(spark, ranges, why=True)

    def glance(self, spark: "SparkSession", ranges: Mapping[str, Range]) -> "DataFrame":
        """The same without reasons: to work them out costs time even if no record is bad."""
        return self._rows(spark, ranges, why=False)

    def _rows(
        self, spark: "SparkSession", ranges: Mapping[str, Range], *, why: bool
    ) -> "DataFrame":
        if not self._log.has_admitted(ranges.get(_PARTITION, Range(0, 0))):
            self.admit()
        files = self._files(ranges)
        self._prove_unchanged(files)
        batch = FileBatch(self._folder, tuple(file.path for file in files))
        schema = self._schema(spark, batch)
        if not batch.paths:
            return no_rows(spark, schema)
        return self._format.rows(spark, batch, schema, why=why)

    def _place(self) -> tuple[Storage, str | None]:
        """The folder and the pattern of names in it: a path may end in a pattern, or be a file."""
        folder = Storage.at(self._path, relative_to=self._context.folder)
        pattern = self._options.pattern
        above, _, name = folder.root.rpartition("/")
        if pattern is None and any(char in name for char in "*?["):
            return Storage(above), name
        if folder.filesystem.get_file_info(folder.path).type == fs.FileType.File:
            return Storage(above), escape(name)
        return folder, pattern

    def _found(self) -> list[FoundFile]:
        """The files in the folder that belong to the stream, in no order."""
        try:
            listed = self._folder.files(recursive=self._options.recursive)
        except NotADirectoryError:
            # A file appeared where a folder was expected.
            self._folder, self._pattern = self._place()
            listed = self._folder.files()
        root = self._folder.path.rstrip("/") + "/"
        files = [_as_found(info, info.path.removeprefix(root)) for info in listed]
        return [file for file in files if self._belongs(file.path)]

    def _belongs(self, path: str) -> bool:
        *_, name = parts = path.split("/")
        if any(part.startswith(("_", ".")) for part in parts) or _UNFINISHED.fullmatch(name):
            return False
        if self._pattern is not None and not fnmatchcase(name, self._pattern):
            return False
        if ":" in path and "://" not in self._folder.root:
            raise SourceError(
                f'Spark can\'t read a local file with a colon in its name: "{path}"',
                where=self._folder.root,
                hint="Rename it.",
            )
        return True

    def _files(self, ranges: Mapping[str, Range]) -> Sequence[FoundFile]:
        return self._log.files(ranges.get(_PARTITION, Range(0, 0)))

    def _prove_unchanged(self, files: Sequence[FoundFile]) -> None:
        """Raise an error if a file has changed since it got its offset."""
        root = self._folder.path
        infos = self._folder.filesystem.get_file_info([f"{root}/{file.path}" for file in files])
        for file, info in zip(files, infos, strict=True):
            if info.type == fs.FileType.NotFound:
                change = "is gone"
            elif _as_found(info, file.path) != file:
                change = f"has changed (it had {file.size} bytes, and has {info.size})"
            else:
                continue
            raise SourceError(
                f'the file "{file.path}" {change}, and was not read before',
                where=self._folder.root,
                hint="Put it back as it was, with its time (cp -p), and new records into a new "
                "file; or rebuild the table from the files as they are now.",
            )

    def _schema(self, spark: "SparkSession", batch: FileBatch) -> StructType:
        """The declared columns; or else the known ones, and those that the files add."""
        where = self._context.flow
        if self._options.schema is not None:
            try:
                return parsed_schema(spark, self._options.schema, where)
            except SchemaError as error:
                raise SourceError(error.problem, where=where, hint=error.hint) from error
        schema = StructType.fromJson(self.memory.get("schema", StructType().jsonValue()))
        try:
            schema = reduce(_grown, self._format.infer(spark, batch), schema)
        except PySparkException as error:
            first = str(error).splitlines()[0]
            raise SchemaError(
                f"Spark can't infer the columns of the files: {first}",
                where=self._folder.root,
                hint="Declare them: schema => 'id BIGINT, …'.",
            ) from error
        self.memory["schema"] = schema.jsonValue()
        return schema


def _as_found(info: fs.FileInfo, path: str) -> FoundFile:
    # Some stores do not know when a file was written.
    return FoundFile(path, info.size or 0, info.mtime_ns or 0)


def _grown(known: StructType, inferred: StructType) -> StructType:
    """The known columns as they are, and then those that are new."""
    names = {name.casefold() for name in known.fieldNames()}
    new = [field for field in inferred.fields if field.name.casefold() not in names]
    return StructType([*known.fields, *new])
