"""Which place does a job have among all waiting jobs?

A job is ranked when something happens to its table, and when its urgency changes by itself. It
changes when the job is released just in time, when its promise is about to break (because of its
own latest start, or because of the crowd that comes due with it), and when the promise is broken.
Between these moments its rank stays the same.

Chopping (paper 001, section 3.4) changes how much a job loads, but not its rank: the benefit is
that of all waiting data. Ranked by its part alone, a table that is far behind would have the rank
of one that is three periods behind, although only its own turn can make it fresh.
"""

from math import inf

from springhouse.refresh.policy import Policy
from springhouse.refresh.promises.crowd import Crowd
from springhouse.refresh.promises.urgency import Urgency
from springhouse.refresh.ranking.basic import KEYS, NUMBERS, Basic, Key, race, whittle
from springhouse.refresh.ranking.chopping import Chopping, chop, part_that_pays
from springhouse.refresh.ranking.job_queue import Timers
from springhouse.refresh.table.load_cost import LearnedCost, TypicalRefresh
from springhouse.refresh.table.scheduled_table import Entry, ScheduledTable
from springhouse.refresh.tracks.lanes import Lanes
from springhouse.units import Dice, Instant

_BY_DEADLINE = (Urgency.ABOUT_TO_BREAK, Urgency.CROWDED)
"""Among jobs with these urgencies the earliest latest start is first, whatever the benefit."""


class Ranks:
    """The places of all waiting jobs, and when they change by themselves."""

    def __init__(self, policy: Policy, lanes: Lanes, typical: TypicalRefresh, dice: Dice) -> None:
        self.crowd = Crowd(len(lanes.tracks))
        self._policy = policy
        self._lanes = lanes
        self._typical = typical
        self._dice = dice
        self._timers = Timers()
        self._ordinary = KEYS.get(policy.basic)
        # The recent benefit of a second of a track.
        self.price = 0.0
        self._by_index = policy.basic is Basic.WHITTLE

    def wake(self, now: float) -> None:
        """Rank the jobs again whose urgency has changed by itself."""
        for table in self._timers.due(now):
            self.rank(table, now)
        if self.crowd.wake() <= now:
            for table in self.crowd.hurried(now):
                table.crowded = True
                self.rank(table, now)

    def next_change(self) -> Instant | None:
        """When a rank changes by itself."""
        at, crowded = self._timers.next(), self.crowd.wake()
        first = crowded if at is None else min(at, crowded)
        return Instant(first) if first < inf else None

    def leave(self, table: ScheduledTable) -> None:
        """Remove a job that no longer waits."""
        self._lanes.queues[table.lane].leave(table)
        self.crowd.leave(table)
        self._timers.set(table, None)

    def rank(self, table: ScheduledTable, now: float) -> None:
        """Put a table in its place among the waiting ones, or remove it."""
        if table.running is not None or not table.pending:
            self.leave(table)
            return
        self._measure(table)
        urgency, latest, timer = self._urgency(table, now)
        if table.timer is not timer:
            self._timers.set(table, timer)
        queue = self._lanes.queues[table.lane]
        if urgency is None:
            queue.leave(table)
            return
        key = (latest, 0.0) if urgency in _BY_DEADLINE else self._key(table, queue.passed)
        queue.push((urgency, key[0], key[1], table.order, table))

    def _measure(self, table: ScheduledTable) -> None:
        """Note the benefit of a table's next refresh, the end of its part, and its seconds."""
        if not table.cost.count and table.declared_cost is None:
            table.cost = LearnedCost(self._typical.cost())
        period, freshness = table.period_seconds, table.freshness
        assert freshness is not None, "it is known from the first arrival on"
        pending, cost = table.pending, table.cost
        newest = until = pending.newest
        # Late records make a table no fresher, but have to be loaded, too: they count as a period.
        delta = newest - freshness
        table.freshness_delta = delta = delta if delta > 0 else period
        learned, announced = cost.seconds(delta), table.announced_seconds
        table.expected_seconds = learned if announced is None else announced
        table.part_seconds = table.expected_seconds
        chopping = self._policy.chopping
        if chopping is not None and delta > chopping.periods * period:
            until = chop(pending, freshness, self._most_at_once(table, chopping))
        table.until = until
        if until < newest:
            part = cost.seconds(until - freshness if until > freshness else period)
            table.part_seconds = part * table.expected_seconds / learned
        table.released = pending.oldest.released

    def _key(self, table: ScheduledTable, passed: float) -> Key:
        """The key of the basic algorithm; `passed` is the finish of the last winner of a race."""
        if self._by_index:
            return whittle(table, self._lanes.patience)
        if self._ordinary is not None:
            return self._ordinary(table)
        return race(passed, self._dice)

    def _most_at_once(self, table: ScheduledTable, chopping: Chopping) -> float:
        """The most seconds of data that the next refresh of a table loads."""
        pays, cost = 0.0, table.cost.cost
        if not chopping.fixed:
            lanes = self._lanes
            blocked = lanes.weight_of_better(lanes.index(table)) / len(lanes.tracks)
            pays = part_that_pays(cost, self.price, blocked, lanes.data_share)
        return chopping.most(table.period_seconds, cost, table.allowance, pays)

    def _urgency(
        self, table: ScheduledTable, now: float
    ) -> tuple[Urgency | None, float, float | None]:
        """How urgent a job is (None: not released), its latest start, and when that changes."""
        ready = max(table.retry_at, table.released)
        if table.unmade or table.wished.whole is None or not self._policy.heed_promises:
            table.ready_at = ready
            self.crowd.leave(table)
            first = table.unmade and self._policy.heed_promises
            urgency = Urgency.UNMADE if first else Urgency.NONE
            return (None, 0.0, ready) if now < ready else (urgency, 0.0, None)
        needs = table.part_seconds + table.error.seconds
        release = ready
        if table.promise is not None and table.is_known and not table.crowded:
            rested = table.pending.oldest.since + table.wished.whole
            rested = min(rested, table.due_by) - needs - table.wait.seconds
            release = max(ready, rested)
        table.ready_at = release
        if table.allowance is None:
            self.crowd.leave(table)
            return (None, 0.0, release) if now < release else (Urgency.NONE, 0.0, None)
        return self._by_deadline(table, ready, _breaks(table), needs, now)

    def _by_deadline(
        self, table: ScheduledTable, ready: float, breaks: float, needs: float, now: float
    ) -> tuple[Urgency | None, float, float | None]:
        """The same for a job with a deadline, because its promise can be kept."""
        latest, release = breaks - needs, table.ready_at
        if table.claims_from > now >= release:
            self.crowd.leave(table)
            return Urgency.NONE, latest, table.claims_from
        if now < ready or now >= latest or table.crowded:
            self.crowd.leave(table)
        else:
            self.crowd.put(table, latest)
        if now < release:
            return None, latest, release
        if now < latest:
            return Urgency.CROWDED if table.crowded else Urgency.NONE, latest, latest
        if now < breaks:
            return Urgency.ABOUT_TO_BREAK, latest, breaks
        return Urgency.BROKEN, latest, None

    def number(self, entry: Entry, now: float) -> tuple[float, str]:
        """The number that decides about a job, and the name of that number."""
        if entry[0] in _BY_DEADLINE:
            return _breaks(entry[4]) - now, "seconds until its promise breaks"
        name, sign = NUMBERS[self._policy.basic]
        said = {Urgency.UNMADE: "never made, ", Urgency.BROKEN: "promise broken, "}
        return sign * entry[1], f"{said.get(entry[0], '')}{name}"


def _breaks(table: ScheduledTable) -> float:
    """When a promise breaks: that of the table, or that of a reader that waits for it."""
    assert table.allowance is not None
    return min(table.pending.oldest.since + table.allowance, table.due_by)
