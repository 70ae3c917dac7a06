"""Which tree does a text of SQL have? sqlglot parses the text, and this module translates its tree.

This module lists each kind of node that a flow supports, and the parts that the node may have. It
refuses all others with an error that shows their place in the text.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from sqlglot import exp

from springhouse.flows.flow_graph import FlowError
from springhouse.flows.sql.literals import number
from springhouse.flows.sql.spark_grammar import not_understood, read, start_of
from springhouse.flows.sql.syntax_tree import STAR, Call, CastTo, Literal, Name, SortKey, Tree
from springhouse.flows.sql.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    MOST_DIGITS,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
)

_TYPES: dict[exp.DType, pa.DataType] = {
    exp.DType.TINYINT: TINYINT,
    exp.DType.SMALLINT: SMALLINT,
    exp.DType.INT: INT,
    exp.DType.BIGINT: BIGINT,
    exp.DType.FLOAT: FLOAT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.TEXT: STRING,
    exp.DType.BINARY: BINARY,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ,
}

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.DPipe: "||",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_UNARY: dict[type[exp.Expr], str] = {exp.Neg: "negative", exp.BitwiseNot: "~", exp.Not: "not"}
_CONNECTORS: dict[type[exp.Expr], str] = {exp.And: "and", exp.Or: "or"}
_HARMLESS_CONSTRAINTS = (exp.NotNullColumnConstraint, exp.CommentColumnConstraint)
_FLAGS = frozenset({"typed", "safe", "requires_string", "quoted"})
"""Parts that sqlglot adds to a node for its own translations. They do not change the meaning."""

_NEVER_COLUMNS = frozenset(
    word
    for line in (
        "AND AS ASC BETWEEN BY CASE CAST DESC DISTINCT DIV ELSE END ESCAPE EXISTS FROM ILIKE IN",
        "INTERVAL IS LIKE NOT NULLS OR RLIKE SELECT THEN TRY_CAST WHEN WHERE CURRENT_DATE",
        "CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER LOCALTIME SESSION_USER USER",
    )
    for word in line.split()
)
_FIELDS = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE")
_TRIMS = {None: "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]*")


def parse_expression(text: str) -> Tree:
    """The tree of one expression."""
    with _placed(text):
        return _tree(read(text, exp.Expr))


def parse_column(text: str) -> tuple[str | None, Tree]:
    """The name and the tree of `expression AS name`. Without AS only a column has a name."""
    with _placed(text):
        column = read(text, exp.Expr)
        if isinstance(column, exp.Alias):
            return column.alias, _tree(column.this)
        tree = _tree(column)
    return (tree.parts[-1] if isinstance(tree, Name) else None), tree


def parse_order(text: str) -> list[SortKey]:
    """The keys of `a DESC NULLS LAST, b`."""
    with _placed(text):
        return [_sort_key(key) for key in read(text, exp.Order).expressions]


def parse_schema(text: str) -> pa.Schema:
    """The columns of `id BIGINT, price DECIMAL(12,2)`."""
    with _placed(text):
        return pa.schema([_field(field) for field in read(text, exp.Schema).expressions])


class _Refused(Exception):
    """A flow does not support this node."""

    def __init__(self, node: exp.Expr) -> None:
        super().__init__(node)
        self.node = node


@contextmanager
def _placed(text: str) -> Iterator[None]:
    """Adds the place in the text to the error about a refused node."""
    try:
        yield
    except _Refused as refused:
        raise not_understood(text, start_of(refused.node)) from None


def _tree(node: exp.Expr) -> Tree:
    """The tree of a node of sqlglot."""
    kind = type(node)
    if kind in _CONNECTORS:
        return _connected(node)
    if kind in _BINARY:
        _prove_only(node, "this", "expression")
        return Call(_BINARY[kind], (_tree(node.this), _tree(node.expression)))
    if kind in _UNARY:
        return Call(_UNARY[kind], (_tree(node.this),))
    translate = _NODES.get(kind)
    if translate is None:
        raise _Refused(node.args["alias"] if kind is exp.Alias else node)
    return translate(node)


def _sort_key(node: exp.Expr) -> SortKey:
    """One key of an ORDER BY."""
    _prove_only(node, "this", "desc", "nulls_first")
    descending, nulls_first = (bool(node.args.get(arg)) for arg in ("desc", "nulls_first"))
    return SortKey(_tree(node.this), descending, nulls_first)


def _field(node: exp.Expr) -> pa.Field:
    """A column of a schema. NOT NULL and comments are ignored."""
    if not isinstance(node, exp.ColumnDef) or not isinstance(node.kind, exp.DataType):
        raise _Refused(node)
    _prove_only(node, "this", "kind", "constraints")
    for constraint in node.constraints:
        harmless = isinstance(constraint.kind, _HARMLESS_CONSTRAINTS)
        if not harmless or constraint.kind.args.get("allow_null"):
            raise _Refused(node)
    return pa.field(node.name, _type(node.kind))


def _type(node: exp.Expr) -> pa.DataType:
    """The Arrow type of a type of SQL."""
    _prove_only(node, "this", "expressions", "nested")
    kind, parts = node.this, node.expressions
    if node.args.get("expressions") == []:  # DATE()
        raise _Refused(node)
    if kind == exp.DType.DECIMAL:
        return _decimal(parts)
    if kind == exp.DType.ARRAY and len(parts) == 1:
        return pa.list_(_type(parts[0]))
    if kind == exp.DType.STRUCT and parts:
        return pa.struct([_field(part) for part in parts])
    if kind not in _TYPES or parts:
        name = node.sql("spark")
        raise FlowError(f"a flow has no type {name}", hint="Use a Python function for it.")
    return _TYPES[kind]


def _decimal(sizes: list[exp.Expr]) -> pa.DataType:
    digits = [size.name for size in sizes] or ["10"]
    precision, scale = digits if len(digits) == 2 else (digits[0], "0")
    spelled = f"DECIMAL({precision},{scale})"
    if len(digits) > 2 or not (precision.isdigit() and scale.isdigit()):
        raise FlowError(f"there is no type {spelled}")
    if not 0 <= int(scale) <= int(precision) <= MOST_DIGITS or int(precision) == 0:
        raise FlowError(f"there is no type {spelled}")
    return pa.decimal128(int(precision), int(scale))


# Operators.


def _connected(node: exp.Expr) -> Tree:
    """A chain of ANDs or ORs as a tree that is not deep. The parts stay in their order."""
    kind = type(node)
    parts = []
    while type(node) is kind:
        parts.append(_tree(node.expression))
        node = node.this
    return _balanced(_CONNECTORS[kind], [_tree(node), *reversed(parts)])


def _is(node: exp.Is) -> Tree:
    _prove_only(node, "this", "expression", "negate")
    tested = node.expression
    if isinstance(tested, exp.Null):
        word = "null"
    elif isinstance(tested, exp.Boolean):
        word = "true" if tested.this else "false"
    elif isinstance(tested, exp.Column) and tested.sql("spark").upper() == "UNKNOWN":
        word = "unknown"
    else:
        raise _Refused(tested)
    result = Call(f"is {word}", (_tree(node.this),))
    return Call("not", (result,)) if node.args.get("negate") else result


def _is_distinct(node: exp.NullSafeNEQ) -> Tree:
    return Call("not", (Call("<=>", (_tree(node.this), _tree(node.expression))),))


def _between(node: exp.Between) -> Tree:
    _prove_only(node, "this", "low", "high")
    parts = (node.this, node.args["low"], node.args["high"])
    return Call("between", tuple(map(_tree, parts)))


def _in(node: exp.In) -> Tree:
    _prove_only(node, "this", "expressions")
    if not node.expressions:
        raise _Refused(node)
    return Call("in", tuple(map(_tree, (node.this, *node.expressions))))


def _like(node: exp.Like) -> Call:
    _prove_only(node, "this", "expression")
    return Call("like", (_tree(node.this), _tree(node.expression)))


def _like_with_escape(node: exp.Escape) -> Tree:
    if not isinstance(node.this, exp.Like) or not node.expression.is_string:
        raise _Refused(node)
    like = _like(node.this)
    return Call("like", (*like.arguments, Literal(node.expression.name, STRING)))


# Operands.


def _in_brackets(node: exp.Paren) -> Tree:
    return _tree(node.this)


def _literal(node: exp.Literal) -> Tree:
    return Literal(node.name, STRING) if node.is_string else Literal(*number(node.name))


def _null(node: exp.Null) -> Tree:
    return Literal(None, NULL)


def _boolean(node: exp.Boolean) -> Tree:
    return Literal(bool(node.this), BOOLEAN)


def _bytes(node: exp.HexString) -> Tree:
    digits = node.name
    if not _HEXADECIMAL.fullmatch(digits):
        raise FlowError(f"X'{digits}' is not made of hexadecimal digits")
    return Literal(bytes.fromhex("0" * (len(digits) % 2) + digits), BINARY)


def _column(node: exp.Column) -> Tree:
    first, *_ = parts = node.parts
    if not all(isinstance(part, exp.Identifier) for part in parts):
        raise _Refused(node)
    if not first.args.get("quoted") and first.name.upper() in _NEVER_COLUMNS:
        raise _Refused(node)
    return Name(tuple(part.name for part in parts))


def _field_of(node: exp.Dot) -> Tree:
    inner, field = _tree(node.this), node.expression
    if not isinstance(field, exp.Identifier):
        raise _Refused(node)
    if isinstance(inner, Name) and not isinstance(node.this, exp.Paren):
        return Name((*inner.parts, field.name))
    return Call("field", (inner, Literal(field.name, STRING)))


def _cast(node: exp.Cast) -> Tree:
    _prove_only(node, "this", "to")
    return CastTo(_tree(node.this), _type(node.to), tries=isinstance(node, exp.TryCast))


def _case(node: exp.Case) -> Tree:
    """A call of "case": condition, value, condition, value, …, and perhaps a last value."""
    if not node.args["ifs"]:
        raise _Refused(node)
    value = None if node.this is None else _tree(node.this)
    parts: list[Tree] = []
    for branch in node.args["ifs"]:
        condition = _tree(branch.this)
        parts.append(condition if value is None else Call("=", (value, condition)))
        parts.append(_tree(branch.args["true"]))
    if (default := node.args.get("default")) is not None:
        parts.append(_tree(default))
    return Call("case", tuple(parts))


def _call(node: exp.Anonymous) -> Tree:
    if not isinstance(node.this, str) or node.this.upper() in _NEVER_COLUMNS:
        raise _Refused(node)
    arguments = node.expressions
    if len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        _prove_only(arguments[0])
        return Call(node.this.lower(), (STAR,))
    return Call(node.this.lower(), tuple(map(_tree, arguments)))


def _trim(node: exp.Trim) -> Tree:
    _prove_only(node, "this", "expression", "position")
    # As in Spark's functions, the characters to remove come first.
    parts = (node.expression, node.this) if node.expression else (node.this,)
    return Call(_TRIMS[node.args.get("position")], tuple(map(_tree, parts)))


def _substring(node: exp.Substring) -> Tree:
    _prove_only(node, "this", "start", "length")
    start, length = node.args.get("start"), node.args.get("length")
    if isinstance(start, exp.Literal) and not start.meta:
        raise _Refused(node)  # FOR without FROM
    parts = [part for part in (node.this, start, length) if part is not None]
    return Call("substring", tuple(map(_tree, parts)))


def _extract(node: exp.Extract) -> Tree:
    field = node.this.name.upper()
    if not isinstance(node.this, exp.Var) or field not in _FIELDS:
        raise FlowError(
            f"a flow can't extract {field}", hint=f"It can extract {', '.join(_FIELDS)}."
        )
    return Call(field.lower(), (_tree(node.expression),))


def _prove_only(node: exp.Expr, *parts: str) -> None:
    """Raise an error if the node has other parts than these."""
    for name, part in node.args.items():
        if part and name not in parts and name not in _FLAGS:
            raise _Refused(node)


_NODES: dict[type[exp.Expr], Callable[[Any], Tree]] = {
    exp.Is: _is,
    exp.NullSafeNEQ: _is_distinct,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Escape: _like_with_escape,
    exp.Paren: _in_brackets,
    exp.Literal: _literal,
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.HexString: _bytes,
    exp.Column: _column,
    exp.Dot: _field_of,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.Anonymous: _call,
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.Extract: _extract,
}


def _balanced(word: str, parts: list[Tree]) -> Tree:
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return Call(word, (_balanced(word, parts[:half]), _balanced(word, parts[half:])))
