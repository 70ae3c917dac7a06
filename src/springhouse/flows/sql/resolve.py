"""Which term computes a tree? This module finds columns and functions by their names.

The modules `*_functions` list every function with the types that it accepts. A call that is not
listed is refused when the flow is built, with an error that names its types.
"""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.flow_graph import FlowError
from springhouse.flows.sql.branch_functions import BRANCH_FUNCTIONS
from springhouse.flows.sql.casts import cast
from springhouse.flows.sql.logic_functions import LOGIC_FUNCTIONS
from springhouse.flows.sql.moment_functions import MOMENT_FUNCTIONS
from springhouse.flows.sql.number_functions import NUMBER_FUNCTIONS
from springhouse.flows.sql.syntax_tree import CastTo, Literal, Name, Tree
from springhouse.flows.sql.terms import (
    NotInSpark,
    Term,
    Value,
    constant_term,
    fold_constants,
    strict_term,
)
from springhouse.flows.sql.text_functions import TEXT_FUNCTIONS
from springhouse.flows.sql.types import type_in_flows, type_name

_FUNCTIONS = {
    **NUMBER_FUNCTIONS,
    **LOGIC_FUNCTIONS,
    **BRANCH_FUNCTIONS,
    **TEXT_FUNCTIONS,
    **MOMENT_FUNCTIONS,
}
_WAY_OUT = "Or use an expression of pyarrow, or a Python function with `apply`."


def resolve(tree: Tree, schema: pa.Schema) -> Term:
    """The term of a tree over rows of this schema."""
    if isinstance(tree, Literal):
        return replace(constant_term(tree.value, tree.type), literal=True)
    if isinstance(tree, Name):
        return _column(tree, schema)
    if isinstance(tree, CastTo):
        return _computed(cast(resolve(tree.operand, schema), tree.type, tries=tree.tries))
    if tree.function == "field":
        inner, name = tree.arguments
        assert isinstance(name, Literal)
        return _field(resolve(inner, schema), str(name.value))
    parts = [resolve(argument, schema) for argument in tree.arguments]
    make = _FUNCTIONS.get(tree.function)
    if make is None:
        raise NotInSpark(
            f"a flow has no function {tree.function}",
            hint=f"{_WAY_OUT} There are {', '.join(sorted(filter(str.isidentifier, _FUNCTIONS)))}.",
        )
    result = make(parts)
    if result is None:
        source_type = ", ".join(type_name(part.type) for part in parts) or "nothing"
        raise NotInSpark(
            f"a flow can't compute {tree.function} of {source_type}",
            hint=f"Cast what it is applied to. {_WAY_OUT}",
        )
    return _computed(result)


def _computed(made: Term) -> Term:
    # A literal is no longer a literal behind a function or a cast, even if its value is unchanged.
    return fold_constants(replace(made, literal=False))


def place_of(name: str, schema: pa.Schema) -> int:
    """The place of a column by its exact name, else by the only name equal in small letters."""
    exact = [i for i, known in enumerate(schema.names) if known == name]
    index = exact or [i for i, k in enumerate(schema.names) if k.lower() == name.lower()]
    if len(index) != 1:
        listed = ", ".join(f"{field.name} {type_name(field.type)}" for field in schema)
        problem = "which its rows don't have" if not index else "which its rows have twice"
        raise FlowError(f'it names a column "{name}", {problem}', hint=f"The columns are {listed}.")
    return index[0]


def _column(name: Name, schema: pa.Schema) -> Term:
    place = place_of(name.parts[0], schema)
    source_type = schema.field(place).type
    kind = type_in_flows(source_type)
    if kind is None:
        raise NotInSpark(
            f'a flow can\'t compute with the column "{name.parts[0]}" of type {source_type}',
            hint="Cast it with an expression of pyarrow first.",
        )
    if source_type == kind:
        term = Term(kind, lambda pack: pack.column(place))
    else:
        term = Term(kind, lambda pack: pack.column(place).cast(kind))
    for part in name.parts[1:]:
        term = _field(term, part)
    return term


def _field(term: Term, name: str) -> Term:
    if not pa.types.is_struct(term.type):
        raise FlowError(f'there is no field "{name}" in {type_name(term.type)}')
    fields = list(term.type)
    places = [i for i, f in enumerate(fields) if f.name.lower() == name.lower()]
    kind = type_in_flows(fields[places[0]].type) if len(places) == 1 else None
    if kind is None or kind != fields[places[0]].type:
        raise FlowError(
            f'there is no field "{name}" that a flow can read in {type_name(term.type)}',
            hint=f"The fields are {', '.join(f.name for f in fields)}.",
        )

    def compute(value: Value) -> Value:
        if isinstance(value, pa.Scalar):
            return value[places[0]] if value.is_valid else pa.scalar(None, kind)
        return pc.struct_field(value, places[0])

    return strict_term(kind, compute, [term])
