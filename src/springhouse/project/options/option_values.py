"""Which value does the text of an option stand for?

Options come from SQL as text. Each function here turns a text into a value. A wrong text is an
error that names the option, the text, and what would be right. The caller adds the place.
"""

from datetime import UTC, datetime
from fractions import Fraction

from springhouse.errors import SourceError


def flag(option: str, text: str) -> bool:
    """True or false.

    >>> flag("header", "TRUE")
    True
    """
    meanings = {"true": True, "false": False}
    if text.lower() not in meanings:
        raise wrong_option(option, text, "true or false")
    return meanings[text.lower()]


def whole_number(option: str, text: str, least: int) -> int:
    """A whole number that is at least `least`."""
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise wrong_option(option, text, f"a whole number, at least {least}")
    return number


def positive_number(option: str, text: str) -> Fraction:
    """An exact number above 0.

    >>> positive_number("rate", "2.5")
    Fraction(5, 2)
    """
    try:
        number = Fraction(text)
    except (ValueError, ZeroDivisionError):
        number = Fraction(0)
    if number <= 0:
        raise wrong_option(option, text, "a number above 0")
    return number


def timestamp_value(option: str, text: str) -> datetime:
    """A timestamp; without a time zone it is in UTC."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise wrong_option(option, text, "a timestamp such as 2026-01-31 12:00:00") from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def wrong_option(option: str, text: str, wanted: str) -> SourceError:
    """The error of an option whose text is not an allowed value."""
    return SourceError(f"{option} => '{text}' is not {wanted}", hint=f"Give {option} as {wanted}.")
