"""How does sqlglot parse an expression exactly as Spark does?

sqlglot has a dialect for Spark, made for translating whole queries into other dialects. For that
purpose it rewrites some expressions, and it accepts some mistakes. A flow computes the expression
itself, so this module changes that dialect:

    words       only the words of an expression have a meaning; all others can name columns
    calls       a call keeps its name and arguments: `nvl(a, b)` does not become `COALESCE(a, b)`
    numbers     a suffix (`1L`) and a sign directly before a number are parts of the number
    strings     `''` inside quotes is one quote; half a character is an error
    operators   `|`, `^`, `&`, `+ - ||` have rising precedence; all comparisons have the same, and
                at most one of BETWEEN, IN, IS, LIKE follows them
    strictness  a missing THEN, AND or bracket is an error, and an extra comma, too
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser

from springhouse.flows.flow_graph import FlowError

_Tree = TypeVar("_Tree", bound=exp.Expr)

_OPERATORS = ("==", "::", "||", ">=", "<=", "<>", "!=", "<=>")
_WORDS = (
    *("AND", "AS", "ASC", "BETWEEN", "CASE", "DESC", "DISTINCT", "DIV", "ELSE", "END", "ESCAPE"),
    *("FALSE", "FOR", "FROM", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "THEN", "TRUE", "WHEN"),
)
_TYPES = (
    *("ARRAY", "BIGINT", "BINARY", "BOOLEAN", "BYTE", "DATE", "DEC", "DECIMAL", "DOUBLE", "FLOAT"),
    *("INT", "INTEGER", "INTERVAL", "LONG", "MAP", "NUMERIC", "REAL", "SHORT", "SMALLINT"),
    *("STRING", "STRUCT", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "TINYINT", "VARIANT"),
)
_SIGNS = frozenset("()&^:,.-=><%!|+/*~'`\"")
_COMPARISONS = {**SparkParser.EQUALITY, **SparkParser.COMPARISON}
_TYPED_LITERALS = {
    exp.DType.DATE: "date literal",
    exp.DType.TIMESTAMPTZ: "timestamp literal",
    exp.DType.TIMESTAMPNTZ: "timestamp_ntz literal",
}
_NO_NAMES = (TokenType.STRING, TokenType.NUMBER, TokenType.HEX_STRING)
_HALF_A_CHARACTER = "\ud800"
_ESCAPE = re.compile(r"\\(?:U([0-9a-fA-F]{8})|.)", re.DOTALL)
_LARGEST_CHARACTER = 0x10FFFF
_NAME = re.compile(r"[^\W\d]\w*")


class _ExpressionParser(SparkParser):
    """sqlglot's parser for Spark, with Spark's precedence, and calls as they are written."""

    STRICT_CAST = True
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: SparkParser.FUNCTION_PARSERS[name]
        for name in ("CAST", "EXTRACT", "SUBSTR", "SUBSTRING", "TRY_CAST")
    } | {"TRIM": lambda self: self.trim()}
    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
    }
    TERM: ClassVar[dict[TokenType, type[exp.Binary]]] = {
        TokenType.PLUS: exp.Add,
        TokenType.DASH: exp.Sub,
        TokenType.DPIPE: exp.DPipe,
    }
    UNARY_PARSERS: ClassVar[dict[TokenType, Any]] = {
        TokenType.PLUS: lambda self: self.positive(),
        TokenType.DASH: lambda self: self.negative(),
        TokenType.TILDE: SparkParser.UNARY_PARSERS[TokenType.TILDE],
    }
    RANGE_PARSERS: ClassVar[dict[TokenType, Any]] = {
        word: SparkParser.RANGE_PARSERS[word]
        for word in (TokenType.BETWEEN, TokenType.IN, TokenType.IS, TokenType.LIKE)
    }
    TYPE_LITERAL_PARSERS: ClassVar[dict[exp.DType, Any]] = {
        kind: lambda self, operand, kind: self.typed_literal(operand, kind) for kind in exp.DType
    }
    EXPRESSION_PARSERS: ClassVar[dict[Any, Any]] = {
        exp.Expr: SparkParser.EXPRESSION_PARSERS[exp.Expr],
        exp.Order: lambda self: self.order(),
        exp.Schema: lambda self: self.schema(),
    }

    def order(self) -> exp.Order:
        """The keys behind ORDER BY."""
        return exp.Order(expressions=self._parse_csv(self._parse_ordered))

    def schema(self) -> exp.Schema:
        """Columns and their types, as between the brackets of CREATE TABLE."""
        return exp.Schema(expressions=self._parse_csv(self._parse_struct_types))

    def positive(self) -> exp.Expr:
        """`+x` is a computation, so `+1` is not the literal `1`."""
        operand = self._parse_unary()
        if operand is None:
            self.raise_error("nothing behind +")
        return self.expression(exp.Anonymous(this="positive", expressions=[operand]))

    def negative(self) -> exp.Expr | None:
        """`-x`. A sign directly before a number is a part of the number."""
        sign, number = self._prev, self._curr
        if number.token_type != TokenType.NUMBER:
            return self.expression(exp.Neg(this=self._parse_unary()))
        self._advance()
        literal = exp.Literal(this=f"-{number.text}", is_string=False)
        return self._parse_column_ops(self.expression(literal, sign))

    def typed_literal(self, operand: exp.Expr, kind: exp.DataType) -> exp.Expr:
        """`DATE '2024-02-29'`, as a call of "date literal"."""
        literal = operand
        while isinstance(literal, exp.Cast | exp.Dot):  # DATE '2024-02-29'::STRING
            literal = literal.this
        name = _TYPED_LITERALS.get(kind.this) if literal.is_string else None
        if name is None or kind.expressions:
            self.raise_error("no literal of this type", self._prev)
        typed = exp.Anonymous(this=name, expressions=[literal.copy()])
        if literal is operand:
            return typed
        literal.replace(typed)
        return operand

    def trim(self) -> exp.Trim:
        """The arguments of TRIM. BOTH, LEADING and TRAILING need a FROM behind them."""
        start = self._index
        result = self._parse_trim()
        words = {token.token_type for token in self._tokens[start : self._index]}
        if result.args.get("position") and TokenType.FROM not in words:
            self.raise_error("no FROM in TRIM")
        return result

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
        if parse_is and self._match(TokenType.NOT):
            return self.expression(exp.Not(this=self._parse_equality()))
        compared = self._from_the_left(_COMPARISONS, self._parse_bitwise)
        return self._parse_range(compared) if parse_is else compared

    def _parse_range(self, this: exp.Expr | None = None, parse_is: bool = False) -> exp.Expr | None:
        this = this or self._parse_bitwise()
        negated = self._match(TokenType.NOT)
        if negated and self._curr.token_type == TokenType.IS:
            self.raise_error("NOT before IS")
        if self._match_set(self.RANGE_PARSERS):
            this = self.RANGE_PARSERS[self._prev.token_type](self, this)
            if isinstance(this, exp.Cast | exp.Dot):  # a IS NULL::INT
                self.raise_error("a cast or a field behind a predicate", self._prev)
        elif negated:
            self.raise_error("NOT before no BETWEEN, IN or LIKE")
        return self.expression(exp.Not(this=this)) if negated else this

    def _parse_bitwise(self) -> exp.Expr | None:
        def ands() -> exp.Expr | None:
            return self._from_the_left({TokenType.AMP: exp.BitwiseAnd}, self._parse_term)

        def xors() -> exp.Expr | None:
            return self._from_the_left({TokenType.CARET: exp.BitwiseXor}, ands)

        return self._from_the_left({TokenType.PIPE: exp.BitwiseOr}, xors)

    def _from_the_left(
        self,
        operators: Mapping[TokenType, type[exp.Expr]],
        operand: Callable[[], exp.Expr | None],
    ) -> exp.Expr | None:
        """Operators of the same precedence, from left to right."""
        left = operand()
        while self._match_set(operators):
            operator = operators[self._prev.token_type]
            left = self.expression(operator(this=left, expression=operand()))
        return left

    def _parse_struct_types(self, type_required: bool = False) -> exp.Expr | None:
        name = self._parse_id_var()
        self._match(TokenType.COLON)
        return self._parse_column_def(name)

    def _parse_id_var(self, any_token: bool = True, tokens: Any = None) -> exp.Expr | None:
        if self._curr.token_type in _NO_NAMES:
            return None
        return super()._parse_id_var(any_token, tokens)

    def _parse_csv(
        self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA
    ) -> list[Any]:
        first = parse_method()
        items = [] if first is None else [first]
        while items and self._match(sep):
            item = parse_method()
            if item is None:
                self.raise_error("nothing behind a comma")
            items.append(item)
        return items

    def raise_error(self, message: str, token: Any = None) -> None:
        """Raise an error that knows its place in the text."""
        unexpected = token or self._curr
        raise _NotUnderstood(message, unexpected.start if unexpected else len(self.sql))


class _NotUnderstood(ParseError):
    def __init__(self, message: str, start: int) -> None:
        super().__init__(message, [{"description": message}])
        self.start = start


class SparkExpressions(Spark):
    """sqlglot's dialect for Spark, with the differences that the module lists."""

    class Tokenizer(Spark.Tokenizer):
        """Only the words, signs and types of an expression have a meaning."""

        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: Spark.Tokenizer.KEYWORDS[word] for word in (*_OPERATORS, *_WORDS, *_TYPES)
        }
        SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {
            # The parser has no rule for a backslash, so it refuses all signs of other dialects.
            sign: token if sign in _SIGNS else TokenType.BACKSLASH
            for sign, token in Spark.Tokenizer.SINGLE_TOKENS.items()
        }
        NUMERIC_LITERALS: ClassVar[dict[str, str]] = {}
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']
        LONE_SURROGATE_REPLACEMENT = _HALF_A_CHARACTER

    Parser = _ExpressionParser


def read(text: str, kind: type[_Tree]) -> _Tree:
    """The tree of a text: an `Expr`, an `Order` or a `Schema` of sqlglot.

    >>> read("a + 1 > b", exp.Expr)
    GT(
      this=Add(
        this=Column(
          this=Identifier(this=a, quoted=False)),
        expression=Literal(this=1, is_string=False)),
      expression=Column(
        this=Identifier(this=b, quoted=False)))
    """
    dialect = SparkExpressions()
    try:
        tokens = list(_tokens_of_spark(dialect.tokenize(text), text))
        (tree,) = dialect.parser().parse_into(kind, tokens, text) or [None]
    except TokenError as error:
        raise FlowError(f'"{text}" is not SQL: {error}') from None
    except ParseError as error:
        start = getattr(error.__cause__ or error, "start", 0)
        raise not_understood(text, start) from None
    if not tokens or not isinstance(tree, kind):
        raise not_understood(text, 0)
    _prove_complete(text, tokens, tree)
    return tree


def not_understood(text: str, start: int) -> FlowError:
    """The error for a text that a flow does not understand at this place."""
    place = f'"{text[start:]}"' if text[start:].strip() else "its end"
    return FlowError(f'"{text}" is not understood at {place}')


def start_of(tree: exp.Expr) -> int:
    """The place in the text where a tree starts, as far as sqlglot knows it."""
    return min((node.meta["start"] for node in tree.walk() if "start" in node.meta), default=0)


# Tokens.


def _tokens_of_spark(tokens: Sequence[Token], text: str) -> Iterator[Token]:
    """The tokens, with Spark's boundaries of numbers and strings."""
    waiting: Token | None = None
    for token in tokens:
        token = _as_spark_reads(token, text)
        joined = waiting and _join_tokens(waiting, token)
        if waiting and not joined:
            yield waiting
        waiting = joined or token
    if waiting:
        yield waiting


def _as_spark_reads(token: Token, text: str) -> Token:
    written = text[token.start : token.end + 1]
    if any(comment.endswith("\\") for comment in token.comments):
        raise FlowError(f'"{text}" has a comment that goes on behind the end of its line')
    if token.token_type == TokenType.VAR and token.text[0].isdigit():
        return _with_text(token, TokenType.NUMBER, token.text)
    if token.token_type == TokenType.VAR and not _NAME.fullmatch(token.text):
        raise not_understood(text, token.start)
    if token.token_type != TokenType.NUMBER and written[:2] in ("0x", "0X"):
        raise not_understood(text, token.start)
    if token.token_type == TokenType.RAW_STRING:
        return _with_text(token, TokenType.STRING, token.text)
    if token.token_type == TokenType.STRING:
        _prove_characters(token.text, written)
    return token


def _join_tokens(one: Token, other: Token) -> Token | None:
    """Two tokens as one: two adjacent strings, or a point and the digits behind it; else None."""
    kinds = (one.token_type, other.token_type)
    if kinds == (TokenType.STRING, TokenType.STRING):
        return _with_text(one, TokenType.STRING, one.text + other.text, other.end)
    if kinds == (TokenType.DOT, TokenType.NUMBER) and one.end + 1 == other.start:
        return _with_text(one, TokenType.NUMBER, f".{other.text}", other.end)
    return None


def _with_text(token: Token, kind: TokenType, text: str, end: int | None = None) -> Token:
    return Token(
        kind, text, token.line, token.col, token.start, token.end if end is None else end, []
    )


def _prove_characters(text: str, written: str) -> None:
    if _HALF_A_CHARACTER in text:
        raise FlowError(f"{written} has half a character: a \\u without its other half")
    for escape in _ESCAPE.finditer(written):
        if escape.group(1) and int(escape.group(1), 16) > _LARGEST_CHARACTER:
            raise FlowError(f"there is no character \\U{escape.group(1)}")


def _prove_complete(text: str, tokens: Sequence[Token], tree: exp.Expr) -> None:
    """Raise an error if sqlglot has accepted a text with a missing word or bracket."""
    token_counts = Counter(token.token_type for token in tokens)
    node_counts = Counter(type(node) for node in tree.walk())
    complete = (
        token_counts[TokenType.L_PAREN] == token_counts[TokenType.R_PAREN]
        and token_counts[TokenType.AND] == node_counts[exp.And] + node_counts[exp.Between]
        and token_counts[TokenType.WHEN] == token_counts[TokenType.THEN] == node_counts[exp.If]
        and tokens[-1].token_type != TokenType.ALIAS
    )
    if not complete:
        raise not_understood(text, len(text))
