"""How do tables of different pace share the tracks?

This is Proportional (paper 001, section 3.2.3). Similar tables form a cluster. Every cluster has a
share of the tracks in proportion to its utilisation, the slowest cluster first: of `M × U_tot`
tracks, cluster j owns an interval of length `M × U_j`. A track that lies in two intervals is
shared. Fast jobs may be promoted to tracks of slower jobs, never the other way round: a long job
hardly suffers from a short one, but a short job waits long for a long one.

M is from ceil(U_tot) / U_tot ("basic", which leaves tracks free for all) to N / U_tot ("all").
The paper's listing takes jobs by increasing `E(P)`, and adds a job to the newest cluster by its
execution time, `E(P) < k × P_min`. But its example (k = 2) and its advice (k = 10 separates 5
minutes, an hour and a day) fit `P < k × P_min`, and its experiments (k = 1) need equal periods to
be similar. So this module makes clusters by period. Clusters protect short jobs from long ones. So
a job that is no longer than the longest job of a faster cluster joins that cluster: there it blocks
no job for longer than they block each other. The slowest cluster has the highest track, as in the
paper's example.
"""

from collections.abc import Sequence
from math import ceil, floor
from operator import attrgetter

from springhouse.refresh.tracks.track_layout import (
    Lane,
    TrackLayout,
    TrackLoad,
    one_lane,
)


def clusters(loads: Sequence[TrackLoad], k: float) -> list[list[TrackLoad]]:
    """Tables of similar periods, the fastest first; short jobs join the fast ones.

    >>> slow = [TrackLoad("report", 60.0, 60.0), TrackLoad("prices", 60.0, 0.2)]
    >>> tables = [TrackLoad("clicks", 1.0, 0.3), *slow]
    >>> [[load.table for load in cluster] for cluster in clusters(tables, k=10.0)]
    [['clicks', 'prices'], ['report']]
    """
    in_order: list[list[TrackLoad]] = []
    shortest = 0.0
    for load in sorted(loads, key=attrgetter("period_seconds", "seconds")):
        if in_order and (load.period_seconds < k * shortest or load.period_seconds <= shortest):
            in_order[-1].append(load)
        else:
            in_order.append([load])
            shortest = load.period_seconds
    for number, cluster in enumerate(in_order):
        longest = max((load.seconds for load in cluster), default=0.0)
        for slower in in_order[number + 1 :]:
            cluster += [load for load in slower if load.seconds <= longest]
            slower[:] = [load for load in slower if load.seconds > longest]
    return [cluster for cluster in in_order if cluster]


def proportional(
    loads: Sequence[TrackLoad],
    tracks: Sequence[int],
    *,
    allotted: int | None = None,
    aggressive: bool = True,
    k: float = 10.0,
) -> TrackLayout:
    """A share of the tracks for each cluster, in proportion to its utilisation.

    `allotted` is `M × U_tot`, the number of tracks to divide (None: all); `basic` is its minimum.
    """
    total = sum(load.utilisation for load in loads)
    if not tracks or total <= 0.0:
        return one_lane(loads, tracks)
    fewest = max(ceil(total - 1e-9), 1)
    allotted = len(tracks) if allotted is None else min(max(allotted, fewest), len(tracks))
    adjustment = allotted / total
    slowest_first = tuple(reversed(tracks))
    lanes, lane_of, low = [], {}, 0.0
    for number, cluster in enumerate(reversed(clusters(loads, k))):
        high = low + adjustment * sum(load.utilisation for load in cluster)
        # Rounded, because a sum just above a whole number would ask for one more track.
        first = min(floor(round(low, 9)), allotted - 1)
        last = max(min(ceil(round(high, 9)), allotted) - 1, first)
        lanes.append(
            Lane(
                (*slowest_first[first + 1 : last + 1], slowest_first[first]),
                slowest_first[:first],
                min(load.period_seconds for load in cluster),
            )
        )
        lane_of.update(dict.fromkeys((load.table for load in cluster), number))
        low = high
    return TrackLayout(tuple(lanes), lane_of, slowest_first[allotted:], aggressive)
