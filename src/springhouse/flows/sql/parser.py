"""What does a text of SQL say? A tree of calls, as Spark's grammar reads it.

An operator is a call, too: `a + 1` is the call "+" of a column and a literal. From loose to tight:

    OR | AND | NOT | a value with at most one of BETWEEN, IN, LIKE, IS behind it
    a value: comparison | "|" | ^ | & | + - "||" | * / % DIV | unary + - ~ | primary
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

import pyarrow as pa

from springhouse.flows.flow_graph import FlowError
from springhouse.flows.sql.literals import number
from springhouse.flows.sql.tokens import ExpressionToken, tokenize
from springhouse.flows.sql.types import NAMED, STRING


@dataclass(frozen=True)
class Name:
    """A column, or a field of one: `a`, `a.b`."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class Literal:
    """A value that stands in the text."""

    value: object
    type: pa.DataType


@dataclass(frozen=True)
class CastTo:
    """CAST or TRY_CAST."""

    what: "Tree"
    type: pa.DataType
    tries: bool = False


@dataclass(frozen=True)
class Call:
    """A function or an operator, by its name in small letters, and what it is applied to."""

    function: str
    arguments: tuple["Tree", ...]


Tree: TypeAlias = Name | Literal | CastTo | Call


class SortKey(NamedTuple):
    """One key of an order."""

    tree: Tree
    descending: bool
    nulls_first: bool


_Made = TypeVar("_Made")

STAR = Call("*", ())
"""What stands in `count(*)`."""

_COMPARISONS = {"=": "=", "==": "=", "<>": "<>", "!=": "<>", "<=>": "<=>"} | {
    sign: sign for sign in ("<", "<=", ">", ">=")
}
_BINARY: tuple[tuple[str, ...], ...] = (
    ("|",),
    ("^",),
    ("&",),
    ("+", "-", "||"),
    ("*", "/", "%", "DIV"),
)
_NEVER_NAMES = frozenset(
    [
        "AND",
        "AS",
        "ASC",
        "BETWEEN",
        "BY",
        "CASE",
        "CAST",
        "DESC",
        "DISTINCT",
        "DIV",
        "ELSE",
        "END",
        "ESCAPE",
        "EXISTS",
        "FROM",
        "ILIKE",
        "IN",
        "INTERVAL",
        "IS",
        "LIKE",
        "NOT",
        "NULLS",
        "OR",
        "RLIKE",
        "SELECT",
        "THEN",
        "TRY_CAST",
        "WHEN",
        "WHERE",
        "CURRENT_DATE",
        "CURRENT_TIME",
        "CURRENT_TIMESTAMP",
        "CURRENT_USER",
        "LOCALTIME",
        "SESSION_USER",
        "USER",
    ]
)
_FIELDS = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE")


def parse_expression(text: str) -> Tree:
    """The tree of one expression."""
    return _Parser(text).whole(_Parser.expression)


def parse_column(text: str) -> tuple[str | None, Tree]:
    """The name and the tree of `expression AS name`; a column has its own name, or None."""
    return _Parser(text).whole(_Parser.column)


def parse_order(text: str) -> list[SortKey]:
    """The keys of `a DESC NULLS LAST, b`."""
    return _Parser(text).whole(_Parser.order)


def parse_schema(text: str) -> pa.Schema:
    """The columns of `id BIGINT, price DECIMAL(12,2)`."""
    return _Parser(text).whole(_Parser.schema)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._at = 0

    def whole(self, rule: "Callable[[_Parser], _Made]") -> _Made:
        found = rule(self)
        if self._next.kind != "end":
            raise self._unexpected()
        return found

    # Tokens.

    @property
    def _next(self) -> ExpressionToken:
        return self._tokens[self._at]

    def _after(self) -> ExpressionToken:
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def _take(self) -> ExpressionToken:
        token = self._next
        self._at += 1
        return token

    def _has(self, *words: str) -> bool:
        """Take one of these words or signs, if it is there."""
        if self._next.means(*words):
            self._at += 1
            return True
        return False

    def _need(self, *words: str) -> None:
        for word in words:
            if not self._has(word):
                raise self._unexpected(word)

    def _unexpected(self, wanted: str = "") -> FlowError:
        found = f'"{self._text[self._next.at :]}"' if self._next.kind != "end" else "its end"
        instead = f' instead of "{wanted}"' if wanted else ""
        return FlowError(f'"{self._text}" is not understood at {found}{instead}')

    # Rules.

    def schema(self) -> pa.Schema:
        fields = []
        while True:
            name = self._identifier()
            self._has(":")
            kind = self._type()
            nullable = not self._has("NOT")
            if not nullable:
                self._need("NULL")
            if self._has("COMMENT"):
                self._string()
            fields.append(pa.field(name, kind))
            if not self._has(","):
                return pa.schema(fields)

    def column(self) -> tuple[str | None, Tree]:
        tree = self.expression()
        if self._has("AS") or self._next.kind in ("word", "name"):
            return self._identifier(), tree
        return (tree.parts[-1] if isinstance(tree, Name) else None), tree

    def order(self) -> list[SortKey]:
        keys = []
        while True:
            tree = self.expression()
            descending = self._has("DESC")
            if not descending:
                self._has("ASC")
            nulls_first = not descending
            if self._has("NULLS"):
                nulls_first = self._has("FIRST")
                if not nulls_first:
                    self._need("LAST")
            keys.append(SortKey(tree, descending, nulls_first))
            if not self._has(","):
                return keys

    def expression(self) -> Tree:
        parts = [self._conjunction()]
        while self._has("OR"):
            parts.append(self._conjunction())
        return _joined("or", parts)

    def _conjunction(self) -> Tree:
        parts = [self._negation()]
        while self._has("AND"):
            parts.append(self._negation())
        return _joined("and", parts)

    def _negation(self) -> Tree:
        if self._has("NOT", "!"):
            return Call("not", (self._negation(),))
        return self._predicate(self._value())

    def _predicate(self, tree: Tree) -> Tree:
        if self._has("IS"):
            return self._is(tree)
        negated = self._next.means("NOT") and self._has("NOT")
        made = self._test(tree)
        if made is None:
            if negated:
                raise self._unexpected("BETWEEN, IN or LIKE")
            return tree
        return Call("not", (made,)) if negated else made

    def _test(self, tree: Tree) -> Tree | None:
        if self._has("BETWEEN"):
            low = self._value()
            self._need("AND")
            return Call("between", (tree, low, self._value()))
        if self._has("IN"):
            self._need("(")
            wanted = [self.expression()]
            while self._has(","):
                wanted.append(self.expression())
            self._need(")")
            return Call("in", (tree, *wanted))
        if self._has("LIKE"):
            if self._next.means("ANY", "SOME", "ALL"):
                raise self._unexpected("a pattern")
            parts = [tree, self._value()]
            if self._has("ESCAPE"):
                parts.append(Literal(self._string(), STRING))
            return Call("like", tuple(parts))
        return None

    def _is(self, tree: Tree) -> Tree:
        negated = self._has("NOT")
        if self._has("DISTINCT"):
            self._need("FROM")
            same = Call("<=>", (tree, self._value()))
            return same if negated else Call("not", (same,))
        for word in ("NULL", "TRUE", "FALSE", "UNKNOWN"):
            if self._has(word):
                made = Call(f"is {word.lower()}", (tree,))
                return Call("not", (made,)) if negated else made
        raise self._unexpected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")

    def _value(self) -> Tree:
        tree = self._binary(0)
        while self._next.kind == "sign" and self._next.text in _COMPARISONS:
            sign = _COMPARISONS[self._take().text]
            tree = Call(sign, (tree, self._binary(0)))
        return tree

    def _binary(self, level: int) -> Tree:
        if level == len(_BINARY):
            return self._unary()
        tree = self._binary(level + 1)
        while self._next.means(*_BINARY[level]):
            sign = self._take().text.lower()
            tree = Call(sign, (tree, self._binary(level + 1)))
        return tree

    def _unary(self) -> Tree:
        if self._next.means("-") and self._after().kind == "number":
            self._take()
            return self._behind(_literal(f"-{self._take().text}"))
        if self._has("-"):
            return Call("negative", (self._unary(),))
        if self._has("+"):
            return Call("positive", (self._unary(),))
        if self._has("~"):
            return Call("~", (self._unary(),))
        return self._behind(self._primary())

    def _behind(self, tree: Tree) -> Tree:
        """What may follow a primary expression: a cast, a field."""
        while True:
            if self._has("::"):
                tree = CastTo(tree, self._type())
            elif self._has("."):
                tree = Call("field", (tree, Literal(self._identifier(), STRING)))
            elif self._next.means("["):
                raise self._unexpected()
            else:
                return tree

    def _primary(self) -> Tree:
        token = self._next
        if token.kind == "number":
            return _literal(self._take().text)
        if token.kind == "text":
            return Literal(self._string(), STRING)
        if self._has("("):
            tree = self.expression()
            self._need(")")
            return tree
        if token.kind == "word" and (found := self._word(token)) is not None:
            return found
        if token.kind == "name" or (
            token.kind == "word" and token.text.upper() not in _NEVER_NAMES
        ):
            return self._name()
        raise self._unexpected()

    def _word(self, token: ExpressionToken) -> Tree | None:
        """What begins with a word that has a meaning of its own."""
        word, after = token.text.upper(), self._after()
        rules: dict[str, Callable[[], Tree]] = {"CASE": self._case}
        if after.means("("):
            rules |= {
                "CAST": self._cast,
                "TRY_CAST": self._cast,
                "TRIM": self._trim,
                "EXTRACT": self._extract,
            }
        elif after.kind == "text" and word in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "X"):
            return self._typed_text(word)
        elif word in ("TRUE", "FALSE", "NULL"):
            self._take()
            kind = pa.null() if word == "NULL" else pa.bool_()
            return Literal(None if word == "NULL" else word == "TRUE", kind)
        if word in rules:
            self._take()
            return rules[word]()
        return self._call() if after.means("(") and word not in _NEVER_NAMES else None

    def _typed_text(self, word: str) -> Tree:
        self._take()
        text = self._string()
        if word != "X":
            return Call(f"{word.lower()} literal", (Literal(text, STRING),))
        try:
            return Literal(bytes.fromhex("0" * (len(text) % 2) + text), pa.binary())
        except ValueError:
            raise FlowError(f"X'{text}' is not made of hexadecimal digits") from None

    def _call(self) -> Tree:
        function = self._take().text.lower()
        self._need("(")
        if self._has(")"):
            return Call(function, ())
        if self._has("*"):
            self._need(")")
            return Call(function, (STAR,))
        arguments = [self.expression()]
        if function in ("substring", "substr") and self._has("FROM"):
            arguments.append(self.expression())
            if self._has("FOR"):
                arguments.append(self.expression())
        while self._has(","):
            arguments.append(self.expression())
        self._need(")")
        return Call(function, tuple(arguments))

    def _case(self) -> Tree:
        """A call of "case": condition, value, condition, value, …, and perhaps a last value."""
        given = None if self._next.means("WHEN") else self.expression()
        parts: list[Tree] = []
        while self._has("WHEN"):
            condition = self.expression()
            parts.append(condition if given is None else Call("=", (given, condition)))
            self._need("THEN")
            parts.append(self.expression())
        if not parts:
            raise self._unexpected("WHEN")
        if self._has("ELSE"):
            parts.append(self.expression())
        self._need("END")
        return Call("case", tuple(parts))

    def _cast(self) -> Tree:
        tries = self._tokens[self._at - 1].means("TRY_CAST")
        self._need("(")
        tree = self.expression()
        self._need("AS")
        kind = self._type()
        self._need(")")
        return CastTo(tree, kind, tries)

    def _trim(self) -> Tree:
        self._need("(")
        side, sided = "trim", False
        for word, function in (("BOTH", "trim"), ("LEADING", "ltrim"), ("TRAILING", "rtrim")):
            if self._next.means(word) and not self._after().means(")", ","):
                self._take()
                side, sided = function, True
                break
        parts = [] if self._next.means("FROM") else [self.expression()]
        if sided or self._next.means("FROM"):
            self._need("FROM")
            parts.append(self.expression())
        self._need(")")
        # As Spark's functions have it: what is trimmed away comes first.
        return Call(side, tuple(parts))

    def _extract(self) -> Tree:
        self._need("(")
        field = self._take()
        if not field.means(*_FIELDS):
            raise FlowError(
                f'"{self._text}" extracts {field.text}', hint=f"There are {', '.join(_FIELDS)}."
            )
        self._need("FROM")
        tree = self.expression()
        self._need(")")
        return Call(field.text.lower(), (tree,))

    def _name(self) -> Tree:
        parts = [self._identifier()]
        while self._next.means(".") and self._after().kind in ("word", "name"):
            self._take()
            parts.append(self._identifier())
        return Name(tuple(parts))

    def _identifier(self) -> str:
        if self._next.kind not in ("word", "name"):
            raise self._unexpected("a name")
        return self._take().text

    def _string(self) -> str:
        if self._next.kind != "text":
            raise self._unexpected("a string")
        text = self._take().text
        while self._next.kind == "text":
            text += self._take().text
        return text

    def _type(self) -> pa.DataType:
        name = self._identifier().upper()
        if name in ("DECIMAL", "DEC", "NUMERIC"):
            return self._decimal()
        if name == "ARRAY":
            self._need("<")
            kind = pa.list_(self._type())
            self._need(">")
            return kind
        if name == "STRUCT":
            return self._struct()
        if name not in NAMED or name == "VOID":
            raise FlowError(f"a flow has no type {name}", hint="Use a Python function for it.")
        return NAMED[name]

    def _decimal(self) -> pa.DataType:
        sizes = [10, 0]
        if self._has("("):
            sizes = [int(self._take().text), 0] if self._next.kind == "number" else sizes
            if self._has(","):
                sizes[1] = int(self._take().text) if self._next.kind == "number" else -1
            self._need(")")
        if not 0 <= sizes[1] <= sizes[0] <= 38 or sizes[0] == 0:
            raise FlowError(f"there is no type DECIMAL({sizes[0]},{sizes[1]})")
        return pa.decimal128(*sizes)

    def _struct(self) -> pa.DataType:
        self._need("<")
        fields = []
        while True:
            name = self._identifier()
            self._has(":")
            fields.append(pa.field(name, self._type()))
            if self._has(">"):
                return pa.struct(fields)
            self._need(",")


def _joined(word: str, parts: list[Tree]) -> Tree:
    """Many parts between ANDs or ORs, as a tree that is not deep; they stay in their order."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return Call(word, (_joined(word, parts[:half]), _joined(word, parts[half:])))


def _literal(spelled: str) -> Literal:
    return Literal(*number(spelled))
