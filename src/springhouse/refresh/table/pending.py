"""What has arrived for a table and is not reflected in it?

Batches, in the order of their time stamps. Pending updates merge (001 section 2.4): one refresh
takes everything up to a time stamp, always the oldest first, so that data is loaded in
chronological order. What was taken is put back when the refresh fails: nothing is ever dropped.
A batch that does not reach beyond what is there (late records) still has to be loaded.
"""

from collections import deque
from typing import NamedTuple

from springhouse.units import Instant

_MOST_BATCHES = 1024


class PendingBatch(NamedTuple):
    """Data up to `freshness`: `since` when it reached the warehouse, `released` this table."""

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
        """The time stamp up to which everything that waits would bring the table."""
        return self._batches[-1].freshness

    @property
    def oldest(self) -> PendingBatch:
        """The batch that has waited longest."""
        return self._batches[0]

    def arrived(self, freshness: Instant, since: Instant, released: Instant) -> bool:
        """Whether this is news: something where nothing waited, or data that reaches further.

        Or what waits is older than it was known to be, or has to count as older: it hurries.
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
                # The wait of the older batch stands for both: lag is never told too small.
                batches[-1] = last._replace(freshness=freshness)
                return True
        batches.append(PendingBatch(freshness, since, released))
        return True

    def reach(self, limit: Instant) -> Instant:
        """The end of the last batch that ends by `limit`; that of the oldest if none does."""
        reached = self._batches[0].freshness
        for batch in self._batches:
            if batch.freshness > limit:
                break
            reached = batch.freshness
        return reached

    def take(self, until: Instant) -> list[PendingBatch]:
        """The batches that a refresh up to `until` loads whole, oldest first."""
        batches, loaded = self._batches, []
        while batches and batches[0].freshness <= until:
            loaded.append(batches.popleft())
        return loaded

    def put_back(self, loaded: list[PendingBatch]) -> None:
        """Wait again for what a refresh took and did not load."""
        batches = self._batches
        if loaded and batches and batches[-1].freshness < loaded[-1].freshness:
            # Late records came meanwhile; what waits still reaches as far as before.
            batches[-1] = batches[-1]._replace(freshness=loaded[-1].freshness)
        batches.extendleft(reversed(loaded))

    def clear(self) -> None:
        self._batches.clear()
