"""At which moment does a view read all its inputs, so that they are consistent?

A snapshot of an input is right at a moment t if t lies in its interval `[T+, T-)` (`provenance`). A
base table has a right snapshot for every moment, a view only for the moments of its refreshes. The
newest moment at which every input has a right snapshot wins. If no such moment exists, the view has
to wait for a refresh of one of its inputs.

Such moments exist only if the inputs of one reader (siblings) sometimes meet at one moment. So a
view goes to the newest moment at which its siblings already are, if there is one, and not to the
very newest moment (`meeting_points`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from springhouse.planner.provenance import NOW, Channel, Provenance
from springhouse.units import Instant

_FEW = 8
_EVER = Instant(float("-inf"))


@dataclass(frozen=True)
class InputSnapshot:
    """A stored snapshot of an input: its Delta version and its provenance."""

    version: int
    provenance: Provenance


@dataclass(frozen=True)
class Choice:
    """The moment to read at, and the version of each input that is right at that moment."""

    moment: Instant
    versions: Mapping[str, int]


def newest_common_moment(
    inputs: Mapping[str, Sequence[InputSnapshot]],
    channels: Mapping[str, Channel],
    not_after: Instant = NOW,
) -> Choice | None:
    """The newest moment at which every input has a consistent snapshot that is right.

    `inputs` lists the snapshots of each input, oldest first. The answer names the left end of the
    newest interval that all inputs share.
    """
    # Snapshots follow each other: if the newest few of each input share a moment, no older snapshot
    # shares a newer moment. So most snapshots rarely matter.
    newest = {name: candidates[-_FEW:] for name, candidates in inputs.items()}
    choice = _common_moment(newest, channels, not_after)
    if choice is None and any(len(each) > _FEW for each in inputs.values()):
        return _common_moment(inputs, channels, not_after)
    return choice


def _common_moment(
    inputs: Mapping[str, Sequence[InputSnapshot]],
    channels: Mapping[str, Channel],
    not_after: Instant,
) -> Choice | None:
    spans = {name: _spans(candidates, channels) for name, candidates in inputs.items()}
    # A shared interval begins where one of the intervals begins, so only these moments are tried.
    lefts = sorted(
        {left for each in spans.values() for left, _, _ in each if left <= not_after}, reverse=True
    )
    for left in lefts:
        versions = {name: _right_at(each, left) for name, each in spans.items()}
        if all(version is not None for version in versions.values()):
            return Choice(left, {name: v for name, v in versions.items() if v is not None})
    return None


def meeting_points(
    siblings: Sequence[Sequence[InputSnapshot]],
    channels: Mapping[str, Channel],
    newer_than: Instant,
) -> tuple[Instant, ...]:
    """Moments after `newer_than` at which siblings are, the most shared moments first."""
    spans = [_spans(candidates, channels, newer_than) for candidates in siblings]
    lefts = {left for each in spans for left, _, _ in each if left > newer_than}

    def shared(left: Instant) -> tuple[int, Instant]:
        return sum(_right_at(each, left) is not None for each in spans), left

    return tuple(sorted(lefts, key=shared, reverse=True))


_Span = tuple[Instant, Instant, int]


def _spans(
    candidates: Sequence[InputSnapshot],
    channels: Mapping[str, Channel],
    newer_than: Instant = _EVER,
) -> list[_Span]:
    """`[left, right)` and version of every consistent candidate, newest version first.

    Candidates that were right only before `newer_than` may be left out.
    """
    spans = []
    for candidate in reversed(candidates):
        left, right = candidate.provenance.interval(channels)
        if right <= newer_than:
            break
        if left < right:
            spans.append((left, right, candidate.version))
    return spans


def _right_at(spans: Sequence[_Span], moment: Instant) -> int | None:
    return next((version for left, right, version in spans if left <= moment < right), None)
