"""How does the client split a line of CSV into fields? (Why it does: `client_records`.)"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    StructType,
)

from springhouse.lake.sources.client_json import is_finite, is_whole_number
from springhouse.lake.sources.client_records import FieldText, Parse, RecordText

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

# Python gives up at 128 KB.
csv.field_size_limit(2**31 - 1)


def csv_parser(layout: StructType, options: Mapping[str, str]) -> Parse:
    """The function that splits a line of CSV; `layout` are its fields in their order."""
    nothing = options.get("nullvalue", "")

    def parse(text: str) -> Mapping[str, FieldText] | str | None:
        texts = csv_texts(text, options)
        if texts is None or len(texts) != len(layout.fields):
            return None
        return {
            field.name: _field_text(field_text, field.dataType)
            for field, field_text in zip(layout.fields, texts, strict=True)
            if field_text not in ("", nothing)
        }

    return parse


def csv_texts(line: str, options: Mapping[str, str]) -> list[str] | None:
    """The fields of a line; None if it is no line of CSV."""
    separator = options.get("sep", ",")
    if len(separator) == 1:
        rows = _csv_rows(line, options)
    elif (mark := next((char for char in _UNUSED if char not in line), None)) is not None:
        # Python's reader takes one character. In a quoted field it becomes the separator again.
        marked = _csv_rows(line.replace(separator, mark), {**options, "sep": mark})
        rows = [[text.replace(mark, separator) for text in row] for row in marked]
    else:
        return None
    return rows[0] if len(rows) == 1 else None


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
            # A strange quote within one line harms no other record.
            if reader.line_num > before + 1 or "unexpected end" in str(error):
                return before + 1


def _field_text(text: str, kind: DataType) -> FieldText:
    if isinstance(kind, IntegralType):
        return FieldText(text, text if is_whole_number(text) else None)
    if isinstance(kind, BooleanType):
        return FieldText(text, text if text.lower() in ("true", "false") else None)
    if isinstance(kind, DecimalType):
        return FieldText(text, text.replace(",", "") if text == text.strip() else None)
    if isinstance(kind, DoubleType | FloatType) and any(char.isdigit() for char in text):
        return FieldText(text, text if is_finite(text, kind) else None)
    return FieldText(text, text)


def csv_records(lines: Iterable[RecordText], whole: str, line_break: str) -> Iterator[RecordText]:
    """The records of lines, some of which end in a quoted field; `whole` matches a record."""
    is_whole = re.compile(whole, re.DOTALL)
    held: RecordText | None = None
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
