"""How does the client split a JSON record into fields? (Why it does: `client_records`.)

Python's decoder finds where a value ends, and the text of the value stays as it is written: a
number of many digits would lose some as a float.
"""

import json
import math
import re
import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    StringType,
    StructType,
    TimestampType,
)

from springhouse.lake.sources.client_records import FieldText, Parse, RecordText
from springhouse.lake.sources.records import strangers

_BLANKS = re.compile(r"[ \t\r\n]*")
_WHOLE = re.compile(r"[+-]?\d+")
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity", "+Infinity", "INF", "-INF", "+INF")


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_float=_Number, parse_int=_Number, parse_constant=_Number)


def json_records(line: RecordText) -> Iterator[RecordText]:
    """The records of a line: the elements of an array, or else the line itself."""
    text = line.text
    if not text.lstrip(" \t").startswith("["):
        yield line
        return
    try:
        yield from [RecordText(element, line.file, line.problem) for element in _elements(text)]
    except (ValueError, RecursionError):
        yield line


def json_parser(wanted: StructType) -> Parse:
    """The function that splits a JSON object into the fields `wanted`."""
    types = {field.name: field.dataType for field in wanted.fields}

    def parse(text: str) -> Mapping[str, FieldText] | str | None:
        try:
            members = list(_members(text))
        except (ValueError, RecursionError):
            return None
        names = dict.fromkeys(name for name, _, _ in members)
        if names and not names.keys() & types.keys():
            return strangers([*names], types)
        return {
            name: _field_text(value, source, types[name])
            for name, value, source in members
            if name in types
        }

    return parse


def _after_blanks(text: str, place: int) -> int:
    blanks = _BLANKS.match(text, place)
    assert blanks is not None
    return blanks.end()


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


def _field_text(value: Any, source: str, kind: DataType) -> FieldText:
    """A field by its value and the text in which the record has it (`source`)."""
    if value is None:
        return FieldText()
    if isinstance(value, _Number):
        return FieldText(source, _number_text(source, kind))
    if isinstance(value, str):
        return FieldText(value, _string_text(value, kind))
    # true, false, an array or an object.
    is_boolean = isinstance(value, bool) and isinstance(kind, BooleanType)
    return FieldText(source, source if is_boolean or isinstance(kind, StringType) else None)


def _number_text(source: str, kind: DataType) -> str | None:
    """The text to cast of a number; None if it does not fit the type."""
    if isinstance(kind, TimestampType):
        return _timestamp(int(source)) if is_whole_number(source) else None
    if isinstance(kind, IntegralType):
        fits = is_whole_number(source)
    elif isinstance(kind, DoubleType | FloatType):
        fits = is_finite(source, kind)
    else:
        fits = isinstance(kind, StringType | DecimalType)
    return source if fits else None


def _string_text(text: str, kind: DataType) -> str | None:
    """The text to cast of a string in quotes; None if it does not fit the type."""
    if isinstance(kind, DecimalType):
        return text.replace(",", "") if text == text.strip() else None
    if isinstance(kind, DoubleType | FloatType):
        return text if text in _NO_NUMBERS else None
    return None if isinstance(kind, BooleanType | IntegralType) else text


def is_whole_number(text: str) -> bool:
    """Whether a text is a number without a fraction."""
    return _WHOLE.fullmatch(text) is not None


def is_finite(text: str, kind: DataType) -> bool:
    """Whether a number in digits is a finite FLOAT or DOUBLE."""
    try:
        struct.pack("<f" if isinstance(kind, FloatType) else "<d", number := float(text))
    except (ValueError, OverflowError):
        return False
    return not math.isinf(number)


def _timestamp(seconds: int) -> str | None:
    """A moment that is written as seconds since 1970."""
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).isoformat()
    except OverflowError:
        return None
