"""How does the text of a record become a row, or a bad row?

JSON and CSV are read as lines of text and parsed by an expression, not by Spark's file readers. A
reader that is asked for fewer columns parses fewer, and calls other records bad; an expression
gives the same answer whatever is selected from it, and the record is still there exactly as it was.
(Spark prunes `from_json` and `from_csv` too, but never when they are given options.)

A `Grammar` parses a record to `struct<record: struct<…>, __springhouse_corrupt: string>`: what fits
is in `record`, and the other is NULL iff all of it did. For a bad record, and only then, it parses
once more with every field as text. So the reason can name the field, what was in it, and its type.

Spark's parsers change some values without a word. Those records are bad too:

    TINYINT 128 to 255        Spark stores -128 to -1: parsed as SMALLINT, then narrowed
    1e39 as FLOAT, 1e400      Spark stores Infinity: an infinite value has to be written as one
    seconds as TIMESTAMP      Spark multiplies without a look at the range (JSON numbers)
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
"""What is in every number that is too large for a DOUBLE."""
NO_REASON = "does not fit the schema"


def not_in(encoding: str) -> str:
    """What is wrong with bytes that are no text."""
    return f"not {encoding.upper()}: some of its bytes are no text in this encoding"


NOT_UTF8 = not_in("UTF-8")


@dataclass(frozen=True)
class Grammar:
    """How one format parses a record, and what to say of a text that is no record at all.

    `names`, where records name their fields, gives the names that a record has. `seconds` says that
    a number is a moment, in seconds since 1970. `encoding` is what Spark's reader decoded: it puts
    U+FFFD in the place of bytes that are no text.
    """

    parse: Callable[[Column, StructType], Column]
    no_record: str
    names: Callable[[Column], Column] | None = None
    seconds: bool = False
    encoding: str | None = None

    def garbled(self, value: Column) -> Column:
        """Whether bytes of a record were no text."""
        is_garbled = ~sf.is_valid_utf8(value)
        if self.encoding is not None:
            is_garbled |= sf.contains(value, sf.lit("\ufffd"))
        return is_garbled


def rows(
    records: DataFrame, grammar: Grammar, layout: StructType, wanted: StructType, *, why: bool
) -> DataFrame:
    """The records (`value`, `ORIGIN`) as rows with the columns `wanted`; the bad ones are marked.

    `layout` is what the grammar parses; a column that it does not list is NULL. Without `why`, a
    bad record is told from a good one, and the reason is not worked out.
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
    """A record parsed, whether it is bad, and the columns that are made of that.

    Remembered, because they are a thousand calls into the JVM, and the same for every range.
    """
    judge = _Judge(grammar, layout, wanted)
    value = sf.col(VALUE)
    reason = judge.reason() if why else sf.lit(NO_REASON)
    fields = (
        judge.narrowed(field).cast(field.dataType).alias(field.name) for field in wanted.fields
    )
    # Nobody asks for the text of a good record, and it may be longer than all its fields.
    marks = [(BAD, reason), (RECORD, sf.make_valid_utf8(value)), (ORIGIN, origin(ORIGIN))]
    wide = StructType([StructField(f.name, _widened(f.dataType)) for f in layout.fields])
    return (
        grammar.parse(value, wide).alias(_PARSED),
        sf.coalesce(judge.is_bad(), sf.lit(True)).alias(_IS_BAD),
        (*fields, *(sf.when(sf.col(_IS_BAD), mark).alias(name) for name, mark in marks)),
    )


class _Judge:
    """Tells bad records from good ones, by the record and what was parsed of it."""

    def __init__(self, grammar: Grammar, layout: StructType, wanted: StructType) -> None:
        self._grammar, self._layout, self._wanted = grammar, layout, wanted
        self._listed = [f for f in wanted.fields if f.name in layout.fieldNames()]
        self._value, self._parsed = sf.col(VALUE), sf.col(_PARSED)
        self._strange = _strange(grammar, self._value, wanted)

    def narrowed(self, field: StructField) -> Column:
        """The value of a field with the type that it should have."""
        found = self._part(self._parsed, field)
        return found.try_cast(field.dataType) if _holds(field.dataType, ByteType) else found

    def is_bad(self) -> Column:
        """Whether a record does not fit, or would be another one if it were stored."""
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
        return sf.when(is_text, self._with_texts(self._told)).otherwise(garbled)

    def _part(self, parsed: Column, field: StructField) -> Column:
        if field.name not in self._layout.fieldNames():
            return sf.lit(None)
        return parsed.getField(FIELDS).getField(field.name)

    def _with_texts(self, told: Callable[[Column], Column]) -> Column:
        """What is told by the record with all its fields as text."""
        texts = StructType([StructField(field.name, StringType()) for field in self._layout.fields])
        # A lambda over an array of one: the only way to parse once and use the result many times,
        # and not at all for a record that needs no second look.
        return sf.transform(sf.array(self._grammar.parse(self._value, texts)), told).getItem(0)

    def _doubt(self) -> Column | None:
        """Whether a record has a value that may not be what its text says; None: never."""
        doubts = [
            _is_infinite(self._part(self._parsed, field), field.dataType)
            for field in self._listed
            if _holds(field.dataType, FloatType, DoubleType)
        ]
        if self._grammar.seconds and any(_is_moment(field) for field in self._listed):
            doubts.append(sf.rlike(self._value, sf.lit("[0-9]{13}")))
        return _any(doubts) if doubts else None

    def _is_changed(self, text: Column, field: StructField) -> Column:
        """Whether the value of a field is not what its text says."""
        said = self._part(text, field)
        found = []
        if _holds(field.dataType, FloatType, DoubleType):
            # A number in digits is finite; infinite ones are written as words. Of 1e400 Spark says
            # that it is written as Infinity: there the record itself has to be asked.
            is_word = sf.rlike(said, sf.lit("(?i)inf"))
            in_digits = sf.rlike(said, sf.lit("[0-9]")) & ~is_word
            in_digits |= is_word & sf.rlike(self._value, sf.lit(_BEYOND_DOUBLE))
            found.append(_is_infinite(self._part(self._parsed, field), field.dataType) & in_digits)
        if self._grammar.seconds and _is_moment(field):
            digits = sf.rlike(said, sf.lit("^-?[0-9]{1,19}$"))
            found.append(digits & (sf.abs(said.try_cast("DECIMAL(20,0)")) > _LAST_SECOND))
        return _any(sf.coalesce(each, sf.lit(False)) for each in found)

    def _told(self, text: Column) -> Column:
        misfits = []
        for field in self._wanted.fields:
            kept = sf.when(~self._is_changed(text, field), self.narrowed(field))
            misfits.append(misfit(field, self._part(text, field), kept))
        named = sf.nullif(sf.concat_ws("; ", *misfits), sf.lit(""))
        fallback = sf.lit("a nested field does not fit the schema")
        is_record = text.getField(CORRUPT).isNull() & text.getField(FIELDS).isNotNull()
        fitting = sf.coalesce(self._strange, named, fallback)
        return sf.when(is_record, fitting).otherwise(self._grammar.no_record)


def _is_moment(field: StructField) -> bool:
    return isinstance(field.dataType, TimestampType)


def _strange(grammar: Grammar, value: Column, wanted: StructType) -> Column:
    """What is wrong with a record that has fields, and none of the schema's; NULL if it has one."""
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


def strangers(found: Iterable[str], columns: Iterable[str]) -> str:
    """What to say of a record with names that are not the schema's.

    >>> strangers(["ID", "Amount"], ["id", "amount"])
    'none of its fields (ID, Amount) is in the schema (id, amount)'
    """
    shown = ", ".join([*found][:_MOST_SHOWN])
    return f"none of its fields ({shown}) is in the schema ({_listed(columns)})"


def strange_file(found: str, columns: Iterable[str]) -> str:
    """What to say of a file whose columns are not the schema's.

    >>> strange_file("id;amount", ["id", "amount"])
    'none of the columns of the file (id;amount) is in the schema (id, amount)'
    """
    return f"none of the columns of the file ({found}) is in the schema ({_listed(columns)})"


def _listed(names: Iterable[str]) -> str:
    first, more = list(names)[: _MOST_SHOWN * 4], list(names)[_MOST_SHOWN * 4 :]
    return ", ".join([*first, *(["…"] if more else [])])


def _holds(kind: DataType, *wanted: type[DataType]) -> bool:
    """Whether a value of this type is, or has inside, one of the types `wanted`."""
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


def bad_files(
    spark: "SparkSession", schema: StructType, problems: Iterable[tuple[str, str]]
) -> DataFrame:
    """A bad row for each file that can't be read at all: (what is wrong, the file)."""
    found = list(problems)
    if not found:
        return no_rows(spark, schema)
    marks = spark.createDataFrame(found, f"{BAD} STRING, {ORIGIN} STRING")
    return no_rows(spark, schema).unionByName(marks, allowMissingColumns=True)
