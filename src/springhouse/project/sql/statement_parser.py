"""What are the statements of a project, word by word?

The statements of Spark's pipelines (CREATE STREAMING TABLE, CREATE MATERIALIZED VIEW, CREATE VIEW,
CREATE FLOW, SET, USE) and what Springhouse adds to them: OR REFRESH, EXPECT, ONCE and AUTO CDC. A
statement that would do something at once (SELECT, DROP, INSERT) is an error: files declare, the
scheduler does.
"""

from itertools import pairwise

from sqlglot import exp

from springhouse.project.sql import syntax
from springhouse.project.sql.auto_cdc_parser import AutoCdcParser
from springhouse.project.sql.step_parser import GrammarError
from springhouse.project.sql.tokenizer import is_name, is_word

_STATEMENTS = (
    "A file declares with CREATE STREAMING TABLE, CREATE MATERIALIZED VIEW, CREATE TEMPORARY VIEW, "
    "CREATE FLOW and SET."
)
_SET = "Write SET spark.sql.x = y."


class StatementParser(AutoCdcParser):
    """Parses one statement of a project."""

    def _parse_project_statement(self) -> exp.Expr:
        statement: exp.Expr
        if self._accept("SET"):
            statement = self._parse_configuration()
        elif self._accept("USE"):
            statement = self._parse_use_own()
        elif self._accept("CREATE"):
            statement = self._parse_declaration()
        else:
            raise self._not_a_declaration()
        self._expect_end()
        return self._located(statement, 0)

    def _not_a_declaration(self) -> GrammarError:
        start = self._tokens[: self._index + 1]
        words = " ".join(map(self._written, start)).upper()
        return GrammarError(f"{words} is not a statement of a project", start[0].start, _STATEMENTS)

    # Tables and views

    def _parse_declaration(self) -> exp.Expr:
        replaces = self._accept("OR", "REFRESH") or self._accept("OR", "REPLACE")
        if self._accept("STREAMING", "TABLE"):
            return self._parse_streaming_table()
        if self._accept("MATERIALIZED", "VIEW"):
            return self._parse_view(syntax.CreateMaterializedView, "a materialized view")
        if self._sees("FLOW") and not replaces:
            self._expect("FLOW")
            return self._parse_flow()
        if self._sees("VIEW") or self._sees("TEMPORARY") or self._sees("TEMP"):
            # A plain CREATE VIEW of Spark's stores nothing either, so it is the same.
            if not self._accept("TEMPORARY"):
                self._accept("TEMP")
            self._expect("VIEW")
            return self._parse_view(syntax.CreateTemporaryView, "a view")
        raise self._not_a_declaration()

    def _parse_streaming_table(self) -> exp.Expr:
        name = self._parse_header("a streaming table")
        clauses = self._parse_clauses()
        query = None
        if self._curr:
            self._expect("AS")
            query = self._parse_query_text()
        return syntax.CreateStreamingTable(this=name, query=query, **clauses)

    def _parse_view(self, kind: type[exp.Expression], what: str) -> exp.Expr:
        name = self._parse_header(what)
        clauses = self._parse_clauses()
        self._expect("AS")
        return kind(this=name, query=self._parse_query_text(), **clauses)

    def _parse_header(self, what: str) -> syntax.DeclaredName:
        """The name of the table or view that the statement declares."""
        self._accept("IF", "NOT", "EXISTS")
        self.declared_name = self._parse_declared_name(f"the name of {what}")
        self._check_parentheses()
        return self.declared_name

    def _parse_query_text(self) -> syntax.QueryText:
        """The query to the end of the statement."""
        if not self._curr:
            raise self._unexpected("a query")
        start = self._index
        return self._located(syntax.QueryText(this=self._parse_project_query()), start)

    # Flows

    def _parse_flow(self) -> exp.Expr:
        name = self._parse_declared_name("the name of a flow")
        self._check_parentheses()
        if self._accept("COMMENT"):
            self._text("a comment in quotes")
        self._expect("AS")
        if self._accept("AUTO", "CDC"):
            return self._parse_cdc_flow(name)
        if self._accept("INSERT"):
            return self._parse_append_flow(name)
        raise self._unexpected("INSERT INTO or AUTO CDC INTO")

    def _parse_append_flow(self, name: syntax.DeclaredName) -> syntax.CreateAppendFlow:
        self._accept("WITH", "SCHEMA", "EVOLUTION")
        if self._sees("OVERWRITE"):
            raise self._unexpected("INTO", hint="A flow only appends; to replace, make a view.")
        self._expect("INTO")
        once = self._accept_once()
        self._accept("TABLE")
        target = self._parse_declared_name("the name of a table")
        if self._curr and self._curr.text == "(" and not self._query_in_parentheses():
            raise self._unexpected("BY NAME", hint="Name the columns in the query, with AS.")
        by_name = self._accept("BY", "NAME")
        if self._sees("PARTITION") or self._sees("REPLACE"):
            raise self._unexpected("a query")
        query = self._parse_query_text()
        return syntax.CreateAppendFlow(
            this=name, target=target, query=query, by_name=by_name, once=once
        )

    def _accept_once(self) -> bool:
        """Step over ONCE, unless it is the name of a table."""
        follower = self._ahead(1)
        if follower is None or not is_name(follower):
            return False
        if is_word(follower, "BY", "SELECT", "WITH", "FROM", "VALUES"):
            return False
        return self._accept("ONCE")

    def _query_in_parentheses(self) -> bool:
        follower = self._ahead(1)
        return follower is not None and (
            is_word(follower, "SELECT", "WITH", "FROM", "VALUES") or follower.text == "("
        )

    # Settings

    def _parse_configuration(self) -> exp.Expr:
        """What follows SET; as in Spark, quotes belong to a value."""
        if self._accept("CATALOG"):
            return syntax.UseOwn(this=self._rest(), kind="catalog")
        if self._accept("TIME", "ZONE"):
            zone = self._text("a time zone in quotes")
            return syntax.SetConfiguration(this="spark.sql.session.timeZone", value=zone)
        tokens = self._tokens[self._index :]
        equals = next((at for at, token in enumerate(tokens) if token.text == "="), None)
        if not equals or self._sees("VAR") or self._sees("VARIABLE"):
            raise self._unexpected("key = value", hint=_SET)
        key = self._written(tokens[0], tokens[equals - 1])
        value = tokens[equals + 1 :]
        if not value:
            raise GrammarError(f"SET {key} has no value", self._tokens[0].start, _SET)
        for before, token in pairwise(value):
            # Spark takes all text up to the ; as the value, so a forgotten ; would swallow the
            # statement that follows.
            next_line = "\n" in self.sql[before.end + 1 : token.start]
            if next_line or is_word(token, "CREATE", "SET", "USE"):
                problem = f"a ; is missing after SET {key}"
                raise GrammarError(problem, before.start, "A value of SET stands on one line.")
        self._advance(equals + 1)
        return syntax.SetConfiguration(
            this=key.replace("`", ""), value=self._rest().replace("`", "")
        )

    def _parse_use_own(self) -> syntax.UseOwn:
        for what in ("NAMESPACE", "DATABASE", "SCHEMA"):
            self._accept(what)
        return syntax.UseOwn(this=self._rest(), kind="database")

    def _rest(self) -> str:
        """The text to the end of the statement, as it was written."""
        tokens = self._tokens[self._index :]
        self._advance(len(tokens))
        return self._written(tokens[0], tokens[-1]) if tokens else ""
