"""Which job is next, and when does this change by itself?

Both answers come from heaps. An outdated entry stays in its heap and is skipped at the head, so a
change costs one push. A heap of mostly outdated entries is cleaned. So every operation is
logarithmic in the number of tables, in whatever order tables change.
"""

from heapq import heapify, heappop, heappush

from springhouse.refresh.table.scheduled_table import Entry, ScheduledTable

_LEFTOVERS = 64


class JobQueue:
    """The released jobs of one lane, best first."""

    __slots__ = ("_heap", "_waiting", "passed")

    def __init__(self) -> None:
        self._heap: list[Entry] = []
        self._waiting = 0
        self.passed = 0.0

    def __len__(self) -> int:
        return self._waiting

    def push(self, entry: Entry) -> None:
        """Put a job in its place; its old entry is outdated."""
        table = entry[4]
        if table.entry is None:
            self._waiting += 1
        table.entry = entry
        heappush(self._heap, entry)
        if len(self._heap) > 2 * self._waiting + _LEFTOVERS:
            self._heap = [each for each in self._heap if each[4].entry is each]
            heapify(self._heap)

    def leave(self, table: ScheduledTable) -> None:
        if table.entry is not None:
            table.entry = None
            self._waiting -= 1

    def head(self) -> Entry | None:
        """The best job; it stays in its place."""
        heap = self._heap
        while heap:
            entry = heap[0]
            if entry[4].entry is entry:
                return entry
            heappop(heap)
        return None

    def best(self, most: int) -> list[Entry]:
        """The best jobs; they stay in their places."""
        entries: list[Entry] = []
        while len(entries) < most and (entry := self.head()) is not None:
            entries.append(entry)
            heappop(self._heap)
        for entry in entries:
            heappush(self._heap, entry)
        return entries


class Timers:
    """The next moment at which the rank of each table changes by itself."""

    __slots__ = ("_heap", "_most")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, ScheduledTable]] = []
        self._most = _LEFTOVERS

    def set(self, table: ScheduledTable, at: float | None) -> None:
        """Wake a table at this moment, and no longer at the moment set before."""
        if at is None or table.timer == at:
            table.timer = at
            return
        table.timer = at
        heappush(self._heap, (at, table.order, table))
        if len(self._heap) > self._most:
            self._heap = [each for each in self._heap if each[2].timer == each[0]]
            self._most = 2 * len(self._heap) + _LEFTOVERS
            heapify(self._heap)

    def next(self) -> float | None:
        """When the first table wakes."""
        heap = self._heap
        while heap:
            if heap[0][2].timer == heap[0][0]:
                return heap[0][0]
            heappop(heap)
        return None

    def due(self, now: float) -> list[ScheduledTable]:
        """The tables that wake by now."""
        heap = self._heap
        if not heap or heap[0][0] > now:
            return []
        tables = []
        while heap and heap[0][0] <= now:
            at, _, table = heappop(heap)
            if table.timer == at:
                table.timer = None
                tables.append(table)
        return tables
