"""Where in a file does a piece of SQL stand?

sqlglot's tokenizer cuts a text into tokens, and each token knows its offsets. `SqlText` turns an
offset into a line of the user's file, and a run of tokens into the text as the user wrote it.
`tokenize` adds what sqlglot leaves open: where a quote or a comment begins that never ends, and
characters that no editor shows.
"""

import bisect
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from springhouse.errors import DeclarationError
from springhouse.project.declarations.declaration import Place
from springhouse.project.sql.tokenizer import is_string, is_word, project_tokenizer

_TEXTS = frozenset({TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER, TokenType.HINT})
_QUOTES = ("'", '"', "`")


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
        return self.text[tokens[0].start : tokens[-1].end + 1] if tokens else ""


def tokenize(sql: SqlText) -> tuple[list[Token], DeclarationError | None]:
    """The tokens of a text, up to the first quote or comment that never ends, if there is one.

    A character that is no text (NUL; outside quotes, any control character) ends the tokens in the
    same way: editors do not show such a character, and programs disagree about its meaning.
    """
    if (nul := sql.text.find("\0")) >= 0:
        tokens, unclosed = tokenize(SqlText(sql.text[:nul], sql.file, sql.first_line))
        return tokens, unclosed or _unprintable(sql, nul)
    tokens, error = _closed_tokens(sql)
    for count, token in enumerate(tokens):
        if token.token_type in _TEXTS:
            continue
        for offset in range(token.start, token.end + 1):
            if unicodedata.category(sql.text[offset]) in ("Cc", "Cf"):
                return tokens[:count], _unprintable(sql, offset)
    return tokens, error


def _closed_tokens(sql: SqlText) -> tuple[list[Token], DeclarationError | None]:
    tokenizer = project_tokenizer()
    try:
        # The semicolon is found only if no comment before it is open.
        tokens = tokenizer.tokenize(f"{sql.text}\n;")
    except TokenError as error:
        tokens = list(tokenizer.tokens)
        opening = _QUOTES if "Missing" in str(error.__cause__) else ("/*",)
    else:
        if tokens[-1].start == len(sql.text) + 1:
            return tokens[:-1], None
        opening = ("/*",)
    at = _first_outside_of_comments(sql.text, tokens, opening)
    if at is None:
        return tokens, sql.error("this SQL does not parse", tokens[-1].end + 1 if tokens else 0)
    shown = "comment" if opening == ("/*",) else sql.text[at]
    return tokens, sql.error(f"this {shown} is never closed", at)


def _first_outside_of_comments(
    text: str, tokens: Sequence[Token], opening: tuple[str, ...]
) -> int | None:
    """The offset of the first of the signs `opening` behind the tokens that no comment contains."""
    for at in range(tokens[-1].end + 1 if tokens else 0, len(text)):
        if not text.startswith(opening, at):
            continue
        try:
            # A word in place of the rest is one more token, except inside a comment.
            probe = project_tokenizer().tokenize(f"{text[:at]} x")
        except TokenError:
            continue
        if len(probe) > len(tokens):
            return at
    return None


def _unprintable(sql: SqlText, offset: int) -> DeclarationError:
    problem = f"this line has the control character U+{ord(sql.text[offset]):04X}"
    return sql.error(problem, offset, "Delete the character: editors do not show it.")


def split_statements(tokens: Sequence[Token]) -> list[list[Token]]:
    """The statements of a file: the tokens between semicolons."""
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    return [statement for statement in statements if statement]


def split_run_on(sql: SqlText, statement: Sequence[Token]) -> tuple[list[list[Token]], list[int]]:
    """A statement cut where the next one begins without a semicolon, and the offsets of the cuts.

    Only a CREATE that begins a line and continues like a declaration is such a beginning: elsewhere
    the word may be a name.
    """
    cuts = list(_missing_semicolons(sql, statement))
    edges = [0, *cuts, len(statement)]
    parts = [list(statement[start:end]) for start, end in pairwise(edges)]
    return parts, [statement[at].start for at in cuts]


_DECLARED = ("STREAMING", "MATERIALIZED", "TEMPORARY", "TEMP", "VIEW", "FLOW", "OR")


def _missing_semicolons(sql: SqlText, tokens: Sequence[Token]) -> Iterator[int]:
    for at in range(1, len(tokens) - 1):
        between = sql.text[tokens[at - 1].end + 1 : tokens[at].start]
        if (
            "\n" in between
            and is_word(tokens[at], "CREATE")
            and is_word(tokens[at + 1], *_DECLARED)
        ):
            yield at


def string_value(text: str, tokens: Sequence[Token]) -> str | None:
    """The value of a string literal of `text`, or of several side by side; None for anything else.

    >>> string_value("'it''s' ' here'", tokenize(SqlText("'it''s' ' here'", ""))[0])
    "it's here"
    """
    if not tokens or not all(map(is_string, tokens)):
        return None
    value = tokens[0].text
    for before, token in pairwise(tokens):
        # In sqlglot's eyes 'it''s' is two strings; for Spark the doubled quote stands for one.
        doubled = before.end + 1 == token.start and text[before.end] == text[token.start]
        value += (text[token.start] if doubled else "") + token.text
    return value
