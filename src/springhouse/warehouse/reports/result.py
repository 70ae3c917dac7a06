"""How does a report become JSON?

A report is a frozen dataclass. Moments are `datetime` values in UTC, so they become ISO 8601 with a
Z; durations are numbers of seconds, and their names end in `_seconds`.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, ClassVar

from springhouse.units import Instant


class Result:
    """A report: a frozen dataclass with a `to_dict`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, in the types that JSON has; moments as ISO 8601 in UTC."""
        return _fields(self)


def utc(at: Instant | float) -> datetime:
    """The moment as a `datetime` in UTC.

    >>> utc(0).isoformat()
    '1970-01-01T00:00:00+00:00'
    """
    return datetime.fromtimestamp(at, UTC)


def iso_text(at: datetime) -> str:
    """The moment in ISO 8601, in UTC and with milliseconds.

    >>> iso_text(utc(0.25))
    '1970-01-01T00:00:00.250Z'
    """
    text = at.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: _json(getattr(value, field.name)) for field in fields(value)}


def _json(value: Any) -> Any:
    if isinstance(value, Result):
        return value.to_dict()
    if is_dataclass(value):
        return _fields(value)
    match value:
        case datetime():
            return iso_text(value)
        case float():
            return value if math.isfinite(value) else None
        case Enum():
            return value.value
        case Mapping():
            return {str(key): _json(item) for key, item in value.items()}
        case list() | tuple():
            return [_json(item) for item in value]
        case set() | frozenset():
            return sorted(_json(item) for item in value)
        case _:
            return value
