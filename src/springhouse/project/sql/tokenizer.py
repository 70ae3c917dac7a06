"""Which words and signs are there in a project's SQL?

The tokenizer of sqlglot's Spark dialect, but for one thing: a word such as SHOW or CALL does not
turn the rest of its statement into one opaque text.
"""

import re
from collections.abc import Sequence
from typing import ClassVar

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark

_WORD = re.compile(r"\w+")
_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)


class ProjectTokenizer(Spark.Tokenizer):
    """Spark's tokenizer, without commands."""

    COMMANDS: ClassVar[set[TokenType]] = set()


def project_tokenizer() -> ProjectTokenizer:
    """A tokenizer that understands escapes in strings as Spark does."""
    return ProjectTokenizer(dialect=Spark)


def is_string(token: Token) -> bool:
    """Whether a token is a string literal."""
    return token.token_type in _STRINGS


def is_word(token: Token, *words: str) -> bool:
    """Whether a token is one of `words` (in upper case) and not quoted."""
    return token.token_type not in _QUOTED and token.text.upper() in words


def is_name(token: Token) -> bool:
    """Whether a token can be a part of a name: a word, or anything in backquotes."""
    if token.token_type is TokenType.IDENTIFIER:
        return True
    return token.token_type not in _QUOTED and _WORD.fullmatch(token.text) is not None


_QUOTED = frozenset({*_STRINGS, TokenType.IDENTIFIER, TokenType.HINT})


def unpaired_parenthesis(tokens: Sequence[Token]) -> tuple[str, int] | None:
    """What is wrong with the parentheses, and at which offset; None if each has its partner."""
    unclosed: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.L_PAREN:
            unclosed.append(token)
        elif token.token_type is TokenType.R_PAREN:
            if not unclosed:
                return "this ) closes nothing", token.start
            unclosed.pop()
    return ("this ( is never closed", unclosed[-1].start) if unclosed else None
