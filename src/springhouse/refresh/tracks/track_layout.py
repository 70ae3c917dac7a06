"""On which track may a refresh run?

A layout puts every table into a lane. All tables of a lane may use the same tracks: first the home
tracks of the lane, in their order; then the free tracks, which belong to no lane; then tracks of
other lanes to which they may be promoted (paper 001, sections 3.2.2 and 3.2.3). An aggressive
layout promotes whenever such a track is available, a polite one only if no home job needs it. The
tables of a lane have the same tracks, so the scheduler looks only at the best job of each lane.
"""

from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from math import log
from typing import NamedTuple


class TrackLoad(NamedTuple):
    """The load of one table: `seconds` of work, `E(P)`, in every period."""

    table: str
    period_seconds: float
    seconds: float

    @property
    def utilisation(self) -> float:
        return self.seconds / self.period_seconds


@dataclass(frozen=True)
class Lane:
    """The tracks of similar tables; `period_seconds` is the shortest of their periods."""

    homes: tuple[int, ...]
    promotions: tuple[int, ...] = ()
    period_seconds: float = 1.0


@dataclass(frozen=True)
class TrackLayout:
    """Which tables may use which tracks."""

    lanes: tuple[Lane, ...]
    lane_of: Mapping[str, int]
    free: tuple[int, ...] = ()
    aggressive: bool = True
    residents: Mapping[int, tuple[int, ...]] = field(init=False)

    def __post_init__(self) -> None:
        residents: dict[int, tuple[int, ...]] = {}
        for number, lane in enumerate(self.lanes):
            for track in lane.homes:
                residents[track] = (*residents.get(track, ()), number)
        object.__setattr__(self, "residents", residents)

    def track_for(
        self, lane: int, available: Collection[int], waiting: Sequence[Sized]
    ) -> int | None:
        """The track on which the best job of a lane starts; None if it has to wait."""
        own_lane = self.lanes[lane]
        for track in own_lane.homes:
            if track in available:
                return track
        for track in self.free:
            if track in available:
                return track
        for track in own_lane.promotions:
            if track in available and (
                self.aggressive or not self._used_at_home(track, available, waiting)
            ):
                return track
        return None

    def _used_at_home(
        self, track: int, available: Collection[int], waiting: Sequence[Sized]
    ) -> bool:
        """Whether home jobs need this track: more of them wait than home tracks come before it."""
        for resident in self.residents.get(track, ()):
            before = 0
            for home in self.lanes[resident].homes:
                if home == track:
                    break
                before += home in available
            if len(waiting[resident]) > before:
                return True
        return False

    def nearest(self, period_seconds: float) -> int:
        """The lane with the most similar period, for a table that the layout does not have."""
        return min(
            range(len(self.lanes)),
            key=lambda i: abs(log(self.lanes[i].period_seconds / period_seconds)),
        )


def one_lane(loads: Sequence[TrackLoad], tracks: Sequence[int]) -> TrackLayout:
    """Global scheduling: every table may run everywhere."""
    return TrackLayout((Lane(tuple(tracks)),), dict.fromkeys((load.table for load in loads), 0))
