"""Which data has arrived for a table that the table does not reflect yet?

Batches wait in the order of their time stamps. Pending updates merge (paper 001, section 2.4): one
refresh loads everything up to a time stamp, the oldest first, so data is loaded in chronological
order. The batches of a failed refresh are put back, so nothing is lost. A batch of late records
makes the table no fresher, but has to be loaded, too.
"""

from collections import deque
from typing import NamedTuple

from springhouse.units import Instant

_MOST_BATCHES = 1024


class PendingBatch(NamedTuple):
    """Data up to `freshness`; it reached the warehouse at `since`, and this table at `released`."""

    freshness: Instant
    since: Instant
    released: Instant


class PendingBatches:
    """The batches that wait for one table."""

    __slots__ = ("_batches",)

    def __init__(self) -> None:
        self._batches: deque[PendingBatch] = deque()

    def __bool__(self) -> bool:
        return bool(self._batches)

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def newest(self) -> Instant:
        """The time stamp of the newest waiting data."""
        return self._batches[-1].freshness

    @property
    def oldest(self) -> PendingBatch:
        """The batch that has waited longest."""
        return self._batches[0]

    def arrived(self, freshness: Instant, since: Instant, released: Instant) -> bool:
        """Add a batch; returns whether this is news.

        It is news if no data waited, if the batch reaches further, or if it shows that the waiting
        data is older than known, so that the table hurries.
        """
        batches = self._batches
        if batches:
            hurries = since < batches[0].since
            if hurries:
                batches[0] = batches[0]._replace(since=since)
            last = batches[-1]
            if freshness <= last.freshness:
                return hurries
            if len(batches) >= _MOST_BATCHES:
                # The wait of the older batch counts for both, so that no lag is reported too short.
                batches[-1] = last._replace(freshness=freshness)
                return True
        batches.append(PendingBatch(freshness, since, released))
        return True

    def reach(self, limit: Instant) -> Instant:
        """The end of the last batch that ends by `limit`; of the oldest batch if none does."""
        reached = self._batches[0].freshness
        for batch in self._batches:
            if batch.freshness > limit:
                break
            reached = batch.freshness
        return reached

    def take(self, until: Instant) -> list[PendingBatch]:
        """Remove and return the batches up to `until`, oldest first."""
        batches, loaded = self._batches, []
        while batches and batches[0].freshness <= until:
            loaded.append(batches.popleft())
        return loaded

    def put_back(self, loaded: list[PendingBatch]) -> None:
        """Let batches wait again that a refresh did not load."""
        batches = self._batches
        if loaded and batches and batches[-1].freshness < loaded[-1].freshness:
            # Late records came meanwhile; the waiting data still has the same end as before.
            batches[-1] = batches[-1]._replace(freshness=loaded[-1].freshness)
        batches.extendleft(reversed(loaded))

    def clear(self) -> None:
        self._batches.clear()
