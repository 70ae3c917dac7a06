"""Where do the words and the statements of an SQL file stand?

A lexer for Spark's dialect that keeps positions: every token is a span of the file's own text, so
whatever is cut out later is verbatim. Comments vanish here, and with them the semicolons, quotes
and keywords inside them. It knows only what is needed to find statements, clauses and names;
queries are understood by sqlglot (`sql_references`).
"""

import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from springhouse.errors import DeclarationError
from springhouse.project.declaration import Place

_TOKEN = re.compile(
    r"""
    (?P<space>   \s+ | --[^\n]* )
  | (?P<comment> /\* )
  | (?P<string>  [rR]'[^']*' | [rR]"[^"]*" | '(?:\\.|''|[^'\\])*' | "(?:\\.|""|[^"\\])*" )
  | (?P<quoted>  `(?:``|[^`])*` )
  | (?P<word>    \w+ )
  | (?P<open>    ['"`] )
  | (?P<symbol>  => | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[0-3][0-7]{2}|.)|(['\"])\2", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


class Kind(Enum):
    """What a token is."""

    WORD = "word"  # select, orders, 12, 1h
    QUOTED = "quoted"  # `a name`
    STRING = "string"  # 'text', "text", r'raw text'
    SYMBOL = "symbol"  # ( ) , ; . = =>


@dataclass(frozen=True, slots=True)
class Token:
    """The span `start:end` of a file's text."""

    kind: Kind
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Whether this is one of `words` (given in upper case) and not quoted."""
        return self.kind is Kind.WORD and self.text.upper() in words

    def is_symbol(self, *symbols: str) -> bool:
        """Whether this is one of `symbols`."""
        return self.kind is Kind.SYMBOL and self.text in symbols

    @property
    def is_name(self) -> bool:
        """Whether this can be a part of a name."""
        return self.kind in (Kind.WORD, Kind.QUOTED)

    @property
    def name(self) -> str:
        """The text without backquotes."""
        return self.text[1:-1].replace("``", "`") if self.kind is Kind.QUOTED else self.text


@dataclass(frozen=True)
class SqlText:
    """Some SQL and the file that it stands in, beginning at `first_line`."""

    text: str
    file: str
    first_line: int = 1

    @cached_property
    def _newlines(self) -> list[int]:
        return [at for at, character in enumerate(self.text) if character == "\n"]

    def place(self, offset: int) -> Place:
        """The line of the character at `offset`."""
        return Place(self.file, self.first_line + bisect.bisect_left(self._newlines, offset))

    def error(self, problem: str, offset: int, hint: str | None = None) -> DeclarationError:
        """An error at the character at `offset`."""
        return DeclarationError(problem, where=str(self.place(offset)), hint=hint)

    def slice(self, tokens: Sequence[Token]) -> str:
        """The text from the first of `tokens` to the last, as it was written."""
        return self.text[tokens[0].start : tokens[-1].end] if tokens else ""


def tokenize(sql: SqlText) -> tuple[list[Token], DeclarationError | None]:
    """The tokens of a text, up to the first quote or comment that never ends, if there is one."""
    tokens: list[Token] = []
    at = 0
    while found := _TOKEN.match(sql.text, at):
        at = found.end()
        match found.lastgroup:
            case "space":
                continue
            case "comment":
                end = _comment_end(sql.text, at)
                if end is None:
                    return tokens, sql.error("this comment is never closed", found.start())
                at = end
            case "open":
                return tokens, sql.error(f"this {found[0]} is never closed", found.start())
            case kind:
                tokens.append(Token(Kind(kind), found[0], found.start(), at))
    return tokens, None


def _comment_end(text: str, at: int) -> int | None:
    """Where a comment ends that was opened just before `at`; comments nest, as in Spark."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, at):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return None


def split(tokens: Sequence[Token]) -> list[list[Token]]:
    """The statements of a file: what stands between semicolons, without them."""
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token.is_symbol(";"):
            statements.append([])
        else:
            statements[-1].append(token)
    return [statement for statement in statements if statement]


def closing(tokens: Sequence[Token], opening: int) -> int | None:
    """The index of the parenthesis that closes the one at index `opening`."""
    depth = 0
    for index in range(opening, len(tokens)):
        if tokens[index].is_symbol("("):
            depth += 1
        elif tokens[index].is_symbol(")"):
            depth -= 1
            if depth == 0:
                return index
    return None


def split_commas(tokens: Sequence[Token]) -> list[list[Token]]:
    """The elements of a list: what stands between commas that no bracket encloses."""
    elements: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        # Angle brackets too: `MAP<STRING, INT>` is one element. In an expression `a < b` they are
        # unbalanced, but there a comma that matters is always inside parentheses of its own.
        depth += token.is_symbol("(", "[", "<") - token.is_symbol(")", "]", ">")
        if token.is_symbol(",") and depth <= 0:
            elements.append([])
        else:
            elements[-1].append(token)
    return elements if tokens else []


def check_parentheses(sql: SqlText, tokens: Sequence[Token]) -> None:
    """Raise an error at the parenthesis that has no partner, if there is one."""
    unclosed: list[Token] = []
    for token in tokens:
        if token.is_symbol("("):
            unclosed.append(token)
        elif token.is_symbol(")"):
            if not unclosed:
                raise sql.error("this ) closes nothing", token.start)
            unclosed.pop()
    if unclosed:
        raise sql.error("this ( is never closed", unclosed[-1].start)


def string_value(tokens: Sequence[Token]) -> str | None:
    """The value of a string literal, or of several side by side; None for anything else.

    >>> string_value(tokenize(SqlText("'it''s' ' here'", ""))[0])
    "it's here"
    """
    if not tokens or any(token.kind is not Kind.STRING for token in tokens):
        return None
    return "".join(_unquoted(token.text) for token in tokens)


def _unquoted(text: str) -> str:
    if text[0] in "rR":
        return text[2:-1]
    return _ESCAPE.sub(_unescaped, text[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    if found[2]:
        return found[2]
    escape = found[1]
    if len(escape) > 1:
        return chr(int(escape[1:], 16) if escape[0] == "u" else int(escape, 8))
    # Spark leaves \% and \_ alone, for LIKE to see.
    return found[0] if escape in "%_" else _ESCAPED.get(escape, escape)
