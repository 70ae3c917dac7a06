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
import io
import json
import math
import re
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
from springhouse.lake.delta.tables import frame_of
from springhouse.lake.sources.file_batch import FileBatch
from springhouse.lake.sources.records import NO_REASON, NOT_UTF8, VALUE, misfit, strangers
from springhouse.lake.sources.source import BAD, ORIGIN, RECORD
from springhouse.planner.placement import fits_here

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

    from pyspark.sql import SparkSession

_TEXT, _FITS = "__springhouse_text_", "__springhouse_fits_"
_WRONG = "__springhouse_wrong"
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


class Record(NamedTuple):
    """The text of a record and its file; `problem` says what is wrong, if that is known already."""

    text: str
    file: str
    problem: str | None = None


Parse = Callable[[str], Mapping[str, Field] | str | None]
"""Takes a record apart: its fields by name; or what is wrong with it, None for no record at all."""


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
    records: Sequence[Record],
    parse: Parse,
    wanted: StructType,
    no_record: str,
    *,
    why: bool,
) -> DataFrame:
    """The records as rows with the columns `wanted`; the bad ones marked."""
    parsed = [parse(each.text) if each.problem is None else each.problem for each in records]
    fields = [{} if each is None or isinstance(each, str) else each for each in parsed]
    wrong = [no_record if p is None else p if isinstance(p, str) else None for p in parsed]
    columns: dict[str, pa.Array] = {
        VALUE: pa.array([each.text for each in records], pa.string()),
        ORIGIN: pa.array([each.file for each in records], pa.string()),
        _WRONG: pa.array(wrong, pa.string()),
    }
    for number, field in enumerate(wanted.fields):
        told = [each.get(field.name, Field()) for each in fields]
        columns[f"{_TEXT}{number}"] = pa.array([each.text for each in told], pa.string())
        columns[f"{_FITS}{number}"] = pa.array([each.fits for each in told], pa.string())
    return _cast(frame_of(spark, pa.table(columns)), wanted, why=why)


def _cast(frame: DataFrame, wanted: StructType, *, why: bool) -> DataFrame:
    values = [
        sf.col(f"{_FITS}{number}").try_cast(field.dataType)
        for number, field in enumerate(wanted.fields)
    ]
    misfits = [
        misfit(field, sf.col(f"{_TEXT}{number}"), value)
        for number, (field, value) in enumerate(zip(wanted.fields, values, strict=True))
    ]
    named = sf.nullif(sf.concat_ws("; ", *misfits), sf.lit(""))
    reason = sf.when(sf.col(_WRONG).isNull(), named).otherwise(sf.col(_WRONG))
    is_bad = reason.isNotNull()
    told = reason if why else sf.lit(NO_REASON)
    marks = {BAD: told, RECORD: sf.col(VALUE), ORIGIN: sf.col(ORIGIN)}
    return frame.select(
        *(value.alias(field.name) for field, value in zip(wanted.fields, values, strict=True)),
        *(sf.when(is_bad, mark).alias(name) for name, mark in marks.items()),
    )


def lines(
    batch: FileBatch, separator: str | None, *, all_of_them: bool = False
) -> Iterator[Record]:
    """The lines of some files, each with its file; empty ones only with `all_of_them`."""
    filesystem, root = batch.folder.filesystem, batch.folder.path
    breaks = re.compile(re.escape(separator.encode())) if separator else _LINE_BREAKS
    infos = filesystem.get_file_info([f"{root}/{path}" for path in batch.paths])
    if not fits_here(sum(info.size or 0 for info in infos)):
        raise SourceError(
            "this Spark Connect server can't read so many records of this format at once",
            where=batch.folder.root,
            hint="Let it read fewer files at once (max_files), or let Spark itself read them.",
        )
    for path in batch.paths:
        with filesystem.open_input_stream(f"{root}/{path}", compression="detect") as file:
            whole = file.read().removeprefix(_BYTE_ORDER_MARK)
        for line in breaks.split(whole):
            try:
                text, problem = line.decode("utf-8"), None
            except UnicodeDecodeError:
                text, problem = line.decode("utf-8", errors="replace"), NOT_UTF8
            if all_of_them or text.strip(" "):
                yield Record(text, batch.full(path), problem)


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


def json_records(line: Record) -> Iterator[Record]:
    """The records of a line: the elements of an array, or else the line itself."""
    text = line.text
    if not text.lstrip(" \t").startswith("["):
        yield line
        return
    try:
        yield from [Record(each, line.file, line.problem) for each in _elements(text)]
    except (ValueError, RecursionError):
        yield line


def json_parser(wanted: StructType) -> Parse:
    """How an object of JSON is taken apart."""
    types = {field.name: field.dataType for field in wanted.fields}

    def parse(text: str) -> Mapping[str, Field] | str | None:
        try:
            members = list(_members(text))
        except (ValueError, RecursionError):
            return None
        names = dict.fromkeys(name for name, _, _ in members)
        if names and not names.keys() & types.keys():
            return strangers([*names], types)
        return {
            name: _json_field(value, source, types[name])
            for name, value, source in members
            if name in types
        }

    return parse


def _after_blanks(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    assert found is not None
    return found.end()


def _after(text: str, mark: str, place: int) -> int:
    if text[place : place + 1] != mark:
        raise ValueError(f"no {mark}")
    return _after_blanks(text, place + 1)


def _elements(text: str) -> Iterator[str]:
    """The elements of an array, as they are written."""
    place = _after(text, "[", _after_blanks(text, 0))
    more = text[place : place + 1] != "]"
    while more:
        _, end = _DECODER.raw_decode(text, place)
        yield text[place:end]
        place = _after_blanks(text, end)
        more = text[place : place + 1] == ","
        if more:
            place = _after(text, ",", place)
    if _after(text, "]", place) != len(text):
        raise ValueError("more than one value")


def _members(text: str) -> Iterator[tuple[str, Any, str]]:
    """The members of an object: name, value, and the value as it is written."""

    def after_blanks(place: int) -> int:
        return _after_blanks(text, place)

    def after(mark: str, place: int) -> int:
        return _after(text, mark, place)

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
        fits = _is_finite(source, kind) if isinstance(value, _Number) else text in _NO_NUMBERS
    elif isinstance(kind, DecimalType):
        fits = (isinstance(value, _Number) or is_text) and text == text.strip()
        return Field(text, text.replace(",", "") if fits else None)
    elif isinstance(kind, TimestampType) and isinstance(value, _Number) and _is_whole(source):
        return Field(text, _seconds(int(source)))
    else:
        fits = is_text
    return Field(text, text if fits else None)


def _is_whole(text: str) -> bool:
    return _WHOLE.fullmatch(text) is not None


def _is_finite(text: str, kind: DataType) -> bool:
    """Whether a number in digits is one to FLOAT or DOUBLE, and not infinite."""
    try:
        struct.pack("<f" if isinstance(kind, FloatType) else "<d", number := float(text))
    except (ValueError, OverflowError):
        return False
    return not math.isinf(number)


def _seconds(count: int) -> str | None:
    """A moment, given as seconds since 1970."""
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=count)).isoformat()
    except OverflowError:
        return None


# --- CSV ------------------------------------------------------------------------------------------

# Python gives up at 128 KB.
csv.field_size_limit(2**31 - 1)


def csv_parser(layout: StructType, options: Mapping[str, str]) -> Parse:
    """How a line of CSV is taken apart whose fields are these, in this order."""
    nothing = options.get("nullvalue", "")

    def parse(text: str) -> Mapping[str, Field] | str | None:
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
    separator = options.get("sep", ",")
    if len(separator) == 1:
        found = _csv_rows(line, options)
    elif (mark := next((each for each in _UNUSED if each not in line), None)) is not None:
        # Python's reader takes one character; in a quoted field it is the separator again.
        marked = _csv_rows(line.replace(separator, mark), {**options, "sep": mark})
        found = [[text.replace(mark, separator) for text in row] for row in marked]
    else:
        return None
    return found[0] if len(found) == 1 else None


_UNUSED = [chr(code) for code in (0x1F, 0x1E, 0x1D, 0x1C, *range(0xE000, 0xE010))]


def _csv_rows(line: str, options: Mapping[str, str]) -> list[list[str]]:
    try:
        return list(_csv_reader(io.StringIO(line, newline=""), options))
    except csv.Error:
        return []


def _csv_reader(lines: Iterable[str], options: Mapping[str, str]) -> "CsvReader":
    quote, escape = options.get("quote", '"'), options.get("escape", '"')
    doubled = quote == escape or not quote
    return csv.reader(
        lines,
        delimiter=options.get("sep", ","),
        quotechar=quote or None,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        doublequote=doubled,
        escapechar=None if doubled or not escape else escape,
        # Else `"x" y` would lose its quotes.
        strict=True,
    )


def open_quote(lines: Iterable[str], options: Mapping[str, str]) -> int | None:
    """The line of the first quoted field that goes on to the next line and never ends as a field.

    >>> open_quote(['1,"a\\n', '2,b\\n'], {}), open_quote(['1,"a\\n', 'b",2\\n'], {})
    (1, None)
    >>> open_quote(['1,5" pipe\\n', '2,"x" y\\n'], {})
    """
    if len(separator := options.get("sep", ",")) > 1:
        lines = (line.replace(separator, _UNUSED[0]) for line in lines)
        options = {**options, "sep": _UNUSED[0]}
    reader = _csv_reader(lines, options)
    while True:
        before = int(reader.line_num)
        try:
            next(reader)
        except StopIteration:
            return None
        except csv.Error as error:
            # In a line of its own, a strange quote harms no other record.
            if reader.line_num > before + 1 or "unexpected end" in str(error):
                return before + 1


def _csv_field(text: str, kind: DataType) -> Field:
    if isinstance(kind, IntegralType):
        return Field(text, text if _is_whole(text) else None)
    if isinstance(kind, BooleanType):
        return Field(text, text if text.lower() in ("true", "false") else None)
    if isinstance(kind, DecimalType):
        return Field(text, text.replace(",", "") if text == text.strip() else None)
    if isinstance(kind, DoubleType | FloatType) and any(char.isdigit() for char in text):
        return Field(text, text if _is_finite(text, kind) else None)
    return Field(text, text)


def csv_records(lines: Iterable[Record], whole: str, line_break: str) -> Iterator[Record]:
    """The records of lines of which some end inside a quoted field."""
    is_whole = re.compile(whole, re.DOTALL)
    held: Record | None = None
    for line in lines:
        if held is not None and held.file != line.file:
            yield held
            held = None
        joined = line
        if held is not None:
            joined = line._replace(
                text=f"{held.text}{line_break}{line.text}", problem=held.problem or line.problem
            )
        held = None if is_whole.fullmatch(joined.text) else joined
        if held is None and joined.text.strip(" "):
            yield joined
    if held is not None:
        yield held
