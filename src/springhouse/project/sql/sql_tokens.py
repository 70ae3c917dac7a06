"""Where do the words and the statements of an SQL file stand?

A lexer for Spark's dialect that keeps positions: every token is a span of the file's own text, so
whatever is cut out later is verbatim. Comments vanish here, and with them the semicolons, quotes
and keywords inside them. It knows only what is needed to find statements, clauses and names;
queries are understood by sqlglot (`sql_references`).
"""

import bisect
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import pairwise

from springhouse.errors import DeclarationError
from springhouse.project.declarations.declaration import Place

_TOKEN = re.compile(
    r"""
    (?P<space>   \s+ | --[^\n]* )
  | (?P<comment> /\* )
  | (?P<string>  [rR]'[^']*' | [rR]"[^"]*" | '(?:\\.|''|[^'\\])*' | "(?:\\.|""|[^"\\])*" )
  | (?P<quoted>  `(?:``|[^`])*` )
  | (?P<word>    \w+ )
  | (?P<open>    ['"`] )
  | (?P<symbol>  <=> | => | <= | >= | <> | != | == | -> | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[0-3][0-7]{2}|.)|(['\"])\2", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


class TokenKind(Enum):
    """What a token is."""

    WORD = "word"  # select, orders, 12, 1h
    QUOTED = "quoted"  # `a name`
    STRING = "string"  # 'text', "text", r'raw text'
    SYMBOL = "symbol"  # ( ) , ; . = => < <=


@dataclass(frozen=True, slots=True)
class Token:
    """The span `start:end` of a file's text."""

    kind: TokenKind
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Whether this is one of `words` (given in upper case) and not quoted."""
        return self.kind is TokenKind.WORD and self.text.upper() in words

    def is_symbol(self, *symbols: str) -> bool:
        """Whether this is one of `symbols`."""
        return self.kind is TokenKind.SYMBOL and self.text in symbols

    @property
    def is_name(self) -> bool:
        """Whether this can be a part of a name."""
        return self.kind in (TokenKind.WORD, TokenKind.QUOTED)

    @property
    def name(self) -> str:
        """The text without backquotes."""
        return self.text[1:-1].replace("``", "`") if self.kind is TokenKind.QUOTED else self.text


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
    """The tokens of a text, up to the first quote or comment that never ends, if there is one.

    A character that is no text (NUL; outside quotes, any control character) ends it in the same
    way: editors do not show such a character, and programs disagree about its meaning.
    """
    tokens: list[Token] = []
    at = 0
    if (nul := sql.text.find("\0")) >= 0:
        before, unclosed = tokenize(SqlText(sql.text[:nul], sql.file, sql.first_line))
        return before, unclosed or sql.error(*_unprintable(sql.text[nul], nul))
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
            case "symbol" if unicodedata.category(found[0][0]) in ("Cc", "Cf"):
                return tokens, sql.error(*_unprintable(found[0], found.start()))
            case kind:
                tokens.append(Token(TokenKind(kind), found[0], found.start(), at))
    return tokens, None


def _unprintable(character: str, offset: int) -> tuple[str, int, str]:
    hint = "Delete the character: editors do not show it."
    return f"this line has the control character U+{ord(character):04X}", offset, hint


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


def split_run_on(sql: SqlText, statement: Sequence[Token]) -> tuple[list[list[Token]], list[int]]:
    """A statement cut where the next one begins without a semicolon, and the offsets of the cuts.

    Only a CREATE that begins a line and goes on as a declaration does is such a beginning: anywhere
    else the word may be a name.
    """
    cuts = [at for at in range(1, len(statement)) if _begins_declaration(sql, statement, at)]
    edges = [0, *cuts, len(statement)]
    parts = [list(statement[start:end]) for start, end in pairwise(edges)]
    return parts, [statement[at].start for at in cuts]


_DECLARED = ("STREAMING", "MATERIALIZED", "TEMPORARY", "TEMP", "VIEW", "FLOW", "OR")


def _begins_declaration(sql: SqlText, tokens: Sequence[Token], at: int) -> bool:
    between = sql.text[tokens[at - 1].end : tokens[at].start]
    return (
        "\n" in between
        and tokens[at].is_word("CREATE")
        and at + 1 < len(tokens)
        and tokens[at + 1].is_word(*_DECLARED)
    )


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
    brackets: list[str] = []
    for at, token in enumerate(tokens):
        if token.is_symbol("(", "[") or _opens_type(tokens, at):
            brackets.append(token.text)
        elif token.is_symbol(*_OPENING):
            _close(brackets, _OPENING[token.text])
        if token.is_symbol(",") and not brackets:
            elements.append([])
        else:
            elements[-1].append(token)
    return elements if tokens else []


_OPENING = {")": "(", "]": "[", ">": "<"}


def _opens_type(tokens: Sequence[Token], at: int) -> bool:
    """Whether the < at index `at` is the bracket of `MAP<STRING, INT>`, and not an operator."""
    before = tokens[at - 1] if at else None
    return (
        tokens[at].is_symbol("<")
        and before is not None
        and before.is_word("ARRAY", "MAP", "STRUCT")
    )


def _close(brackets: list[str], opening: str) -> None:
    """Close the last bracket of a kind; angle brackets inside it were operators after all."""
    if opening == "<" and brackets[-1:] != ["<"]:
        return
    while brackets and brackets.pop() != opening:
        pass


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
    if not tokens or any(token.kind is not TokenKind.STRING for token in tokens):
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
