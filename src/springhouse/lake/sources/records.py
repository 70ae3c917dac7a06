"""How does the text of a record become a row, or a bad row?

JSON and CSV are read as lines of text and parsed by an expression, not by Spark's file readers. A
reader that is asked for fewer columns parses fewer, and calls other records bad; an expression
gives the same answer whatever is selected from it, and the record is still there exactly as it was.
(Spark prunes `from_json` and `from_csv` too, but never when they are given options.)

A `Grammar` parses a record to `struct<record: struct<…>, __springhouse_corrupt: string>`: what fits
is in `record`, and the other is NULL iff all of it did. For a bad record, and only then, it parses
once more with every field as text. So the reason can name the field, what was in it, and its type.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from springhouse.lake.sources.contract import BAD, ORIGIN, RECORD

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORRUPT = "__springhouse_corrupt"
FIELDS = "record"
VALUE = "value"

_PARSED = "__springhouse_parsed"
_LONGEST_SHOWN = 60


@dataclass(frozen=True)
class Grammar:
    """How one format parses a record, and what to say of a text that is no record at all."""

    parse: Callable[[Column, StructType], Column]
    no_record: str


def rows(records: DataFrame, grammar: Grammar, layout: StructType, wanted: StructType) -> DataFrame:
    """The records (`value` and `ORIGIN`) as rows with the columns `wanted`, the bad ones marked.

    `layout` is what the grammar parses; a column that it does not list is NULL.
    """
    value, parsed = sf.col(VALUE), sf.col(_PARSED)
    fields = parsed.getField(FIELDS)

    def column(field: StructField) -> Column:
        if field.name in layout.fieldNames():
            return fields.getField(field.name)
        return sf.lit(None).cast(field.dataType)

    bad = parsed.getField(CORRUPT).isNotNull() | fields.isNull()
    for field in wanted.fields:
        if not field.nullable:
            bad |= column(field).isNull()

    texts = StructType([StructField(field.name, StringType()) for field in layout.fields])
    # A lambda over an array of one: the only way to parse once and use the result many times,
    # and not at all for a record that is good.
    reasons = sf.transform(
        sf.array(grammar.parse(value, texts)),
        lambda text: _reason(text, grammar, layout, wanted, column),
    )
    return records.select(VALUE, ORIGIN, grammar.parse(value, layout).alias(_PARSED)).select(
        *(column(field).alias(field.name) for field in wanted.fields),
        sf.when(bad, reasons.getItem(0)).alias(BAD),
        value.alias(RECORD),
        sf.col(ORIGIN),
    )


def _reason(
    text: Column,
    grammar: Grammar,
    layout: StructType,
    wanted: StructType,
    column: Callable[[StructField], Column],
) -> Column:
    """Why a record is bad, in words: `amount: 'abc' is not DECIMAL(12,2)`."""
    misfits = []
    for field in wanted.fields:
        if field.name in layout.fieldNames():
            had = text.getField(FIELDS).getField(field.name)
            shown = sf.when(sf.length(had) <= _LONGEST_SHOWN, had).otherwise(
                sf.concat(sf.left(had, sf.lit(_LONGEST_SHOWN)), sf.lit("…"))
            )
            kind = field.dataType.simpleString().upper()
            said = sf.concat(sf.lit(f"{field.name}: '"), shown, sf.lit(f"' is not {kind}"))
            misfits.append(sf.when(had.isNotNull() & column(field).isNull(), said))
        else:
            had = sf.lit(None)
        if not field.nullable:
            missing = had.isNull() & column(field).isNull()
            misfits.append(sf.when(missing, sf.lit(f"{field.name}: missing")))
    whole = text.getField(CORRUPT).isNull() & text.getField(FIELDS).isNotNull()
    named = sf.nullif(sf.concat_ws("; ", *misfits), sf.lit(""))
    fits = sf.coalesce(named, sf.lit("a nested field does not fit the schema"))
    return sf.when(whole, fits).otherwise(sf.lit(grammar.no_record))


def no_rows(spark: "SparkSession", schema: StructType) -> DataFrame:
    """What `rows` gives when there are no records."""
    marks = [StructField(name, StringType()) for name in (BAD, RECORD, ORIGIN)]
    nullable = [StructField(field.name, field.dataType) for field in schema.fields]
    return spark.createDataFrame([], StructType([*nullable, *marks]))


def with_corrupt(schema: StructType) -> StructType:
    """The schema with the column in which Spark keeps a record that does not fit."""
    return StructType([*schema.fields, StructField(CORRUPT, StringType())])
