"""Which columns does the text of a schema declare?

`id BIGINT NOT NULL, amount DECIMAL(12,2), tags ARRAY<STRING>`: parsed by our dialect, so that a
wrong type is an error before Spark starts. The lake still lets Spark read the text; a test holds
the two against each other.
"""

from springhouse.errors import DeclarationError, SourceError
from springhouse.project.sql.dialect import parse_columns
from springhouse.project.sql.sql_text import SqlText, tokenize
from springhouse.project.sql.syntax import SchemaColumn


def column_names(text: str) -> tuple[str, ...]:
    """The names of the columns that a schema declares, or the error that it is none.

    >>> column_names("id BIGINT NOT NULL, `a b` MAP<STRING, ARRAY<INT>>")
    ('id', 'a b')
    """
    return tuple(column.name for column in _columns(text))


def column_comments(text: str) -> dict[str, str]:
    """The comments of the columns that a schema declares.

    >>> column_comments("id BIGINT COMMENT 'who', name STRING")
    {'id': 'who'}
    """
    columns = _columns(text)
    return {c.name: c.args["comment"] for c in columns if c.args["comment"] is not None}


def nested_columns(text: str) -> list[str]:
    """The columns whose values have parts: arrays, maps and structs.

    >>> nested_columns("id BIGINT, tags ARRAY<STRING>")
    ['tags']
    """
    return [column.name for column in _columns(text) if column.args["nested"]]


def required_columns(text: str) -> list[str]:
    """The columns that may not be NULL.

    >>> required_columns("id BIGINT NOT NULL COMMENT 'who', name STRING")
    ['id']
    """
    return [column.name for column in _columns(text) if column.args["required"]]


def _columns(text: str) -> list[SchemaColumn]:
    sql = SqlText(text, "schema")
    tokens, unclosed = tokenize(sql)
    if unclosed is not None:
        raise _wrong(text, unclosed.problem)
    if not tokens:
        raise _wrong(text, "it declares no column")
    try:
        columns = parse_columns(sql, tokens)
    except DeclarationError as error:
        raise _wrong(text, error.problem, error.hint) from None
    seen: set[str] = set()
    for column in columns:
        if column.name.lower() in seen:
            raise _wrong(text, f'the column "{column.name}" is there twice')
        seen.add(column.name.lower())
    return columns


def _wrong(text: str, problem: str, hint: str | None = None) -> SourceError:
    shown = " ".join(text.split())
    shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
    return SourceError(
        f"schema => '{shown}' can't be read: {problem}",
        hint=hint or "Write it as 'id BIGINT, name STRING, …'.",
    )
