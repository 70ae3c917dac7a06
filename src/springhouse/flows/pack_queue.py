"""Which row packs wait on an edge?

A queue has one producer and one consumer, and holds at most `limit` row packs. A queue drops no
packs: the producer stalls before the queue could overflow (000 section 3.1). The end of the data is
a message behind the last pack and needs no room.

Invariants: packs <= limit; rows and size are the sums over the waiting packs; no pack follows the
end.
"""

from collections import deque

import pyarrow as pa


class PackQueue:
    """The row packs on one edge, oldest first."""

    __slots__ = ("_waiting", "closed", "limit", "most", "rows", "size")

    def __init__(self, limit: int | None) -> None:
        assert limit is None or limit >= 1, "a queue has room for at least one pack"
        self.limit = limit
        self.rows = 0
        self.size = 0
        self.most = 0
        self.closed = False
        self._waiting: deque[tuple[pa.RecordBatch, int]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def has_room(self) -> bool:
        """Whether the queue can take one more pack."""
        return self.limit is None or len(self._waiting) < self.limit

    @property
    def has_message(self) -> bool:
        """Whether there is a pack to take, or the end of the data."""
        return bool(self._waiting) or self.closed

    def put(self, pack: pa.RecordBatch, size: int) -> None:
        """Add a pack, which has `size` bytes."""
        assert self.has_room, "nothing is dropped: a full queue stalls its producer"
        assert not self.closed, "nothing comes after the end"
        self._waiting.append((pack, size))
        self.rows += pack.num_rows
        self.size += size
        if len(self._waiting) > self.most:
            self.most = len(self._waiting)

    def take(self) -> tuple[pa.RecordBatch, int] | None:
        """The oldest pack and its size in bytes, or None for the end of the data."""
        if not self._waiting:
            assert self.closed, "nothing waits here"
            return None
        pack, size = self._waiting.popleft()
        self.rows -= pack.num_rows
        self.size -= size
        return pack, size
