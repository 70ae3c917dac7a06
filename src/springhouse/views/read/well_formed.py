"""Does every operator mention only columns that it has?

The reader should refuse a construct that the algebra can't express where it meets the construct.
This check is the safety net: a tree that passes can be written as SQL, without a column of an outer
query or the placeholder of a subquery in it. For every node,

    a column that it mentions is a column of the rows that it reads
    no two of its columns have one name
    aggregates, window functions and generators stand only in the operator that computes them
    operators over several inputs of one shape have inputs of one shape
"""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from springhouse.views.algebra.query_tree import (
    Aggregate,
    Constant,
    Filter,
    Generate,
    InnerJoin,
    Node,
    OuterJoin,
    Projection,
    Scan,
    SemiJoin,
    SetOperation,
    TopK,
    UnionAll,
    Window,
    children,
    walk,
)
from springhouse.views.read.functions import validate_flat, validate_plain
from springhouse.views.read.not_compilable import NotCompilable
from springhouse.views.sql.expressions import Expression, Named, column, free_columns


def validate_well_formed(root: Node) -> None:
    """Refuse a tree that can't be written as SQL."""
    for node in walk(root):
        _validate_shape(node)
        for clause, columns, expressions in _mentioned(node):
            for each in expressions:
                _validate_closed(each, clause, columns)
                _validate_place(node, each, clause)


def _mentioned(node: Node) -> Iterator[tuple[str, Sequence[str], Sequence[Expression]]]:
    """The clauses of a node: name, columns that it may mention, expressions."""
    read = [name for child in children(node) for name in child.columns]
    match node:
        case Filter():
            yield "a condition", read, node.conditions
        case Projection():
            yield "the SELECT list", read, _values(node.outputs)
        case Generate():
            yield "a generator", read, [node.generator]
        case InnerJoin() | OuterJoin():
            yield "the ON of a join", read, node.conditions
        case SemiJoin():
            yield from _mentioned_by_semi_join(node)
        case Aggregate():
            yield "GROUP BY", read, list(map(column, node.keys))
            yield "an aggregate", read, _values(node.measures)
        case Window():
            yield "PARTITION BY", read, list(map(column, node.partition))
            yield "a window function", read, _values(node.functions)
        case TopK():
            yield "ORDER BY", read, node.order
        case Constant():
            yield "VALUES", (), [value for row in node.rows for value in row]
        case Scan() | UnionAll() | SetOperation():
            pass


def _mentioned_by_semi_join(
    node: SemiJoin,
) -> Iterator[tuple[str, Sequence[str], Sequence[Expression]]]:
    for partner in node.partners:
        both = (*node.left.columns, *partner.rows.columns)
        yield "a subquery", both, (*partner.conditions, *partner.or_else)
    found = [partner.found for partner in node.partners]
    yield "a condition", (*node.left.columns, *found), [node.condition]


def _values(outputs: Sequence[Named]) -> list[Expression]:
    return [value for _, value in outputs]


def _validate_closed(expression: Expression, clause: str, columns: Sequence[str]) -> None:
    if unknown := sorted(free_columns(expression) - set(columns)):
        raise NotCompilable(f"{clause} speaks of `{unknown[0]}`, which is not there", expression)
    if expression.find(exp.Query) is not None:
        raise NotCompilable(f"a query inside {clause} is not understood", expression)


def _validate_place(node: Node, expression: Expression, clause: str) -> None:
    match node, expression:
        case Aggregate(), exp.Column():
            pass
        case Aggregate(), _:
            validate_flat(expression)
        case Window(), exp.Window():
            validate_flat(expression.this)
            order = expression.args.get("order")
            for each in (*(expression.args.get("partition_by") or ()), *([order] if order else ())):
                validate_plain(each, clause)
        case Generate(), _:
            for each in expression.iter_expressions():
                validate_plain(each, clause)
        case _:
            validate_plain(expression, clause)


def _validate_shape(node: Node) -> None:
    if len(set(node.columns)) < len(node.columns):
        twice = next(name for name in node.columns if node.columns.count(name) > 1)
        raise NotCompilable(f"two columns are called `{twice}`")
    one_shape = all(child.columns == node.columns for child in children(node))
    if isinstance(node, UnionAll | SetOperation) and not one_shape:
        raise NotCompilable("a set operation over rows of different shapes")
    if isinstance(node, Constant) and any(len(row) != len(node.columns) for row in node.rows):
        raise NotCompilable("rows of VALUES have different numbers of columns")
