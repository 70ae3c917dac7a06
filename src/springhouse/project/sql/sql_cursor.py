"""How does one read a statement from left to right?

A `Cursor` stands between two tokens of a statement. Its methods step over what they are asked for
and return it, or say what was expected and what was found instead.
"""

from collections.abc import Sequence

from springhouse.errors import DeclarationError
from springhouse.project.declarations.declaration import Place
from springhouse.project.sql.sql_tokens import SqlText, Token, TokenKind, closing, string_value


class Cursor:
    """A position in the tokens of one statement."""

    def __init__(self, sql: SqlText, tokens: Sequence[Token]) -> None:
        self.sql = sql
        self.tokens = tokens
        self.at = 0

    @property
    def next(self) -> Token | None:
        """The token to the right, if there is one."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    @property
    def offset(self) -> int:
        """Where the next token begins, or where the last one ended."""
        return self.next.start if self.next is not None else self.tokens[-1].end

    @property
    def place(self) -> Place:
        """The line of the next token."""
        return self.sql.place(self.offset)

    def sees(self, *words: str) -> bool:
        """Whether `words` come next."""
        ahead = self.tokens[self.at : self.at + len(words)]
        return len(ahead) == len(words) and all(
            token.is_word(word) for token, word in zip(ahead, words, strict=True)
        )

    def sees_symbol(self, symbol: str) -> bool:
        """Whether `symbol` comes next."""
        return self.next is not None and self.next.is_symbol(symbol)

    def accept(self, *words: str) -> bool:
        """Step over `words` if they come next."""
        seen = self.sees(*words)
        self.at += len(words) if seen else 0
        return seen

    def accept_symbol(self, symbol: str) -> bool:
        """Step over `symbol` if it comes next."""
        seen = self.sees_symbol(symbol)
        self.at += seen
        return seen

    def expect(self, *words: str) -> None:
        """Step over `words`, which must come next."""
        for word in words:
            if not self.accept(word):
                raise self.unexpected(word)

    def unexpected(self, expected: str, hint: str | None = None) -> DeclarationError:
        """The error that something else comes next."""
        found = f'"{self.next.text}"' if self.next is not None else "the end of the statement"
        return self.sql.error(f"expected {expected}, found {found}", self.offset, hint)

    def name_parts(self, what: str) -> list[str]:
        """A dotted name: `shop.orders`, "`my table`"."""
        parts = []
        while self.next is not None and self.next.is_name:
            parts.append(self.next.name)
            self.at += 1
            if not self.accept_symbol("."):
                return parts
        raise self.unexpected(what)

    def name(self, what: str) -> str:
        """A name of one part."""
        if self.next is None or not self.next.is_name:
            raise self.unexpected(what)
        self.at += 1
        return self.tokens[self.at - 1].name

    def string(self, what: str) -> str:
        """The value of a string literal, or of several side by side."""
        start = self.at
        while self.next is not None and self.next.kind is TokenKind.STRING:
            self.at += 1
        value = string_value(self.tokens[start : self.at])
        if value is None:
            raise self.unexpected(what)
        return value

    def parenthesised(self, what: str) -> Sequence[Token]:
        """What stands between the parentheses that come next."""
        if not self.sees_symbol("("):
            raise self.unexpected(what)
        close = closing(self.tokens, self.at)
        if close is None:
            raise self.sql.error("this ( is never closed", self.offset)
        inside = self.tokens[self.at + 1 : close]
        self.at = close + 1
        return inside

    def rest(self) -> Sequence[Token]:
        """Everything to the right."""
        remaining = self.tokens[self.at :]
        self.at = len(self.tokens)
        return remaining

    def expect_end(self) -> None:
        """The statement must end here."""
        if self.next is not None:
            raise self.unexpected("the end of the statement")
