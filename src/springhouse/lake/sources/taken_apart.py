"""How does the text of a record become a row where the server can't tell good records from bad?

Spark's `from_json` and `from_csv` say which records do not fit. Other servers that speak Spark
Connect have functions of these names that do not: Sail's give NULL for a value that does not fit,
and drop digits of one that does. There a record is taken apart in this process, and the server only
casts the text of each field:

    value       =  try_cast(text), if the text is of a kind that Spark would take for the type
    bad record  =  what is no record at all, or has a field with a text and without a value

So `{"id": "1"}` and `{"id": 1.0}` are no BIGINT here either. What Spark does only when it is asked
to (dates in other formats, comments, documents of several lines) and fields within fields are not
done here: whoever asks for them is told so.
"""

import csv
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, is_remote
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    StringType,
    StructType,
    TimestampType,
)

from springhouse.errors import SourceError
from springhouse.lake.sources.batch import Batch
from springhouse.lake.sources.contract import BAD, ORIGIN, RECORD
from springhouse.lake.sources.records import NO_REASON, VALUE, misfit
from springhouse.lake.tables import frame_of
from springhouse.lake.writing import SMALL_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TEXT, _FITS = "__springhouse_text_", "__springhouse_fits_"
_IS_RECORD = "__springhouse_is_record"
_LINE_BREAKS = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SIMPLE = (
    StringType,
    IntegralType,
    DecimalType,
    DoubleType,
    FloatType,
    BooleanType,
    DateType,
    TimestampType,
)


class Field(NamedTuple):
    """What a record says of a column: its text, and the text to cast if it is of a fitting kind."""

    text: str | None = None
    fits: str | None = None


Parse = Callable[[str], Mapping[str, Field] | None]
"""Takes the text of a record apart: its fields by name; None if it is no record."""


@lru_cache(maxsize=8)
def is_needed(spark: "SparkSession") -> bool:
    """Whether the server's own functions do not tell which records are bad: it is asked, once."""
    if not is_remote():
        return False
    options = "map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', 'corrupt')"
    told = f"from_json('{{\"id\": \"x\"}}', 'id BIGINT, corrupt STRING', {options}).corrupt"
    return spark.sql(f"SELECT {told} AS told").toArrow()["told"][0].as_py() is None


def rows(
    spark: "SparkSession",
    records: Sequence[tuple[str, str]],
    parse: Parse,
    wanted: StructType,
    no_record: str,
    *,
    why: bool,
) -> DataFrame:
    """The records (a text, and its file) as rows with the columns `wanted`; the bad ones marked."""
    found = [parse(text) for text, _ in records]
    columns: dict[str, pa.Array] = {
        VALUE: pa.array([text for text, _ in records], pa.string()),
        ORIGIN: pa.array([file for _, file in records], pa.string()),
        _IS_RECORD: pa.array([fields is not None for fields in found], pa.bool_()),
    }
    for number, field in enumerate(wanted.fields):
        told = [(each or {}).get(field.name, Field()) for each in found]
        columns[f"{_TEXT}{number}"] = pa.array([each.text for each in told], pa.string())
        columns[f"{_FITS}{number}"] = pa.array([each.fits for each in told], pa.string())
    return _cast(frame_of(spark, pa.table(columns)), wanted, no_record, why=why)


def _cast(frame: DataFrame, wanted: StructType, no_record: str, *, why: bool) -> DataFrame:
    values = [
        sf.col(f"{_FITS}{number}").try_cast(field.dataType)
        for number, field in enumerate(wanted.fields)
    ]
    misfits = [
        misfit(field, sf.col(f"{_TEXT}{number}"), value)
        for number, (field, value) in enumerate(zip(wanted.fields, values, strict=True))
    ]
    named = sf.nullif(sf.concat_ws("; ", *misfits), sf.lit(""))
    reason = sf.when(sf.col(_IS_RECORD), named).otherwise(sf.lit(no_record))
    is_bad = reason.isNotNull()
    told = reason if why else sf.lit(NO_REASON)
    marks = {BAD: told, RECORD: sf.col(VALUE), ORIGIN: sf.col(ORIGIN)}
    return frame.select(
        *(value.alias(field.name) for field, value in zip(wanted.fields, values, strict=True)),
        *(sf.when(is_bad, mark).alias(name) for name, mark in marks.items()),
    )


def lines(batch: Batch, separator: str | None) -> Iterator[tuple[str, str]]:
    """The lines of some files that are not empty, each with its file."""
    filesystem, root = batch.folder.filesystem, batch.folder.path
    breaks = re.compile(re.escape(separator.encode())) if separator else _LINE_BREAKS
    infos = filesystem.get_file_info([f"{root}/{path}" for path in batch.paths])
    if sum(info.size or 0 for info in infos) > SMALL_BYTES:
        raise SourceError(
            "this Spark Connect server can't read so many records of this format at once",
            where=batch.folder.root,
            hint="Let it read fewer files at once (max_files), or let Spark itself read them.",
        )
    for path in batch.paths:
        with filesystem.open_input_stream(f"{root}/{path}", compression="detect") as file:
            whole = file.read().removeprefix(_BYTE_ORDER_MARK)
        for line in breaks.split(whole):
            text = line.decode("utf-8", errors="replace")
            if text.strip(" "):
                yield text, batch.full(path)


def prove_simple(wanted: StructType, options: Collection[str], heeded: Collection[str]) -> None:
    """An error if something is asked for that only Spark itself does."""
    unheeded = [f'the option "{name}"' for name in options if name not in heeded]
    nested = [
        f'"{field.name}" as {field.dataType.simpleString().upper()}'
        for field in wanted.fields
        if not isinstance(field.dataType, _SIMPLE)
    ]
    if unheeded or nested:
        raise SourceError(
            f"on this Spark Connect server read_files can't do {', '.join([*unheeded, *nested])}",
            hint="Do without, or let Spark itself read the files.",
        )


# --- JSON -----------------------------------------------------------------------------------------

_BLANKS = re.compile(r"[ \t\r\n]*")
_WHOLE = re.compile(r"[+-]?\d+")
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity", "+Infinity", "INF", "-INF", "+INF")


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_float=_Number, parse_int=_Number, parse_constant=_Number)


def json_parser(wanted: StructType) -> Parse:
    """How an object of JSON is taken apart."""
    types = {field.name: field.dataType for field in wanted.fields}

    def parse(text: str) -> Mapping[str, Field] | None:
        try:
            return {
                name: _json_field(value, source, types[name])
                for name, value, source in _members(text)
                if name in types
            }
        except (ValueError, RecursionError):
            return None

    return parse


def _members(text: str) -> Iterator[tuple[str, Any, str]]:
    """The members of an object: name, value, and the value as it is written."""

    def after_blanks(place: int) -> int:
        found = _BLANKS.match(text, place)
        assert found is not None
        return found.end()

    def after(mark: str, place: int) -> int:
        if text[place : place + 1] != mark:
            raise ValueError(f"no {mark}")
        return after_blanks(place + 1)

    place = after("{", after_blanks(0))
    more = text[place : place + 1] != "}"
    while more:
        name, end = _DECODER.raw_decode(text, place)
        if text[place] != '"':
            raise ValueError("no name")
        place = after(":", after_blanks(end))
        value, end = _DECODER.raw_decode(text, place)
        yield name, value, text[place:end]
        place = after_blanks(end)
        more = text[place : place + 1] == ","
        if more:
            place = after(",", place)
    if after("}", place) != len(text):
        raise ValueError("more than one value")


def _json_field(value: Any, source: str, kind: DataType) -> Field:
    if value is None:
        return Field()
    is_text = isinstance(value, str) and not isinstance(value, _Number)
    text = value if is_text else source
    if isinstance(kind, StringType):
        return Field(text, text)
    if isinstance(kind, BooleanType):
        fits = isinstance(value, bool)
    elif isinstance(kind, IntegralType):
        fits = isinstance(value, _Number) and _is_whole(source)
    elif isinstance(kind, DoubleType | FloatType):
        fits = isinstance(value, _Number) or (is_text and text in _NO_NUMBERS)
    elif isinstance(kind, DecimalType):
        fits = isinstance(value, _Number) or is_text
        return Field(text, text.replace(",", "") if fits else None)
    elif isinstance(kind, TimestampType) and isinstance(value, _Number) and _is_whole(source):
        return Field(text, _seconds(int(source)))
    else:
        fits = is_text
    return Field(text, text if fits else None)


def _is_whole(text: str) -> bool:
    return _WHOLE.fullmatch(text) is not None


def _seconds(count: int) -> str | None:
    """A moment, given as seconds since 1970."""
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=count)).isoformat()
    except OverflowError:
        return None


# --- CSV ------------------------------------------------------------------------------------------


def csv_parser(layout: StructType, options: Mapping[str, str]) -> Parse:
    """How a line of CSV is taken apart whose fields are these, in this order."""
    nothing = options.get("nullvalue", "")

    def parse(text: str) -> Mapping[str, Field] | None:
        texts = csv_texts(text, options)
        if texts is None or len(texts) != len(layout.fields):
            return None
        return {
            field.name: _csv_field(each, field.dataType)
            for field, each in zip(layout.fields, texts, strict=True)
            if each not in ("", nothing)
        }

    return parse


def csv_texts(line: str, options: Mapping[str, str]) -> list[str] | None:
    """The fields of a line; None if it is no line of CSV."""
    quote, escape = options.get("quote", '"'), options.get("escape", '"')
    doubled = quote == escape
    reader = csv.reader(
        [line],
        delimiter=options.get("sep", ","),
        quotechar=quote,
        doublequote=doubled,
        escapechar=None if doubled else escape,
    )
    try:
        return next(reader, None)
    except csv.Error:
        return None


def _csv_field(text: str, kind: DataType) -> Field:
    if isinstance(kind, IntegralType):
        return Field(text, text if _is_whole(text) else None)
    if isinstance(kind, BooleanType):
        return Field(text, text if text.lower() in ("true", "false") else None)
    if isinstance(kind, DecimalType):
        return Field(text, text.replace(",", ""))
    return Field(text, text)
