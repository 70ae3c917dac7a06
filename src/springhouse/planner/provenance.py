"""Which states of the base tables does a snapshot reflect?

Base tables are the input channels of 004 section 2.1. Each of their versions was the newest from
its own timestamp until the timestamp of the next version. This is its interval of validity
`[t, t+)`, where `t+` of the newest version is *now*. The temporal provenance of a snapshot is, for
each channel, the set of versions that the snapshot reflects. With `T+` the latest left end and `T-`
the earliest right end of all those intervals:

    a snapshot is consistent  iff  T+ < T-

that is, iff there was a moment at which it held exactly the newest data of every channel.

The paper counts paths, not channels, because data may come from one channel in several ways. So a
key is a pathway: `orders` if the view reads the base table itself, `orders>news` if the data comes
through `news`. If all pathways of a channel reflect the same versions, they are one pathway, under
the name of the channel. `search.workflow` says which pathways stay separate.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from springhouse.units import Instant

NOW = Instant(float("inf"))
"""The right end of an interval that no later version has closed yet."""

_NONE: frozenset[int] = frozenset()
_NOTHING: Mapping[str, frozenset[int]] = {}


def source_of(pathway: str) -> str:
    """The channel at which a pathway begins.

    >>> source_of("log>news>output"), source_of("log")
    ('log', 'log')
    """
    return pathway.partition(">")[0]


def along(pathway: str, named: Collection[str]) -> str:
    """A pathway without the tables on the way that are not named.

    >>> along("log>cleaned>news", {"news", "sports"})
    'log>news'
    """
    source, *passed = pathway.split(">")
    return ">".join([source, *(each for each in passed if each in named)])


def through(pathway: str, channel: str) -> str:
    """A pathway of `channel`, as a reader of the channel sees it.

    >>> through("log", "news")
    'log>news'
    """
    return f"{pathway}>{channel}"


@dataclass(frozen=True)
class Channel:
    """The versions of one base table in order, each with the time when it became the newest.

    A channel without versions was deleted: the time when its data was right is unknown. Versions
    that changed no data (a compaction) are not listed: they are the same snapshot.
    """

    versions: tuple[int, ...]
    timestamps: tuple[Instant, ...]

    def since(self, version: int) -> Instant:
        """The left end of the interval of validity of `version`."""
        return self.interval(version)[0]

    def until(self, version: int) -> Instant:
        """The right end of the interval of validity of `version`."""
        return self.interval(version)[1]

    def interval(self, version: int) -> tuple[Instant, Instant]:
        """The interval of validity of `version`."""
        if not self.versions:
            return Instant(float("-inf")), NOW
        position = self._position(version)
        after = position + 1
        until = self.timestamps[after] if after < len(self.timestamps) else NOW
        return self.timestamps[position], until

    def at(self, moment: Instant) -> int | None:
        """The version that was the newest at `moment`; None before the first."""
        position = bisect_right(self.timestamps, moment) - 1
        return self.versions[position] if position >= 0 else None

    def _position(self, version: int) -> int:
        # The log of a long-lived table loses its oldest entries: a version that is no longer listed
        # counts as the oldest listed version.
        return max(bisect_right(self.versions, version) - 1, 0)


class Provenance:
    """For each pathway, the reflected versions of its source: one version if synchronous.

    A provenance never changes. A search makes and compares very many of them, so each keeps its
    hash and the newest version of each pathway.
    """

    __slots__ = ("_hash", "_latest", "reflected")

    def __init__(self, reflected: Mapping[str, frozenset[int]] = _NOTHING) -> None:
        self.reflected = reflected
        self._hash = hash(frozenset(reflected.items()))
        self._latest: Mapping[str, int] | None = None

    @staticmethod
    def of(**versions: int) -> "Provenance":
        """The provenance of a synchronous snapshot.

        >>> Provenance.of(orders=3).reflected
        {'orders': frozenset({3})}
        """
        return Provenance({name: frozenset({version}) for name, version in versions.items()})

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Provenance):
            return NotImplemented
        return self.reflected == other.reflected

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Provenance({dict(self.reflected)!r})"

    @property
    def latest(self) -> Mapping[str, int]:
        """The newest version of each pathway; if two are equal here, neither precedes the other."""
        latest = self._latest
        if latest is None:
            latest = self._latest = {key: max(each) for key, each in self.reflected.items()}
        return latest

    def newest(self, channel: str) -> int | None:
        """`T[i]+`: the latest version of `channel` that is reflected."""
        versions = self.reflected.get(channel)
        return max(versions) if versions else None

    def oldest(self, channel: str) -> int | None:
        """The earliest version of `channel` that is reflected."""
        versions = self.reflected.get(channel)
        return min(versions) if versions else None

    def converted(self, start: "Provenance", end: "Provenance") -> "Provenance":
        """The provenance of a snapshot after a delta from `start` to `end` (004 section 2.4).

        For each channel it is `(T1 - T2) + T3`. The delta need not start at this snapshot: in this
        way an asynchronous snapshot comes to reflect several versions of a channel.
        """
        held, before, after = self.reflected, start.reflected, end.reflected
        if before == held and after.keys() >= held.keys():
            return end
        return Provenance(
            {
                each: (held.get(each, _NONE) - before.get(each, _NONE)) | after.get(each, _NONE)
                for each in {**held, **before, **after}
            }
        )

    def convertible(self, start: "Provenance", end: "Provenance") -> bool:
        """Whether a delta from `start` to `end` may be applied to this snapshot (section 2.4).

        On each pathway, the delta either begins where the snapshot is, or does not move.
        """
        held, before, after = self.reflected, start.reflected, end.reflected
        for each, begins in before.items():
            if after.get(each, _NONE) != begins and held.get(each, _NONE) != begins:
                return False
        return all(
            each in before or not reached or not held.get(each) for each, reached in after.items()
        )

    def precedes(self, other: "Provenance") -> bool:
        """`T1 < T2` of 004: the other is behind on no channel, and ahead on at least one."""
        held, ahead = self.reflected, False
        for channel, versions in other.reflected.items():
            mine = held.get(channel)
            if not mine or not versions:
                ahead = ahead or not mine
                continue
            if versions == mine:
                continue
            newest, newest_of_mine = max(versions), max(mine)
            if newest < newest_of_mine:
                return False
            ahead = ahead or newest > newest_of_mine or min(versions) > min(mine)
        if not ahead:
            return False
        theirs = other.reflected
        return theirs.keys() == held.keys() or all(theirs.get(each) for each in held if held[each])

    def channels_ahead(self, other: "Provenance") -> list[str]:
        """The channels of which `other` reflects newer data.

        A channel also counts if only its oldest version moved: then the snapshot caught up on one
        of several pathways.
        """
        ahead = []
        for channel, versions in sorted(other.reflected.items()):
            newest, oldest = self.newest(channel), self.oldest(channel)
            if newest is None or oldest is None:
                ahead.append(channel)
                continue
            caught_up = max(versions) == newest and min(versions) > oldest
            if max(versions) > newest or caught_up:
                ahead.append(channel)
        return ahead

    def interval(self, channels: Mapping[str, Channel]) -> tuple[Instant, Instant]:
        """`(T+, T-)`; for a snapshot that reflects no channel, all time until now."""
        ends = [
            (channel.since(version), channel.until(version))
            for name, versions in self.reflected.items()
            for channel in (channels[source_of(name)],)
            for version in versions
        ]
        if not ends:
            return Instant(float("-inf")), NOW
        return max(since for since, _ in ends), min(until for _, until in ends)

    def consistent(self, channels: Mapping[str, Channel]) -> bool:
        """Whether there was a moment when every version in it was the newest of its channel."""
        left, right = self.interval(channels)
        return left < right

    def as_json(self) -> dict[str, list[int]]:
        return {name: sorted(versions) for name, versions in sorted(self.reflected.items())}

    @staticmethod
    def from_json(value: Mapping[str, Iterable[int]]) -> "Provenance":
        return Provenance({name: frozenset(versions) for name, versions in value.items()})


def join_provenances(parts: Iterable[Provenance]) -> Provenance:
    """The provenance of rows computed from snapshots with these provenances."""
    reflected: dict[str, frozenset[int]] = {}
    for part in parts:
        for channel, versions in part.reflected.items():
            reflected[channel] = reflected.get(channel, frozenset()) | versions
    return Provenance(reflected)
