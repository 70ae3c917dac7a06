"""How does one read a statement from left to right?

sqlglot's parser stands between two tokens. These methods step over what they are asked for and
return it, or say what was expected and what stands there instead.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser

from springhouse.project.sql.sql_text import string_value
from springhouse.project.sql.tokenizer import is_name, is_string

_Node = TypeVar("_Node", bound=exp.Expr)

_BRACKETS = {
    TokenType.L_PAREN: TokenType.R_PAREN,
    TokenType.L_BRACKET: TokenType.R_BRACKET,
    TokenType.LT: TokenType.GT,
}
_NESTED_TYPES = (TokenType.ARRAY, TokenType.MAP, TokenType.STRUCT)


class GrammarError(SqlglotError):
    """What is wrong at an offset of the text, in the user's words.

    It is no `ParseError`, because sqlglot takes those as a sign to try another rule.
    """

    def __init__(self, problem: str, offset: int, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.offset = offset
        self.hint = hint


class StepParser(SparkParser):
    """The parser of Spark's dialect, with steps whose errors speak to the user."""

    def raise_error(self, message: str, token: Token | None = None) -> None:
        """An error of sqlglot's rules; for what is missing, at the token before it."""
        if token is None and "missing" in message and self._prev:
            token = self._prev
        if token is None:
            super().raise_error(message)
        else:
            super().raise_error(message, token)

    # Looking ahead

    def _ahead(self, steps: int = 0) -> Token | None:
        at = self._index + steps
        return self._tokens[at] if at < self._tokens_size else None

    def _offset(self) -> int:
        """Where the next token begins, or where the last one ended."""
        return self._curr.start if self._curr else self._tokens[-1].end + 1

    def _count(self, words: Sequence[str]) -> int:
        """How many tokens `words` are, if they come next; 0 if not."""
        at, rest = 0, list(words)
        while rest:
            token = self._ahead(at)
            if token is None or is_string(token) or token.token_type is TokenType.IDENTIFIER:
                return 0
            # Some words are one token for sqlglot: PARTITIONED BY.
            parts = token.text.upper().split()
            if rest[: len(parts)] != parts:
                return 0
            rest = rest[len(parts) :]
            at += 1
        return at

    def _sees(self, *words: str) -> bool:
        """Whether `words` come next."""
        return self._count(words) > 0

    def _sees_sign(self, token_type: TokenType) -> bool:
        """Whether a sign comes next, such as a parenthesis."""
        return bool(self._curr) and self._curr.token_type is token_type

    # Stepping

    def _accept(self, *words: str) -> bool:
        """Step over `words` if they come next."""
        count = self._count(words)
        if count:
            self._advance(count)
        return count > 0

    def _expect(self, *words: str) -> None:
        """Step over `words`, which must come next."""
        for word in words:
            if not self._accept(word):
                raise self._unexpected(word)

    def _name_parts(self, what: str) -> list[str]:
        """A dotted name: `shop.orders`, "`my table`"."""
        parts = []
        while self._curr and is_name(self._curr):
            parts.append(self._curr.text)
            self._advance()
            if not self._match(TokenType.DOT):
                return parts
        raise self._unexpected(what)

    def _name(self, what: str) -> str:
        """A name of one part."""
        if not self._curr or not is_name(self._curr):
            raise self._unexpected(what)
        self._advance()
        return self._prev.text

    def _text(self, what: str) -> str:
        """The value of a string literal, or of several side by side."""
        start = self._index
        while self._curr and is_string(self._curr):
            self._advance()
        value = string_value(self.sql, self._tokens[start : self._index])
        if value is None:
            raise self._unexpected(what)
        return value

    def _expect_end(self) -> None:
        """The statement must end here."""
        if self._curr:
            raise self._unexpected("the end of the statement")

    # Lists

    def _elements(self, what: str) -> Iterator[int]:
        """Step into parentheses and yield at the start of each element; the caller reads it.

        The value is the offset at which the list begins.
        """
        opening = self._open(what)
        if not self._match(TokenType.R_PAREN):
            while True:
                yield opening
                if not self._match(TokenType.COMMA):
                    break
            if not self._match(TokenType.R_PAREN):
                raise self._unexpected("a comma or )")

    def _open(self, what: str) -> int:
        """Step over an opening parenthesis; where it stands."""
        offset = self._offset()
        if not self._match(TokenType.L_PAREN):
            raise self._unexpected(what)
        return offset

    def _at_end_of_element(self) -> bool:
        return not self._curr or self._curr.token_type in (TokenType.COMMA, TokenType.R_PAREN)

    def _skip_element(self) -> Sequence[Token]:
        """Step to the comma or the parenthesis that ends an element; the tokens of the element."""
        start = self._index
        closing: list[TokenType] = []
        while self._curr and (closing or not self._at_end_of_element()):
            kind = self._curr.token_type
            if kind is TokenType.LT and self._prev.token_type not in _NESTED_TYPES:
                pass  # An operator, and no bracket of a type.
            elif kind in _BRACKETS:
                closing.append(_BRACKETS[kind])
            elif kind is not TokenType.GT and kind in closing:
                # An angle bracket that is still open was an operator after all.
                while closing.pop() is not kind:
                    pass
            elif closing and kind is closing[-1]:
                closing.pop()
            elif kind is TokenType.R_PAREN:
                break
            self._advance()
        return self._tokens[start : self._index]

    def _skip_parentheses(self, what: str) -> None:
        """Step over parentheses and all that they contain."""
        for _ in self._elements(what):
            self._skip_element()

    # Results and errors

    def _written(self, first: Token, last: Token | None = None) -> str:
        """The text of a token, or of a run of tokens, as the user wrote it."""
        return self.sql[first.start : (last or first).end + 1]

    def _located(self, node: _Node, first: int, last: int | None = None) -> _Node:
        """The node, with its place: from the token at index `first` to `last`, or up to here."""
        end = self._tokens[last if last is not None else self._index - 1].end + 1
        node.meta["span"] = (self._tokens[first].start, end)
        return node

    def _unexpected(self, expected: str, hint: str | None = None) -> GrammarError:
        """The error that something else comes next."""
        found = "the end of the statement"
        if self._curr:
            found = f'"{self._written(self._curr)}"'
        return GrammarError(f"expected {expected}, found {found}", self._offset(), hint)
