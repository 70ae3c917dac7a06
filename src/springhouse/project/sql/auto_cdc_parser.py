"""How are changes applied to a table?

The clauses of `CREATE FLOW … AS AUTO CDC INTO t FROM STREAM(s)`, in any order.
"""

from typing import Any

from sqlglot import TokenType

from springhouse.project.sql import syntax
from springhouse.project.sql.clause_parser import ClauseParser
from springhouse.project.sql.step_parser import GrammarError
from springhouse.project.sql.tokenizer import is_name


class AutoCdcParser(ClauseParser):
    """Parses AUTO CDC."""

    def _parse_cdc_flow(self, name: syntax.DeclaredName) -> syntax.CreateCdcFlow:
        once = self._accept("ONCE")
        self._expect("INTO")
        target = self._parse_declared_name("the name of a table")
        self._expect("FROM")
        if not self._sees("STREAM") or self._ahead(1) is None:
            raise self._unexpected("STREAM and a table", hint="Write FROM STREAM(changes).")
        source = self._parse_stream_relation()
        clauses: dict[str, Any] = {}
        while self._curr:
            self._parse_cdc_clause(clauses)
        return syntax.CreateCdcFlow(this=name, target=target, source=source, once=once, **clauses)

    def _parse_cdc_clause(self, clauses: dict[str, Any]) -> None:
        if self._accept("KEYS"):
            clauses["keys"] = self._parse_names_of_columns("KEYS")
        elif self._accept("SEQUENCE", "BY"):
            clauses["sequence_by"] = self._parse_value_text("an expression after SEQUENCE BY")
        elif self._accept("APPLY", "AS", "DELETE", "WHEN"):
            what = "an expression after APPLY AS DELETE WHEN"
            clauses["delete_when"] = self._parse_value_text(what)
        elif self._accept("COLUMNS"):
            if self._match(TokenType.STAR):
                self._expect("EXCEPT")
                clauses["except_columns"] = self._parse_names_of_columns("EXCEPT")
            else:
                clauses["columns"] = self._parse_names_of_columns("COLUMNS")
        elif self._accept("STORED", "AS"):
            self._accept("SCD")
            self._expect("TYPE")
            if not self._sees("1") and not self._sees("2"):
                raise self._unexpected("1 or 2")
            clauses["scd_type"] = int(self._name("1 or 2"))
        else:
            raise self._unexpected(
                "a clause of AUTO CDC",
                hint="The clauses are KEYS, SEQUENCE BY, APPLY AS DELETE WHEN, COLUMNS and STORED "
                "AS SCD TYPE.",
            )

    def _parse_names_of_columns(self, what: str) -> list[str]:
        names = []
        for opening in self._elements(f"(column, …) after {what}"):
            offset = opening if self._at_end_of_element() else self._offset()
            tokens = self._skip_element()
            if len(tokens) != 1 or not is_name(tokens[0]):
                raise GrammarError(f"{what} takes names of columns", offset)
            names.append(tokens[0].text)
        return names
