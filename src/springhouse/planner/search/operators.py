"""Which data does an operator read, and which blocks does it make?

The signatures of 004 section 2.3. An operator reads, from each of its inputs, one of

    B(T)    B(T1), Δ(T1 ▷ T2)    Δ(T1 ▷ T2)    B(T2), Δ(T1 ▷ T2)    nothing at all

S and E are the combined starts and ends of its inputs. (The start of a base is its end. The same
holds for an input that stands still.) The operator makes `B(E)` if all inputs are bases, and else
`Δ(S ▷ E)`. A synchronous operator requires S and E to be consistent. An operator that works *in
place* also reads the newest base B(T) of its own channel, and makes `B(T')` and `Δ(T ▷ T')` at
once, where `T' = (T - S) + E`: this is a refresh of a table in a warehouse.
"""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from springhouse.planner.search.blocks import STRONG, Kind


class Base(Enum):
    """Which base of an input an operator reads beside its delta."""

    NONE = "none"
    OLD = "old"
    NEW = "new"


class WidgetVariant(Enum):
    """The way in which an operator does the work of its widget."""

    BATCH = "batch"
    INCREMENTAL = "incremental"
    ASYNCHRONOUS = "asynchronous"
    GROUP_RECOMPUTE = "group recompute"
    CONVERT = "convert"
    CHAIN = "chain"


@dataclass(frozen=True)
class Port:
    """The data that an operator reads from one input: a base, a delta of these kinds, or both."""

    channel: str
    base: Base
    deltas: tuple[Kind, ...] = ()

    @property
    def moves(self) -> bool:
        """Whether the input may move forward during an invocation."""
        return bool(self.deltas)

    @property
    def untouched(self) -> bool:
        return self.base is Base.NONE and not self.deltas


def base_of(channel: str) -> Port:
    """B(T)."""
    return Port(channel, Base.NEW)


def delta_of(channel: str, *kinds: Kind) -> Port:
    """Δ(T1 ▷ T2), or weak deltas of the named kinds."""
    return Port(channel, Base.NONE, kinds or (STRONG,))


def base_and_delta_of(channel: str, *kinds: Kind) -> Port:
    """B(T1), Δ(T1 ▷ T2)."""
    return Port(channel, Base.OLD, kinds or (STRONG,))


def delta_and_new_base_of(channel: str, *kinds: Kind) -> Port:
    """Δ(T1 ▷ T2), B(T2)."""
    return Port(channel, Base.NEW, kinds or (STRONG,))


def nothing_of(channel: str) -> Port:
    """Nothing at all: the other side of a union, whose provenance stays empty."""
    return Port(channel, Base.NONE)


@dataclass(frozen=True)
class Output:
    """One result of an operator."""

    channel: str
    kind: Kind


@dataclass(frozen=True)
class Operator:
    """One way to make blocks of some channels from blocks of others, by its two signatures.

    An operator that `keeps_monotone` makes a monotone delta from monotone deltas.
    """

    name: str
    variant: WidgetVariant
    ports: tuple[Port, ...]
    outputs: tuple[Output, ...]
    synchronous: bool = False
    in_place: bool = False
    keeps_monotone: bool = False

    @cached_property
    def moves(self) -> bool:
        """Whether an invocation starts from deltas, and not from bases alone."""
        return any(port.moves for port in self.ports)

    @property
    def driver(self) -> str | None:
        """The input that drives an asynchronous invocation."""
        moving = [port.channel for port in self.ports if port.moves]
        return (
            moving[0] if self.variant is WidgetVariant.ASYNCHRONOUS and len(moving) == 1 else None
        )
