"""What does a text of SQL say? A tree of calls.

An operator is a call, too: `a + 1` is the call "+" of a column and a literal. A function is named
in small letters.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import pyarrow as pa


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

    operand: "Tree"
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


STAR = Call("*", ())
"""What stands in `count(*)`."""
