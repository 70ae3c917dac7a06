"""How is a parsed SQL expression represented? As a tree of calls.

An operator is a call, too: `a + 1` is the call "+" with a column and a literal. Names of functions
are in small letters.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import pyarrow as pa


@dataclass(frozen=True)
class Name:
    """A column, or a field of a column: `a`, `a.b`."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class Literal:
    """A value that is written in the text."""

    value: object
    type: pa.DataType


@dataclass(frozen=True)
class CastTo:
    """CAST or TRY_CAST."""

    operand: "Tree"
    type: pa.DataType
    tries: bool = False


@dataclass(frozen=True)
class Call:
    """A function or an operator by its name in small letters, with its arguments."""

    function: str
    arguments: tuple["Tree", ...]


Tree: TypeAlias = Name | Literal | CastTo | Call


class SortKey(NamedTuple):
    """One key of an order."""

    tree: Tree
    descending: bool
    nulls_first: bool


STAR = Call("*", ())
"""The argument of `count(*)`."""
