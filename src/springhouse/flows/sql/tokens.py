"""Which words, numbers, strings and operators does a text of SQL consist of?

As Spark's lexer has it: strings in single or double quotes with backslash escapes, names in
backquotes, suffixes of numbers. A general SQL parser reads some of these in another way, or
forgets a part; so flows have a small one of their own, which refuses what it does not know.
"""

import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from springhouse.flows.flow_graph import FlowError


class ExpressionToken(NamedTuple):
    """One token: `kind` is word, name, text, number, sign or end; `at` is its place in the text."""

    kind: str
    text: str
    at: int

    def means(self, *words: str) -> bool:
        """Whether it is one of these words or signs (words in capitals)."""
        return self.kind in ("word", "sign") and self.text.upper() in words


_PATTERN = re.compile(
    r"""
    (?P<blank>\s+ | --(?:\\\n|[^\r\n])* | /\*.*?\*/)
  | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
  | (?P<text>'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*")
  | (?P<name>`(?:[^`]|``)*`)
  | (?P<number>(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?
               (?:[bB][dD]|[LlSsYyDdFf])?(?![\w]))
  | (?P<word>[^\W\d]\w*)
  | (?P<sign><=>|<>|!=|==|<=|>=|\|\||::|[-+*/%=<>!~&|^(),.:\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_MEANINGS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def tokenize(text: str) -> list[ExpressionToken]:
    """All tokens of a text, and an end."""
    return [*_tokens(text), ExpressionToken("end", "", len(text))]


def _tokens(text: str) -> Iterator[ExpressionToken]:
    at = 0
    while at < len(text):
        found = _PATTERN.match(text, at)
        if found is None:
            raise FlowError(f'"{text}" is not SQL: nothing is known that begins with "{text[at:]}"')
        kind, whole = found.lastgroup, found.group()
        if kind == "raw":
            yield ExpressionToken("text", whole[2:-1], at)
        elif kind == "text":
            yield ExpressionToken("text", unescaped(whole), at)
        elif kind == "name":
            yield ExpressionToken("name", whole[1:-1].replace("``", "`"), at)
        elif kind is not None and kind != "blank":
            yield ExpressionToken(kind, whole, at)
        at = found.end()


def unescaped(quoted: str) -> str:
    r"""The value of a string in quotes.

    >>> unescaped(r"'it''s\n100\%'")
    "it's\n100\\%"
    """
    quote = quoted[0]
    pieces = []
    inside, at = quoted[1:-1], 0
    while at < len(inside):
        if inside[at] == "\\":
            found = _ESCAPED.match(inside, at)
            assert found is not None, "a backslash is never the last character"
            pieces.append(_meaning(found))
            at = found.end()
        else:
            pieces.append(inside[at])
            at += 2 if inside[at] == quote else 1
    try:
        # A character beyond the first 65,536 may be spelled as two halves, as Java has it.
        return "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise FlowError(f"{quoted} has half a character: a \\u without its other half") from None


def _meaning(found: re.Match[str]) -> str:
    short, long, octal, other = found.groups()
    if short or long:
        number = int(short or long, 16)
        if number > sys.maxunicode:
            raise FlowError(f"there is no character \\U{long}")
        return chr(number)
    if octal:
        return chr(int(octal, 8))
    # A pattern of LIKE keeps its escapes.
    return f"\\{other}" if other in "%_" else _MEANINGS.get(other, str(other))
