"""What does an expression give for a row pack?

A condition or a computed column is SQL in Spark's dialect or an expression of pyarrow. SQL becomes
calls of Arrow's kernels, which let go of the interpreter; results are those of Spark in ANSI mode:
NULL is neither true nor false, integers that overflow and divisions by zero are errors, `/` of
integers is a double. What Arrow has no kernel for is refused when the flow is declared.
"""

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from pyarrow import acero
from sqlglot import exp
from sqlglot.errors import SqlglotError

from springhouse.flows.graph import FlowError

Value: TypeAlias = pa.Array | pa.ChunkedArray | pa.Scalar
Compiled: TypeAlias = Callable[[pa.RecordBatch], Value]
Expression: TypeAlias = str | pc.Expression
"""SQL, or an expression of pyarrow."""


def compiled(expression: Expression, schema: pa.Schema, activity: str) -> Compiled:
    """What computes the expression on a pack of that schema, tried on a pack without rows."""
    try:
        if isinstance(expression, pc.Expression):
            computed = _by_acero(expression)
        else:
            computed = _term(_parsed(expression, activity), schema, activity)
        computed(_no_rows(schema))
    except (pa.ArrowException, KeyError) as failure:
        raise FlowError(
            f'activity "{activity}" can\'t compute {expression}: {failure}',
            hint=f"The columns are {_listed(schema)}.",
        ) from failure
    return computed


def placed(expression: Expression, schema: pa.Schema, activity: str) -> int | Compiled:
    """The place of the column that an expression names and leaves as it is, or what computes it."""
    if isinstance(expression, str):
        parsed = _parsed(expression, activity)
        if isinstance(parsed, exp.Column):
            return _place(parsed.name, schema, activity)
    return compiled(expression, schema, activity)


def column(value: Value, rows: int) -> pa.Array:
    """A computed value as one array with a value for each row."""
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, rows)
    if isinstance(value, pa.ChunkedArray):
        return value.combine_chunks()
    return value


def type_of(expression: Expression, schema: pa.Schema, activity: str) -> pa.DataType:
    """The type of what the expression gives."""
    return compiled(expression, schema, activity)(_no_rows(schema)).type


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def _by_acero(expression: pc.Expression) -> Compiled:
    def compute(pack: pa.RecordBatch) -> Value:
        given = acero.TableSourceNodeOptions(pa.Table.from_batches([pack]))
        wanted = acero.ProjectNodeOptions([expression], ["value"])
        steps = [
            acero.Declaration("table_source", given),
            acero.Declaration("project", wanted),
        ]
        return acero.Declaration.from_sequence(steps).to_table(use_threads=False)["value"]

    return compute


def _parsed(text: str, activity: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(text, dialect="spark")
    except SqlglotError as failure:
        reason = str(failure).splitlines()[0]
        raise FlowError(f'activity "{activity}": "{text}" is not an expression: {reason}') from None


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "add_checked",
    exp.Sub: "subtract_checked",
    exp.Mul: "multiply_checked",
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
    exp.And: "and_kleene",
    exp.Or: "or_kleene",
}
_UNARY: dict[type[exp.Expr], str] = {
    exp.Not: "invert",
    exp.Neg: "negate_checked",
    exp.Upper: "utf8_upper",
    exp.Lower: "utf8_lower",
    exp.Length: "utf8_length",
    exp.Abs: "abs_checked",
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.Floor: "floor",
    exp.Ceil: "ceil",
    exp.Sqrt: "sqrt_checked",
}
_TYPES: dict[str, pa.DataType] = {
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "TEXT": pa.string(),
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "BINARY": pa.binary(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"),
    "TIMESTAMPNTZ": pa.timestamp("us"),
}


def arrow_type(kind: exp.DataType, activity: str) -> pa.DataType:
    """The Arrow type of a type in SQL."""
    name = kind.this.name
    if name == "DECIMAL":
        sizes = [int(part.name) for part in kind.expressions] or [10, 0]
        return pa.decimal128(sizes[0], sizes[1] if len(sizes) > 1 else 0)
    if name not in _TYPES:
        raise FlowError(
            f'activity "{activity}": a flow has no type {kind.sql("spark")}',
            hint="Use a Python function for it.",
        )
    return _TYPES[name]


def schema_of(text: str, activity: str) -> pa.Schema:
    """A schema as Spark writes it.

    >>> schema_of("id BIGINT, price DECIMAL(12,2)", "read")
    id: int64
    price: decimal128(12, 2)
    """
    try:
        parsed = sqlglot.parse_one(f"CREATE TABLE t ({text})", dialect="spark")
    except SqlglotError as failure:
        reason = str(failure).splitlines()[0]
        raise FlowError(f'"{activity}": "{text}" is not a schema: {reason}') from None
    columns = parsed.find_all(exp.ColumnDef)
    return pa.schema([(c.name, arrow_type(c.args["kind"], activity)) for c in columns])


def _term(term: exp.Expr, schema: pa.Schema, activity: str) -> Compiled:  # noqa: C901  one case per kind of term
    def sub(part: exp.Expr) -> Compiled:
        return _term(part, schema, activity)

    match term:
        case exp.Paren() | exp.Alias():
            return sub(term.this)
        case exp.Column():
            place = _place(term.name, schema, activity)
            return lambda pack: pack.column(place)
        case exp.Literal() | exp.Boolean() | exp.Null():
            return _constant(_literal(term))
        case exp.Div():
            left, right = sub(term.this), sub(term.expression)
            return lambda pack: pc.divide_checked(_divisible(left(pack)), _divisible(right(pack)))
        case exp.Is():
            return _is(sub(term.this), term.expression)
        case exp.Between():
            value, low, high = sub(term.this), sub(term.args["low"]), sub(term.args["high"])
            return lambda pack: pc.and_kleene(
                pc.greater_equal(value(pack), low(pack)), pc.less_equal(value(pack), high(pack))
            )
        case exp.In():
            return _in(sub(term.this), term)
        case exp.Like() if isinstance(term.expression, exp.Literal):
            value, pattern = sub(term.this), term.expression.name
            return lambda pack: pc.match_like(value(pack), pattern)
        case exp.Cast():
            value, kind = sub(term.this), arrow_type(term.to, activity)
            return lambda pack: pc.cast(value(pack), kind)
        case exp.Coalesce():
            return _call("coalesce", [sub(part) for part in (term.this, *term.expressions)])
        case exp.Concat() | exp.DPipe():
            parts = term.expressions or [term.this, term.expression]
            return _concat([sub(part) for part in parts])
        case exp.Trim():
            value = sub(term.this)
            return lambda pack: pc.utf8_trim(value(pack), " ")
        case exp.Substring():
            return _substring(sub(term.this), term, activity)
        case exp.Round():
            value, digits = sub(term.this), term.args.get("decimals")
            places = int(digits.name) if digits is not None else 0
            return lambda pack: pc.round(value(pack), places, "half_towards_infinity")
        case exp.Case():
            return _case(term, sub)
        case _ if type(term) in _BINARY:
            return _call(_BINARY[type(term)], _sides(term, schema, activity))
        case _ if type(term) in _UNARY:
            return _call(_UNARY[type(term)], [sub(term.this)])
        case _:
            raise FlowError(
                f'activity "{activity}": a flow can\'t compute {term.sql("spark")}',
                hint="Use an expression of pyarrow, or a Python function with `apply`.",
            )


def _sides(term: exp.Expr, schema: pa.Schema, activity: str) -> list[Compiled]:
    """What computes both sides. A whole number beside a fraction is made one here, once.

    Arrow would for every pack, which takes longer than to compare some hundred rows.
    """
    sides = (term.this, term.expression)
    parts = [_term(side, schema, activity) for side in sides]
    for mine, other in ((0, 1), (1, 0)):
        if isinstance(sides[mine], exp.Literal) and not sides[mine].is_string:
            kind = parts[other](_no_rows(schema)).type
            if pa.types.is_floating(kind):
                parts[mine] = _constant(_literal(sides[mine]).cast(kind))
    return parts


def _call(name: str, parts: list[Compiled]) -> Compiled:
    kernel = getattr(pc, name)
    if len(parts) == 1:
        (only,) = parts
        return lambda pack: kernel(only(pack))
    if len(parts) == 2:
        left, right = parts
        return lambda pack: kernel(left(pack), right(pack))
    return lambda pack: kernel(*(part(pack) for part in parts))


def _place(name: str, schema: pa.Schema, activity: str) -> int:
    exact = [i for i, known in enumerate(schema.names) if known == name]
    index = exact or [i for i, k in enumerate(schema.names) if k.lower() == name.lower()]
    if len(index) != 1:
        raise FlowError(
            f'activity "{activity}" names a column "{name}", which its rows don\'t have',
            hint=f"The columns are {_listed(schema)}.",
        )
    return index[0]


def _constant(value: pa.Scalar) -> Compiled:
    return lambda pack: value


def _literal(term: exp.Expr) -> pa.Scalar:
    if isinstance(term, exp.Null):
        return pa.scalar(None)
    if isinstance(term, exp.Boolean):
        return pa.scalar(bool(term.this))
    if term.is_string:
        return pa.scalar(term.name)
    return pa.scalar(int(term.name)) if term.name.isdigit() else pa.scalar(float(term.name))


def _divisible(value: Value) -> Value:
    return value.cast(pa.float64()) if pa.types.is_integer(value.type) else value


def _is(value: Compiled, what: exp.Expr) -> Compiled:
    if isinstance(what, exp.Null):
        return lambda pack: pc.is_null(value(pack))
    truth = pa.scalar(bool(what.this))
    return lambda pack: pc.fill_null(pc.equal(value(pack), truth), False)


def _in(value: Compiled, term: exp.In) -> Compiled:
    wanted = [_literal(part).as_py() for part in term.expressions]

    def compute(pack: pa.RecordBatch) -> Value:
        given = value(pack)
        found = pc.is_in(given, value_set=pa.array(wanted, given.type))
        return pc.if_else(pc.is_null(given), pa.scalar(None, pa.bool_()), found)

    return compute


def _concat(parts: list[Compiled]) -> Compiled:
    def compute(pack: pa.RecordBatch) -> Value:
        texts = [pc.cast(part(pack), pa.string()) for part in parts]
        return pc.binary_join_element_wise(*texts, pa.scalar(""))

    return compute


def _substring(value: Compiled, term: exp.Substring, activity: str) -> Compiled:
    start, length = term.args.get("start"), term.args.get("length")
    if not isinstance(start, exp.Literal) or int(start.name) < 1:
        raise FlowError(f'activity "{activity}": substring has to start at 1 or later')
    first = int(start.name) - 1
    last = first + int(length.name) if length is not None else None
    return lambda pack: pc.utf8_slice_codeunits(value(pack), first, last)


def _case(term: exp.Case, sub: Callable[[exp.Expr], Compiled]) -> Compiled:
    branches = []
    for branch in term.args["ifs"]:
        condition = branch.this
        if term.this is not None:
            condition = exp.EQ(this=term.this, expression=condition)
        branches.append((sub(condition), sub(branch.args["true"])))
    default = term.args.get("default")
    otherwise = sub(default) if default is not None else _constant(pa.scalar(None))

    def compute(pack: pa.RecordBatch) -> Value:
        result = otherwise(pack)
        for condition, value in reversed(branches):
            holds = pc.fill_null(condition(pack), False)
            result = pc.if_else(holds, value(pack), result)
        return result

    return compute
