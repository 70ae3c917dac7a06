"""A better job comes soon: is it better to start another job now, or none?

There are two rules. Lookahead (paper 001, section 3.1) lets other jobs fill the time until a better
job comes. `last_track` asks whether a long refresh is worth the last free track.
"""

from springhouse.refresh.foresight.last_track import (
    blocked_seconds,
    is_worth_it,
    remaining_seconds,
)
from springhouse.refresh.foresight.lookahead import Prospect, look_ahead
from springhouse.refresh.policy import Policy
from springhouse.refresh.promises.urgency import Urgency
from springhouse.refresh.ranking.basic import Basic
from springhouse.refresh.table.scheduled_table import Entry, ScheduledTable
from springhouse.refresh.tracks.lanes import Lanes

_LOOKED_AT = 8


class Foresight:
    """Compares a job that could start with running and expected jobs."""

    def __init__(self, policy: Policy, lanes: Lanes) -> None:
        self._looks_ahead = policy.basic is Basic.LOOKAHEAD
        self._weighs = policy.weigh_last_track
        self._lanes = lanes
        self.on_tracks: dict[int, ScheduledTable] = {}

    def expect_next(self, table: ScheduledTable) -> None:
        """Data came for a table: note its next expected arrival, for Lookahead."""
        if self._looks_ahead:
            table.expected_arrival = table.pace.next_arrival(table.period_seconds)
            self._lanes.coming[table.lane].expect(table)

    def ended(self, table: ScheduledTable, track: int) -> None:
        """A refresh has left its track."""
        if self.on_tracks.get(track) is table:
            del self.on_tracks[track]

    def weighed(self, best: Entry, lane: int, free: int, now: float) -> Entry | None:
        """The job to start, the best of a lane or another one; None if waiting is better."""
        if self._looks_ahead:
            best = self._looked_ahead(best, lane, now)
        if free > 1 or not self.on_tracks or not self._weighs or self._lanes.busy >= 1.0:
            return best
        remaining = min(
            remaining_seconds(s.last_started, s.part_seconds + s.error.seconds, now)
            for s in self.on_tracks.values()
        )
        if self._takes_last_track(best, remaining):
            return best
        others = (e for e in self._lanes.queues[lane].best(_LOOKED_AT) if e[0] is Urgency.NONE)
        return next((each for each in others if self._takes_last_track(each, remaining)), None)

    def _takes_last_track(self, entry: Entry, remaining: float) -> bool:
        table = entry[4]
        blocked = blocked_seconds(table.part_seconds, remaining)
        weight = self._lanes.weight_of_shorter(blocked)
        return is_worth_it(table.priority * table.freshness_delta, blocked, weight)

    def _looked_ahead(self, best: Entry, lane: int, now: float) -> Entry:
        """The job to start by Lookahead: the best, or one that ends before a better one comes."""
        horizon = now + best[4].expected_seconds
        coming = self._lanes.coming[lane].between(now, horizon, _LOOKED_AT)
        if not coming:
            return best
        entries = [e for e in self._lanes.queues[lane].best(_LOOKED_AT) if e[0] is Urgency.NONE]
        chosen, _ = look_ahead([_prospect(each[4]) for each in entries], coming, now)
        return entries[chosen]


def _prospect(table: ScheduledTable) -> Prospect:
    return Prospect(table.priority * table.freshness_delta, table.expected_seconds)
