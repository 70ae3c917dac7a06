"""How is JSON read?

One record per line, or with `multiline` one document per file: an object, or an array of objects.
A record is parsed as the value of a field, `{"record": … }`: alone, Spark would take the first
value of `{"id": 1}{"id": 2}`, two records on one line, and silently forget the second.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from springhouse.lake.sources import taken_apart
from springhouse.lake.sources.batch import FILE, Batch
from springhouse.lake.sources.contract import ORIGIN
from springhouse.lake.sources.records import (
    CORRUPT,
    FIELDS,
    VALUE,
    Grammar,
    rows,
    with_corrupt,
)
from springhouse.project.file_options import FileOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class JsonFiles:
    """Files of JSON records."""

    def __init__(self, options: FileOptions) -> None:
        self._multiline = options.multiline
        self._reader = dict(options.reader)
        self._parser = _parser(self._reader)
        self._grammar = json_grammar(self._reader)

    def infer(self, spark: "SparkSession", batch: Batch) -> list[StructType]:
        """The columns that the records have."""
        if not batch.paths:
            return []
        reader = spark.read.options(**self._reader, mode="DROPMALFORMED")
        return [reader.json(batch.for_spark(), multiLine=self._multiline).schema]

    def rows(
        self, spark: "SparkSession", batch: Batch, schema: StructType, *, why: bool
    ) -> DataFrame:
        """The records as rows."""
        if taken_apart.is_needed(spark):
            return self._taken_apart(spark, batch, schema, why=why)
        separator = self._reader.get("linesep")
        texts = spark.read.text(batch.for_spark(), wholetext=self._multiline, lineSep=separator)
        records = texts.select(VALUE, sf.col(FILE).alias(ORIGIN)).where(sf.trim(VALUE) != "")
        if self._multiline:
            records = records.select(sf.explode(self._elements()).alias(VALUE), ORIGIN)
        return rows(records, self._grammar, schema, schema, why=why)

    def _taken_apart(
        self, spark: "SparkSession", batch: Batch, schema: StructType, *, why: bool
    ) -> DataFrame:
        asked = [*self._reader, *(["multiline"] if self._multiline else [])]
        taken_apart.prove_simple(schema, asked, heeded=("linesep",))
        records = list(taken_apart.lines(batch, self._reader.get("linesep")))
        parse = taken_apart.json_parser(schema)
        return taken_apart.rows(spark, records, parse, schema, self._grammar.no_record, why=why)

    def _elements(self) -> Column:
        """The records of a document: the elements of an array, or else the document itself."""
        # VARIANT keeps the digits of a number; an array of strings would make a DOUBLE of it.
        schema = f"{FIELDS} VARIANT, {CORRUPT} STRING"
        document = sf.from_json(_wrapped(sf.col(VALUE)), schema, self._parser).getField(FIELDS)
        array = sf.try_variant_get(document, "$", "ARRAY<VARIANT>")
        # Spark counts the parameters of a lambda, and `to_json` has two.
        records = sf.transform(array, lambda record: sf.to_json(record))  # noqa: PLW0108
        return sf.coalesce(records, sf.array(VALUE))


def json_grammar(options: Mapping[str, str]) -> Grammar:
    """How a record of JSON is parsed, with these options of Spark's."""
    parser = _parser(options)

    def parse(value: Column, schema: StructType) -> Column:
        wrapper = with_corrupt(StructType([StructField(FIELDS, schema)]))
        return sf.from_json(_wrapped(value), wrapper, parser)

    return Grammar(parse, "not a JSON object")


def _parser(options: Mapping[str, str]) -> dict[str, str]:
    return {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}


def _wrapped(value: Column) -> Column:
    # On a line of its own, the closing brace survives a comment at the end of the record.
    return sf.concat(sf.lit(f'{{"{FIELDS}":'), value, sf.lit("\n}"))
