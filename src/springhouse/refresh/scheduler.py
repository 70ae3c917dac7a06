"""Which refresh starts now, and on which track?

A `Scheduler` is told what happens (a table is declared, data arrives for it, a refresh ends) and is
asked what to start. It has no clock, no threads and, but for the dice it is given, no chance: the
same events bring the same orders, in a warehouse and in a simulator.

    scheduler = Scheduler(tracks=2)
    scheduler.declare(Table("orders", period_seconds=Seconds(5.0)))
    scheduler.arrived("orders", now, freshness=newest_time_stamp)
    for start in scheduler.starts(free_tracks, now): ...      # these are under way from here on
    scheduler.finished("orders", now, seconds=0.8, rows=1200)
    sleep_until(scheduler.next_change())

A refresh may take others along that cost little once it runs (tables that read the same source).
They are started with it, on its track, whenever they wait, and end each for itself.

Invariants: a table has at most one refresh under way; a track has at most one refresh, and those
that it took along; a refresh takes the oldest data first; what was taken by a refresh that failed
waits again.

All that happens to a table, and every start, is logarithmic in the number of tables, and the layout
of tracks is made anew only now and then (`lanes`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from math import inf

from springhouse.refresh.foresight.foresight import Foresight
from springhouse.refresh.inheritance.hierarchy import Hierarchy
from springhouse.refresh.inheritance.inherit import as_reader, pass_on
from springhouse.refresh.inheritance.priority import Rule
from springhouse.refresh.job import Start
from springhouse.refresh.policy import Policy
from springhouse.refresh.promises.feasible import Finding
from springhouse.refresh.promises.grants import findings, granted
from springhouse.refresh.promises.urgency import Urgency, claims_again, left_upstream
from springhouse.refresh.ranking.basic import max_benefit
from springhouse.refresh.ranking.ranks import Ranks
from springhouse.refresh.table.load_cost import SHORTEST, LearnedCost, TypicalRefresh
from springhouse.refresh.table.scheduled_table import Entry, ScheduledTable
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.refresh.tracks.lanes import DRIFT, Lanes, track_ids
from springhouse.refresh.tracks.track_layout import TrackLayout
from springhouse.refresh.waiting import Known, Waiting
from springhouse.units import Dice, Instant, RowCount, Seconds


class Scheduler:
    """The decisions of one warehouse, or of one pretend warehouse."""

    def __init__(
        self, tracks: int | Iterable[int], policy: Policy | None = None, dice: Dice | None = None
    ) -> None:
        self.policy = policy or Policy()
        self._lanes = Lanes(self.policy.tracks, tracks)
        self._hierarchy = Hierarchy()
        self._standings: dict[str, ScheduledTable] = {}
        self._declared = 0
        self._typical = TypicalRefresh()
        self._ranks = Ranks(self.policy, self._lanes, self._typical, dice or Dice(0))
        self._foresight = Foresight(self.policy, self._lanes)
        self._changed: dict[str, None] = {}

    @property
    def tracks(self) -> tuple[int, ...]:
        return self._lanes.tracks

    # --- What happens ---------------------------------------------------------------------------

    def declare(self, table: TableProfile, freshness: Instant | None = None) -> None:
        """A table is there, or is declared anew; `freshness` is what it holds already."""
        self._touch_neighbours(table.name)
        self._hierarchy.put(table)
        self._touch_neighbours(table.name)
        standing = self._standings.get(table.name)
        if standing is None:
            prior = table.cost or self._typical.cost()
            standing = ScheduledTable(table, self._declared, prior)
            self._declared += 1
            self._standings[table.name] = standing
        elif table.cost is not None and table.cost != standing.declared_cost:
            standing.cost = LearnedCost(table.cost)
            standing.declared_cost = table.cost
        standing.leaving = False
        standing.promise = table.promise_seconds
        standing.own_priority = table.priority
        if freshness is not None:
            standing.freshness = freshness
            standing.unmade = False
        self._lanes.moves += 1

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
        self._ranks.leave(standing)
        if standing.running is None:
            del self._standings[name]
        self._lanes.moves += 1

    def arrived(
        self,
        name: str,
        now: Instant,
        *,
        freshness: Instant | None = None,
        since: Instant | None = None,
        seconds: float | None = None,
    ) -> None:
        """Data up to the time stamp `freshness` could be loaded; it merges with what waits.

        Without one, the data is taken to reach up to now, once until it is loaded. `since` is when
        the data came into the warehouse, if it was before it came within reach of this table.
        `seconds` are what it takes to load all that waits, if that is known better than from what
        was learned. A table that holds nothing yet counts as one period behind its first data.
        """
        standing = self._standings.get(name)
        if standing is None or standing.leaving:
            return
        standing.told_seconds = None if seconds is None else max(seconds, SHORTEST)
        pending = standing.pending
        if freshness is None:
            if pending:
                return
            freshness = now
        if not pending.arrived(freshness, now if since is None else since, now):
            return
        self._learn_pace(standing, now)
        if standing.freshness is None:
            standing.freshness = freshness - standing.period_seconds
        if standing.running is None:
            self._rank(standing, now)

    def held_up(self, name: str, since: Instant, now: Instant) -> None:
        """Data that came at `since` can't reach `name` before what it reads is refreshed.

        What it reads and what that is made of hurries, as far as something waits there, so that the
        promise of `name` is kept even if theirs leave more time.
        """
        standing = self._standings.get(name)
        if standing is None or standing.leaving:
            return
        if self._changed:
            self._settle(now)
        if standing.allowance is None or not self.policy.heed_promises:
            return
        due = {standing.name: since + standing.allowance}
        for each in self._hierarchy.ancestors_last([standing.name]):
            left = left_upstream(due[each] - since, as_reader(self._standings[each], None))
            for source in self._hierarchy.upstream(each):
                due[source] = min(due.get(source, inf), since + left)
            held = self._standings[each]
            waits = held is not standing and held.pending and held.running is None
            if waits and due[each] < held.due_by:
                held.due_by = due[each]
                self._rank(held, now)

    def withdrawn(self, name: str, now: Instant) -> None:
        """Nothing is wanted of a table any more: somebody else did it, or there was nothing."""
        standing = self._standings.get(name)
        if standing is not None:
            standing.pending.clear()
            standing.due_by = inf
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
        standing = self._standings.get(name)
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
        standing.unmade = False
        standing.retry_at = -inf
        if standing.declared_cost is not None or (seconds is not None and standing.cost.count):
            # By the clock, not by what the refresh says that it took: what comes before and
            # after it, and what it waits for, breaks a promise just as well.
            standing.error.observe(now - standing.last_started - start.expected_seconds)
        if seconds is not None:
            self._learn(standing, max(reached - before, 0.0), seconds, rows)
        self._ended(standing, start.track, now)

    def failed(self, name: str, now: Instant, retry_at: Instant) -> None:
        """A refresh failed: what it took waits again, and may start at `retry_at`."""
        standing = self._standings.get(name)
        if standing is None or standing.running is None:
            return
        start, standing.running = standing.running, None
        standing.retry_at = retry_at
        if not standing.leaving:
            standing.pending.put_back(standing.taken)
        self._ended(standing, start.track, now)

    def remember(
        self, name: str, *, loaded: Seconds, seconds: float, rows: RowCount | None = None
    ) -> None:
        """Learn from a refresh of the past, that loaded so many seconds of data."""
        standing = self._standings.get(name)
        if standing is None:
            return
        self._learn(standing, loaded, seconds, rows)
        if loaded > 0:
            standing.pace.saw(loaded)
            self._note_pace(standing)

    def resize(self, tracks: int | Iterable[int]) -> None:
        """There are more tracks, or fewer; what runs on one that is gone runs on."""
        self._lanes.tracks = track_ids(tracks)
        self._lanes.moves += len(self._standings)
        self._ranks.crowd.resize(len(self.tracks))

    # --- What to do -----------------------------------------------------------------------------

    def starts(
        self,
        free_tracks: Collection[int],
        now: Instant,
        along: Callable[[str], Iterable[str]] = lambda name: (),
    ) -> list[Start]:
        """The refreshes to start now. They count as under way until they finish or fail.

        Those that one takes `along`, as far as something waits for them, come right after it, with
        the same track.
        """
        self._wake(now)
        orders: list[Start] = []
        if not free_tracks:
            return orders
        lanes = self._lanes
        available, queues, blocked = set(free_tracks), lanes.queues, 0
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
            track = lanes.layout.track_for(lane, available, queues)
            if track is None and best[0] <= Urgency.ABOUT_TO_BREAK:
                track = min(available)
            if track is None:
                # Tracks only become fewer in this loop: the rest of the lane waits as well.
                blocked |= 1 << lane
                continue
            if best[0] is Urgency.NONE:
                chosen = self._foresight.weighed(best, lane, len(available), now)
                if chosen is None:
                    blocked |= 1 << lane
                    continue
                best = chosen
            available.discard(track)
            lead = self._started(best, track, now)
            orders += [lead, *self._started_along(lead, along(lead.table), now)]
        return orders

    def _started_along(self, lead: Start, names: Iterable[str], now: Instant) -> Iterator[Start]:
        before = lead.expected_seconds
        for name in names:
            other = self._standings.get(name)
            if other is not None and self._can_go_along(other, now):
                start = self._taken_along(other, lead, before, now)
                before = start.expected_seconds
                yield start

    def _can_go_along(self, standing: ScheduledTable, now: Instant) -> bool:
        """Whether something waits for a table, however long it might, and it did not just fail."""
        waits = bool(standing.pending) and standing.running is None and not standing.leaving
        return waits and standing.retry_at <= now

    def ready_at(self, name: str) -> Instant | None:
        """When a refresh that waits may start, long ago if it may by now; None if none waits."""
        standing = self._standings.get(name)
        if standing is None or not standing.pending or standing.running is not None:
            return None
        return Instant(-inf if standing.entry is not None else standing.ready_at)

    def order(self, now: Instant) -> list[Waiting]:
        """Everything that waits: what may start, best first, and then what may not yet."""
        self._wake(now)
        held: list[ScheduledTable] = []
        released: list[Entry] = []
        for standing in self._standings.values():
            if standing.entry is not None:
                released.append(standing.entry)
            elif standing.pending and standing.running is None:
                held.append(standing)
        held.sort(key=lambda standing: (standing.ready_at, standing.order))
        return [
            self._waiting(entry[4], *self._ranks.number(entry, now)) for entry in sorted(released)
        ] + [self._waiting(s, s.ready_at - now, "seconds until it is released") for s in held]

    def next_change(self, now: Instant) -> Instant | None:
        """When to ask again even if nothing happens; None if only an event changes anything."""
        self._wake(now)
        return self._ranks.next_change()

    def unkeepable(self, now: Instant) -> list[Finding]:
        """The promises that can't be kept, as far as costs are known, and those that could be."""
        self._wake(now)
        return findings(self._hierarchy, self._standings, len(self.tracks))

    def known(self, name: str, now: Instant) -> Known | None:
        """What is known of a table; None if it is not declared."""
        self._wake(now)
        standing = self._standings.get(name)
        if standing is None or standing.leaving:
            return None
        return Known(
            None if standing.freshness is None else Instant(standing.freshness),
            standing.priority,
            Seconds(standing.period_seconds),
            standing.cost.cost,
            Seconds(
                standing.part_seconds
                if standing.entry is not None
                else standing.cost.seconds(standing.interval_seconds)
            ),
            Seconds(standing.error.seconds),
            self._homes(standing),
            standing.running.track if standing.running is not None else None,
        )

    def layout(self, now: Instant) -> TrackLayout:
        """Which tables may use which tracks."""
        self._wake(now)
        return self._lanes.layout

    # --- Ranks ----------------------------------------------------------------------------------

    def _rank(self, standing: ScheduledTable, now: float) -> None:
        if self._changed:
            self._settle(now)
        self._ranks.rank(standing, now)

    def _wake(self, now: float) -> None:
        if self._changed or (self._lanes.moves and self._lanes.is_time(len(self._standings))):
            self._settle(now)
        self._ranks.wake(now)

    def _started(self, entry: Entry, track: int, now: Instant) -> Start:
        standing = entry[4]
        pending = standing.pending
        since, until = pending.oldest.since, standing.until
        number, why = self._ranks.number(entry, now)
        start = Start(
            standing.name, track, until, since, Seconds(standing.part_seconds), number, why
        )
        if standing.allowance is not None and not standing.crowded:
            # One that starts early because of a crowd did not wait for a track since it might have.
            # No more than the promise: there is nothing to gain from a release before the arrival.
            standing.wait.observe(min(now - standing.ready_at, standing.allowance))
        if entry[0] in (Urgency.UNMADE, Urgency.NONE):
            self._lanes.queues[standing.lane].passed = entry[1]
        self._ranks.leave(standing)
        self._ranks.price += 0.05 * (-max_benefit(standing)[0] - self._ranks.price)
        standing.taken = pending.take(until)
        standing.running = start
        standing.last_started = now
        standing.crowded = False
        standing.due_by = inf
        standing.told_seconds = None
        self._foresight.on_tracks[track] = standing
        return start

    def _taken_along(
        self, standing: ScheduledTable, lead: Start, before: Seconds, now: Instant
    ) -> Start:
        """A table that waits is under way with another one; it needs no track of its own.

        It is expected to be through after those `before` it in the same job.
        """
        pending = standing.pending
        since, until = pending.oldest.since, pending.newest
        told = standing.told_seconds
        own = standing.cost.seconds(standing.interval_seconds) if told is None else told
        expected = Seconds(before + own)
        start = Start(
            standing.name, lead.track, until, since, expected, lead.number, f"with {lead.table}"
        )
        self._ranks.leave(standing)
        standing.taken = pending.take(until)
        standing.running = start
        standing.last_started = now
        standing.crowded = False
        standing.due_by = inf
        standing.told_seconds = None
        return start

    def _ended(self, standing: ScheduledTable, track: int, now: Instant) -> None:
        standing.taken = []
        if standing.allowance is not None:
            interval = max(standing.interval_seconds, standing.allowance)
            use = standing.cost.seconds(interval) / interval
            standing.claims_from = claims_again(standing.last_started, now, use)
        self._foresight.ended(standing, track)
        if standing.leaving:
            del self._standings[standing.name]
        elif standing.pending:
            self._rank(standing, now)

    def _waiting(self, standing: ScheduledTable, number: float, why: str) -> Waiting:
        return Waiting(
            standing.name,
            standing.pending.oldest.since,
            Instant(standing.ready_at),
            Seconds(standing.freshness_delta),
            Seconds(standing.part_seconds),
            number,
            why,
            self._homes(standing),
        )

    def _homes(self, standing: ScheduledTable) -> tuple[int, ...]:
        return self._lanes.layout.lanes[standing.lane].homes

    # --- What is learned ------------------------------------------------------------------------

    def _learn_pace(self, standing: ScheduledTable, now: Instant) -> None:
        standing.pace.arrived(now)
        self._note_pace(standing)
        if self._foresight.looks_ahead:
            standing.expected_arrival = standing.pace.next_arrival(standing.period_seconds)
            self._lanes.coming[standing.lane].expect(standing)

    def _note_pace(self, standing: ScheduledTable) -> None:
        if standing.is_base:
            declared = self._hierarchy.tables[standing.name].period_seconds or 1.0
            period = standing.pace.period(declared)
            if abs(period - standing.period_seconds) > DRIFT * standing.period_seconds:
                self._changed[standing.name] = None
        else:
            interval = standing.pace.interval(standing.interval_seconds)
            if abs(interval - standing.interval_seconds) > DRIFT * standing.interval_seconds:
                self._changed[standing.name] = None

    def _learn(
        self, standing: ScheduledTable, loaded: float, seconds: float, rows: RowCount | None
    ) -> None:
        standing.cost.observe(loaded, seconds, rows)
        self._typical.observe(seconds)
        if standing.leaving:
            return
        if self._lanes.note_speed(standing) and self._passes_on_cost(standing):
            self._changed[standing.name] = None
        self._note_margin(standing)

    def _passes_on_cost(self, standing: ScheduledTable) -> bool:
        """Whether tables above one stand otherwise when its cost changes."""
        by_chain = self.policy.inheritance.rule is Rule.CHAIN and not standing.is_base
        return by_chain or standing.allowance is not None

    def _note_margin(self, standing: ScheduledTable) -> None:
        """Let those above a table know when it needs more time, or less, than it used to."""
        if standing.allowance is None or standing.is_base or not self.policy.heed_promises:
            return
        margin = standing.error.seconds
        if abs(margin - standing.margin) > DRIFT * max(standing.margin, standing.load_seconds):
            standing.margin = margin
            self._changed[standing.name] = None

    # --- What is inherited, and the layout ------------------------------------------------------

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
            self._lanes.note_speed(self._standings[name])
        if self._lanes.is_time(len(self._standings)):
            moved = dict.fromkeys(self._standings[name] for name in touched)
            moved |= dict.fromkeys(self._laid_out())
        else:
            moved = dict.fromkeys(self._standings[name] for name in touched)
            for standing in moved:
                self._lanes.welcome(standing)
        for standing in moved:
            if standing.pending:
                self._ranks.rank(standing, now)

    def _laid_out(self) -> list[ScheduledTable]:
        """Divide the tracks anew, and see which promises can be kept; the answer is who moved."""
        here = [self._standings[name] for name in self._hierarchy.tables]
        patience = self._lanes.patience
        moved = self._lanes.lay_out(here)
        if patience != self._lanes.patience:
            moved += here
        if self.policy.heed_promises and any(s.promise is not None for s in here):
            changed = granted(self._hierarchy, self._standings, len(self.tracks))
            touched = pass_on(changed, self._hierarchy, self._standings, self.policy.inheritance)
            moved += [self._standings[name] for name in touched]
        return moved
