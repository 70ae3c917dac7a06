"""Which refresh starts now, and on which track?

A `Scheduler` is told what happens (a table is declared, data arrives for it, a refresh ends) and is
asked what to start. It has no clock, no threads and, but for the dice it is given, no chance: the
same events bring the same orders, in a House and in a simulator.

    scheduler = Scheduler(tracks=2)
    scheduler.declare(Table("orders", period_seconds=Seconds(5.0)))
    scheduler.arrived("orders", now, freshness=newest_time_stamp)
    for start in scheduler.starts(free_tracks, now): ...      # these are under way from here on
    scheduler.finished("orders", now, seconds=0.8, rows=1200)
    sleep_until(scheduler.next_change())

Invariants: a table has at most one refresh under way; a track has at most one refresh; a refresh
takes the oldest data first; what was taken by a refresh that failed waits again.

All that happens to a table, and every start, is logarithmic in the number of tables. The layout of
tracks is made anew when enough tables came, went, or changed their speed by a quarter: at once for
a few tables, and for many in proportion to their number, so that it costs little per change; until
then a newcomer joins the lane of those with similar periods.
"""

from collections.abc import Collection, Iterable
from math import inf

from springhouse.refresh.basic import KEYS, NUMBERS, Basic, Key, race
from springhouse.refresh.chopping import chopped, most_at_once
from springhouse.refresh.coming import Coming
from springhouse.refresh.cost import LearnedCost, TypicalRefresh
from springhouse.refresh.hierarchy import Hierarchy
from springhouse.refresh.inherit import pass_on
from springhouse.refresh.job import Start
from springhouse.refresh.lookahead import Prospect, look_ahead
from springhouse.refresh.policy import Policy
from springhouse.refresh.promise import Urgency
from springhouse.refresh.queues import Queue, Timers
from springhouse.refresh.standing import Entry, Standing
from springhouse.refresh.table import Table
from springhouse.refresh.tracks import Layout, Load
from springhouse.refresh.waiting import Known, Waiting
from springhouse.units import Dice, Instant, RowCount, Seconds

_DRIFT = 0.25
_PATIENCE = 32
_MANY = 1000
_LOOKED_AT = 8


class Scheduler:
    """The decisions of one House, or of one pretend House."""

    def __init__(
        self, tracks: int | Iterable[int], policy: Policy | None = None, dice: Dice | None = None
    ) -> None:
        self.policy = policy or Policy()
        self.tracks = _ids(tracks)
        self._dice = dice or Dice(0)
        self._hierarchy = Hierarchy()
        self._standings: dict[str, Standing] = {}
        self._declared = 0
        self._typical = TypicalRefresh()
        self._timers = Timers()
        self._changed: dict[str, None] = {}
        self._moves = 0
        self._ordinary = KEYS.get(self.policy.basic)
        self._looks_ahead = self.policy.basic is Basic.LOOKAHEAD
        self._layout: Layout = self.policy.tracks.layout([], self.tracks)
        self._queues = [Queue() for _ in self._layout.lanes]
        self._coming = [Coming(lane) for lane in range(len(self._queues))]

    # --- What happens ---------------------------------------------------------------------------

    def declare(self, table: Table, freshness: Instant | None = None) -> None:
        """A table is there, or is declared anew; `freshness` is what it holds already."""
        self._touch_neighbours(table.name)
        self._hierarchy.put(table)
        self._touch_neighbours(table.name)
        standing = self._standings.get(table.name)
        if standing is None:
            prior = table.cost or self._typical.cost(table.period_seconds or 1.0)
            standing = Standing(table, self._declared, prior)
            self._declared += 1
            self._standings[table.name] = standing
        elif table.cost is not None and table.cost != standing.declared_cost:
            standing.cost = LearnedCost(table.cost)
            standing.declared_cost = table.cost
        standing.leaving = False
        standing.promised = table.promise_seconds is not None
        if freshness is not None:
            standing.freshness = freshness
        self._moves += 1

    def drop(self, name: str) -> None:
        """A table is gone; a refresh of it that is under way still holds its track."""
        if name not in self._hierarchy.tables:
            return
        self._touch_neighbours(name)
        self._hierarchy.remove(name)
        self._changed.pop(name, None)
        standing = self._standings[name]
        standing.pending.clear()
        standing.leaving = True
        self._queues[standing.lane].leave(standing)
        self._timers.set(standing, None, 0)
        if standing.running is None:
            del self._standings[name]
        self._moves += 1

    def arrived(
        self,
        name: str,
        now: Instant,
        *,
        freshness: Instant | None = None,
        since: Instant | None = None,
    ) -> None:
        """Data up to the time stamp `freshness` could be loaded; it merges with what waits.

        Without one, the data is taken to reach up to now, once until it is loaded. `since` is when
        the data came into the warehouse, if it was before it came within reach of this table. A
        table that holds nothing yet counts as one period behind its first data.
        """
        standing = self._find(name)
        if standing is None or standing.leaving:
            return
        pending = standing.pending
        if freshness is None:
            if pending:
                return
            freshness = now
        if not pending.arrived(freshness, now if since is None else since, now):
            return
        if standing.is_base or self._looks_ahead:
            self._learn_pace(standing, now)
        if standing.freshness is None:
            standing.freshness = freshness - standing.period_seconds
        if standing.running is None:
            self._rank(standing, now)

    def withdrawn(self, name: str, now: Instant) -> None:
        """Nothing is wanted of a table any more: somebody else did it, or there was nothing."""
        standing = self._find(name)
        if standing is not None:
            standing.pending.clear()
            self._rank(standing, now)

    def finished(
        self,
        name: str,
        now: Instant,
        *,
        seconds: float | None = None,
        rows: RowCount | None = None,
        freshness: Instant | None = None,
    ) -> None:
        """A refresh ended well; its cost is learned if `seconds` are told.

        `freshness` is what the table reflects now, if that is not what the order asked for.
        """
        standing = self._find(name)
        if standing is None or standing.running is None:
            return
        start, standing.running = standing.running, None
        asked = start.until if start.until is not None else now
        reached = asked if freshness is None else freshness
        before = standing.freshness if standing.freshness is not None else reached
        if reached < asked and reached > before:
            # Some of it could not be loaded yet, and waits on.
            standing.pending.put_back([b for b in standing.taken if b.freshness > reached])
        standing.freshness = max(before, reached)
        standing.retry_at = -inf
        if seconds is not None:
            if standing.cost.count:
                standing.error.observe(seconds - start.expected_seconds)
            self._learn(standing, max(reached - before, 0.0), seconds, rows)
        self._ended(standing, now)

    def failed(self, name: str, now: Instant, retry_at: Instant) -> None:
        """A refresh failed: what it took waits again, and may start at `retry_at`."""
        standing = self._find(name)
        if standing is None or standing.running is None:
            return
        standing.running = None
        standing.retry_at = retry_at
        if not standing.leaving:
            standing.pending.put_back(standing.taken)
        self._ended(standing, now)

    def remember(
        self, name: str, *, loaded: Seconds, seconds: float, rows: RowCount | None = None
    ) -> None:
        """Learn from a refresh of the past, that loaded so many seconds of data."""
        standing = self._find(name)
        if standing is not None:
            self._learn(standing, loaded, seconds, rows)

    def resize(self, tracks: int | Iterable[int]) -> None:
        """There are more tracks, or fewer; what runs on one that is gone runs on."""
        self.tracks = _ids(tracks)
        self._moves += len(self._standings)

    # --- What to do -----------------------------------------------------------------------------

    def starts(self, free_tracks: Collection[int], now: Instant) -> list[Start]:
        """The refreshes to start now. They count as under way until they finish or fail."""
        self._wake(now)
        orders: list[Start] = []
        if not free_tracks:
            return orders
        available, queues, blocked = set(free_tracks), self._queues, 0
        while available:
            best, lane = None, 0
            for number, queue in enumerate(queues):
                if not len(queue) or blocked >> number & 1:
                    continue
                head = queue.head()
                if head is not None and (best is None or head < best):
                    best, lane = head, number
            if best is None:
                break
            track = self._layout.track_for(lane, available, queues)
            if track is None:
                # Tracks only become fewer in this loop: the rest of the lane waits as well.
                blocked |= 1 << lane
                continue
            if self._looks_ahead and best[0] is Urgency.NONE:
                best = self._looked_ahead(best, lane, now)
            available.discard(track)
            orders.append(self._started(best, track, now))
        return orders

    def order(self, now: Instant) -> list[Waiting]:
        """Everything that waits: what may start, best first, and then what may not yet."""
        self._wake(now)
        held: list[Standing] = []
        released: list[Entry] = []
        for standing in self._standings.values():
            if standing.entry is not None:
                released.append(standing.entry)
            elif standing.pending and standing.running is None:
                held.append(standing)
        held.sort(key=lambda standing: (standing.ready_at, standing.order))
        return [
            self._waiting(entry[4], *self._number(entry, now)) for entry in sorted(released)
        ] + [self._waiting(s, s.ready_at - now, "seconds until it is released") for s in held]

    def next_change(self, now: Instant) -> Instant | None:
        """When to ask again even if nothing happens; None if only an event changes anything."""
        self._wake(now)
        at = self._timers.next()
        return None if at is None else Instant(at)

    def known(self, name: str, now: Instant) -> Known | None:
        """What is known of a table; None if it is not declared."""
        self._wake(now)
        standing = self._find(name)
        if standing is None or standing.leaving:
            return None
        return Known(
            None if standing.freshness is None else Instant(standing.freshness),
            standing.priority,
            Seconds(standing.period_seconds),
            standing.cost.cost,
            Seconds(
                standing.expected_seconds
                if standing.entry is not None
                else standing.cost.seconds(standing.period_seconds)
            ),
            Seconds(standing.error.seconds),
            self._layout.lanes[standing.lane].homes,
            standing.running.track if standing.running is not None else None,
        )

    def layout(self, now: Instant) -> Layout:
        """Which tables may use which tracks."""
        self._wake(now)
        return self._layout

    # --- Ranks ----------------------------------------------------------------------------------

    def _rank(self, standing: Standing, now: float) -> None:
        """Put a table in its place among those that wait, or take it away."""
        if self._changed:
            self._settle(now)
        queue, pending = self._queues[standing.lane], standing.pending
        if standing.running is not None or not pending:
            queue.leave(standing)
            self._timers.set(standing, None, 0)
            return
        if not standing.cost.count and standing.declared_cost is None:
            standing.cost = LearnedCost(self._typical.cost(standing.period_seconds))
        period, freshness = standing.period_seconds, standing.freshness
        assert freshness is not None, "it is known from the first arrival on"
        most = most_at_once(self.policy.chopping, period, standing.cost.cost, standing.allowance)
        standing.until = chopped(pending, freshness, most)
        # Late records make nothing fresher, and still have to be loaded: they count as a period.
        delta = standing.until - freshness
        standing.freshness_delta = delta = delta if delta > 0 else period
        standing.expected_seconds = standing.cost.seconds(delta)
        standing.released = pending.oldest.released
        urgency, latest, timer = self._urgency(standing, now)
        if standing.timer is not timer:
            self._timers.set(standing, timer, len(self._standings))
        if urgency is None:
            queue.leave(standing)
            return
        key: Key
        if urgency is Urgency.ABOUT_TO_BREAK:
            key = latest, 0.0
        elif self._ordinary is not None:
            key = self._ordinary(standing)
        else:
            key = race(queue.passed, self._dice)
        queue.push((urgency, key[0], key[1], standing.order, standing))

    def _urgency(
        self, standing: Standing, now: float
    ) -> tuple[Urgency | None, float, float | None]:
        """How urgent a job is (None: not released), its latest start, and when that changes."""
        ready = max(standing.retry_at, standing.released)
        if standing.allowance is None or not self.policy.heed_promises:
            standing.ready_at = ready
            return (None, 0.0, ready) if now < ready else (Urgency.NONE, 0.0, None)
        breaks = standing.pending.oldest.since + standing.allowance
        latest = breaks - standing.expected_seconds - standing.error.seconds
        if standing.promised and standing.cost.count:
            ready = max(ready, latest - standing.wait.seconds)
        standing.ready_at = ready
        if now < ready:
            return None, latest, ready
        if now < latest:
            return Urgency.NONE, latest, latest
        if now < breaks:
            return Urgency.ABOUT_TO_BREAK, latest, breaks
        return Urgency.BROKEN, latest, None

    def _number(self, entry: Entry, now: float) -> tuple[float, str]:
        """The number that decides about a job, and what it is."""
        if entry[0] is Urgency.ABOUT_TO_BREAK:
            standing = entry[4]
            breaks = standing.pending.oldest.since + (standing.allowance or 0.0)
            return breaks - now, "seconds until its promise breaks"
        name, sign = NUMBERS[self.policy.basic]
        why = f"promise broken, {name}" if entry[0] is Urgency.BROKEN else name
        return sign * entry[1], why

    def _wake(self, now: float) -> None:
        if self._changed or (self._moves and self._is_time_to_lay_out()):
            self._settle(now)
        for standing in self._timers.due(now):
            self._rank(standing, now)

    def _started(self, entry: Entry, track: int, now: Instant) -> Start:
        standing = entry[4]
        queue, pending = self._queues[standing.lane], standing.pending
        since, until = pending.oldest.since, standing.until
        number, why = self._number(entry, now)
        start = Start(
            standing.name, track, until, since, Seconds(standing.expected_seconds), number, why
        )
        if standing.promised and standing.allowance is not None:
            # No more than the promise: there is nothing to gain from a release before the arrival.
            standing.wait.observe(min(now - standing.ready_at, standing.allowance))
        queue.leave(standing)
        if entry[0] is Urgency.NONE:
            queue.passed = entry[1]
        self._timers.set(standing, None, 0)
        standing.taken = pending.take(until)
        standing.running = start
        standing.last_started = now
        return start

    def _ended(self, standing: Standing, now: Instant) -> None:
        standing.taken = []
        if standing.leaving:
            del self._standings[standing.name]
        elif standing.pending:
            self._rank(standing, now)

    def _waiting(self, standing: Standing, number: float, why: str) -> Waiting:
        return Waiting(
            standing.name,
            standing.pending.oldest.since,
            Instant(standing.ready_at),
            Seconds(standing.freshness_delta),
            Seconds(standing.expected_seconds),
            number,
            why,
            self._layout.lanes[standing.lane].homes,
        )

    # --- Lookahead ------------------------------------------------------------------------------

    def _looked_ahead(self, best: Entry, lane: int, now: float) -> Entry:
        """The job to start instead of the best, if one that is better still is about to come."""
        horizon = now + best[4].expected_seconds
        coming = self._coming[lane].between(now, horizon, _LOOKED_AT)
        if not coming:
            return best
        entries = [e for e in self._queues[lane].best(_LOOKED_AT) if e[0] is Urgency.NONE]
        chosen, _ = look_ahead([_prospect(each[4]) for each in entries], coming, now)
        return entries[chosen]

    # --- What is learned ------------------------------------------------------------------------

    def _learn_pace(self, standing: Standing, now: Instant) -> None:
        standing.pace.arrived(now)
        if standing.is_base:
            declared = self._hierarchy.tables[standing.name].period_seconds or 1.0
            period = standing.pace.period(declared)
            if abs(period - standing.period_seconds) > _DRIFT * standing.period_seconds:
                self._changed[standing.name] = None
        if self._looks_ahead:
            standing.expected_arrival = standing.pace.next_arrival(standing.period_seconds)
            self._coming[standing.lane].expect(standing)

    def _learn(
        self, standing: Standing, loaded: float, seconds: float, rows: RowCount | None
    ) -> None:
        standing.cost.observe(loaded, seconds, rows)
        self._typical.observe(seconds)
        if not standing.leaving and self._note_speed(standing) and standing.allowance is not None:
            self._changed[standing.name] = None

    # --- What is inherited, and the layout ------------------------------------------------------

    def _find(self, name: str) -> Standing | None:
        standing = self._standings.get(name)
        if standing is None:
            job = self._hierarchy.job_of(name)
            return None if job is None else self._standings.get(job)
        return standing

    def _touch_neighbours(self, name: str) -> None:
        if name in self._hierarchy.tables:
            for each in (
                name,
                *self._hierarchy.upstream(name),
                *self._hierarchy.downstream(name),
            ):
                self._changed[each] = None

    def _settle(self, now: float) -> None:
        """Pass on what changed, and lay the tracks out anew if it is time."""
        changed, self._changed = self._changed, {}
        touched = pass_on(changed, self._hierarchy, self._standings, self.policy.inheritance)
        for name in touched:
            self._note_speed(self._standings[name])
        if self._is_time_to_lay_out():
            self._lay_out(touched, now)
            return
        for name in touched:
            standing = self._standings[name]
            if name not in self._layout.lane_of and standing.entry is None:
                standing.lane = self._layout.nearest(standing.period_seconds)
            if standing.pending:
                self._rank(standing, now)

    def _note_speed(self, standing: Standing) -> bool:
        """Whether a table has changed its speed since the tracks were laid out."""
        load = standing.cost.seconds(standing.period_seconds)
        if abs(load - standing.load_seconds) <= _DRIFT * standing.load_seconds:
            return False
        standing.load_seconds = load
        self._moves += 1
        return True

    def _is_time_to_lay_out(self) -> bool:
        tables = len(self._standings)
        return self._moves * (_PATIENCE if tables < _MANY else _PATIENCE / 4) > tables

    def _lay_out(self, touched: Iterable[str], now: float) -> None:
        """Divide the tracks anew; who has another lane than before, or was touched, ranks again."""
        self._moves = 0
        here = [self._standings[name] for name in self._hierarchy.tables]
        for standing in here:
            standing.load_seconds = standing.cost.seconds(standing.period_seconds)
        loads = [Load(s.name, s.period_seconds, s.load_seconds) for s in here]
        self._layout = self.policy.tracks.layout(loads, self.tracks)
        lane_of = self._layout.lane_of
        for lane in range(len(self._queues), len(self._layout.lanes)):
            self._queues.append(Queue())
            self._coming.append(Coming(lane))
        moved = dict.fromkeys(touched)
        for standing in here:
            lane = lane_of[standing.name]
            if lane == standing.lane:
                continue
            self._queues[standing.lane].leave(standing)
            standing.lane = lane
            moved[standing.name] = None
            self._coming[lane].expect(standing)
        del self._queues[len(self._layout.lanes) :], self._coming[len(self._layout.lanes) :]
        for name in moved:
            if self._standings[name].pending:
                self._rank(self._standings[name], now)


def _ids(tracks: int | Iterable[int]) -> tuple[int, ...]:
    return tuple(range(1, tracks + 1) if isinstance(tracks, int) else tracks)


def _prospect(standing: Standing) -> Prospect:
    return Prospect(standing.priority * standing.freshness_delta, standing.expected_seconds)
