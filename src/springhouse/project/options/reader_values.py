"""Which texts do Spark's file readers accept as the values of their options?

Spark reads a value when it opens the first file, and a wrong one then fails with a Java error.
These functions find the same errors before Spark starts. A test compares them with Spark.
"""

import re
from collections.abc import Callable, Mapping
from zoneinfo import ZoneInfo

from springhouse.errors import SourceError
from springhouse.project.declarations.names import did_you_mean
from springhouse.project.options.option_values import flag, whole_number, wrong_option

ENCODINGS = ("iso-8859-1", "us-ascii", "utf-16", "utf-16be", "utf-16le", "utf-32", "utf-8")

_FLAGS = (
    "primitivesAsString prefersDecimal dropFieldIfAllNull allowComments allowUnquotedFieldNames "
    "allowSingleQuotes allowNumericLeadingZeros allowBackslashEscapingAnyCharacter "
    "allowUnquotedControlChars allowNonNumericNumbers enableDateTimeParsingFallback "
    "ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace preferDate wholetext"
)
_CHARACTERS = "quote escape comment charToEscapeQuoteEscaping"
_WORDS: Mapping[str, tuple[str, ...]] = {
    "unescapedQuoteHandling": (
        *("STOP_AT_CLOSING_QUOTE", "BACK_TO_DELIMITER", "STOP_AT_DELIMITER"),
        *("SKIP_VALUE", "RAISE_ERROR"),
    ),
    "datetimeRebaseMode": ("EXCEPTION", "CORRECTED", "LEGACY"),
    "int96RebaseMode": ("EXCEPTION", "CORRECTED", "LEGACY"),
}
_ESCAPES = {"t": "\t", "r": "\r", "b": "\b", "f": "\f", "u0000": "\0"}
_ESCAPE = re.compile(r"\\(u0000|[trbf\"'\\]|)", re.DOTALL)
_ZONE = re.compile(
    r"Z|(?:UTC|GMT|UT)?[+-](?:0?\d|1[0-8])(?::?[0-5]\d(?::?[0-5]\d)?)?", re.IGNORECASE
)

# The short names that Java knows.
_SHORT_ZONES = frozenset(
    {"ACT", "AET", "AGT", "ART", "AST", "BET", "BST", "CAT", "CNT", "CST", "CTT", "EAT", "ECT"}
    | {"IET", "IST", "JST", "MIT", "NET", "NST", "PLT", "PNT", "PRT", "PST", "SST", "VST"}
)


def check_value(option: str, text: str) -> None:
    """Raise an error for a text that Spark does not accept as the value of an option.

    >>> check_value("allowComments", "true")
    >>> check_value("quote", "''")
    Traceback (most recent call last):
    springhouse.errors.SourceError: quote => '''' is not one character
      hint: Give quote as one character.
    """
    check = _CHECKS.get(option.lower())
    if check is not None:
        check(option, text)


def delimiter(text: str) -> str:
    r"""The characters between two fields, with escape sequences as Spark reads them.

    >>> delimiter(r"\t"), delimiter("||")
    ('\t', '||')
    """
    if not text or "" in _ESCAPE.findall(text):
        raise wrong_option(
            "delimiter", text, "one or more characters; a backslash is written twice"
        )
    return _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), text)


def _character(option: str, text: str) -> None:
    # Spark counts in UTF-16.
    if len(text.encode("utf-16-le")) > 2:
        raise wrong_option(option, text, "one character")


def _columns(option: str, text: str) -> None:
    whole_number(option, text, least=1)


def _characters(option: str, text: str) -> None:
    whole_number(option, text, least=-1)


def _share(option: str, text: str) -> None:
    if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", text) or not 0 < float(text) <= 1:
        raise wrong_option(option, text, "a number above 0 and up to 1")


def _separator(option: str, text: str) -> None:
    if not text:
        raise wrong_option(option, text, "one or more characters")


def _encoding(option: str, text: str) -> None:
    if text.lower() not in ENCODINGS:
        problem = f"Spark does not read the encoding '{text}'"
        hint = did_you_mean(text.lower(), ENCODINGS)
        raise SourceError(problem, hint=hint or f"It reads {', '.join(ENCODINGS)}.")


def _zone(option: str, text: str) -> None:
    try:
        known = any((text in _SHORT_ZONES, _ZONE.fullmatch(text))) or bool(ZoneInfo(text))
    except (KeyError, ValueError, OSError):
        known = False
    if not known:
        raise wrong_option(option, text, "a time zone, such as Europe/Oslo or +01:00")


def _word(option: str, text: str) -> None:
    words = next(words for name, words in _WORDS.items() if name.lower() == option.lower())
    # For Spark, case matters in the modes, and not in the handling of quotes.
    word = text.upper() if option.lower() == "unescapedquotehandling" else text
    if word not in words:
        raise wrong_option(option, text, f"one of {', '.join(words)}")


_CHECKS: Mapping[str, Callable[[str, str], object]] = {
    **dict.fromkeys(_FLAGS.lower().split(), flag),
    **dict.fromkeys(_CHARACTERS.lower().split(), _character),
    "maxcolumns": _columns,
    "maxcharspercolumn": _characters,
    **dict.fromkeys((name.lower() for name in _WORDS), _word),
    "samplingratio": _share,
    "linesep": _separator,
    "encoding": _encoding,
    "timezone": _zone,
}
