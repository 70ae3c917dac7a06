"""How is plain text read?

Every line that is not empty is a row with one column, `value`. A line that is not UTF-8 is bad; a
file in another encoding is one bad record.
"""

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from springhouse.lake.sources import client_records
from springhouse.lake.sources.encodings import readable
from springhouse.lake.sources.file_batch import FileBatch, origin
from springhouse.lake.sources.records import NOT_UTF8, VALUE, bad_files, no_rows
from springhouse.lake.sources.source import BAD, ORIGIN, RECORD
from springhouse.project.options.file_options import FileOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LINES = StructType([StructField("value", StringType())])


class TextFiles:
    """Files of lines, or with `wholetext` one row per file."""

    def __init__(self, options: FileOptions) -> None:
        self._reader = dict(options.reader)

    def infer(self, spark: "SparkSession", batch: FileBatch) -> list[StructType]:
        """The one column that text has."""
        return [_LINES]

    def rows(
        self, spark: "SparkSession", batch: FileBatch, schema: StructType, *, why: bool
    ) -> DataFrame:
        """The lines as rows."""
        batch, problems = readable(batch)
        lines = self._lines(spark, batch) if batch.paths else no_rows(spark, _LINES)
        return lines.union(bad_files(spark, _LINES, problems)) if problems else lines

    def _lines(self, spark: "SparkSession", batch: FileBatch) -> DataFrame:
        lines = spark.read.options(**self._reader).text(batch.for_spark())
        lines = lines.where(sf.trim(VALUE) != "")
        line = sf.col(VALUE)
        marks = dict.fromkeys((BAD, RECORD, ORIGIN), sf.lit(None).cast("string"))
        # A server without these functions keeps texts as Arrow does: always in UTF-8.
        if not client_records.is_needed(spark):
            is_bad = ~sf.is_valid_utf8(VALUE)
            shown = {BAD: sf.lit(NOT_UTF8), RECORD: sf.make_valid_utf8(VALUE), ORIGIN: origin()}
            marks = {name: sf.when(is_bad, mark) for name, mark in shown.items()}
            line = sf.when(~is_bad, line)
        return lines.select(line.alias(VALUE), *(mark.alias(name) for name, mark in marks.items()))
