"""In which shapes does data lie on a channel?

Section 2.2 of 004. A block is the unit of planning:

    base          B(T)          all of a relation, as of T
    strong delta  Δ(T1 ▷ T2)    rows to add and to delete, to get from B(T1) to B(T2), T1 ≺ T2;
                                Δ+, a monotone one, deletes none
    weak delta    δ(T1 ▷ T2)    anything from which B(T2) can be made, given B(T1): upserts,
                                increments, or what a user adds

Two blocks are the same if they hold the same data: channel, kind, start and end. The number of rows
may be an estimate. A block does not know where its rows are stored.
"""

from collections.abc import Iterable
from typing import NewType

from springhouse.planner.provenance import Provenance

Kind = NewType("Kind", str)

BASE = Kind("base")
STRONG = Kind("strong delta")
MONOTONE = Kind("monotone delta")
UPSERTS = Kind("upserts")
INCREMENTS = Kind("increments")

_BUILT_IN = frozenset({BASE, STRONG, MONOTONE})


def is_weak(kind: Kind) -> bool:
    """Whether a kind was added by a user of this module, and is not built in."""
    return kind not in _BUILT_IN


def fits(kind: Kind, asked_kind: Kind) -> bool:
    """Whether `kind` can serve as `asked_kind`: a monotone delta is also a strong delta."""
    return kind == asked_kind or (kind == MONOTONE and asked_kind == STRONG)


def accepted_kinds(wanted: Iterable[Kind]) -> frozenset[Kind]:
    """All kinds that can serve as one of these."""
    kinds = frozenset(wanted)
    return kinds | {MONOTONE} if STRONG in kinds else kinds


class Block:
    """Data on a channel; a base has no start. `versions` are the stored versions of start and end.

    A block never changes. Nothing enforces that: a search makes very many blocks, and a frozen
    dataclass takes three times as long to make.
    """

    __slots__ = ("_hash", "channel", "end", "kind", "rows", "start", "versions")

    def __init__(
        self,
        channel: str,
        kind: Kind,
        end: Provenance,
        start: Provenance | None = None,
        rows: float = 0.0,
        versions: tuple[int, int] | None = None,
    ) -> None:
        assert (start is None) == (kind == BASE), "a base has no start, a delta has one"
        self.channel, self.kind, self.end, self.start = channel, kind, end, start
        self.rows, self.versions = rows, versions
        self._hash = hash((channel, kind, end, start))

    def with_rows(self, rows: float) -> "Block":
        """The same block with a number of rows."""
        return Block(self.channel, self.kind, self.end, self.start, rows, self.versions)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Block):
            return NotImplemented
        return (
            self._hash == other._hash
            and self.channel == other.channel
            and self.kind == other.kind
            and self.end == other.end
            and self.start == other.start
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        def text(provenance: Provenance) -> str:
            parts = (f"{k}:{'+'.join(map(str, v))}" for k, v in provenance.as_json().items())
            return "⟨" + ", ".join(parts) + "⟩"

        ends = text(self.end) if self.start is None else f"{text(self.start)} ▷ {text(self.end)}"
        return f"{self.kind} of {self.channel} {ends}"


def apply_block(state: Provenance | None, block: Block) -> Provenance | None:
    """The state of a consumer with `state` after it applies a block; None if it can't.

    A base replaces the state. A delta is applied by the relaxed rule of section 2.4, so the result
    of asynchronous deltas shows all versions that are mixed in it.
    """
    if block.start is None:
        return block.end
    if state is None or not state.convertible(block.start, block.end):
        return None
    return state.converted(block.start, block.end)
