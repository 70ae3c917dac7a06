"""How are Parquet files of other writers read?

The footer of every file is read before its rows. So a column whose type does not fit is an error
that names the file. A file that is not Parquet, or has none of the wanted columns, is one bad
record. Files with the same footer are read together, and Spark tells their schema once.
"""

from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from springhouse.errors import SchemaError
from springhouse.lake.delta.alignment import align
from springhouse.lake.delta.tables import quoted
from springhouse.lake.sources.file_batch import FileBatch, origin
from springhouse.lake.sources.records import bad_files, no_rows, strange_file
from springhouse.lake.sources.source import BAD, ORIGIN, RECORD
from springhouse.project.options.file_options import FileOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


class Footer(NamedTuple):
    """The parts of a footer that decide how Spark reads a file; `problem` if it is no Parquet."""

    columns: tuple[tuple[str, str, str, int], ...] = ()
    spark_schema: bytes | None = None
    problem: str | None = None


class ParquetFiles:
    """Parquet files of other writers."""

    def __init__(self, options: FileOptions) -> None:
        self._reader = dict(options.reader)
        self._schemas: dict[Footer, StructType] = {}

    def infer(self, spark: "SparkSession", batch: FileBatch) -> list[StructType]:
        """The columns of the files, one schema for each kind of footer."""
        groups = batch.grouped(_footer)
        return [self._schema(spark, f, group) for f, group in groups.items() if not f.problem]

    def rows(
        self, spark: "SparkSession", batch: FileBatch, schema: StructType, *, why: bool
    ) -> DataFrame:
        """The rows of the files, and one bad row for each file that is not Parquet."""
        parts = []
        for footer, group in batch.grouped(_footer).items():
            if footer.problem:
                no_file = f"not a Parquet file: {footer.problem}"
                parts.append(_bad(spark, schema, group, no_file))
            elif problem := _no_column(footer, schema):
                parts.append(_bad(spark, schema, group, problem))
            else:
                parts.append(self._group_rows(spark, footer, group, schema))
        return reduce(DataFrame.union, parts or [no_rows(spark, schema)])

    def _group_rows(
        self, spark: "SparkSession", footer: Footer, group: FileBatch, schema: StructType
    ) -> DataFrame:
        reader = spark.read.options(**self._reader).schema(self._schema(spark, footer, group))
        required = [field.name for field in schema.fields if not field.nullable]
        # Only bad rows need an origin, and without required columns no row is bad.
        source = origin() if required else sf.lit(None).cast("string")
        stored = reader.parquet(*group.for_spark()).withColumn(ORIGIN, source)
        try:
            rows = align(stored, StructType([*schema.fields, stored.schema[ORIGIN]]), "")
        except SchemaError as error:
            raise SchemaError(
                error.problem,
                where=group.full(group.paths[0]),
                hint="Write the file again with the other type, or keep it in a folder of its own.",
            ) from error
        columns = [sf.col(quoted(name)) for name in schema.fieldNames()]
        missing = [
            sf.when(sf.col(quoted(name)).isNull(), sf.lit(f"{name}: missing")) for name in required
        ]
        bad = sf.nullif(sf.concat_ws("; ", *missing), sf.lit(""))
        record = sf.when(bad.isNotNull(), sf.to_json(sf.struct(*columns)))
        return rows.select(*columns, bad.alias(BAD), record.alias(RECORD), ORIGIN)

    def _schema(self, spark: "SparkSession", footer: Footer, group: FileBatch) -> StructType:
        if footer not in self._schemas:
            try:
                read = spark.read.options(**self._reader).parquet(group.for_spark()[0])
                self._schemas[footer] = read.schema
            except PySparkException as error:
                raise SchemaError(
                    f"Spark can't read the columns: {str(error).splitlines()[0]}",
                    where=group.full(group.paths[0]),
                ) from error
        return self._schemas[footer]


def _bad(spark: "SparkSession", schema: StructType, group: FileBatch, problem: str) -> DataFrame:
    return bad_files(spark, schema, [(problem, group.full(path)) for path in group.paths])


def _no_column(footer: Footer, schema: StructType) -> str | None:
    """The problem of a file with none of the columns; None if it has one."""
    names = list(dict.fromkeys(path.partition(".")[0] for path, *_ in footer.columns))
    wanted = {name.casefold() for name in schema.fieldNames()}
    if not names or not wanted or wanted & {name.casefold() for name in names}:
        return None
    return strange_file(", ".join(names), schema.fieldNames())


def _footer(filesystem: fs.FileSystem, path: str) -> Footer:
    try:
        with filesystem.open_input_file(path) as file:
            metadata = pq.read_metadata(file)
    except pa.ArrowInvalid as error:
        return Footer(problem=str(error).partition(". ")[0])
    leaves = (metadata.schema.column(index) for index in range(metadata.num_columns))
    columns = tuple((c.path, c.physical_type, str(c.logical_type), c.length) for c in leaves)
    return Footer(columns, (metadata.metadata or {}).get(_SPARK_SCHEMA))
