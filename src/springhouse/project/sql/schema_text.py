"""Which columns does the text of a schema declare?

`id BIGINT NOT NULL, amount DECIMAL(12,2), tags ARRAY<STRING>`: the grammar of Spark's DDL, so that
a wrong type is told before Spark starts. The lake still lets Spark read the text; a test holds the
two against each other.
"""

from springhouse.errors import DeclarationError, SourceError
from springhouse.project.declarations.names import did_you_mean
from springhouse.project.sql.sql_cursor import Cursor
from springhouse.project.sql.sql_tokens import SqlText, Token, split_commas, string_value, tokenize

_PLAIN = (
    *("BOOLEAN", "TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG"),
    *("FLOAT", "REAL", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "STRING"),
    *("BINARY", "VOID", "VARIANT"),
)
_DECIMALS = ("DECIMAL", "DEC", "NUMERIC")
_WITH_LENGTH = ("CHAR", "CHARACTER", "VARCHAR")
_NESTED = ("ARRAY", "MAP", "STRUCT")
_TYPES = (*_PLAIN, *_DECIMALS, *_WITH_LENGTH, *_NESTED, "INTERVAL")
_YEARS, _DAYS = ("YEAR", "MONTH"), ("DAY", "HOUR", "MINUTE", "SECOND")
_MOST_DIGITS = 38


def column_names(text: str) -> tuple[str, ...]:
    """The names of the columns that a schema declares, or the error that it is none.

    >>> column_names("id BIGINT NOT NULL, `a b` MAP<STRING, ARRAY<INT>>")
    ('id', 'a b')
    """
    tokens, unclosed = tokenize(SqlText(text, "schema"))
    if unclosed is not None:
        raise _wrong(text, unclosed.problem)
    if not tokens:
        raise _wrong(text, "it declares no column")
    cursor = Cursor(SqlText(text, "schema"), tokens)
    try:
        if cursor.sees("STRUCT") and len(tokens) > 1 and tokens[1].is_symbol("<", "<>"):
            cursor.accept("STRUCT")
            names = _fields(cursor)
        else:
            names = _columns(cursor)
        cursor.expect_end()
    except DeclarationError as error:
        raise _wrong(text, error.problem, error.hint) from None
    for at, name in enumerate(names):
        if name.lower() in (other.lower() for other in names[:at]):
            raise _wrong(text, f'the column "{name}" is there twice')
    return tuple(names)


def column_comments(text: str) -> dict[str, str]:
    """The comments of the columns that a schema declares.

    >>> column_comments("id BIGINT COMMENT 'who', name STRING")
    {'id': 'who'}
    """
    column_names(text)
    return {
        column[0].name: string_value(column[-1:]) or ""
        for column in _elements(text)
        if len(column) > 2 and column[-2].is_word("COMMENT")
    }


def nested_columns(text: str) -> list[str]:
    """The columns whose values have parts: arrays, maps and structs.

    >>> nested_columns("id BIGINT, tags ARRAY<STRING>")
    ['tags']
    """
    column_names(text)
    columns = (
        [token for token in column if not token.is_symbol(":")] for column in _elements(text)
    )
    return [name.name for name, kind, *_ in columns if kind.is_word(*_NESTED)]


def required_columns(text: str) -> list[str]:
    """The columns that may not be NULL.

    >>> required_columns("id BIGINT NOT NULL COMMENT 'who', name STRING")
    ['id']
    """
    column_names(text)
    return [
        column[0].name
        for column in _elements(text)
        for end in [column[:-2] if column[-2].is_word("COMMENT") else column]
        if len(end) > 2 and end[-2].is_word("NOT") and end[-1].is_word("NULL")
    ]


def _elements(text: str) -> list[list[Token]]:
    tokens = tokenize(SqlText(text, "schema"))[0]
    if tokens[0].is_word("STRUCT") and tokens[1].is_symbol("<"):
        tokens = tokens[2:-1]
    return split_commas(tokens)


def _wrong(text: str, problem: str, hint: str | None = None) -> SourceError:
    shown = " ".join(text.split())
    shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
    return SourceError(
        f"schema => '{shown}' can't be read: {problem}",
        hint=hint or "Write it as 'id BIGINT, name STRING, …'.",
    )


def _columns(cursor: Cursor) -> list[str]:
    names = []
    while True:
        names.append(_column(cursor))
        if not cursor.accept_symbol(","):
            return names


def _column(cursor: Cursor) -> str:
    at = cursor.offset
    name = cursor.name("the name of a column")
    if not name.isascii() and not cursor.sql.text[at:].startswith("`"):
        raise cursor.sql.error(f'"{name}" has other letters than a to z', at, f"Write `{name}`.")
    cursor.accept_symbol(":")
    _read_type(cursor)
    cursor.accept("NOT", "NULL")
    if cursor.accept("COMMENT"):
        cursor.string("a comment in quotes")
    return name


def _fields(cursor: Cursor) -> list[str]:
    if cursor.accept_symbol("<>"):
        return []
    _expect(cursor, "<")
    names = [] if cursor.sees_symbol(">") else _columns(cursor)
    _expect(cursor, ">")
    return names


def _expect(cursor: Cursor, symbol: str) -> None:
    if not cursor.accept_symbol(symbol):
        raise cursor.unexpected(symbol)


def _read_type(cursor: Cursor) -> None:
    token = cursor.next
    if token is None or not token.is_word(*_TYPES):
        word = token.text.upper() if token is not None else ""
        raise cursor.unexpected("a type", did_you_mean(word, _TYPES))
    cursor.at += 1
    word = token.text.upper()
    if word in _DECIMALS:
        _read_decimal(cursor)
    elif word in _WITH_LENGTH:
        problem = f"Spark gives no column of a source or table the type {word}"
        raise cursor.sql.error(problem, token.start, "Write STRING.")
    elif word == "ARRAY":
        _expect(cursor, "<")
        _read_type(cursor)
        _expect(cursor, ">")
    elif word == "MAP":
        _expect(cursor, "<")
        _read_type(cursor)
        _expect(cursor, ",")
        _read_type(cursor)
        _expect(cursor, ">")
    elif word == "STRUCT":
        _fields(cursor)
    elif word == "INTERVAL":
        _read_interval(cursor)
    elif word == "STRING" and cursor.accept("COLLATE"):
        cursor.name_parts("a collation")


def _read_decimal(cursor: Cursor) -> None:
    if not cursor.accept_symbol("("):
        return
    at = cursor.offset
    precision, scale = _number(cursor), 0
    if cursor.accept_symbol(","):
        scale = _number(cursor)
    _expect(cursor, ")")
    if not scale <= precision <= _MOST_DIGITS:
        problem = f"a decimal has at most {_MOST_DIGITS} digits, and not more of them after the dot"
        raise cursor.sql.error(problem, at)


def _number(cursor: Cursor) -> int:
    token = cursor.next
    if token is None or not token.text.isdecimal():
        raise cursor.unexpected("a number")
    cursor.at += 1
    return int(token.text)


def _read_interval(cursor: Cursor) -> None:
    for units in (_YEARS, _DAYS):
        for at, unit in enumerate(units):
            if not cursor.accept(unit):
                continue
            if cursor.accept("TO") and not any(cursor.accept(end) for end in units[at + 1 :]):
                raise cursor.unexpected("a smaller unit")
            return
