"""How is plain text read?

Every line is a row with one column, `value`; empty lines are not records. No line can be bad.
"""

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from springhouse.lake.sources.batch import Batch
from springhouse.project.file_options import FileOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LINES = StructType([StructField("value", StringType())])


class TextFiles:
    """Files of lines, or with `wholetext` one row per file."""

    def __init__(self, options: FileOptions) -> None:
        self._reader = dict(options.reader)

    def infer(self, spark: "SparkSession", batch: Batch) -> list[StructType]:
        """The one column that text has."""
        return [_LINES]

    def rows(
        self, spark: "SparkSession", batch: Batch, schema: StructType, *, why: bool
    ) -> DataFrame:
        """The lines as rows."""
        lines = spark.read.options(**self._reader).text(batch.for_spark())
        return lines.where(sf.trim("value") != "")
