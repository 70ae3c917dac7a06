"""Which tables share a track so that none misses its deadline?

This is EDF-Partitioned (paper 001, sections 3.2.1 and 3.2.2). Tables are taken by increasing period
and put on the current track as long as it stays feasible without preemption:

    U <= 1 - E_max / P_min

A job may be promoted to another track that would stay feasible with it. The paper's formula for
promotion leaves the job's own utilisation out of U. But its example (only J4 is promotable) and its
remark that uniform jobs are never promoted need it in U, so this module counts it. A table that
fits on no track gets a track of its own. If no track is left, the paper gives up; here the track
with the least utilisation takes the table.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from springhouse.refresh.tracks.track_layout import Lane, TrackLayout, TrackLoad

_ROUNDING = 1e-9


@dataclass
class _Track:
    """The home tables of one track."""

    id: int
    utilisation: float = 0.0
    longest: float = 0.0
    period_min: float = inf
    loads: list[TrackLoad] = field(default_factory=list)

    def fits(self, load: TrackLoad) -> bool:
        """Whether the track is feasible with this job as well."""
        longest = max(self.longest, load.seconds)
        period_min = min(self.period_min, load.period_seconds)
        return self.utilisation + load.utilisation <= 1 - longest / period_min + _ROUNDING

    def add(self, load: TrackLoad) -> None:
        self.loads.append(load)
        self.utilisation += load.utilisation
        self.longest = max(self.longest, load.seconds)
        self.period_min = min(self.period_min, load.period_seconds)


def edf_partitioned(
    loads: Sequence[TrackLoad], tracks: Sequence[int], *, aggressive: bool = False
) -> TrackLayout:
    """Feasible home tracks, promotions that keep them feasible, and the tracks left over."""
    if not loads:
        return TrackLayout((Lane(()),), {}, tuple(tracks), aggressive)
    unused = list(reversed(tracks))
    used: list[_Track] = []
    for load in sorted(loads, key=lambda load: (load.period_seconds, load.seconds)):
        if not used or not used[-1].fits(load):
            if unused:
                used.append(_Track(unused.pop()))
            else:
                min(used, key=lambda track: track.utilisation).add(load)
                continue
        used[-1].add(load)
    lanes: dict[tuple[int, tuple[int, ...]], float] = {}
    places: dict[str, tuple[int, tuple[int, ...]]] = {}
    for track in used:
        for load in track.loads:
            others = tuple(each.id for each in used if each is not track and each.fits(load))
            place = places[load.table] = (track.id, others)
            lanes[place] = min(lanes.get(place, inf), load.period_seconds)
    numbers = {place: number for number, place in enumerate(lanes)}
    return TrackLayout(
        tuple(Lane((home,), others, period) for (home, others), period in lanes.items()),
        {table: numbers[place] for table, place in places.items()},
        tuple(reversed(unused)),
        aggressive,
    )
