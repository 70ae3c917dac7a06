"""Which values can a setting have, and how is its text read?

A `ValueType` reads the text that a user wrote, or raises a `ValueError`. It also describes the
allowed values, for error messages and for the reference page.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

from springhouse.errors import DeclarationError
from springhouse.project.declarations.durations import HINT as DURATION_HINT
from springhouse.project.declarations.durations import duration_seconds
from springhouse.units import Seconds

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class ValueType(Generic[T_co]):
    """A type of value: its name, the allowed values, and the function that reads a text.

    `phrase` completes the sentence "… is "x", which is not …"; `words` are the words of a choice.
    """

    name: str
    allowed: str
    phrase: str
    parse: Callable[[str], T_co]
    hint: str | None = None
    words: tuple[str, ...] = ()

    def accepts(self, text: str) -> bool:
        """Whether the text is one of the allowed values."""
        try:
            self.parse(text)
        except (ValueError, DeclarationError):
            return False
        return True


def whole_number(least: int) -> ValueType[int]:
    """Whole numbers from `least` up.

    >>> whole_number(1).parse("2"), whole_number(1).accepts("0")
    (2, False)
    """

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise ValueError(text)
        return int(text)

    allowed = f"{least} or more"
    return ValueType("whole number", allowed, f"a whole number of {allowed}", parse)


def number(least: float, *, above: bool = False) -> ValueType[float]:
    """Finite numbers from `least` up; with `above`, only those above it.

    >>> number(0).parse("0.5"), number(0, above=True).accepts("0"), number(0).accepts("inf")
    (0.5, False, False)
    """

    def parse(text: str) -> float:
        found = float(text)
        if not least <= found < inf or (above and found == least):
            raise ValueError(text)
        return found

    allowed = f"above {least:g}" if above else f"{least:g} or more"
    phrase = f"a number above {least:g}" if above else f"a number of {allowed}"
    return ValueType("number", allowed, phrase, parse)


def duration(*, above_zero: bool = False) -> ValueType[Seconds]:
    """Durations as people write them.

    >>> duration().parse("5 minutes"), duration(above_zero=True).accepts("0")
    (300.0, False)
    """

    def parse(text: str) -> Seconds:
        found = duration_seconds(text)
        if above_zero and not found:
            raise ValueError(text)
        return found

    allowed = "above 0" if above_zero else "0 or more"
    phrase = "a duration above 0" if above_zero else "a duration"
    return ValueType("duration", allowed, phrase, parse, DURATION_HINT)


def choice(*words: str, any_case: bool = False) -> ValueType[str]:
    """One of a few words; with `any_case`, in capitals or not.

    >>> choice("refuse", "read").accepts("READ"), choice("auto", any_case=True).parse("Auto")
    (False, 'auto')
    """

    def parse(text: str) -> str:
        word = text.strip().lower() if any_case else text
        if word not in words:
            raise ValueError(text)
        return word

    allowed = ", ".join(f"`{word}`" for word in words)
    return ValueType("word", allowed, _one_of(words), parse, words=words)


def text_of(name: str, example: str = "") -> ValueType[str]:
    """Any text that is not blank, such as a name or a path."""

    def parse(text: str) -> str:
        if not text.strip():
            raise ValueError(text)
        return text

    return ValueType(name, f"such as `{example}`" if example else "", f"a {name}", parse)


def pattern(regex: str, allowed: str, phrase: str, *, k_above: float = 0.0) -> ValueType[str]:
    """Words with parameters; a number that the group `k` finds has to be above `k_above`."""

    def parse(text: str) -> str:
        found = re.fullmatch(regex, text)
        if found is None or (found["k"] is not None and float(found["k"]) <= k_above):
            raise ValueError(text)
        return text

    return ValueType("words", allowed, phrase, parse)


def _one_of(words: tuple[str, ...]) -> str:
    return f'"{words[0]}"' if len(words) == 1 else f"one of {', '.join(words)}"
