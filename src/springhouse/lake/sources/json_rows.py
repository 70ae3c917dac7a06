"""How does a row become a line of JSON?

Every column has its name, and NULL is null. Values for which JSON has no type are written as
Spark's `to_json` writes them, so that Spark reads them with the same types: a decimal is a number
with all its digits, a timestamp an ISO 8601 text in UTC, bytes are base64, a map is an object.
"""

import json
import math
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

_text = json.encoder.encode_basestring
"""A text in quotes, as `json.dumps` writes it, without looking at its type."""


def json_rows(rows: pa.RecordBatch) -> list[str]:
    """The rows, each as one JSON object without a line break.

    >>> json_rows(pa.record_batch({"id": [1, None], "name": ["Jo", "x"]}))
    ['{"id":1,"name":"Jo"}', '{"id":null,"name":"x"}']
    """
    columns = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        start = _text(name) + ":"
        encode = _encoder(column.type)
        columns.append([start + encode(value) for value in column.to_pylist()])
    return ["{" + ",".join(parts) + "}" for parts in zip(*columns, strict=True)]


def _encoder(kind: pa.DataType) -> Callable[[Any], str]:
    """The fastest function that writes values of this type."""
    if pa.types.is_integer(kind):
        return lambda value: "null" if value is None else str(value)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lambda value: "null" if value is None else _text(value)
    if pa.types.is_map(kind):
        # Arrow returns a map as pairs, which could also be a list of structs.
        return lambda value: "null" if value is None else json_value(dict(value))
    return json_value


def json_value(value: Any) -> str:
    """A value of any type.

    >>> json_value([Decimal("1.50"), float("nan"), b"hi", {"at": date(2026, 1, 31)}])
    '[1.50,"NaN","aGk=",{"at":"2026-01-31"}]'
    """
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else _text(_NOT_FINITE[str(value)])
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return _text(b64encode(value).decode())
    if isinstance(value, datetime):
        return _text(_moment(value))
    if isinstance(value, date):
        return _text(value.isoformat())
    if isinstance(value, Mapping):
        inside = (f"{_text(str(key))}:{json_value(each)}" for key, each in value.items())
        return "{" + ",".join(inside) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_value, value)) + "]"
    return _text(str(value))


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _moment(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
