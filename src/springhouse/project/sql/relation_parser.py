"""What may stand where a query names its input?

Spark's pipelines have more relations than sqlglot's Spark dialect: `STREAM orders`, sources with
options (`STREAM read_files('data', format => 'json')`), a WATERMARK clause, and tables as arguments
of functions (`f(TABLE(orders))`). Each relation is an `exp.Table` that knows its span, so that a
query can be rewritten in the user's own words; `STREAM orders` bears the mark `syntax.STREAM`.
"""

from collections.abc import Collection
from typing import ClassVar

from sqlglot import TokenType, exp

from springhouse.project.sql import syntax
from springhouse.project.sql.sql_text import string_value
from springhouse.project.sql.step_parser import GrammarError, StepParser
from springhouse.project.sql.tokenizer import is_name, is_word

QUERY_STARTS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")

# Words that may follow a table's name, so that `FROM stream WHERE` reads a table named stream.
_AFTER_A_NAME = (
    *("CLUSTER", "DISTRIBUTE", "EXCEPT", "GROUP", "HAVING", "INTERSECT", "LIMIT", "MINUS"),
    *("OFFSET", "ORDER", "QUALIFY", "SELECT", "SORT", "UNION", "WHERE", "WINDOW"),
    *("ANTI", "AS", "CROSS", "FULL", "INNER", "JOIN", "LATERAL", "LEFT", "NATURAL", "ON"),
    *("PIVOT", "RIGHT", "SEMI", "TABLESAMPLE", "UNPIVOT", "USING", "WATERMARK"),
)


class RelationParser(StepParser):
    """Parses queries, and notes where each relation stands."""

    SUPPORTS_TABLE_QUERY: ClassVar[bool] = True

    def _parse_project_query(self) -> exp.Expr:
        """A query, and no other statement or expression."""
        first = next((t for t in self._tokens[self._index :] if t.text != "("), None)
        if first is None or not is_word(first, *QUERY_STARTS):
            shown = "nothing" if first is None else f'"{self._written(first)}"'
            raise GrammarError(f"expected a query here, found {shown}", self._offset())
        start = self._index
        tree = self._parse_statement()
        if self._curr:
            self.raise_error("Invalid expression / Unexpected token")
        if not isinstance(tree, exp.Query | exp.Values):
            raise GrammarError("expected a query here", self._tokens[start].start)
        return tree

    # Relations

    def _parse_table_parts(
        self,
        schema: bool = False,
        is_db_reference: bool = False,
        wildcard: bool = False,
        fast: bool = False,
    ) -> exp.Table | exp.Dot | None:
        start = self._index
        special = self._at_stream() or self._at_call()
        if fast:
            if special:
                return None  # sqlglot goes on without its short cut.
            found = super()._parse_table_parts(schema, is_db_reference, wildcard, fast)
            return self._noted(found, start) if found is not None else None
        if schema or is_db_reference:
            return super()._parse_table_parts(schema, is_db_reference, wildcard, fast)
        if special:
            return self._parse_stream_relation() if self._at_stream() else self._parse_call()
        end = self._end_of_name()
        table = super()._parse_table_parts(schema, is_db_reference, wildcard, fast)
        return self._noted(table, start, end - 1) if table is not None and end > start else table

    def _noted(
        self, table: exp.Table | exp.Dot, first: int, last: int | None = None
    ) -> exp.Table | exp.Dot:
        """The relation with its place; after the word TABLE it takes no alias."""
        before = [self._tokens[at] for at in (first - 1, first - 2) if at >= 0]
        if before and before[0].text == "(":
            before = before[1:]
        if before and before[0].token_type is TokenType.TABLE:
            table.meta[syntax.NO_ALIAS] = True
        return self._located(table, first, last)

    def _at_stream(self) -> bool:
        """Whether STREAM comes next, and is not itself the name of a table."""
        follower = self._ahead(1)
        if not self._sees("STREAM") or follower is None:
            return False
        if follower.token_type is TokenType.L_PAREN:
            return True
        words = follower.text.upper().split() if is_name(follower) else []
        return bool(words) and (
            follower.token_type is TokenType.IDENTIFIER or words[0] not in _AFTER_A_NAME
        )

    def _at_call(self) -> bool:
        """Whether a function with its arguments comes next, and not just a name."""
        end = self._end_of_name()
        follower = self._tokens[end] if self._index < end < self._tokens_size else None
        return follower is not None and follower.token_type is TokenType.L_PAREN

    def _end_of_name(self) -> int:
        """The index of the token behind the dotted name that comes next."""
        at = self._index
        while at < self._tokens_size and is_name(self._tokens[at]):
            at += 1
            if at < self._tokens_size and self._tokens[at].token_type is TokenType.DOT:
                at += 1
                continue
            break
        return at

    def _parse_stream_relation(self) -> exp.Table:
        """`STREAM orders`, `STREAM(orders)`, `STREAM read_files('data/orders')`."""
        start, offset = self._index, self._offset()
        self._expect("STREAM")
        inside = self._match(TokenType.L_PAREN)
        if not self._curr or not is_name(self._curr):
            raise self._unexpected("a name after STREAM")
        name_start = self._offset()
        table = self._parse_call() if self._at_call() else self._parse_name()
        table.meta["name_start"] = name_start
        if inside and not self._match(TokenType.R_PAREN):
            raise GrammarError(
                "STREAM takes the name of a table or a source",
                offset,
                "Write STREAM(orders), or STREAM read_files('data/orders').",
            )
        table.meta[syntax.STREAM] = True
        return self._located(table, start)

    def _parse_name(self) -> exp.Table:
        *others, last = self._parse_identifiers()
        return _table(last, others)

    def _parse_identifiers(self) -> list[exp.Identifier]:
        parts: list[exp.Identifier] = []
        while self._curr and is_name(self._curr):
            quoted = self._curr.token_type is TokenType.IDENTIFIER
            part = exp.Identifier(this=self._curr.text, quoted=quoted)
            parts.append(part.update_positions(self._curr))
            self._advance()
            if not self._match(TokenType.DOT):
                return parts
        raise self._unexpected("a name")

    # Functions

    def _parse_call(self) -> exp.Table:
        """`read_files('data', format => 'json')`, `range(10)`, `f(TABLE(orders))`."""
        start = self._index
        *others, last = self._parse_identifiers()
        arguments = [self._parse_argument() for _ in self._elements("(arguments)")]
        function = exp.Anonymous(this=last.name, expressions=arguments)
        table = _table(function, others)
        self._noted(table, start)
        return table

    def _parse_argument(self) -> syntax.CallArgument:
        start = self._index
        name: str | None = None
        follower = self._ahead(1)
        if (
            self._curr
            and is_name(self._curr)
            and follower is not None
            and follower.token_type is TokenType.FARROW
        ):
            name = self._curr.text
            self._advance(2)
        first = self._index
        value = self._parse_table_argument() or self._parse_lambda()
        if value is None or not self._at_end_of_element():
            self.raise_error("Invalid expression / Unexpected token")
        tokens = self._tokens[first : self._index]
        plain = string_value(self.sql, tokens)
        node = syntax.CallArgument(this=value, name=name, value=plain)
        node.meta["value_span"] = (tokens[0].start, tokens[-1].end + 1)
        return self._located(node, start)

    def _parse_table_argument(self) -> exp.Expr | None:
        """`TABLE(orders)` or `TABLE(SELECT …)` as an argument of a function."""
        follower = self._ahead(1)
        if not self._sees("TABLE") or follower is None:
            return None
        if follower.token_type is not TokenType.L_PAREN:
            return None
        inside = self._ahead(2)
        if inside is None or not is_name(inside):
            return None
        self._advance(2)
        found = (
            self._parse_select() if is_word(inside, *QUERY_STARTS) else self._parse_table_parts()
        )
        if not self._match(TokenType.R_PAREN):
            self.raise_error("Invalid expression / Unexpected token")
        return found

    # What follows a relation

    def _parse_table_hints(self) -> list[exp.Expr] | None:
        """`FROM orders WITH ('a' = 'b')`: options of a table that is read are an error."""
        if self._match_pair(TokenType.WITH, TokenType.L_PAREN, advance=False):
            hint = "Leave it out: Springhouse decides which rows of a table are read."
            raise GrammarError(
                "a table of a project is read without options", self._curr.start, hint
            )
        return super()._parse_table_hints()

    def _parse_table_alias(
        self, alias_tokens: Collection[TokenType] | None = None
    ) -> exp.TableAlias | None:
        watermark = self._skip_watermark()
        alias = super()._parse_table_alias(alias_tokens)
        if watermark and alias is None:
            alias = exp.TableAlias()
        if watermark and alias is not None:
            alias.meta[syntax.WATERMARK] = True
        return alias

    def _skip_watermark(self) -> bool:
        """Step over `WATERMARK ts DELAY OF INTERVAL 1 MINUTE`, if it comes next."""
        if not self._sees("WATERMARK"):
            return False
        start = self._index
        self._advance()
        if self._parse_assignment() is not None:
            if self._accept("AS"):
                self._advance()
            if self._accept("DELAY", "OF"):
                if self._sees("INTERVAL"):
                    self._parse_unary()
                else:
                    self._advance(2)  # A number and its unit.
                return True
        self._retreat(start)
        return False


def _table(name: exp.Expr, others: list[exp.Identifier]) -> exp.Table:
    """A relation with the parts of its name where sqlglot has them."""
    catalog, database = ([None, None, *others])[-2:]
    return exp.Table(this=name, db=database, catalog=catalog)
