"""Which promises does a channel have, does it keep them now, and until when?

Section 5 of 004. With T the provenance of the newest snapshot on channel C:

    bound_staleness(C, i, t)      now < T[i]- + t     data missing on pathway i came less than t ago
    bound_inconsistency(C, t)     T+ < T- + t         strictly consistent if t = 0

*Now* is later than anything that arrived, so with t = 0 a pathway is stale as soon as its source
has newer data. Time can break a bound on staleness, but never a bound on inconsistency. Bounds also
say which blocks of C others may read.

Bounds propagate upstream (section 6.2.3) and decide which blocks are useful there. From C to a
channel X that C reads, staleness is projected to the pathways that come from X, and inconsistency
is copied. Then the bounds of X itself are added. A block that is too inconsistent with a fresh
pathway is useless, so in the paper no staleness may exceed the inconsistency. This module applies
that limit only if C also reads another channel, and adds the staleness that the other channel may
have. The bound of a channel itself does not limit the age of its blocks, or no consistent view
could ever be an hour old.

The paper does not say what to do if several channels read one. A block is useful if one of them
can use it: then the loosest bound counts. A block is good enough if all of them can use it: then
the tightest bound counts, and other pathways read with the block are assumed to be fresh.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from springhouse.planner.provenance import Channel, Provenance, source_of
from springhouse.planner.search.workflow import Workflow
from springhouse.units import Instant


@dataclass(frozen=True)
class BoundStaleness:
    """`pathway` is a key of the provenance, the end of a key, or a direct input; None means all."""

    channel: str
    pathway: str | None
    seconds: float

    def __str__(self) -> str:
        which = "" if self.pathway is None else f" of {self.pathway}"
        return f"staleness{which} in {self.channel} is at most {self.seconds:g} s"


@dataclass(frozen=True)
class BoundInconsistency:
    """How far apart in time the data may be that one snapshot reflects."""

    channel: str
    seconds: float

    def __str__(self) -> str:
        return f"inconsistency in {self.channel} is at most {self.seconds:g} s"


Bound = BoundStaleness | BoundInconsistency


@dataclass(frozen=True)
class ChannelBounds:
    """All bounds of one channel: seconds of staleness by pathway, and of inconsistency."""

    staleness: Mapping[str, float] = field(default_factory=dict)
    inconsistency: float = inf

    def __post_init__(self) -> None:
        assert self.inconsistency >= 0
        assert all(seconds >= 0 for seconds in self.staleness.values())


NO_LIMITS = ChannelBounds()
_NONE: frozenset[int] = frozenset()


def limits_of(workflow: Workflow, bounds: Iterable[Bound]) -> dict[str, ChannelBounds]:
    """The bounds of each channel with bounds; of several bounds on one pathway the tightest."""
    staleness: dict[str, dict[str, float]] = {}
    inconsistency: dict[str, float] = {}
    for bound in bounds:
        match bound:
            case BoundInconsistency(channel, seconds):
                inconsistency[channel] = min(inconsistency.get(channel, inf), seconds)
            case BoundStaleness(channel, pathway, seconds):
                seconds_of = staleness.setdefault(channel, {})
                for key in pathways_named(workflow, channel, pathway):
                    seconds_of[key] = min(seconds_of.get(key, inf), seconds)
    return {
        channel: ChannelBounds(staleness.get(channel, {}), inconsistency.get(channel, inf))
        for channel in {**staleness, **inconsistency}
    }


def pathways_named(workflow: Workflow, channel: str, pathway: str | None) -> tuple[str, ...]:
    """The pathways of a channel that a bound means."""
    keys = workflow.pathways(channel)
    if pathway is None:
        return keys
    if pathway in workflow.reads[channel]:
        return workflow.through_input(channel, pathway)
    return tuple(key for key in keys if key == pathway or key.endswith(f">{pathway}"))


def strictest_staleness(
    workflow: Workflow, limits: Mapping[str, ChannelBounds]
) -> dict[str, dict[str, float]]:
    """The strictest bound on the staleness of each pathway, of a channel and all channels below.

    Pathways without a bound are left out.
    """
    strictest: dict[str, dict[str, float]] = {}
    for channel in reversed(workflow.order):
        own = strictest[channel] = dict(limits.get(channel, NO_LIMITS).staleness)
        for reader in workflow.readers[channel]:
            for key, below in workflow.key_map(reader, channel).items():
                if below in strictest[reader]:
                    own[key] = min(own.get(key, inf), strictest[reader][below])
    return strictest


def propagate_limits(
    workflow: Workflow, limits: Mapping[str, ChannelBounds], *, tightest: bool = False
) -> dict[str, ChannelBounds]:
    """The limits of every channel, with those of the channels made from it (section 6.2.3).

    If several channels are made from it, the loosest of their limits counts, or the `tightest`.
    """
    pick = min if tightest else max
    propagated_limits: dict[str, ChannelBounds] = {}
    oldest: dict[str, float] = {}
    for channel in reversed(workflow.order):
        own = limits.get(channel, NO_LIMITS)
        below = [
            (propagated_limits[reader], workflow.key_map(reader, channel))
            for reader in workflow.readers[channel]
        ]
        copied = pick((each.inconsistency for each, _ in below), default=inf)
        oldest[channel] = pick(
            (
                _oldest(
                    workflow, reader, channel, propagated_limits[reader], oldest[reader], tightest
                )
                for reader in workflow.readers[channel]
            ),
            default=inf,
        )
        staleness = {}
        for key in workflow.pathways(channel):
            projected = (each.staleness.get(keys[key], inf) for each, keys in below)
            seconds = min(own.staleness.get(key, inf), pick(projected, default=inf))
            staleness[key] = min(seconds, oldest[channel])
        staleness = {key: seconds for key, seconds in staleness.items() if seconds < inf}
        propagated_limits[channel] = ChannelBounds(staleness, min(own.inconsistency, copied))
    return propagated_limits


def _oldest(
    workflow: Workflow,
    reader: str,
    channel: str,
    limits: ChannelBounds,
    oldest: float,
    tightest: bool,
) -> float:
    """How stale a channel may be before its reader is too inconsistent."""
    if len(workflow.reads[reader]) == 1:
        return oldest
    through_channel = set(workflow.through_input(reader, channel))
    others = [
        limits.staleness.get(k, inf) for k in workflow.pathways(reader) if k not in through_channel
    ]
    freshest = 0.0 if tightest else min(others, default=inf)
    return min(oldest, limits.inconsistency + freshest)


class Times:
    """The intervals of validity of all versions, looked up once per planning."""

    def __init__(self, channels: Mapping[str, Channel], now: Instant) -> None:
        self.now = now
        self._channels = channels
        self._known: dict[tuple[str, int], tuple[float, float]] = {}
        self._intervals: dict[Provenance, tuple[float, float]] = {}
        self._stale: dict[tuple[str, frozenset[int]], float] = {}

    def valid(self, pathway: str, version: int) -> tuple[float, float]:
        """The interval of validity of a version of the source of a pathway."""
        interval = self._known.get((pathway, version))
        if interval is None:
            interval = self._channels[source_of(pathway)].interval(version)
            self._known[pathway, version] = interval
        return interval

    def interval(self, provenance: Provenance) -> tuple[float, float]:
        """`(T+, T-)`."""
        interval = self._intervals.get(provenance)
        if interval is None:
            left, right = -inf, inf
            for pathway, versions in provenance.reflected.items():
                for version in versions:
                    since, until = self.valid(pathway, version)
                    left, right = max(left, since), min(right, until)
            interval = self._intervals[provenance] = (left, right)
        return interval

    def stale_at(self, pathway: str, versions: frozenset[int]) -> float:
        """`T[i]-`: the arrival of the first data that these versions lack; infinite if none."""
        at = self._stale.get((pathway, versions))
        if at is None:
            at = inf
            for version in versions:
                at = min(at, self.valid(pathway, version)[1])
            self._stale[pathway, versions] = at
        return at

    def keeps(self, limits: ChannelBounds, provenance: Provenance) -> bool:
        """Whether a snapshot is within limits now, on all pathways that it reflects."""
        for pathway, seconds in limits.staleness.items():
            versions = provenance.reflected.get(pathway)
            if versions and self.stale_at(pathway, versions) + seconds <= self.now:
                return False
        return self.within_inconsistency(limits, provenance)

    def within_inconsistency(self, limits: ChannelBounds, provenance: Provenance) -> bool:
        """Whether the data in a snapshot lies close enough together in time."""
        if limits.inconsistency == inf:
            return True
        left, right = self.interval(provenance)
        return left < right + limits.inconsistency

    def violated(self, limits: ChannelBounds, provenance: Provenance) -> tuple[str, ...]:
        """The pathways whose bound on staleness is broken now, and missing pathways."""
        reflected = provenance.reflected
        return tuple(
            pathway
            for pathway, seconds in limits.staleness.items()
            if not (versions := reflected.get(pathway))
            or self.stale_at(pathway, versions) + seconds <= self.now
        )

    def due(self, limits: ChannelBounds, provenance: Provenance) -> float:
        """When the first bound on staleness breaks without a refresh; infinite if none breaks."""
        return min(
            (
                self.stale_at(pathway, provenance.reflected.get(pathway, _NONE)) + seconds
                for pathway, seconds in limits.staleness.items()
            ),
            default=inf,
        )
