"""What is the SQL of a project?

One sqlglot dialect: Spark's, with the statements and relations of pipelines (0088). Every piece of
SQL in a project is cut into tokens and parsed here: statements of SQL files, queries of Python
functions, and schemas such as `id BIGINT, name STRING`.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlglot import Token, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from springhouse.errors import DeclarationError
from springhouse.project.sql.schema_parser import SchemaParser
from springhouse.project.sql.sql_text import SqlText
from springhouse.project.sql.statement_parser import StatementParser
from springhouse.project.sql.step_parser import GrammarError
from springhouse.project.sql.syntax import DeclaredName, SchemaColumn
from springhouse.project.sql.tokenizer import ProjectTokenizer

_Node = TypeVar("_Node", bound=exp.Expr)


class ProjectParser(StatementParser, SchemaParser):
    """The parser of the dialect."""

    def query(self, tokens: Sequence[Token], text: str) -> exp.Expr:
        """The tree of a query."""
        return self._tree(ProjectParser._parse_project_query, tokens, text)

    def statement(self, tokens: Sequence[Token], text: str) -> exp.Expr:
        """The tree of one statement of a project."""
        return self._tree(ProjectParser._parse_project_statement, tokens, text)

    def columns(self, tokens: Sequence[Token], text: str) -> exp.Expr:
        """The tree of a schema."""
        return self._tree(ProjectParser._parse_schema_columns, tokens, text)

    def _tree(
        self, rule: Callable[["ProjectParser"], exp.Expr], tokens: Sequence[Token], text: str
    ) -> exp.Expr:
        self.reset()
        self.sql = text
        self._chunks = [list(tokens)]
        self._advance_chunk()
        tree = rule(self)
        if self._curr:
            self.raise_error("Invalid expression / Unexpected token")
        return tree


class SpringhouseSql(Spark):
    """Spark's dialect, and the statements of a project."""

    Tokenizer = ProjectTokenizer
    Parser = ProjectParser


def parse_query(sql: SqlText, tokens: Sequence[Token]) -> exp.Expr:
    """The tree of a query."""
    try:
        return _parser().query(tokens, sql.text)
    except SqlglotError as error:
        raise _declaration_error(sql, error) from None


def parse_statement(
    sql: SqlText, tokens: Sequence[Token]
) -> tuple[exp.Expr | DeclarationError, DeclaredName | None]:
    """The tree of one statement or what is wrong with it, and the name that it declares."""
    parser = _parser()
    try:
        return parser.statement(tokens, sql.text), parser.declared_name
    except SqlglotError as error:
        return _declaration_error(sql, error), parser.declared_name


def parse_columns(sql: SqlText, tokens: Sequence[Token]) -> list[SchemaColumn]:
    """The columns of a schema."""
    try:
        return list(_parser().columns(tokens, sql.text).expressions)
    except SqlglotError as error:
        raise _declaration_error(sql, error) from None


def _parser() -> ProjectParser:
    return ProjectParser(dialect=SpringhouseSql)


def _declaration_error(sql: SqlText, error: SqlglotError) -> DeclarationError:
    """The error in the words of a project, with the line in the user's file."""
    if isinstance(error, GrammarError):
        return sql.error(error.problem, error.offset, error.hint)
    details = getattr(error, "errors", None)
    if not details:
        return sql.error("this SQL does not parse", 0)
    what, line, near = (details[0][key] for key in ("description", "line", "highlight"))
    what = what.split(" but got ")[0].split(" / ")[0].rstrip(".")
    if what == "Invalid expression":
        what = "unexpected word or sign"
    elif "missing for <class" in what:
        what = "something is missing"
    place = sql.place(0)
    return DeclarationError(
        f'this SQL does not parse: {what[:1].lower()}{what[1:]} near "{near}"',
        where=f"{place.file}:{place.line + line - 1}",
    )
