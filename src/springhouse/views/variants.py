"""In which ways can a view be refreshed?

Variants are data, for a planner to choose from (004 sections 2.3 and 3):

    batch             B(T)                     its query over its inputs
    incremental       Δ of all inputs          synchronous: all inputs move to one moment
    group recompute   the same, and some groups are computed anew from their rows
    asynchronous      Δ+ of one input          against the current state of the other inputs: rows
                                               already in the view ignore changes of the others
                      Δ of one side            of a union: the refresh does not read the others

One input can drive a refresh alone if the rows that it adds to the view do not depend on the rows
that it added before. For this, the query reads the input once, with only filters, projections,
joins, unions and the groups of the view itself between the input and the view. The input may only
add rows: for a deleted row, the refresh would need the rows that it joined at that time. One side
of a union joins no other input, so any change of that side can be applied alone.
"""

from dataclasses import dataclass, replace
from enum import Enum

from springhouse.views.algebra.query_tree import (
    Aggregate,
    Filter,
    Generate,
    InnerJoin,
    Node,
    OuterJoin,
    Projection,
    Scan,
    SemiJoin,
    UnionAll,
    children,
    inputs,
    walk,
)
from springhouse.views.compile import Compiled
from springhouse.views.delta.statement import Keyed, Refresh


class Way(Enum):
    """How a view is refreshed."""

    BATCH = "full"
    INCREMENTAL = "incremental"
    GROUP_RECOMPUTE = "group recompute"
    ASYNCHRONOUS = "asynchronous"


@dataclass(frozen=True)
class RefreshVariant:
    """One way to refresh a view. `refresh` holds its steps; a batch has none.

    `driver` is the input that drives an asynchronous refresh. Its rows must only have been added.
    """

    way: Way
    refresh: Refresh | None = None
    driver: str | None = None


def synchronous(compiled: Compiled, changed: frozenset[str]) -> RefreshVariant:
    """The refresh that applies all changes."""
    refresh = compiled.refresh(changed)
    anew = any(isinstance(step, Keyed) and step.merge is None for step in refresh.steps)
    return RefreshVariant(Way.GROUP_RECOMPUTE if anew else Way.INCREMENTAL, refresh)


def regrouped(compiled: Compiled, changed: frozenset[str]) -> RefreshVariant | None:
    """The refresh that computes all touched groups from their rows; None if nothing differs.

    This refresh is cheaper if groups are small and a merge leaves many of them stale, for example
    after the deletion of a maximum.
    """
    refresh = compiled.refresh(changed)
    if not any(isinstance(step, Keyed) and step.merge is not None for step in refresh.steps):
        return None
    steps = tuple(
        replace(step, merge=None, merge_given=None) if isinstance(step, Keyed) else step
        for step in refresh.steps
    )
    return RefreshVariant(Way.GROUP_RECOMPUTE, replace(refresh, steps=steps))


def can_drive(compiled: Compiled, name: str) -> bool:
    """Whether the view can be refreshed from new rows of one input alone."""
    scans = [n for n in walk(compiled.root) if isinstance(n, Scan) and n.input == name]
    if len(scans) != 1 or compiled.hidden or len(compiled.inputs) < 2:
        return False
    node = compiled.root
    while isinstance(node, Projection):
        node = node.child
    if isinstance(node, Aggregate):
        (step,) = compiled.refresh(frozenset({name})).steps
        if not isinstance(step, Keyed) or step.merge is None:
            return False
        node = node.child
    return _is_linear(node, name)


def drives_alone(compiled: Compiled, name: str) -> bool:
    """Whether the effect of one input's rows on the view is independent of all other inputs.

    Then any change of this input can drive a refresh, and the refresh does not read the others.
    """
    return can_drive(compiled, name) and _is_side(compiled.root, name)


def _is_side(node: Node, name: str) -> bool:
    match node:
        case Scan():
            return True
        case Filter() | Projection() | Generate():
            return _is_side(node.child, name)
        case UnionAll():
            return all(_is_side(each, name) for each in children(node) if name in inputs(each))
        case _:
            return False


def only_grows(compiled: Compiled) -> bool:
    """Whether the view gains rows and loses none, as long as its inputs only gain rows."""
    return all(_grows(node) for node in walk(compiled.root))


def _grows(node: Node) -> bool:
    match node:
        case Scan() | Filter() | Projection() | Generate() | InnerJoin() | UnionAll():
            return True
        case Aggregate():
            return not node.measures  # DISTINCT
        case _:
            return False


def _is_linear(node: Node, name: str) -> bool:
    """Whether each row of a node that comes from an input comes from one row of that input."""
    if name not in inputs(node) or isinstance(node, Scan):
        return True
    match node:
        case Filter() | Projection() | Generate():
            return _is_linear(node.child, name)
        case InnerJoin() | UnionAll():
            return all(_is_linear(child, name) for child in children(node))
        case OuterJoin() | SemiJoin():
            others = children(node)[1:]
            return _is_linear(node.left, name) and not any(name in inputs(o) for o in others)
        case _:
            return False
