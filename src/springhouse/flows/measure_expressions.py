"""Which measure does `sum(total)` or `count(*)` mean, and which type does its result have?"""

from collections.abc import Sequence

import pyarrow as pa

from springhouse.flows.activities.grouping import Measure, measured_type
from springhouse.flows.flow_graph import FlowError
from springhouse.flows.row_expressions import term_of, tree_of
from springhouse.flows.sql.syntax_tree import STAR, Call, Literal, Tree
from springhouse.flows.sql.terms import give_type
from springhouse.flows.sql.types import is_number, is_plain, type_name

_AGGREGATES = ("sum", "count", "min", "max", "avg")


def parse_measure(text: str, schema: pa.Schema, activity: str) -> tuple[Measure, pa.DataType]:
    """The measure of an aggregate like `sum(total)`, and the type of its result."""
    tree = tree_of(text, activity)
    if not isinstance(tree, Call) or tree.function not in _AGGREGATES or not tree.arguments:
        raise FlowError(
            f'activity "{activity}": {text} is not an aggregate that a flow has',
            hint="There are sum, count, min, max and avg.",
        )
    function, arguments = tree.function, tree.arguments
    if arguments == (STAR,) and function == "count":
        return Measure("count", None, pa.int64()), pa.int64()
    inner = arguments[0]
    if function == "count" and len(arguments) > 1:
        inner = _where_all_are_known(arguments)
    elif len(arguments) > 1:
        raise FlowError(f'activity "{activity}": {function} has one argument: {text}')
    term = term_of(inner, schema, activity)
    counted = is_number(term.type) if function in ("sum", "avg") else is_plain(term.type)
    if not counted and function != "count":
        raise FlowError(
            f'activity "{activity}": a flow has no {function} of {type_name(term.type)}: {text}'
        )
    source_type = pa.int32() if term.type == pa.null() else term.type
    measure = Measure(function, give_type(term, source_type).compute, source_type)
    return measure, measured_type(function, source_type)


def _where_all_are_known(arguments: Sequence[Tree]) -> Tree:
    """1 if no argument is NULL, else NULL: the values that count(x, y) counts."""
    known: Tree = Call("isnotnull", (arguments[0],))
    for argument in arguments[1:]:
        known = Call("and", (known, Call("isnotnull", (argument,))))
    return Call("case", (known, Literal(1, pa.int32())))
