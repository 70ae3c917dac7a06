"""How does data change its shape on a channel?

Section 2.4 of 004, Figure 2. A converter makes a block of one kind from a block of another kind on
the same channel. All converters except strong to weak delta also read the old base:

    c^ΔB  B(T1), Δ(T2 ▷ T3)  ->  B(T4), T4 = (T1 - T2) + T3     relaxed: see `blocks.apply_block`
    c^BΔ  B(T1), B(T2)       ->  Δ(T1 ▷ T2)
    c^δB, c^Bδ               like these                         c^Δδ  Δ(T1 ▷ T2)  ->  δ(T1 ▷ T2)
    c^δΔ  B(T1), δ(T1 ▷ T2)  ->  Δ(T1 ▷ T2)

c^ΔB and c^BΔ are built in. A weak delta needs at least one converter to it and one from it. The
search composes all other conversions from these, one step after the other.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from springhouse.errors import SpringhouseError
from springhouse.planner.search.blocks import BASE, INCREMENTS, STRONG, UPSERTS, Kind, is_weak
from springhouse.planner.search.operators import Base, Operator, Output, Port, WidgetVariant

Way = tuple[Kind, Kind]
"""The kinds before and after a conversion."""

BUILT_IN: tuple[Way, ...] = ((STRONG, BASE), (BASE, STRONG))


@dataclass(frozen=True)
class WeakDelta:
    """A kind of delta that is not built in, and its converters."""

    kind: Kind
    given: frozenset[Way]

    def __post_init__(self) -> None:
        if not is_weak(self.kind):
            raise SpringhouseError(f'"{self.kind}" is built in, and no weak delta')
        into = any(target == self.kind for _, target in self.given)
        out = any(source == self.kind for source, _ in self.given)
        if not (into and out):
            raise SpringhouseError(
                f'the weak delta "{self.kind}" can not be converted both to and from other blocks',
                hint="Give at least one converter to it, from a base or a strong delta, "
                "and at least one from it.",
            )


upserts = WeakDelta(UPSERTS, frozenset({(STRONG, UPSERTS), (UPSERTS, BASE), (UPSERTS, STRONG)}))
"""Keys with their new values."""

increments = WeakDelta(
    INCREMENTS, frozenset({(STRONG, INCREMENTS), (INCREMENTS, BASE), (INCREMENTS, STRONG)})
)
"""Keys with numbers to add to their values."""


@dataclass(frozen=True)
class Converter:
    """One converter of one channel."""

    channel: str
    source: Kind
    target: Kind

    @property
    def name(self) -> str:
        return f"{self.channel}: {self.target} from {self.source}"

    @property
    def reads_base(self) -> bool:
        """Whether it reads the old base: only a converter from strong to weak delta does not."""
        return not (self.source == STRONG and is_weak(self.target))

    @cached_property
    def operator(self) -> Operator:
        """The converter as an operator."""
        read = Port(self.channel, Base.OLD if self.reads_base else Base.NONE, (self.source,))
        return Operator(
            self.name, WidgetVariant.CONVERT, (read,), (Output(self.channel, self.target),)
        )


def converters(channel: str, weak: Iterable[WeakDelta] = ()) -> tuple[Converter, ...]:
    """The converters of a channel: the built-in ones, and those of its weak deltas."""
    ways = [*BUILT_IN, *(way for each in weak for way in sorted(each.given))]
    return tuple(Converter(channel, *way) for way in dict.fromkeys(ways))
