"""How is JSON read?

One record per line, or with `multiline` one document per file: an object, or an array of objects.

An array on a line is as many records as it has elements, as in Spark's own reader. A VARIANT splits
the array. It would turn a number of many digits into a DOUBLE, so while an array is split, each
number is a text with a mark before it.

A record is parsed as the value of a field, `{"record": … }`. Without that, Spark would take the
first value of `{"id": 1}{"id": 2}`, two records on one line, and silently forget the second.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import MapType, StringType, StructField, StructType

from springhouse.lake.sources import client_records
from springhouse.lake.sources.client_json import json_parser, json_records
from springhouse.lake.sources.encodings import readable
from springhouse.lake.sources.file_batch import FILE, FileBatch
from springhouse.lake.sources.records import (
    CORRUPT,
    FIELDS,
    VALUE,
    Grammar,
    bad_files,
    no_rows,
    rows,
    with_corrupt,
)
from springhouse.lake.sources.source import ORIGIN
from springhouse.project.options.file_options import FileOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_BYTE_ORDER_MARK = "\ufeff"
_MARK = "__springhouse_number_"
# Possessive: then Java does not recurse deeply, however long a text is.
_TEXT = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BEFORE_NUMBER = rf'[^"0-9-]*+(?:{_TEXT}[^"0-9-]*+)*+'
_NUMBER = r"-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+"
_NEXT_NUMBER = rf"(?s)\G({_BEFORE_NUMBER})({_NUMBER})"
_MARKED_NUMBER = rf'"{_MARK}([0-9.eE+-]++)"'
_OTHER_TEXTS = ("allowcomments", "allowsinglequotes", "allowunquotedfieldnames")
"""With these options a number may be inside other things than a text in double quotes."""


class JsonFiles:
    """Files of JSON records."""

    def __init__(self, options: FileOptions) -> None:
        self._multiline = options.multiline
        self._reader = dict(options.reader)
        self._parser = _parser(self._reader)
        self._grammar = json_grammar(self._reader)

    def infer(self, spark: "SparkSession", batch: FileBatch) -> list[StructType]:
        """The columns that the records have."""
        batch, _ = readable(batch)
        if not batch.paths:
            return []
        reader = spark.read.options(**self._reader, mode="DROPMALFORMED")
        return [reader.json(batch.for_spark(), multiLine=self._multiline).schema]

    def rows(
        self, spark: "SparkSession", batch: FileBatch, schema: StructType, *, why: bool
    ) -> DataFrame:
        """The records as rows."""
        batch, problems = readable(batch)
        by_client = client_records.is_needed(spark)
        records = no_rows(spark, schema)
        if batch.paths:
            read = self._client_rows if by_client else self._parsed
            records = read(spark, batch, schema, why=why)
        return records.union(bad_files(spark, schema, problems)) if problems else records

    def _parsed(
        self, spark: "SparkSession", batch: FileBatch, schema: StructType, *, why: bool
    ) -> DataFrame:
        separator = self._reader.get("linesep")
        texts = spark.read.text(batch.for_spark(), wholetext=self._multiline, lineSep=separator)
        records = texts.select(VALUE, sf.col(FILE).alias(ORIGIN)).where(sf.trim(VALUE) != "")
        elements = self._elements()
        if self._multiline:
            # Spark removes a byte order mark from lines by itself.
            marked = sf.startswith(VALUE, sf.lit(_BYTE_ORDER_MARK))
            text = sf.when(marked, sf.substring(VALUE, 2, 2**31 - 1)).otherwise(sf.col(VALUE))
            records = records.select(text.alias(VALUE), ORIGIN)
        else:
            is_array = sf.startswith(sf.ltrim(VALUE), sf.lit("["))
            elements = sf.when(is_array, elements).otherwise(sf.array(VALUE))
        records = records.select(sf.explode(elements).alias(VALUE), ORIGIN)
        return rows(records, self._grammar, schema, schema, why=why)

    def _client_rows(
        self, spark: "SparkSession", batch: FileBatch, schema: StructType, *, why: bool
    ) -> DataFrame:
        options = [*self._reader, *(["multiline"] if self._multiline else [])]
        client_records.prove_simple(schema, options, supported=("linesep",))
        lines = client_records.lines(batch, self._reader.get("linesep"))
        records = [record for line in lines for record in json_records(line)]
        parse = json_parser(schema)
        return client_records.rows(spark, records, parse, schema, self._grammar.no_record, why=why)

    def _elements(self) -> Column:
        """The records of a document: the elements of an array, or else the document itself."""
        schema = f"{FIELDS} VARIANT, {CORRUPT} STRING"
        exact = not any(self._reader.get(name, "").lower() == "true" for name in _OTHER_TEXTS)
        text = sf.col(VALUE)
        if exact:
            text = sf.regexp_replace(text, _NEXT_NUMBER, f'$1"{_MARK}$2"')
        document = sf.from_json(_wrapped(text), schema, self._parser).getField(FIELDS)
        array = sf.try_variant_get(document, "$", "ARRAY<VARIANT>")

        def written(record: Column) -> Column:
            text = sf.to_json(record)
            return sf.regexp_replace(text, _MARKED_NUMBER, "$1") if exact else text

        return sf.coalesce(sf.transform(array, written), sf.array(VALUE))


def json_grammar(options: Mapping[str, str]) -> Grammar:
    """The grammar of JSON records, with these options of Spark."""
    parser = _parser(options)

    def parse(value: Column, schema: StructType) -> Column:
        wrapper = with_corrupt(StructType([StructField(FIELDS, schema)]))
        return sf.from_json(_wrapped(value), wrapper, parser)

    def names(value: Column) -> Column:
        fields = StructField(FIELDS, MapType(StringType(), StringType()))
        parsed = sf.from_json(_wrapped(value), with_corrupt(StructType([fields])), parser)
        return sf.map_keys(parsed.getField(FIELDS))

    return Grammar(parse, "not a JSON object", names, seconds=True)


def _parser(options: Mapping[str, str]) -> dict[str, str]:
    return {
        # Otherwise a text of digits that is no date is a number of days since 1970.
        "enableDateTimeParsingFallback": "false",
        # Jackson gives up at 20 million characters.
        "maxStringLen": str(2**31 - 1),
        **options,
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": CORRUPT,
    }


def _wrapped(value: Column) -> Column:
    # On a line of its own, the closing brace survives a comment at the end of the record.
    return sf.concat(sf.lit(f'{{"{FIELDS}":'), value, sf.lit("\n}"))
