"""Which values does an expression have for a row pack?

A condition or a computed column is SQL in Spark's dialect, or an expression of pyarrow. SQL becomes
typed terms (`flows.sql`) with the same values as in Spark, or it is refused when the flow is
declared.
"""

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero

from springhouse.flows.flow_graph import FlowError
from springhouse.flows.sql.parser import parse_column, parse_expression
from springhouse.flows.sql.parser import parse_order as _order_of
from springhouse.flows.sql.parser import parse_schema as _schema_of
from springhouse.flows.sql.resolve import place_of, resolve
from springhouse.flows.sql.syntax_tree import Name, SortKey, Tree
from springhouse.flows.sql.terms import Term, array_of
from springhouse.flows.sql.types import NULL

Value: TypeAlias = pa.Array | pa.ChunkedArray | pa.Scalar
CompiledExpression: TypeAlias = Callable[[pa.RecordBatch], Value]
Expression: TypeAlias = str | pc.Expression | Tree
"""SQL, its tree, or an expression of pyarrow."""


def compile_expression(
    expression: Expression, schema: pa.Schema, activity: str
) -> CompiledExpression:
    """A function that computes the expression for packs of this schema."""
    return _compile(expression, schema, activity)[0]


def place_or_compile(
    expression: Expression, schema: pa.Schema, activity: str
) -> int | CompiledExpression:
    """The place of a column if the expression is only its name; else the compiled expression."""
    if not isinstance(expression, pc.Expression):
        tree = tree_of(expression, activity)
        if isinstance(tree, Name) and len(tree.parts) == 1:
            with _naming_activity(activity):
                return place_of(tree.parts[0], schema)
    return compile_expression(expression, schema, activity)


def type_of(expression: Expression, schema: pa.Schema, activity: str) -> pa.DataType:
    """The type of the expression's values."""
    place = place_or_compile(expression, schema, activity)
    if isinstance(place, int):
        return schema.field(place).type
    return _compile(expression, schema, activity)[1]


def column(value: Value, rows: int) -> pa.Array:
    """A computed value as one array with a value for each row."""
    return array_of(value, rows)


def schema_of(text: str, activity: str) -> pa.Schema:
    """A schema as Spark writes it.

    >>> schema_of("id BIGINT, price DECIMAL(12,2)", "read")
    id: int64
    price: decimal128(12, 2)
    """
    with _naming_activity(activity):
        return _schema_of(text)


def order_of(text: str, activity: str) -> list[SortKey]:
    """The keys of an order, written as in ORDER BY."""
    with _naming_activity(activity):
        return _order_of(text)


def parse_named(text: str, activity: str) -> tuple[str, Tree]:
    """The name and the tree of `expression AS name`, or of a column."""
    with _naming_activity(activity):
        name, tree = parse_column(text)
    if name is None:
        raise FlowError(
            f'activity "{activity}": {text} has no name', hint=f'Write "{text} AS name".'
        )
    return name, tree


def term_of(expression: str | Tree, schema: pa.Schema, activity: str) -> Term:
    """The typed term of an expression in SQL."""
    with _naming_activity(activity):
        return resolve(tree_of(expression, activity), schema)


def tree_of(expression: str | Tree, activity: str) -> Tree:
    """The tree of an expression in SQL."""
    with _naming_activity(activity):
        return parse_expression(expression) if isinstance(expression, str) else expression


def _compile(
    expression: Expression, schema: pa.Schema, activity: str
) -> tuple[CompiledExpression, pa.DataType]:
    if not isinstance(expression, pc.Expression):
        term = term_of(expression, schema, activity)
        if term.type == NULL:
            raise FlowError(
                f'activity "{activity}": {expression} has no type, only NULLs',
                hint="Give it one: CAST(NULL AS STRING).",
            )
        return term.compute, term.type
    computed = _by_acero(expression)
    try:
        return computed, computed(_no_rows(schema)).type
    except (pa.ArrowException, KeyError) as failure:
        raise FlowError(
            f'activity "{activity}" can\'t compute {expression}: {failure}',
            hint=f"The columns are {', '.join(f'{f.name} {f.type}' for f in schema)}.",
        ) from failure


class _naming_activity:  # noqa: N801  it reads as a word behind `with`
    """Names the activity in errors about its SQL, also if the SQL is nested too deeply."""

    def __init__(self, activity: str) -> None:
        self._start = f'activity "{activity}": '

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, RecursionError):
            raise FlowError(
                f"{self._start}its SQL is nested too deeply",
                hint="Compute a part of it in an activity before.",
            ) from None
        if isinstance(error, FlowError) and not error.problem.startswith('activity "'):
            error.problem = self._start + error.problem
            error.args = (error.problem,)


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def _by_acero(expression: pc.Expression) -> CompiledExpression:
    def compute(pack: pa.RecordBatch) -> Value:
        source_options = acero.TableSourceNodeOptions(pa.Table.from_batches([pack]))
        wanted = acero.ProjectNodeOptions([expression], ["value"])
        steps = [
            acero.Declaration("table_source", source_options),
            acero.Declaration("project", wanted),
        ]
        return acero.Declaration.from_sequence(steps).to_table(use_threads=False)["value"]

    return compute
