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
from functools import lru_cache
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from springhouse.lake.sources.batch import origin
from springhouse.lake.sources.contract import BAD, ORIGIN, RECORD

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORRUPT = "__springhouse_corrupt"
FIELDS = "record"
VALUE = "value"

_PARSED = "__springhouse_parsed"
_LONGEST_SHOWN = 60
NO_REASON = "does not fit the schema"


@dataclass(frozen=True)
class Grammar:
    """How one format parses a record, and what to say of a text that is no record at all."""

    parse: Callable[[Column, StructType], Column]
    no_record: str


def rows(
    records: DataFrame, grammar: Grammar, layout: StructType, wanted: StructType, *, why: bool
) -> DataFrame:
    """The records (`value`, `ORIGIN`) as rows with the columns `wanted`; the bad ones are marked.

    `layout` is what the grammar parses; a column that it does not list is NULL. Without `why`, a
    bad record is told from a good one, and the reason is not worked out.
    """
    parsed, columns = _columns(records.sparkSession, grammar, layout, wanted, why)
    return records.select(VALUE, ORIGIN, parsed).select(*columns)


@lru_cache(maxsize=64)
def _columns(
    session: "SparkSession",
    grammar: Grammar,
    layout: StructType,
    wanted: StructType,
    why: bool,
) -> tuple[Column, tuple[Column, ...]]:
    """A record parsed, and the columns that are made of that.

    Remembered, because they are a thousand calls into the JVM, and the same for every range.
    """
    listed = frozenset(layout.fieldNames())

    def part(parsed: Column, field: StructField) -> Column:
        return (
            parsed.getField(FIELDS).getField(field.name) if field.name in listed else sf.lit(None)
        )

    def told(text: Column) -> Column:
        misfits = [misfit(field, part(text, field), part(parsed, field)) for field in wanted.fields]
        named = sf.nullif(sf.concat_ws("; ", *misfits), sf.lit(""))
        fallback = sf.lit("a nested field does not fit the schema")
        is_record = text.getField(CORRUPT).isNull() & text.getField(FIELDS).isNotNull()
        return sf.when(is_record, sf.coalesce(named, fallback)).otherwise(grammar.no_record)

    value, parsed = sf.col(VALUE), sf.col(_PARSED)
    bad = parsed.getField(CORRUPT).isNotNull() | parsed.getField(FIELDS).isNull()
    for field in wanted.fields:
        if not field.nullable:
            bad |= part(parsed, field).isNull()
    texts = StructType([StructField(field.name, StringType()) for field in layout.fields])
    # A lambda over an array of one: the only way to parse once and use the result many times,
    # and not at all for a record that is good.
    reason = sf.lit(NO_REASON)
    if why:
        reason = sf.transform(sf.array(grammar.parse(value, texts)), told).getItem(0)
    fields = (part(parsed, field).cast(field.dataType).alias(field.name) for field in wanted.fields)
    # Nobody asks for the text of a good record, and it may be longer than all its fields.
    marks = [(BAD, reason), (RECORD, value), (ORIGIN, origin(ORIGIN))]
    return grammar.parse(value, layout).alias(_PARSED), (
        *fields,
        *(sf.when(bad, mark).alias(name) for name, mark in marks),
    )


def misfit(field: StructField, text: Column, parsed: Column) -> Column:
    """What is wrong with a field, or NULL: `amount: 'abc' is not DECIMAL(12,2)`."""
    short = sf.when(sf.length(text) <= _LONGEST_SHOWN, text).otherwise(
        sf.concat(sf.left(text, sf.lit(_LONGEST_SHOWN)), sf.lit("…"))
    )
    kind = field.dataType.simpleString().upper()
    said = sf.concat(sf.lit(f"{field.name}: '"), short, sf.lit(f"' is not {kind}"))
    misfit = sf.when(text.isNotNull() & parsed.isNull(), said)
    if field.nullable:
        return misfit
    missing = sf.when(text.isNull() & parsed.isNull(), sf.lit(f"{field.name}: missing"))
    return sf.coalesce(misfit, missing)


def no_rows(spark: "SparkSession", schema: StructType) -> DataFrame:
    """What `rows` gives when there are no records."""
    marks = [StructField(name, StringType()) for name in (BAD, RECORD, ORIGIN)]
    nullable = [StructField(field.name, field.dataType) for field in schema.fields]
    return spark.createDataFrame([], StructType([*nullable, *marks]))


def with_corrupt(schema: StructType) -> StructType:
    """The schema with the column in which Spark keeps a record that does not fit."""
    return StructType([*schema.fields, StructField(CORRUPT, StringType())])
