"""What does one SQL statement declare?

The statements of Spark's pipelines (CREATE STREAMING TABLE, CREATE MATERIALIZED VIEW, CREATE VIEW,
CREATE FLOW, SET) and what Springhouse adds to them: OR REFRESH, EXPECT, ONCE and AUTO CDC. A
statement that would do something at once (SELECT, DROP, INSERT) is an error: files declare, the
scheduler does.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from springhouse.errors import DeclarationError
from springhouse.project.declarations.contents import Contents, Written
from springhouse.project.declarations.declaration import (
    AppendFlow,
    CdcFlow,
    SqlQuery,
    Table,
    TemporaryView,
    View,
)
from springhouse.project.declarations.names import Names
from springhouse.project.settings import Holder
from springhouse.project.sql.sql_cdc import read_cdc_clauses
from springhouse.project.sql.sql_clauses import Clauses, read_clauses
from springhouse.project.sql.sql_cursor import Cursor
from springhouse.project.sql.sql_references import find_references, read_identifier, read_stream
from springhouse.project.sql.sql_tokens import SqlText, Token, check_parentheses
from springhouse.project.table_properties import read_properties

_STATEMENTS = (
    "A file declares with CREATE STREAMING TABLE, CREATE MATERIALIZED VIEW, CREATE TEMPORARY VIEW, "
    "CREATE FLOW and SET."
)


def read_statement(sql: SqlText, tokens: Sequence[Token], names: Names) -> Contents:
    """What one statement declares; its errors are among the contents, never raised."""
    reader = _StatementReader(Cursor(sql, tokens), names)
    try:
        reader.read()
    except DeclarationError as error:
        reader.contents.errors.append(error)
        if reader.name is not None:
            reader.contents.broken.add(reader.name)
    return reader.contents


class _StatementReader:
    """Reads one statement; `name` is what it declares, as soon as that is known."""

    def __init__(self, cursor: Cursor, names: Names) -> None:
        self.cursor = cursor
        self.names = names
        self.place = cursor.place
        self.offset = cursor.offset
        self.name: str | None = None
        self.contents = Contents()

    def read(self) -> None:
        cursor = self.cursor
        if cursor.accept("SET"):
            self._read_set()
        elif cursor.accept("USE"):
            self._read_use()
        elif cursor.accept("CREATE"):
            replaces = cursor.accept("OR", "REFRESH") or cursor.accept("OR", "REPLACE")
            if cursor.accept("STREAMING", "TABLE"):
                self._read_table()
            elif cursor.accept("MATERIALIZED", "VIEW"):
                self._read_view()
            elif cursor.accept("FLOW") and not replaces:
                self._read_flow()
            elif cursor.sees("VIEW") or cursor.sees("TEMPORARY") or cursor.sees("TEMP"):
                self._read_temporary_view()
            else:
                raise self._not_a_declaration()
        else:
            raise self._not_a_declaration()

    def _not_a_declaration(self) -> DeclarationError:
        start = self.cursor.tokens[: self.cursor.at + 1]
        words = " ".join(token.text for token in start).upper()
        problem = f"{words} is not a statement of a project"
        return self.cursor.sql.error(problem, start[0].start, _STATEMENTS)

    # Tables and views

    def _read_header(self, what: str) -> str:
        self.cursor.accept("IF", "NOT", "EXISTS")
        self.name = self._read_name(f"the name of {what}")
        check_parentheses(self.cursor.sql, self.cursor.tokens)
        return self.name

    def _read_name(self, what: str) -> str:
        cursor = self.cursor
        start = cursor.at
        parts = cursor.name_parts(what)
        if cursor.tokens[start].is_word("IDENTIFIER") and cursor.sees_symbol("("):
            cursor.parenthesised("(name)")
            return read_identifier(cursor.sql, cursor.tokens[start : cursor.at], self.names)
        return self.names.normal(parts)

    def _read_table(self) -> None:
        name = self._read_header("a streaming table")
        clauses = read_clauses(self.cursor)
        if clauses.column_names:
            column = clauses.column_names[0]
            problem = f'column "{column}" of the table "{name}" has no type'
            raise DeclarationError(problem, where=str(self.place), hint=f"Write {column} STRING.")
        query = self._read_query(clauses) if self.cursor.next is not None else None
        known, errors = read_properties(name, Holder.TABLE, clauses.properties, self.names)
        self.contents.errors += errors
        self.contents.declarations.append(
            Table(
                name,
                self.place,
                schema=clauses.schema,
                comment=clauses.comment,
                column_comments=clauses.column_comments,
                partition_by=clauses.partition_by,
                promise=known.promise,
                expectations=clauses.expectations,
                timestamp=known.timestamp,
                lateness_seconds=known.lateness_seconds,
                period_seconds=known.period_seconds,
                sinks=known.sinks,
                flow_settings=known.flow_settings,
                properties=known.others,
            )
        )
        if query is not None:
            self.contents.declarations.append(AppendFlow(name, name, self.place, query))

    def _read_view(self) -> None:
        name = self._read_header("a materialized view")
        clauses = read_clauses(self.cursor)
        query = self._read_query(clauses)
        known, errors = read_properties(name, Holder.VIEW, clauses.properties, self.names)
        self.contents.errors += errors
        self.contents.declarations.append(
            View(
                name,
                self.place,
                query,
                schema=clauses.schema,
                comment=clauses.comment,
                column_comments=clauses.column_comments,
                partition_by=clauses.partition_by,
                promise=known.promise,
                expectations=clauses.expectations,
                refresh=known.refresh,
                sinks=known.sinks,
                flow_settings=known.flow_settings,
                properties=known.others,
            )
        )

    def _read_temporary_view(self) -> None:
        # A plain CREATE VIEW of Spark's stores nothing either, so it is the same.
        if not self.cursor.accept("TEMPORARY"):
            self.cursor.accept("TEMP")
        self.cursor.expect("VIEW")
        name = self._read_header("a view")
        clauses = read_clauses(self.cursor)
        query = self._read_query(clauses)
        _, errors = read_properties(name, Holder.TEMPORARY_VIEW, clauses.properties, self.names)
        self.contents.errors += errors
        if clauses.expectations:
            problem = f'"{name}" is not stored, so it can\'t have expectations'
            where = str(clauses.expectations[0].place)
            raise DeclarationError(problem, where=where, hint="Make it a materialized view.")
        self.contents.declarations.append(TemporaryView(name, self.place, query))

    def _read_query(self, clauses: Clauses | None = None) -> SqlQuery:
        """The query after AS, to the end of the statement."""
        cursor = self.cursor
        if clauses is not None:
            cursor.expect("AS")
        if cursor.next is None:
            raise cursor.unexpected("a query")
        place = cursor.place
        text = cursor.sql.slice(cursor.rest())
        if clauses is not None and clauses.column_names:
            # CREATE VIEW v (a, b) AS query renames the query's columns, as an alias would.
            columns = ", ".join(f"`{column}`" for column in clauses.column_names)
            text = f"SELECT * FROM ({text}) AS `{self.name}`({columns})"
        sql = SqlText(text, place.file, place.line)
        return SqlQuery(text, find_references(sql, self.names), place)

    # Flows

    def _read_flow(self) -> None:
        cursor = self.cursor
        name = self._read_name("the name of a flow")
        check_parentheses(cursor.sql, cursor.tokens)
        if cursor.accept("COMMENT"):
            cursor.string("a comment in quotes")
        cursor.expect("AS")
        if cursor.accept("AUTO", "CDC"):
            self._read_cdc_flow(name)
        elif cursor.accept("INSERT"):
            self._read_append_flow(name)
        else:
            raise cursor.unexpected("INSERT INTO or AUTO CDC INTO")

    def _read_append_flow(self, name: str) -> None:
        cursor = self.cursor
        cursor.accept("WITH", "SCHEMA", "EVOLUTION")
        if cursor.sees("OVERWRITE"):
            raise cursor.unexpected("INTO", hint="A flow only appends; to replace, make a view.")
        cursor.expect("INTO")
        once = self._accept_once()
        cursor.accept("TABLE")
        target = self._read_name("the name of a table")
        if cursor.sees_symbol("(") and not self._query_in_parentheses():
            raise cursor.unexpected("BY NAME", hint="Name the columns in the query, with AS.")
        by_name = cursor.accept("BY", "NAME")
        if cursor.sees("PARTITION") or cursor.sees("REPLACE"):
            raise cursor.unexpected("a query")
        query = self._read_query()
        flow = AppendFlow(name, target, self.place, query, by_name=by_name, once=once)
        self.contents.declarations.append(flow)

    def _accept_once(self) -> bool:
        """Step over ONCE, unless it is the name of a table."""
        cursor = self.cursor
        follower = cursor.tokens[cursor.at + 1] if cursor.at + 1 < len(cursor.tokens) else None
        if follower is None or not follower.is_name:
            return False
        if follower.is_word("BY", "SELECT", "WITH", "FROM", "VALUES"):
            return False
        return cursor.accept("ONCE")

    def _query_in_parentheses(self) -> bool:
        following = self.cursor.tokens[self.cursor.at + 1 : self.cursor.at + 2]
        return any(
            token.is_word("SELECT", "WITH", "FROM", "VALUES") or token.is_symbol("(")
            for token in following
        )

    def _read_cdc_flow(self, name: str) -> None:
        cursor = self.cursor
        once = cursor.accept("ONCE")
        cursor.expect("INTO")
        target = self._read_name("the name of a table")
        cursor.expect("FROM")
        if not cursor.sees("STREAM") or cursor.at + 1 == len(cursor.tokens):
            raise cursor.unexpected("STREAM and a table", hint="Write FROM STREAM(changes).")
        source, cursor.at = read_stream(cursor.sql, cursor.tokens, cursor.at, self.names)
        # There is no query, so the source has no place in the text of one.
        source = replace(source, start=0, end=0)
        clauses = read_cdc_clauses(cursor, name)
        self.contents.declarations.append(
            CdcFlow(
                name,
                target,
                self.place,
                source,
                clauses.keys,
                clauses.sequence_by,
                delete_when=clauses.delete_when,
                columns=clauses.columns,
                except_columns=clauses.except_columns,
                scd_type=clauses.scd_type,
                once=once,
            )
        )

    # Settings

    def _read_set(self) -> None:
        cursor = self.cursor
        if cursor.accept("CATALOG"):
            self._only_own(cursor.rest(), self.names.catalog, "catalog")
            return
        if cursor.accept("TIME", "ZONE"):
            key, value = "spark.sql.session.timeZone", cursor.string("a time zone in quotes")
            cursor.expect_end()
        else:
            key, value = self._read_setting()
        self.contents.settings[key] = Written(value, self.place)

    def _read_setting(self) -> tuple[str, str]:
        """The key and value of `SET spark.sql.x = y`; as in Spark, quotes belong to the value."""
        cursor = self.cursor
        tokens = cursor.tokens[cursor.at :]
        equals = next((at for at, token in enumerate(tokens) if token.is_symbol("=")), None)
        if not equals or cursor.sees("VAR") or cursor.sees("VARIABLE"):
            raise cursor.unexpected("key = value", hint="Write SET spark.sql.x = y.")
        key, value = tokens[:equals], tokens[equals + 1 :]
        if not value:
            raise cursor.sql.error(
                f"SET {cursor.sql.slice(key)} has no value",
                self.offset,
                "Write SET spark.sql.x = y.",
            )
        for before, token in pairwise(value):
            # Spark takes all text up to the ; as the value, so a forgotten ; would swallow the
            # statement that follows.
            next_line = "\n" in cursor.sql.text[before.end : token.start]
            if next_line or token.is_word("CREATE", "SET", "USE"):
                problem = f"a ; is missing after SET {cursor.sql.slice(key)}"
                raise cursor.sql.error(problem, before.start, "A value of SET stands on one line.")
        texts = (cursor.sql.slice(each).replace("`", "") for each in (key, value))
        return next(texts), next(texts)

    def _read_use(self) -> None:
        for what in ("NAMESPACE", "DATABASE", "SCHEMA"):
            self.cursor.accept(what)
        self._only_own(self.cursor.rest(), self.names.database, "database")

    def _only_own(self, tokens: Sequence[Token], own: str, what: str) -> None:
        name = self.cursor.sql.slice(tokens).strip("`'\"")
        if name.lower() != own.lower():
            raise DeclarationError(
                f'this project declares into the {what} "{own}", not "{name}"',
                where=str(self.place),
                hint=f"Set `{what}: {name}` in spark-pipeline.yml.",
            )
