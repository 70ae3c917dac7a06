"""Whose data has waited longest?

First come, first served over data rather than over jobs: the table for which the oldest unreflected
data has waited longest starts first; of equals the one with the higher priority. A table that is
refreshed late falls behind further and so moves to the front: nobody starves.
"""

from collections.abc import Sequence

from springhouse.refresh.job import Job, Start
from springhouse.units import Instant


def decide(waiting: Sequence[Job], free_tracks: Sequence[int], now: Instant) -> list[Start]:
    """Give each free track the released job whose data has waited longest."""
    return [
        Start(job.table, track)
        for job, track in zip(in_order(waiting, now), sorted(free_tracks), strict=False)
    ]


def in_order(waiting: Sequence[Job], now: Instant) -> list[Job]:
    """The jobs that may start now, in the order in which they would."""
    released = [job for job in waiting if job.released <= now]
    return sorted(released, key=lambda job: (job.since, -job.priority, job.table))
