"""What stands between a table's name and its query?

A list of columns and expectations in parentheses, then clauses in any order. Everything that
Spark's pipelines accept here is accepted; what Spark refuses (LOCATION, OPTIONS, keys) is refused
with the reason. USING, CLUSTER BY and a collation are read and dropped: the format is always
Delta, and the lake decides how files are laid out.
"""

from collections.abc import Sequence
from typing import Any

from sqlglot import Token, TokenType, exp

from springhouse.project.sql import syntax
from springhouse.project.sql.relation_parser import RelationParser
from springhouse.project.sql.sql_text import string_value
from springhouse.project.sql.step_parser import GrammarError
from springhouse.project.sql.tokenizer import is_name, is_string, is_word, unpaired_parenthesis

_CONSTRAINTS = ("CHECK", "FOREIGN", "PRIMARY", "UNIQUE")
_EXPECTATIONS = "Expectations are: CONSTRAINT positive EXPECT (amount > 0) ON VIOLATION DROP ROW."
_VIOLATIONS = {
    "drop row": ("DROP", "ROW"),
    "fail update": ("FAIL", "UPDATE"),
    "quarantine": ("QUARANTINE",),
}


class ClauseParser(RelationParser):
    """Parses names, lists of columns, and clauses."""

    declared_name: syntax.DeclaredName | None = None
    """What the statement declares, as soon as that is known."""

    def _check_parentheses(self) -> None:
        """Raise an error at the parenthesis of the statement that has no partner, if any."""
        wrong = unpaired_parenthesis(self._tokens)
        if wrong is not None:
            raise GrammarError(*wrong)

    def _parse_declared_name(self, what: str) -> syntax.DeclaredName:
        """`shop.orders`, or `IDENTIFIER('shop.orders')`."""
        start = self._index
        is_function = self._sees("IDENTIFIER")
        parts = self._name_parts(what)
        identifier = None
        if is_function and self._sees_sign(TokenType.L_PAREN):
            inside = self._index + 1
            self._skip_parentheses("(name)")
            identifier = string_value(self.sql, self._tokens[inside : self._index - 1])
            parts = []
        name = syntax.DeclaredName(expressions=parts, identifier=identifier)
        return self._located(name, start)

    def _parse_clauses(self) -> dict[str, Any]:
        """The clauses that come next, up to AS or the end of the statement."""
        found: dict[str, Any] = {"columns": [], "expectations": [], "properties": []}
        if self._sees_sign(TokenType.L_PAREN):
            found["columns"], found["expectations"] = self._parse_columns_and_expectations()
        while self._curr and not self._sees("AS"):
            if self._accept("COMMENT"):
                found["comment"] = self._text("a comment in quotes")
            elif self._accept("TBLPROPERTIES"):
                found["properties"] += self._parse_table_properties()
            elif self._accept("PARTITIONED", "BY") or self._accept("PARTITIONED", "ON"):
                found["partition_by"] = self._parse_partition_columns()
            elif not self._skip_clause():
                raise self._unexpected_clause()
        return found

    def _skip_clause(self) -> bool:
        """Step over a clause that means nothing here."""
        if self._accept("CLUSTER", "BY"):
            if not self._accept("AUTO") and not self._accept("NONE"):
                self._skip_parentheses("(column, …)")
        elif self._accept("USING"):
            self._name("a format")
        elif self._accept("DEFAULT", "COLLATION"):
            self._name("a collation")
        elif self._accept("WITH", "SCHEMA"):
            self._accept("TYPE")
            self._name("BINDING, COMPENSATION or EVOLUTION")
        else:
            return False
        return True

    def _unexpected_clause(self) -> GrammarError:
        if self._sees("LOCATION"):
            hint = "Leave it out: tables live under the project's storage."
            return GrammarError("LOCATION can't be chosen for one table", self._offset(), hint)
        return self._unexpected(
            "AS and a query, or a clause",
            hint="The clauses are PARTITIONED BY, CLUSTER BY, COMMENT, TBLPROPERTIES and USING.",
        )

    # Columns and expectations

    def _parse_columns_and_expectations(self) -> tuple[list[exp.Expr], list[exp.Expr]]:
        columns: list[exp.Expr] = []
        expectations: dict[str, exp.Expr] = {}
        for opening in self._elements("a list of columns"):
            if self._at_end_of_element():
                raise GrammarError("a column is missing at a comma", opening)
            offset = self._offset()
            if self._sees("CONSTRAINT"):
                expectation = self._parse_expectation()
                if expectation.name in expectations:
                    raise GrammarError(f'two constraints are named "{expectation.name}"', offset)
                expectations[expectation.name] = expectation
            else:
                columns.append(self._parse_column_definition())
        typed = [column for column in columns if column.args["typed"]]
        if typed and len(typed) < len(columns):
            untyped = next(column for column in columns if not column.args["typed"])
            raise GrammarError(
                f'column "{untyped.name}" has no type, and others have one',
                syntax.start_of(untyped),
                "Give every column a type, or none.",
            )
        return columns, list(expectations.values())

    def _parse_column_definition(self) -> syntax.ColumnDefinition:
        start = self._index
        words = self._curr.text.upper().split() if not is_string(self._curr) else []
        if words[:1] and words[0] in _CONSTRAINTS and not (len(words) == 1 and self._has_type()):
            raise self._unsupported_constraint(words[0])
        if not is_name(self._curr):
            raise self._unexpected("a column")
        typed = self._has_type()
        name = self._name("a column")
        tokens = [self._tokens[start], *self._skip_element()]
        comment = self._comment_at_end(tokens)
        node = syntax.ColumnDefinition(this=name, typed=typed, comment=comment)
        return self._located(node, start)

    def _comment_at_end(self, tokens: Sequence[Token]) -> str | None:
        """The comment with which the definition of a column ends."""
        first = len(tokens)
        while first > 0 and is_string(tokens[first - 1]):
            first -= 1
        commented = 1 < first < len(tokens) and is_word(tokens[first - 1], "COMMENT")
        return string_value(self.sql, tokens[first:]) if commented else None

    def _has_type(self) -> bool:
        """Whether a type follows the name: `a BIGINT`, `a: BIGINT`, but not `a COMMENT 'x'`."""
        follower = self._ahead(1)
        if follower is None:
            return False
        return follower.token_type is TokenType.COLON or (
            is_name(follower) and not is_word(follower, "COMMENT", "KEY")
        )

    def _parse_expectation(self) -> syntax.ExpectConstraint:
        start = self._index
        self._expect("CONSTRAINT")
        name = self._name("a name for the constraint")
        words = self._curr.text.upper().split() if self._curr else []
        if words and words[0] in _CONSTRAINTS and not is_string(self._curr):
            raise self._unsupported_constraint(words[0])
        self._expect("EXPECT")
        self._open("(condition)")
        if self._match(TokenType.R_PAREN):
            raise GrammarError(f'constraint "{name}" has no condition', self._tokens[start].start)
        condition = self._parse_value_text("a condition")
        if not self._match(TokenType.R_PAREN):
            self.raise_error("Invalid expression / Unexpected token")
        violation = self._parse_violation()
        node = syntax.ExpectConstraint(this=name, expression=condition, on_violation=violation)
        return self._located(node, start)

    def _parse_violation(self) -> str:
        chosen = "keep"
        if self._accept("ON", "VIOLATION"):
            found = (value for value, words in _VIOLATIONS.items() if self._accept(*words))
            chosen = next(found, "")
            if not chosen:
                raise self._unexpected("DROP ROW, FAIL UPDATE or QUARANTINE")
        if not self._at_end_of_element():
            raise self._unexpected("the end of the constraint")
        return chosen

    def _parse_value_text(self, what: str) -> syntax.ValueText:
        """One expression, in the user's own words."""
        start = self._index
        tree = self._parse_assignment()
        if tree is None:
            if self._curr:
                self.raise_error("Invalid expression / Unexpected token")
            raise self._unexpected(what)
        return self._located(syntax.ValueText(this=tree), start)

    def _unsupported_constraint(self, word: str) -> GrammarError:
        return GrammarError(f"{word} constraints are not supported", self._offset(), _EXPECTATIONS)

    # Clauses

    def _parse_partition_columns(self) -> list[str]:
        columns = []
        for _ in self._elements("(column, …)"):
            follower = self._ahead(1)
            ends = follower is not None and follower.token_type in (
                TokenType.COMMA,
                TokenType.R_PAREN,
            )
            if not self._curr or not is_name(self._curr) or not (ends or self._has_type()):
                raise GrammarError(
                    "a table can only be partitioned by its columns",
                    self._offset(),
                    "Compute the value in the query, as a column of its own.",
                )
            columns.append(self._curr.text)
            self._skip_element()
        return columns

    def _parse_table_properties(self) -> list[exp.Expr]:
        properties: dict[str, exp.Expr] = {}
        for opening in self._elements("(key = value, …)"):
            if self._at_end_of_element():
                raise GrammarError("a property is missing at a comma", opening)
            start = self._index
            if is_string(self._curr):
                # One token, not all side by side: ('key' 'value') is a pair without its =.
                key = self._curr.text
                self._advance()
            else:
                key = ".".join(self._name_parts("a property"))
            self._match(TokenType.EQ)
            value = self._skip_element()
            if not value:
                raise self._unexpected(f'a value for the property "{key}"')
            if key in properties:
                problem = f'the property "{key}" is given twice'
                raise GrammarError(problem, self._tokens[start].start)
            plain = string_value(self.sql, value)
            text = self._written(value[0], value[-1]) if plain is None else plain
            node = syntax.TablePropertyText(this=key, value=text)
            properties[key] = self._located(node, start)
        return list(properties.values())
