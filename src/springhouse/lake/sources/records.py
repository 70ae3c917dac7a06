"""How does the text of a record become a row, or a bad row?

JSON and CSV are read as lines of text and parsed by an expression, not by Spark's file readers. A
file reader that returns fewer columns parses fewer columns, and then calls other records bad. An
expression gives the same result whatever is selected from it, and the text of the record is still
there. (Spark prunes `from_json` and `from_csv` too, but never if they have options.)

A `Grammar` parses a record to `struct<record: struct<…>, __springhouse_corrupt: string>`. The
values that fit are in `record`; the second field is NULL if and only if all values fit. A bad
record, and only a bad one, is parsed again with every field as text. So the reason can name the
field, its text and its type.

Spark's parsers change some values silently. Such records are bad too:

    TINYINT 128 to 255        Spark stores -128 to -1: parsed as SMALLINT, then narrowed
    1e39 as FLOAT, 1e400      Spark stores Infinity: an infinite value must be written as one
    seconds as TIMESTAMP      Spark multiplies without checking the range (JSON numbers)
    bytes that are not UTF-8  Spark stores U+FFFD
    no field of the schema    Spark stores a row of NULLs (JSON)
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from springhouse.lake.sources.file_batch import origin
from springhouse.lake.sources.source import BAD, ORIGIN, RECORD

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORRUPT = "__springhouse_corrupt"
FIELDS = "record"
VALUE = "value"

_PARSED = "__springhouse_parsed"
_IS_BAD = "__springhouse_is_bad"
_LONGEST_SHOWN = 60
_MOST_SHOWN = 5
_LAST_SECOND = (2**63 - 1) // 1_000_000
_BEYOND_DOUBLE = r"[0-9]\.?[eE]\+?[0-9]{3}|[0-9]{290}"
"""A pattern that every number matches that is too large for a DOUBLE."""
NO_REASON = "does not fit the schema"


def not_in(encoding: str) -> str:
    """The reason for bytes that are no text."""
    return f"not {encoding.upper()}: some of its bytes are no text in this encoding"


NOT_UTF8 = not_in("UTF-8")


@dataclass(frozen=True)
class Grammar:
    """How one format parses a record; `no_record` is the reason for a text that is no record.

    `names` returns the field names in a record, if records have names. With `seconds`, a number is
    a timestamp in seconds since 1970. `encoding` is the one that Spark's reader has decoded: that
    reader replaces bytes that are no text by U+FFFD.
    """

    parse: Callable[[Column, StructType], Column]
    no_record: str
    names: Callable[[Column], Column] | None = None
    seconds: bool = False
    encoding: str | None = None

    def garbled(self, value: Column) -> Column:
        """Whether some bytes of a record were no text."""
        is_garbled = ~sf.is_valid_utf8(value)
        if self.encoding is not None:
            is_garbled |= sf.contains(value, sf.lit("\ufffd"))
        return is_garbled


def rows(
    records: DataFrame, grammar: Grammar, layout: StructType, wanted: StructType, *, why: bool
) -> DataFrame:
    """The records (`value`, `ORIGIN`) as rows with the columns `wanted`; bad records are marked.

    The grammar parses the columns of `layout`; a column that is not in it is NULL. Without `why`,
    bad records have no true reason: to work it out is slow.
    """
    parsed, is_bad, columns = _columns(records.sparkSession, grammar, layout, wanted, why)
    read = records.select(VALUE, ORIGIN, parsed)
    return read.select(VALUE, ORIGIN, _PARSED, is_bad).select(*columns)


@lru_cache(maxsize=64)
def _columns(
    session: "SparkSession",
    grammar: Grammar,
    layout: StructType,
    wanted: StructType,
    why: bool,
) -> tuple[Column, Column, tuple[Column, ...]]:
    """A record parsed, whether it is bad, and the columns of its row.

    Cached: they need a thousand calls into the JVM, and are the same for every range.
    """
    judge = _Judge(grammar, layout, wanted)
    value = sf.col(VALUE)
    reason = judge.reason() if why else sf.lit(NO_REASON)
    fields = (
        judge.narrowed(field).cast(field.dataType).alias(field.name) for field in wanted.fields
    )
    # The text of a good record is not needed, and may be longer than all its fields.
    marks = [(BAD, reason), (RECORD, sf.make_valid_utf8(value)), (ORIGIN, origin(ORIGIN))]
    wide = StructType([StructField(f.name, _widened(f.dataType)) for f in layout.fields])
    return (
        grammar.parse(value, wide).alias(_PARSED),
        sf.coalesce(judge.is_bad(), sf.lit(True)).alias(_IS_BAD),
        (*fields, *(sf.when(sf.col(_IS_BAD), mark).alias(name) for name, mark in marks)),
    )


class _Judge:
    """Tells bad records from good ones, by their text and their parsed fields."""

    def __init__(self, grammar: Grammar, layout: StructType, wanted: StructType) -> None:
        self._grammar, self._layout, self._wanted = grammar, layout, wanted
        self._listed = [f for f in wanted.fields if f.name in layout.fieldNames()]
        self._value, self._parsed = sf.col(VALUE), sf.col(_PARSED)
        self._strange = _strange(grammar, self._value, wanted)

    def narrowed(self, field: StructField) -> Column:
        """The value of a field with the type that it should have."""
        value = self._part(self._parsed, field)
        return value.try_cast(field.dataType) if _holds(field.dataType, ByteType) else value

    def is_bad(self) -> Column:
        """Whether a record does not fit, or Spark would change one of its values."""
        parsed = self._parsed
        bad = [
            self._grammar.garbled(self._value),
            parsed.getField(CORRUPT).isNotNull(),
            parsed.getField(FIELDS).isNull(),
            *(self._part(parsed, f).isNull() for f in self._wanted.fields if not f.nullable),
            *(
                _is_lossy(self._part(parsed, field), self.narrowed(field), field.dataType)
                for field in self._listed
                if _holds(field.dataType, ByteType)
            ),
        ]
        if (doubt := self._doubt()) is not None:
            changed = self._with_texts(
                lambda text: _any(self._is_changed(text, field) for field in self._listed)
            )
            bad.append(sf.when(doubt, changed).otherwise(sf.lit(False)))
        if self._grammar.names is not None:
            empty = ~_any(self._part(parsed, field).isNotNull() for field in self._listed)
            bad.append(sf.when(empty, self._strange.isNotNull()).otherwise(sf.lit(False)))
        return _any(bad)

    def reason(self) -> Column:
        """Why a bad record is bad."""
        is_text = ~self._grammar.garbled(self._value)
        garbled = sf.lit(not_in(self._grammar.encoding or "UTF-8"))
        return sf.when(is_text, self._with_texts(self._reason)).otherwise(garbled)

    def _part(self, parsed: Column, field: StructField) -> Column:
        if field.name not in self._layout.fieldNames():
            return sf.lit(None)
        return parsed.getField(FIELDS).getField(field.name)

    def _with_texts(self, function: Callable[[Column], Column]) -> Column:
        """The result of a function of the record with all its fields as text."""
        texts = StructType([StructField(field.name, StringType()) for field in self._layout.fields])
        # A lambda over an array of one element: no other way parses the record once and uses the
        # result many times, and does not parse a good record again.
        return sf.transform(sf.array(self._grammar.parse(self._value, texts)), function).getItem(0)

    def _doubt(self) -> Column | None:
        """Whether a record has a value that Spark may have changed; None: it never has."""
        doubts = [
            _is_infinite(self._part(self._parsed, field), field.dataType)
            for field in self._listed
            if _holds(field.dataType, FloatType, DoubleType)
        ]
        if self._grammar.seconds and any(_is_timestamp(field) for field in self._listed):
            doubts.append(sf.rlike(self._value, sf.lit("[0-9]{13}")))
        return _any(doubts) if doubts else None

    def _is_changed(self, text: Column, field: StructField) -> Column:
        """Whether Spark has changed the value of a field, by its text."""
        written = self._part(text, field)
        changes = []
        if _holds(field.dataType, FloatType, DoubleType):
            # A number in digits is finite; infinite ones are written as words. Spark returns the
            # text of 1e400 as Infinity, so the text of the whole record decides.
            is_word = sf.rlike(written, sf.lit("(?i)inf"))
            in_digits = sf.rlike(written, sf.lit("[0-9]")) & ~is_word
            in_digits |= is_word & sf.rlike(self._value, sf.lit(_BEYOND_DOUBLE))
            value = self._part(self._parsed, field)
            changes.append(_is_infinite(value, field.dataType) & in_digits)
        if self._grammar.seconds and _is_timestamp(field):
            digits = sf.rlike(written, sf.lit("^-?[0-9]{1,19}$"))
            changes.append(digits & (sf.abs(written.try_cast("DECIMAL(20,0)")) > _LAST_SECOND))
        return _any(sf.coalesce(change, sf.lit(False)) for change in changes)

    def _reason(self, text: Column) -> Column:
        misfits = []
        for field in self._wanted.fields:
            value = sf.when(~self._is_changed(text, field), self.narrowed(field))
            misfits.append(misfit(field, self._part(text, field), value))
        named = sf.nullif(sf.concat_ws("; ", *misfits), sf.lit(""))
        fallback = sf.lit("a nested field does not fit the schema")
        is_record = text.getField(CORRUPT).isNull() & text.getField(FIELDS).isNotNull()
        fitting = sf.coalesce(self._strange, named, fallback)
        return sf.when(is_record, fitting).otherwise(self._grammar.no_record)


def _is_timestamp(field: StructField) -> bool:
    return isinstance(field.dataType, TimestampType)


def _strange(grammar: Grammar, value: Column, wanted: StructType) -> Column:
    """The reason for a record with fields, none of which is in the schema; NULL for others."""
    if grammar.names is None:
        return sf.lit(None).cast("string")
    columns = wanted.fieldNames()
    names = grammar.names(value)
    is_strange = (sf.size(names) > 0) & ~sf.arrays_overlap(
        names, sf.array(*(sf.lit(name) for name in columns)).cast("array<string>")
    )
    shown = sf.array_join(sf.slice(names, 1, _MOST_SHOWN), ", ")
    before, after = strangers(["\0"], columns).split("\0")
    return sf.when(is_strange, sf.concat(sf.lit(before), shown, sf.lit(after)))


def strangers(names: Iterable[str], columns: Iterable[str]) -> str:
    """The reason for a record with names that are not in the schema.

    >>> strangers(["ID", "Amount"], ["id", "amount"])
    'none of its fields (ID, Amount) is in the schema (id, amount)'
    """
    shown = ", ".join([*names][:_MOST_SHOWN])
    return f"none of its fields ({shown}) is in the schema ({_listed(columns)})"


def strange_file(header: str, columns: Iterable[str]) -> str:
    """The reason for a file with columns that are not in the schema.

    >>> strange_file("id;amount", ["id", "amount"])
    'none of the columns of the file (id;amount) is in the schema (id, amount)'
    """
    return f"none of the columns of the file ({header}) is in the schema ({_listed(columns)})"


def _listed(names: Iterable[str]) -> str:
    first, more = list(names)[: _MOST_SHOWN * 4], list(names)[_MOST_SHOWN * 4 :]
    return ", ".join([*first, *(["…"] if more else [])])


def _holds(kind: DataType, *wanted: type[DataType]) -> bool:
    """Whether a value of this type is, or contains, a value of one of the types `wanted`."""
    if isinstance(kind, StructType):
        return any(_holds(field.dataType, *wanted) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _holds(kind.elementType, *wanted)
    if isinstance(kind, MapType):
        return _holds(kind.keyType, *wanted) or _holds(kind.valueType, *wanted)
    return isinstance(kind, wanted)


def _widened(kind: DataType) -> DataType:
    """The type with SMALLINT for every TINYINT."""
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, _widened(f.dataType)) for f in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(_widened(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _widened(kind.valueType), kind.valueContainsNull)
    return ShortType() if isinstance(kind, ByteType) else kind


def _is_lossy(wide: Column, narrow: Column, kind: DataType) -> Column:
    if isinstance(kind, ByteType):
        return wide.isNotNull() & narrow.isNull()
    return sf.coalesce(sf.to_json(wide) != sf.to_json(narrow), sf.lit(False))


def _is_infinite(value: Column, kind: DataType) -> Column:
    if isinstance(kind, FloatType | DoubleType):
        return sf.coalesce(sf.abs(value) == sf.lit(float("inf")), sf.lit(False))
    return sf.coalesce(sf.contains(sf.to_json(value), sf.lit('Infinity"')), sf.lit(False))


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(Column.__or__, conditions, sf.lit(False))


def misfit(field: StructField, text: Column, parsed: Column) -> Column:
    """The reason for a bad field, or NULL: `amount: 'abc' is not DECIMAL(12,2)`."""
    short = sf.when(sf.length(text) <= _LONGEST_SHOWN, text).otherwise(
        sf.concat(sf.left(text, sf.lit(_LONGEST_SHOWN)), sf.lit("…"))
    )
    kind = field.dataType.simpleString().upper()
    reason = sf.concat(sf.lit(f"{field.name}: '"), short, sf.lit(f"' is not {kind}"))
    misfit = sf.when(text.isNotNull() & parsed.isNull(), reason)
    if field.nullable:
        return misfit
    missing = sf.when(text.isNull() & parsed.isNull(), sf.lit(f"{field.name}: missing"))
    return sf.coalesce(misfit, missing)


def no_rows(spark: "SparkSession", schema: StructType) -> DataFrame:
    """The result of `rows` without records."""
    marks = [StructField(name, StringType()) for name in (BAD, RECORD, ORIGIN)]
    nullable = [StructField(field.name, field.dataType) for field in schema.fields]
    return spark.createDataFrame([], StructType([*nullable, *marks]))


def with_corrupt(schema: StructType) -> StructType:
    """The schema with the column in which Spark keeps a record that does not fit."""
    return StructType([*schema.fields, StructField(CORRUPT, StringType())])


def bad_files(
    spark: "SparkSession", schema: StructType, problems: Iterable[tuple[str, str]]
) -> DataFrame:
    """A bad row for each file that can't be read at all: (reason, file)."""
    problems = list(problems)
    if not problems:
        return no_rows(spark, schema)
    marks = spark.createDataFrame(problems, f"{BAD} STRING, {ORIGIN} STRING")
    return no_rows(spark, schema).unionByName(marks, allowMissingColumns=True)
