"""What is in a Delta table at a version, and how does Spark read it?

A snapshot is the list of files that delta-rs gives for a version. Spark reads these files as plain
Parquet with the schema of the table, so it needs no connector. Columns that the schema does not
list (hidden state) are invisible unless the reader names them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from springhouse.errors import LakeError
from springhouse.lake.delta.log_damage import find_damage, validate_entries
from springhouse.lake.storage.presence import RemoteScans, reading, validate_files
from springhouse.lake.storage.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READABLE_FEATURES = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "appendOnly"})
"""Features of the Delta protocol that do not affect how to read the Parquet files."""


@dataclass(frozen=True)
class DataFile:
    """One Parquet file of a snapshot; `path` is relative to the table.

    `low`, `high` and `nulls` are its statistics, for the columns that have any.
    """

    path: str
    size: int
    rows: int
    partition: Mapping[str, str | None]
    low: Mapping[str, Any] = field(default_factory=dict)
    high: Mapping[str, Any] = field(default_factory=dict)
    nulls: Mapping[str, int] = field(default_factory=dict)


class TableVersion:
    """A Delta table as of one version, opened through delta-rs.

    It is also the ground of a commit. All commits of others after the version was opened count as
    concurrent, so Delta rejects a second commit of the same work (see `commits`).
    """

    def __init__(self, storage: Storage, delta: DeltaTable) -> None:
        self.storage = storage
        self.delta = delta
        self.version = int(delta.version())
        # Small changes from earlier versions to this one, which `changes` keeps here.
        self.deltas: dict[int, pa.Table] = {}
        self._offsets: dict[str, int] = {}

    @cached_property
    def schema(self) -> StructType:
        return StructType.fromJson(json.loads(self.delta.schema().to_json()))

    @cached_property
    def files(self) -> tuple[DataFile, ...]:
        adds = pa.table(self.delta.get_add_actions(flatten=True)).to_pylist()
        return tuple(_data_file(add) for add in adds)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        return arrow_schema(self.schema)

    @cached_property
    def is_plain(self) -> bool:
        """Whether its files hold all columns: the table has no partitions."""
        self.validate_readable()
        return not self.delta.metadata().partition_columns

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @cached_property
    def table_id(self) -> str:
        """The id in Delta's metadata."""
        return str(self.delta.metadata().id)

    def offset(self, app_id: str) -> int:
        """The version of the last transaction of `app_id`; 0 before the first."""
        # delta-rs searches the log for every answer, and an answer never changes.
        if app_id not in self._offsets:
            self._offsets[app_id] = int(self.delta.transaction_version(app_id) or 0)
        return self._offsets[app_id]

    def read(
        self,
        spark: "SparkSession",
        hidden: StructType | None = None,
        scans: RemoteScans | None = None,
    ) -> "DataFrame":
        """The rows as a DataFrame, with the columns `hidden` if given."""
        return self.read_files(spark, self.files, hidden, scans)

    def read_files(
        self,
        spark: "SparkSession",
        files: Iterable[DataFile],
        hidden: StructType | None = None,
        scans: RemoteScans | None = None,
    ) -> "DataFrame":
        """The rows of some files, with the columns of the table."""
        self.validate_readable()
        schema = StructType([*self.schema.fields, *(hidden.fields if hidden else ())])
        chosen = list(files)
        keys = list(self.delta.metadata().partition_columns)
        if not keys:
            return read_parquet(spark, self.storage, chosen, schema, scans)
        return _read_partitioned(spark, self.storage, chosen, schema, keys, scans)

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows as an Arrow table in this process, for small tables without partitions."""
        names = list(columns) if columns is not None else self.schema.fieldNames()
        return read_arrow(self.storage, [file.path for file in self.files], names)

    def validate_readable(self) -> None:
        """Raise an error if the table has a feature that plain Parquet reading ignores."""
        protocol = self.delta.protocol()
        features = set(protocol.reader_features or ()) - READABLE_FEATURES
        mapping = self.delta.metadata().configuration.get("delta.columnMapping.mode", "none")
        if mapping != "none":
            features.add("columnMapping")
        elif protocol.min_reader_version < 3:
            features.clear()
        # A table may list deletion vectors as a feature and have none: then reading is safe.
        if "deletionVectors" in features and not _has_deletion_vectors(self.delta):
            features.discard("deletionVectors")
        if features:
            raise LakeError(
                f"the Delta table uses {_listed(features)}, which Springhouse can't read",
                where=self.storage.root,
                hint=_mend(features),
            )


def open_table(storage: Storage, version: int | None = None) -> TableVersion | None:
    """The table as of a version (the newest by default); None if there is no table."""
    try:
        delta = DeltaTable(storage.root, version=version, storage_options=storage.delta_options)
        opened = TableVersion(storage, delta)
    except TableNotFoundError:
        return None
    except DeltaError as error:
        damage = find_damage(storage)
        if damage is not None:
            raise damage from error
        wanted = "" if version is None else f" at version {version}"
        # The other lines of the message are about delta-rs's own code.
        problem = next(iter(str(error).splitlines()), "")
        raise LakeError(
            f"the Delta table can't be read{wanted}: {problem}",
            where=storage.root,
            hint="Its log or its files may have been removed by a vacuum." if version else None,
        ) from error
    # delta-rs ignores an empty entry, and accepts one whose last lines are gone.
    validate_entries(storage, str(delta.metadata().id), opened.version)
    return opened


def read_parquet(
    spark: "SparkSession",
    storage: Storage,
    files: Sequence[DataFile | str],
    schema: StructType,
    scans: RemoteScans | None = None,
) -> "DataFrame":
    """Rows of Parquet files inside `storage`, with exactly these columns.

    A missing file is an error; not every engine checks this (`presence`). `scans` records the files
    that a remote engine reads, for the commit of the work.
    """
    if not files:
        return spark.createDataFrame([], schema)
    sizes = {
        f if isinstance(f, str) else f.path: None if isinstance(f, str) else f.size for f in files
    }
    validate_files(storage, sizes)
    if scans is not None and is_remote(spark):
        scans.add(storage, sizes)
    # Spark reads a path as a glob: escape its special characters.
    return spark.read.schema(schema).parquet(*(no_glob(f"{storage.root}/{p}") for p in sizes))


def is_remote(spark: "SparkSession") -> bool:
    """Whether it is a session of Spark Connect, whose server may be any engine."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def union_of(frames: "Sequence[DataFrame]") -> "DataFrame":
    """All rows of frames with the same columns, as a balanced tree of unions.

    A chain of unions nests as deep as the number of frames. Spark Connect rejects messages with
    more than some hundred levels.
    """
    level = list(frames)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        odd = level[-1:] if len(level) % 2 else []
        level = [*(left.unionByName(right) for left, right in pairs), *odd]
    return level[0]


def frame_of(
    spark: "SparkSession", rows: pa.Table, schema: StructType | None = None
) -> "DataFrame":
    """All rows of an Arrow table as a DataFrame.

    PySpark sends a table batch by batch, and takes an empty batch for the end. A filter can leave
    empty batches. So this function combines the batches first; use it in place of
    `createDataFrame`.
    """
    schema = schema if schema is not None else from_arrow_schema(rows.schema)
    return spark.createDataFrame(rows.combine_chunks() if rows.num_rows else [], schema)


def read_arrow(storage: Storage, paths: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """Rows of Parquet files inside `storage` as an Arrow table; a missing column is NULL."""
    tables = []
    for path in paths:
        with (
            reading(storage, path),
            storage.filesystem.open_input_file(f"{storage.path}/{path}") as file,
        ):
            parquet = pq.ParquetFile(file)
            present = [name for name in columns if name in parquet.schema_arrow.names]
            tables.append(parquet.read(columns=present))
    if not tables:
        return pa.table({})
    return pa.concat_tables(tables, promote_options="permissive")


def arrow_schema(schema: StructType) -> pa.Schema:
    """The columns in Arrow's types, with timestamps in UTC as Delta stores them."""
    return to_arrow_schema(schema, timezone="UTC")


def spark_schema(schema: pa.Schema) -> StructType:
    """An Arrow schema in Spark's types; a timestamp without a zone stays without a zone."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def file_columns(storage: Storage, file: DataFile) -> list[str]:
    """The columns of a file, including hidden ones."""
    with (
        reading(storage, file.path),
        storage.filesystem.open_input_file(f"{storage.path}/{file.path}") as opened,
    ):
        return list(pq.read_schema(opened).names)


def _read_partitioned(
    spark: "SparkSession",
    storage: Storage,
    files: Sequence[DataFile],
    schema: StructType,
    keys: Sequence[str],
    scans: RemoteScans | None,
) -> "DataFrame":
    """Read each partition, and add its values: they are in the log, not in the files."""
    inside = StructType([field for field in schema.fields if field.name not in keys])
    groups: dict[tuple[str | None, ...], list[DataFile]] = {}
    for file in files:
        groups.setdefault(tuple(file.partition.get(key) for key in keys), []).append(file)
    frames = []
    for values, alike in groups.items():
        frame = read_parquet(spark, storage, alike, inside, scans)
        for key, value in zip(keys, values, strict=True):
            frame = frame.withColumn(key, sf.lit(value).cast(schema[key].dataType))
        frames.append(frame.select(*(sf.col(quoted(name)) for name in schema.fieldNames())))
    if not frames:
        return spark.createDataFrame([], schema)
    return union_of(frames)


def _data_file(add: Mapping[str, Any]) -> DataFile:
    prefix = "partition."
    partition = {
        key.removeprefix(prefix): None if value is None else str(value)
        for key, value in add.items()
        if key.startswith(prefix)
    }
    rows = add.get("num_records")
    low, high, nulls = (_told(add, f"{word}.") for word in ("min", "max", "null_count"))
    path, size = unquote(add["path"]), int(add["size_bytes"])
    return DataFile(path, size, int(rows or 0), partition, low, high, nulls)


def _told(add: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """One kind of a file's statistics, by column."""
    return {
        key.removeprefix(prefix): value
        for key, value in add.items()
        if value is not None and key.startswith(prefix)
    }


def _has_deletion_vectors(delta: DeltaTable) -> bool:
    return bool(pa.table(delta.deletion_vectors()).num_rows)


def _listed(features: Iterable[str]) -> str:
    return " and ".join(f'the table feature "{name}"' for name in sorted(features))


def _mend(features: set[str]) -> str | None:
    if features == {"deletionVectors"}:
        return (
            "Rewrite it with REORG TABLE … APPLY (PURGE), "
            "and set delta.enableDeletionVectors = false."
        )
    return None


def quoted(name: str) -> str:
    """A column's name, quoted so that Spark accepts all characters in it."""
    return "`" + name.replace("`", "``") + "`"


def no_glob(path: str) -> str:
    """A path, escaped so that Spark's readers do not take it for a glob."""
    return "".join("\\" + char if char in "{}[]*?\\" else char for char in path)


def url_path(path: str) -> str:
    """A relative path in the form of the Delta log: percent-encoded."""
    return quote(path, safe="/=")
