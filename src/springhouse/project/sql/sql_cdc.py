"""How are changes applied to a table?

The clauses of `CREATE FLOW … AS AUTO CDC INTO t FROM STREAM(s)`, in any order. An expression among
them has no end mark of its own, so it ends where the next clause begins.
"""

from dataclasses import dataclass

from springhouse.project.sql.sql_cursor import Cursor
from springhouse.project.sql.sql_references import check_expression
from springhouse.project.sql.sql_tokens import split_commas

_BEGINNINGS = (
    ("APPLY", "AS"),
    ("SEQUENCE", "BY"),
    ("STORED", "AS"),
    ("IGNORE", "NULL"),
    ("TRACK", "HISTORY"),
)


@dataclass
class CdcClauses:
    """What the clauses say; the fields are those of `CdcFlow`."""

    keys: tuple[str, ...] = ()
    sequence_by: str = ""
    delete_when: str | None = None
    columns: tuple[str, ...] | None = None
    except_columns: tuple[str, ...] = ()
    scd_type: int = 1


def read_cdc_clauses(cursor: Cursor, flow: str) -> CdcClauses:
    """The clauses to the end of the statement; KEYS and SEQUENCE BY must be among them."""
    clauses = CdcClauses()
    start = cursor.tokens[0].start
    while cursor.next is not None:
        _read_clause(cursor, clauses)
    for what, example, given in (
        ("KEYS", "KEYS (id)", clauses.keys),
        ("SEQUENCE BY", "SEQUENCE BY changed_at", clauses.sequence_by),
    ):
        if not given:
            raise cursor.sql.error(
                f'the flow "{flow}" has no {what}',
                start,
                hint=f"Add {example}: AUTO CDC needs to know which row an event is about, and "
                "which of two events is the later one.",
            )
    return clauses


def _read_clause(cursor: Cursor, clauses: CdcClauses) -> None:
    if cursor.accept("KEYS"):
        clauses.keys = _names(cursor, "KEYS")
    elif cursor.accept("SEQUENCE", "BY"):
        clauses.sequence_by = _expression(cursor, "SEQUENCE BY")
    elif cursor.accept("APPLY", "AS", "DELETE", "WHEN"):
        clauses.delete_when = _expression(cursor, "APPLY AS DELETE WHEN")
    elif cursor.accept("COLUMNS"):
        if cursor.accept_symbol("*"):
            cursor.expect("EXCEPT")
            clauses.except_columns = _names(cursor, "EXCEPT")
        else:
            clauses.columns = _names(cursor, "COLUMNS")
    elif cursor.accept("STORED", "AS"):
        cursor.accept("SCD")
        cursor.expect("TYPE")
        if not cursor.sees("1") and not cursor.sees("2"):
            raise cursor.unexpected("1 or 2")
        clauses.scd_type = int(cursor.name("1 or 2"))
    else:
        raise cursor.unexpected(
            "a clause of AUTO CDC",
            hint="The clauses are KEYS, SEQUENCE BY, APPLY AS DELETE WHEN, COLUMNS and STORED AS "
            "SCD TYPE.",
        )


def _begins_clause(cursor: Cursor) -> bool:
    """Whether a clause comes next, and not a column that is named like one."""
    if cursor.sees("KEYS") or cursor.sees("COLUMNS"):
        following = cursor.tokens[cursor.at + 1 : cursor.at + 3]
        starts = [token.text.upper() for token in following]
        return starts[:1] == ["("] or starts == ["*", "EXCEPT"]
    return any(cursor.sees(*beginning) for beginning in _BEGINNINGS)


def _names(cursor: Cursor, what: str) -> tuple[str, ...]:
    opening = cursor.offset
    columns = split_commas(cursor.parenthesised(f"(column, …) after {what}"))
    for column in columns:
        if len(column) != 1 or not column[0].is_name:
            offset = column[0].start if column else opening
            raise cursor.sql.error(f"{what} takes names of columns", offset)
    return tuple(column[0].name for column in columns)


def _expression(cursor: Cursor, what: str) -> str:
    start, depth = cursor.at, 0
    while cursor.next is not None:
        if depth == 0 and _begins_clause(cursor):
            break
        depth += cursor.sees_symbol("(") - cursor.sees_symbol(")")
        cursor.at += 1
    tokens = cursor.tokens[start : cursor.at]
    if not tokens:
        raise cursor.unexpected(f"an expression after {what}")
    check_expression(cursor.sql, tokens)
    return cursor.sql.slice(tokens)
