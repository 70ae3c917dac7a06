"""How long is a duration that a person wrote?

A duration is one or more amounts with units (`5 minutes`, `1h 30m`, `500 ms`), the same after the
word INTERVAL as Spark writes it (`INTERVAL '2' HOURS`), or a plain `0`. Months and years are not
allowed: they have no fixed length, so a promise could not be exact.
"""

import math
import re

from springhouse.errors import DeclarationError
from springhouse.units import Seconds

_UNITS = {
    "ms": 0.001,
    "millisecond": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "h": 3_600.0,
    "hr": 3_600.0,
    "hour": 3_600.0,
    "d": 86_400.0,
    "day": 86_400.0,
    "w": 604_800.0,
    "week": 604_800.0,
}

_AMOUNT = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?|\.\d+)\s*(?P<unit>[a-z]+)\s*(?:,|and\b)?")
_INTERVAL = re.compile(r"\s*interval\b")
_ZERO = re.compile(r"\s*0+(?:\.0+)?\s*")

HINT = 'Write it like "5 minutes", "90s", "1h 30m", "1 day" or "INTERVAL 2 HOURS".'


def duration_seconds(text: str, *, where: str | None = None) -> Seconds:
    """The length in seconds of a duration as people write it.

    >>> duration_seconds("1h 30m"), duration_seconds("INTERVAL '2' DAYS"), duration_seconds("0")
    (5400.0, 172800.0, 0.0)
    """
    # Spark quotes the amount (INTERVAL '2' HOURS) or all of it (INTERVAL '2 hours').
    plain = _INTERVAL.sub("", text.lower().replace("'", " "), count=1)
    if _ZERO.fullmatch(plain):
        return Seconds(0.0)
    spans, at = [], 0
    while amount := _AMOUNT.match(plain, at):
        size = _unit_seconds(amount["unit"])
        if size is None:
            break
        spans.append(float(amount["number"]) * size)
        at = amount.end()
    if not spans or plain[at:].strip() or not math.isfinite(math.fsum(spans)):
        raise DeclarationError(f'"{text}" is not a duration', where=where, hint=HINT)
    return Seconds(math.fsum(spans))


def _unit_seconds(unit: str) -> float | None:
    return _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
