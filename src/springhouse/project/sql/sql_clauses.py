"""What stands between a table's name and its query?

A list of columns and expectations in parentheses, then clauses in any order. Everything that
Spark's pipelines accept here is accepted; what Spark refuses (LOCATION, OPTIONS, keys) is refused
with the reason. USING, CLUSTER BY and a collation are read and dropped: the format is always
Delta, and the layout of files is the lake's own business.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from springhouse.errors import DeclarationError
from springhouse.project.declarations.contents import Written
from springhouse.project.declarations.declaration import Expectation, OnViolation
from springhouse.project.sql.sql_cursor import Cursor
from springhouse.project.sql.sql_references import check_expression
from springhouse.project.sql.sql_tokens import SqlText, Token, TokenKind, split_commas, string_value

_CONSTRAINTS = ("CHECK", "FOREIGN", "PRIMARY", "UNIQUE")


@dataclass
class Clauses:
    """All that a statement says about a table besides its name and query.

    `schema` is DDL; `column_names` are set instead when the list gives no types.
    """

    schema: str | None = None
    column_names: tuple[str, ...] = ()
    column_comments: dict[str, str] = field(default_factory=dict)
    expectations: tuple[Expectation, ...] = ()
    partition_by: tuple[str, ...] = ()
    comment: str | None = None
    properties: dict[str, Written] = field(default_factory=dict)


def read_clauses(cursor: Cursor) -> Clauses:
    """The clauses that come next, up to AS or the end of the statement."""
    clauses = Clauses()
    if cursor.sees_symbol("("):
        _read_columns(cursor, clauses)
    while cursor.next is not None and not cursor.sees("AS"):
        if cursor.accept("COMMENT"):
            clauses.comment = cursor.string("a comment in quotes")
        elif cursor.accept("TBLPROPERTIES"):
            _read_properties(cursor.sql, cursor.parenthesised("(key = value, …)"), clauses)
        elif cursor.accept("PARTITIONED", "BY") or cursor.accept("PARTITIONED", "ON"):
            columns = cursor.parenthesised("(column, …)")
            clauses.partition_by = _partition_columns(cursor.sql, columns)
        elif cursor.accept("CLUSTER", "BY"):
            if not cursor.accept("AUTO") and not cursor.accept("NONE"):
                cursor.parenthesised("(column, …)")
        elif cursor.accept("USING"):
            cursor.name("a format")
        elif cursor.accept("DEFAULT", "COLLATION"):
            cursor.name("a collation")
        elif cursor.accept("WITH", "SCHEMA"):
            cursor.accept("TYPE")
            cursor.name("BINDING, COMPENSATION or EVOLUTION")
        else:
            raise _unexpected_clause(cursor)
    return clauses


def _unexpected_clause(cursor: Cursor) -> DeclarationError:
    if cursor.sees("LOCATION"):
        hint = "Leave it out: tables live under the project's storage."
        return cursor.sql.error("LOCATION can't be chosen for one table", cursor.offset, hint)
    return cursor.unexpected(
        "AS and a query, or a clause",
        hint="The clauses are PARTITIONED BY, CLUSTER BY, COMMENT, TBLPROPERTIES and USING.",
    )


# Columns and expectations


def _read_columns(cursor: Cursor, clauses: Clauses) -> None:
    sql, opening = cursor.sql, cursor.offset
    columns: list[Sequence[Token]] = []
    expectations: dict[str, Expectation] = {}
    for element in split_commas(cursor.parenthesised("a list of columns")):
        if not element:
            raise sql.error("a column is missing at a comma", opening)
        if element[0].is_word("CONSTRAINT"):
            expectation = _read_expectation(Cursor(sql, element))
            if expectation.name in expectations:
                raise sql.error(f'two constraints are named "{expectation.name}"', element[0].start)
            expectations[expectation.name] = expectation
        elif element[0].is_word(*_CONSTRAINTS) and not _has_type(element):
            raise _unsupported_constraint(sql, element[0])
        elif not element[0].is_name:
            raise Cursor(sql, element).unexpected("a column")
        else:
            columns.append(element)
    typed = [_has_type(column) for column in columns]
    if any(typed) and not all(typed):
        untyped = columns[typed.index(False)][0]
        raise sql.error(
            f'column "{untyped.name}" has no type, and others have one',
            untyped.start,
            hint="Give every column a type, or none.",
        )
    if columns and all(typed):
        clauses.schema = ", ".join(sql.slice(column) for column in columns)
    else:
        clauses.column_names = tuple(column[0].name for column in columns)
    for column in columns:
        if len(column) > 2 and column[-2].is_word("COMMENT"):
            clauses.column_comments[column[0].name] = string_value(column[-1:]) or ""
    clauses.expectations = tuple(expectations.values())


def _has_type(column: Sequence[Token]) -> bool:
    """Whether a type follows the name: `a BIGINT`, `a: BIGINT`, but not `a` or `a COMMENT 'x'`."""
    if len(column) < 2:
        return False
    follower = column[1]
    return follower.is_symbol(":") or (follower.is_name and not follower.is_word("COMMENT", "KEY"))


def _read_expectation(cursor: Cursor) -> Expectation:
    place = cursor.place
    cursor.expect("CONSTRAINT")
    name = cursor.name("a name for the constraint")
    if cursor.next is not None and cursor.next.is_word(*_CONSTRAINTS):
        raise _unsupported_constraint(cursor.sql, cursor.next)
    cursor.expect("EXPECT")
    condition = cursor.parenthesised("(condition)")
    if not condition:
        raise cursor.sql.error(f'constraint "{name}" expects nothing', cursor.tokens[0].start)
    check_expression(cursor.sql, condition)
    return Expectation(name, cursor.sql.slice(condition), _on_violation(cursor), place)


def _on_violation(cursor: Cursor) -> OnViolation:
    if not cursor.accept("ON", "VIOLATION"):
        chosen = OnViolation.KEEP
    elif cursor.accept("DROP", "ROW"):
        chosen = OnViolation.DROP_ROW
    elif cursor.accept("FAIL", "UPDATE"):
        chosen = OnViolation.FAIL_UPDATE
    elif cursor.accept("QUARANTINE"):
        chosen = OnViolation.QUARANTINE
    else:
        raise cursor.unexpected("DROP ROW, FAIL UPDATE or QUARANTINE")
    if cursor.next is not None:
        raise cursor.unexpected("the end of the constraint")
    return chosen


def _unsupported_constraint(sql: SqlText, word: Token) -> DeclarationError:
    return sql.error(
        f"{word.text.upper()} constraints are not supported",
        word.start,
        hint="Expectations are: CONSTRAINT positive EXPECT (amount > 0) ON VIOLATION DROP ROW.",
    )


# Clauses


def _partition_columns(sql: SqlText, tokens: Sequence[Token]) -> tuple[str, ...]:
    columns = []
    for element in split_commas(tokens):
        if not element or not element[0].is_name or (len(element) > 1 and not _has_type(element)):
            offset = element[0].start if element else tokens[0].start
            raise sql.error(
                "a table can only be partitioned by its columns",
                offset,
                hint="Compute the value in the query, as a column of its own.",
            )
        columns.append(element[0].name)
    return tuple(columns)


def _read_properties(sql: SqlText, tokens: Sequence[Token], clauses: Clauses) -> None:
    for element in split_commas(tokens):
        if not element:
            raise sql.error("a property is missing at a comma", tokens[0].start)
        cursor = Cursor(sql, element)
        place = cursor.place
        if cursor.next is not None and cursor.next.kind is TokenKind.STRING:
            # One token, not all side by side: in Spark ('key' 'value') is a pair without its =.
            key = string_value([element[0]]) or ""
            cursor.at += 1
        else:
            key = ".".join(cursor.name_parts("a property"))
        cursor.accept_symbol("=")
        value = cursor.rest()
        if not value:
            raise cursor.unexpected(f'a value for the property "{key}"')
        if key in clauses.properties:
            raise sql.error(f'the property "{key}" is given twice', element[0].start)
        plain = string_value(value)
        clauses.properties[key] = Written(sql.slice(value) if plain is None else plain, place)
