"""In which lane does a table wait, and when are the tracks divided again?

Each lane of a layout has a queue of its waiting jobs. A new layout is made when enough tables came,
went, or changed their speed by a quarter (paper 001, section 3.2). With few tables this is at once.
With many it is only after a number of changes in proportion, so that the cost per change stays
small. Until then a new table joins the lane of tables with similar periods.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from springhouse.refresh.foresight.coming import Coming
from springhouse.refresh.policy import TrackRule
from springhouse.refresh.ranking.basic import whittle
from springhouse.refresh.ranking.job_queue import JobQueue
from springhouse.refresh.ranking.patience import patience_at
from springhouse.refresh.table.scheduled_table import ScheduledTable
from springhouse.refresh.tracks.track_layout import TrackLayout, TrackLoad

DRIFT = 0.25
"""A value has changed if it differs by more than this share."""

_CLEARLY = 1.25
_IMPATIENT = 0.05
_PATIENCE = 32
_MANY = 1000


class Lanes:
    """The layout of the tracks, and the waiting jobs of each lane."""

    __slots__ = (
        "_below",
        "_indexes",
        "_lengths",
        "_rule",
        "_weights",
        "busy",
        "coming",
        "data_share",
        "layout",
        "moves",
        "patience",
        "queues",
        "tracks",
    )

    def __init__(self, rule: TrackRule, tracks: int | Iterable[int]) -> None:
        self._rule = rule
        self.tracks = track_ids(tracks)
        self.moves = 0
        # The share of the tracks that all refreshes need if each loads the data of one interval.
        self.busy = 0.0
        # The share of the tracks that loading the data takes in any case.
        self.data_share = 0.0
        self.layout: TrackLayout = rule.layout([], self.tracks)
        self.queues = [JobQueue() for _ in self.layout.lanes]
        self.coming = [Coming(lane) for lane in range(len(self.queues))]
        self.patience = 1.0
        self._indexes: list[float] = []
        self._below: list[float] = [0.0]
        self._lengths: list[float] = []
        self._weights: list[float] = [0.0]

    def welcome(self, table: ScheduledTable) -> None:
        """Put a table without a lane into the lane of similar tables."""
        if table.name not in self.layout.lane_of and table.entry is None:
            table.lane = self.layout.nearest(table.period_seconds)

    def note_speed(self, table: ScheduledTable) -> bool:
        """Whether a table has changed its speed since the last layout."""
        load = table.cost.seconds(table.interval_seconds)
        if abs(load - table.load_seconds) <= DRIFT * table.load_seconds:
            return False
        table.load_seconds = load
        self.moves += 1
        return True

    def is_time(self, tables: int) -> bool:
        """Whether enough has changed to divide the tracks again."""
        return self.moves * (_PATIENCE if tables < _MANY else _PATIENCE / 4) > tables

    def lay_out(self, tables: Sequence[ScheduledTable]) -> list[ScheduledTable]:
        """Divide the tracks among these tables; returns the tables that changed lanes."""
        self.moves = 0
        for table in tables:
            table.load_seconds = table.cost.seconds(table.interval_seconds)
        loads = [TrackLoad(s.name, s.interval_seconds, s.load_seconds) for s in tables]
        self.busy = sum(load.utilisation for load in loads) / max(len(self.tracks), 1)
        self.layout = self._rule.layout(loads, self.tracks)
        for lane in range(len(self.queues), len(self.layout.lanes)):
            self.queues.append(JobQueue())
            self.coming.append(Coming(lane))
        moved = []
        for table in tables:
            lane = self.layout.lane_of[table.name]
            if lane == table.lane:
                continue
            self.queues[table.lane].leave(table)
            table.lane = lane
            moved.append(table)
            self.coming[lane].expect(table)
        del self.queues[len(self.layout.lanes) :], self.coming[len(self.layout.lanes) :]
        self._note_weights(tables)
        return moved

    def _note_weights(self, tables: Sequence[ScheduledTable]) -> None:
        # Without tables that were never refreshed: a guess about their data must not cost them
        # their turn.
        learned = [s for s in tables if s.cost.count] or tables
        self.data_share = sum(s.cost.cost.beta for s in learned) / max(len(self.tracks), 1)
        patience = patience_at(self.data_share)
        if abs(patience - self.patience) > _IMPATIENT:
            self.patience = patience
        shortest = sorted((s.load_seconds, s.own_priority) for s in tables)
        self._lengths = [seconds for seconds, _ in shortest]
        self._weights = [0.0, *accumulate(priority for _, priority in shortest)]
        worst = sorted((self._usual_index(s), s.own_priority) for s in tables)
        self._indexes = [index for index, _ in worst]
        self._below = [0.0, *accumulate(priority for _, priority in worst)]

    def _usual_index(self, table: ScheduledTable) -> float:
        interval = table.interval_seconds
        ahead = table.ahead_alpha + table.ahead_beta * interval
        seconds = max(table.load_seconds + ahead, 1e-9)
        return float(table.priority * interval ** (1.0 + self.patience) / seconds)

    def index(self, table: ScheduledTable) -> float:
        """The index of a table with all its waiting data."""
        return -whittle(table, self.patience)[0]

    def weight_of_better(self, index: float) -> float:
        """The sum of the priorities of all tables whose usual index is clearly higher."""
        return self._below[-1] - self._below[bisect_right(self._indexes, index * _CLEARLY)]

    def weight_of_shorter(self, seconds: float) -> float:
        """The sum of the priorities of all tables with shorter refreshes."""
        return self._weights[bisect_left(self._lengths, seconds)]


def track_ids(tracks: int | Iterable[int]) -> tuple[int, ...]:
    return tuple(range(1, tracks + 1) if isinstance(tracks, int) else tracks)
