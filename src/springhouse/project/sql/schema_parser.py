"""Which types can a column have?

The grammar of Spark's DDL, as strict as Spark itself: sqlglot's own grammar of types takes those of
all databases, and a wrong type has to be an error before Spark starts. A test holds this grammar
against Spark.
"""

from sqlglot import TokenType

from springhouse.project.declarations.names import did_you_mean
from springhouse.project.sql.step_parser import GrammarError, StepParser
from springhouse.project.sql.syntax import SchemaColumn, SchemaColumns

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


class SchemaParser(StepParser):
    """Parses the columns of a schema."""

    def _parse_schema_columns(self) -> SchemaColumns:
        """`id BIGINT, name STRING`, or the same inside `STRUCT<…>`."""
        follower = self._ahead(1)
        if self._sees("STRUCT") and follower is not None and follower.text in ("<", "<>"):
            self._advance()
            columns = self._parse_fields()
        else:
            columns = self._parse_columns()
        self._expect_end()
        return SchemaColumns(expressions=columns)

    def _parse_columns(self) -> list[SchemaColumn]:
        columns = [self._parse_schema_column()]
        while self._match(TokenType.COMMA):
            columns.append(self._parse_schema_column())
        return columns

    def _parse_schema_column(self) -> SchemaColumn:
        at = self._offset()
        name = self._name("the name of a column")
        if not name.isascii() and self.sql[at] != "`":
            raise GrammarError(f'"{name}" has letters other than a to z', at, f"Write `{name}`.")
        self._match(TokenType.COLON)
        word = self._parse_type_name()
        required = self._accept("NOT", "NULL")
        comment = self._text("a comment in quotes") if self._accept("COMMENT") else None
        return SchemaColumn(this=name, nested=word in _NESTED, required=required, comment=comment)

    def _parse_fields(self) -> list[SchemaColumn]:
        if self._match(TokenType.NEQ):  # <>
            return []
        self._expect_sign(TokenType.LT, "<")
        columns = [] if self._sees_sign(TokenType.GT) else self._parse_columns()
        self._expect_sign(TokenType.GT, ">")
        return columns

    def _expect_sign(self, token_type: TokenType, sign: str) -> None:
        if not self._match(token_type):
            raise self._unexpected(sign)

    def _parse_type_name(self) -> str:
        """Step over a type; its first word."""
        word = next((each for each in _TYPES if self._sees(each)), None)
        if word is None:
            shown = self._curr.text.upper() if self._curr else ""
            raise self._unexpected("a type", did_you_mean(shown, _TYPES))
        offset = self._offset()
        self._advance()
        if word in _DECIMALS:
            self._parse_digits()
        elif word in _WITH_LENGTH:
            problem = f"Spark does not allow the type {word} for a column of a source or table"
            raise GrammarError(problem, offset, "Write STRING.")
        elif word == "STRUCT":
            self._parse_fields()
        elif word in _NESTED:
            self._parse_type_arguments(2 if word == "MAP" else 1)
        elif word == "INTERVAL":
            self._parse_units()
        elif word == "STRING" and self._accept("COLLATE"):
            self._name_parts("a collation")
        return word

    def _parse_type_arguments(self, count: int) -> None:
        self._expect_sign(TokenType.LT, "<")
        self._parse_type_name()
        if count > 1:
            self._expect_sign(TokenType.COMMA, ",")
            self._parse_type_name()
        self._expect_sign(TokenType.GT, ">")

    def _parse_digits(self) -> None:
        if not self._match(TokenType.L_PAREN):
            return
        at = self._offset()
        precision, scale = self._whole_number(), 0
        if self._match(TokenType.COMMA):
            scale = self._whole_number()
        self._expect_sign(TokenType.R_PAREN, ")")
        if not scale <= precision <= _MOST_DIGITS:
            problem = (
                f"a decimal has at most {_MOST_DIGITS} digits, and not more of them after the dot"
            )
            raise GrammarError(problem, at)

    def _whole_number(self) -> int:
        if not self._curr or not self._curr.text.isdecimal():
            raise self._unexpected("a number")
        self._advance()
        return int(self._prev.text)

    def _parse_units(self) -> None:
        for units in (_YEARS, _DAYS):
            for at, unit in enumerate(units):
                if not self._accept(unit):
                    continue
                if self._accept("TO") and not any(map(self._accept, units[at + 1 :])):
                    raise self._unexpected("a smaller unit")
                return
