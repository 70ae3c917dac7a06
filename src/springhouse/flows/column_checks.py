"""Do the columns that a verb names exist, and do their types fit?

A verb of a flow is checked when the flow is built. A function here returns the values that the
activity needs, or raises an error that names the activity and the columns.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from springhouse.flows.activities.join import JoinSpec, common_type
from springhouse.flows.flow_graph import FlowError
from springhouse.flows.row_expressions import (
    CompiledExpression,
    Expression,
    compile_expression,
    type_of,
)
from springhouse.flows.sql.types import type_name

Names = str | Sequence[str]
"""One column, or several."""


class NamedRows(Protocol):
    """Rows with the name of the node that they leave."""

    node: str

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        ...


def names_of(names: Names) -> list[str]:
    """One name or several, as a list."""
    return [names] if isinstance(names, str) else list(names)


def key_pairs(on: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """The key columns of a join, as {my column: their column}."""
    if isinstance(on, Mapping):
        return dict(on)
    return {name: name for name in names_of(on)}


def prove_columns(rows: NamedRows, names: Sequence[str], activity: str) -> None:
    """Raise an error if the rows lack one of these columns."""
    for name in names:
        if name not in rows.schema.names:
            raise FlowError(
                f'activity "{activity}" names a column "{name}", which "{rows.node}" doesn\'t have',
                hint=f"The columns are {', '.join(rows.schema.names)}.",
            )


def prove_keyed(known: pa.Schema, source_type: pa.DataType, on: str, key: str, name: str) -> None:
    """Raise an error if the known rows do not pair such a value with a number."""
    if known.names not in ([on, key], [key, on]):
        raise FlowError(
            f'activity "{name}" needs "{on}" and "{key}" of what is known, and nothing else; '
            f"there are {', '.join(known.names)}",
            hint=f'Take these before: select("{on}", "{key}").',
        )
    if not pa.types.is_integer(known.field(key).type):
        raise FlowError(
            f'activity "{name}" numbers with "{key}", which is no whole number but '
            f"{type_name(known.field(key).type)}"
        )
    if common_type(known.field(on).type, source_type) is None:
        raise FlowError(
            f'activity "{name}" looks for "{on}" ({type_name(source_type)}) among '
            f"{type_name(known.field(on).type)}",
            hint="Both have to be of one type that can be compared.",
        )


def compile_condition(
    condition: Expression, schema: pa.Schema, activity: str
) -> CompiledExpression:
    """The compiled condition; an error if the expression is not a condition."""
    kind = type_of(condition, schema, activity)
    if kind != pa.bool_():
        raise FlowError(f'activity "{activity}": {condition} is {type_name(kind)}, not a condition')
    return compile_expression(condition, schema, activity)


def join_spec(
    rows: NamedRows,
    other: NamedRows,
    on: str | Mapping[str, str] | Sequence[str],
    take: Names,
    *,
    outer: bool,
    name: str,
) -> JoinSpec:
    """The specification of a join; an error if its keys or columns do not fit."""
    pairs, taken = key_pairs(on), names_of(take)
    if not pairs:
        raise FlowError(f'"{name}" joins on no column', hint='Say which: on="id".')
    prove_columns(rows, list(pairs), name)
    prove_columns(other, [*pairs.values(), *taken], name)
    for mine, theirs in pairs.items():
        one, two = rows.schema.field(mine).type, other.schema.field(theirs).type
        if common_type(one, two) is None:
            hint = f"Cast one before: compute({mine}='CAST({mine} AS …)')."
            if one == two:
                hint = f"A flow joins by no {type_name(one)}."
            raise FlowError(
                f'"{name}" compares "{mine}" ({type_name(one)}) with "{theirs}" ({type_name(two)})',
                hint=hint,
            )
    twice = [column for column in taken if column in rows.schema.names]
    if twice:
        raise FlowError(
            f'"{name}" would have the column "{twice[0]}" twice',
            hint="Rename it before with select, or take less.",
        )
    columns = tuple((column, column) for column in taken)
    keys = tuple(pairs), tuple(pairs.values())
    return JoinSpec(rows.schema, other.schema, *keys, columns, outer)
