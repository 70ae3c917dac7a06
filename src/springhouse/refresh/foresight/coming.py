"""Which jobs are about to be released?

Lookahead needs this answer (paper 001, section 3.1): for each lane, the tables in the order of
their next expected arrival, one period after the last. The paper does not say when data of a
derived table is expected. Here it is expected one period after its trailing edge last moved.
Lookahead does not wait for an arrival that is overdue.
"""

from heapq import heappop, heappush

from springhouse.refresh.foresight.lookahead import Prospect
from springhouse.refresh.table.scheduled_table import ScheduledTable


class Coming:
    """The next expected arrivals of one lane."""

    __slots__ = ("_heap", "_lane")

    def __init__(self, lane: int) -> None:
        self._lane = lane
        self._heap: list[tuple[float, int, ScheduledTable]] = []

    def expect(self, table: ScheduledTable) -> None:
        """Note the next expected arrival of a table, if it is known."""
        at = table.expected_arrival
        if at is not None:
            heappush(self._heap, (at, table.order, table))

    def between(self, now: float, until: float, most: int) -> list[Prospect]:
        """The next few expected jobs, of tables without a waiting or running job."""
        heap = self._heap
        put_back: list[tuple[float, int, ScheduledTable]] = []
        prospects: list[Prospect] = []
        while heap and heap[0][0] <= until and len(prospects) < most:
            each = heappop(heap)
            at, _, table = each
            if table.expected_arrival != at or at <= now or table.lane != self._lane:
                continue
            put_back.append(each)
            if table.running is None and not table.pending and not table.leaving:
                period = table.period_seconds
                seconds = table.cost.seconds(period)
                prospects.append(Prospect(table.priority * period, seconds, at))
        for each in put_back:
            heappush(heap, each)
        return prospects
