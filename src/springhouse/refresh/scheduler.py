"""Which refresh starts now, and on which track?

A `Scheduler` hears of events (a table is declared, data arrives for it, a refresh ends) and says
the starts. It has no clock and no threads, and all its randomness comes from the given dice. So the
same events cause the same starts, in a warehouse and in a simulator.

    scheduler = Scheduler(tracks=2)
    scheduler.declare(Table("orders", period_seconds=Seconds(5.0)))
    scheduler.arrived("orders", now, freshness=newest_time_stamp)
    for start in scheduler.starts(free_tracks, now): ...      # these are under way from here on
    scheduler.finished("orders", now, seconds=0.8, rows=1200)
    sleep_until(scheduler.next_change())

A refresh may take other tables along that cost little once it runs (they read the same source).
They start with it, on its track, if data waits for them. Each refresh ends for itself.

Invariants: a table has at most one refresh under way; a track has at most one refresh, and those
that go along with it; a refresh loads the oldest data first; after a failure the data waits again.

The cost of an event and of a start is logarithmic in the number of tables. The tracks are divided
again only now and then (`tracks.lanes`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from math import inf

from springhouse.refresh.foresight.foresight import Foresight
from springhouse.refresh.inheritance.hierarchy import Hierarchy
from springhouse.refresh.inheritance.inherit import as_reader
from springhouse.refresh.inheritance.settlement import Settlement
from springhouse.refresh.job import Start
from springhouse.refresh.policy import Policy
from springhouse.refresh.promises.feasible import UnkeepablePromise
from springhouse.refresh.promises.grants import find_unkeepable
from springhouse.refresh.promises.urgency import Urgency, claims_again, left_upstream
from springhouse.refresh.ranking.basic import max_benefit
from springhouse.refresh.ranking.ranks import Ranks
from springhouse.refresh.table.load_cost import SHORTEST, LearnedCost, TypicalRefresh
from springhouse.refresh.table.scheduled_table import Entry, ScheduledTable
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.refresh.tracks.lanes import Lanes, track_ids
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
        self._tables: dict[str, ScheduledTable] = {}
        self._declared = 0
        self._typical = TypicalRefresh()
        self._ranks = Ranks(self.policy, self._lanes, self._typical, dice or Dice(0))
        self._foresight = Foresight(self.policy, self._lanes)
        self._settlement = Settlement(
            self.policy, self._hierarchy, self._tables, self._lanes, self._ranks, self._typical
        )

    @property
    def tracks(self) -> tuple[int, ...]:
        return self._lanes.tracks

    # --- Events ---------------------------------------------------------------------------

    def declare(self, profile: TableProfile, freshness: Instant | None = None) -> None:
        """Declare a table, or change its declaration; `freshness` is its freshness so far."""
        self._settlement.touch_neighbours(profile.name)
        self._hierarchy.put(profile)
        self._settlement.touch_neighbours(profile.name)
        table = self._tables.get(profile.name)
        if table is None:
            prior = profile.cost or self._typical.cost()
            table = ScheduledTable(profile, self._declared, prior)
            self._declared += 1
            self._tables[profile.name] = table
        elif profile.cost is not None and profile.cost != table.declared_cost:
            table.cost = LearnedCost(profile.cost)
            table.declared_cost = profile.cost
        table.leaving = False
        table.promise = profile.promise_seconds
        table.own_priority = profile.priority
        if freshness is not None:
            table.freshness = freshness
            table.unmade = False
        self._lanes.moves += 1

    def drop(self, name: str) -> None:
        """Remove a table; its refresh, if one is under way, still holds a track."""
        if name not in self._hierarchy.tables:
            return
        self._settlement.touch_neighbours(name)
        self._hierarchy.remove(name)
        self._settlement.forget(name)
        table = self._tables[name]
        table.pending.clear()
        table.leaving = True
        self._ranks.leave(table)
        if table.running is None:
            del self._tables[name]
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
        """Data up to the time stamp `freshness` waits for a table; it merges with waiting data.

        Without a `freshness` the data reaches up to now; repeated calls count once until a refresh
        loads the data. `since` is when the data came into the warehouse, if this table could read
        it only later. `seconds` is the planner's estimate for loading all waiting data; it replaces
        the learned cost. An empty table counts as one period behind its first data.
        """
        table = self._tables.get(name)
        if table is None or table.leaving:
            return
        table.announced_seconds = None if seconds is None else max(seconds, SHORTEST)
        pending = table.pending
        if freshness is None:
            if pending:
                return
            freshness = now
        if not pending.arrived(freshness, now if since is None else since, now):
            return
        table.pace.arrived(now)
        self._settlement.note_pace(table)
        self._foresight.expect_next(table)
        if table.freshness is None:
            table.freshness = freshness - table.period_seconds
        if table.running is None:
            self._rank(table, now)

    def held_up(self, name: str, since: Instant, now: Instant) -> None:
        """Data that came at `since` can't reach `name` before the tables above it are refreshed.

        The tables above hurry if data waits for them. So the promise of `name` is kept even if
        their own promises leave more time.
        """
        table = self._tables.get(name)
        if table is None or table.leaving:
            return
        self._settlement.settle_changes(now)
        if table.allowance is None or not self.policy.heed_promises:
            return
        due = {table.name: since + table.allowance}
        for each in self._hierarchy.ancestors_last([table.name]):
            left = left_upstream(due[each] - since, as_reader(self._tables[each], None))
            for source in self._hierarchy.upstream(each):
                due[source] = min(due.get(source, inf), since + left)
            held = self._tables[each]
            waits = held is not table and held.pending and held.running is None
            if waits and due[each] < held.due_by:
                held.due_by = due[each]
                self._rank(held, now)

    def withdrawn(self, name: str, now: Instant) -> None:
        """A table needs no refresh any more: another node did it, or there was no data."""
        table = self._tables.get(name)
        if table is not None:
            table.pending.clear()
            table.due_by = inf
            self._rank(table, now)

    def finished(
        self,
        name: str,
        now: Instant,
        *,
        seconds: float | None = None,
        rows: RowCount | None = None,
        freshness: Instant | None = None,
    ) -> None:
        """A refresh ended well; with `seconds` the scheduler learns its cost.

        `freshness` is the freshness of the table now, if it differs from that in the start.
        """
        table = self._tables.get(name)
        if table is None or table.running is None:
            return
        start, table.running = table.running, None
        target = start.until if start.until is not None else now
        reached = target if freshness is None else freshness
        before = table.freshness if table.freshness is not None else reached
        if reached < target and reached > before:
            # The refresh could not load some data, which still waits.
            table.pending.put_back([b for b in table.taken if b.freshness > reached])
        table.freshness = max(before, reached)
        table.unmade = False
        table.retry_at = -inf
        if table.declared_cost is not None or (seconds is not None and table.cost.count):
            # By the clock, and not by the seconds of the refresh itself: the time before and after
            # it breaks a promise just as well.
            table.error.observe(now - table.last_started - start.expected_seconds)
        if seconds is not None:
            self._settlement.learn_cost(table, max(reached - before, 0.0), seconds, rows)
        self._ended(table, start.track, now)

    def failed(self, name: str, now: Instant, retry_at: Instant) -> None:
        """A refresh failed: its data waits again, and may be loaded from `retry_at` on."""
        table = self._tables.get(name)
        if table is None or table.running is None:
            return
        start, table.running = table.running, None
        table.retry_at = retry_at
        if not table.leaving:
            table.pending.put_back(table.taken)
        self._ended(table, start.track, now)

    def remember(
        self, name: str, *, loaded: Seconds, seconds: float, rows: RowCount | None = None
    ) -> None:
        """Learn from a past refresh that loaded so many seconds of data."""
        table = self._tables.get(name)
        if table is None:
            return
        self._settlement.learn_cost(table, loaded, seconds, rows)
        if loaded > 0:
            table.pace.saw(loaded)
            self._settlement.note_pace(table)

    def resize(self, tracks: int | Iterable[int]) -> None:
        """Change the number of tracks; a refresh on a track that is gone runs on."""
        self._lanes.tracks = track_ids(tracks)
        self._lanes.moves += len(self._tables)
        self._ranks.crowd.resize(len(self.tracks))

    # --- Decisions -----------------------------------------------------------------------------

    def starts(
        self,
        free_tracks: Collection[int],
        now: Instant,
        along: Callable[[str], Iterable[str]] = lambda name: (),
    ) -> list[Start]:
        """The refreshes to start now. They count as under way until they finish or fail.

        `along` names the tables that may go along with a table. Those with waiting data come right
        after the table, with the same track.
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
                # Free tracks only get fewer in this loop, so the rest of the lane waits as well.
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
            other = self._tables.get(name)
            if other is not None and self._can_go_along(other, now):
                start = self._taken_along(other, lead, before, now)
                before = start.expected_seconds
                yield start

    def _can_go_along(self, table: ScheduledTable, now: Instant) -> bool:
        """Whether data waits for a table, released or not, and no retry is pending."""
        waits = bool(table.pending) and table.running is None and not table.leaving
        return waits and table.retry_at <= now

    def ready_at(self, name: str) -> Instant | None:
        """When a waiting refresh may start (long ago if it may now); None if no refresh waits."""
        table = self._tables.get(name)
        if table is None or not table.pending or table.running is not None:
            return None
        return Instant(-inf if table.entry is not None else table.ready_at)

    def order(self, now: Instant) -> list[Waiting]:
        """All waiting refreshes: those that may start, best first, then those that may not yet."""
        self._wake(now)
        held: list[ScheduledTable] = []
        released: list[Entry] = []
        for table in self._tables.values():
            if table.entry is not None:
                released.append(table.entry)
            elif table.pending and table.running is None:
                held.append(table)
        held.sort(key=lambda table: (table.ready_at, table.order))
        return [
            self._waiting(entry[4], *self._ranks.number(entry, now)) for entry in sorted(released)
        ] + [self._waiting(s, s.ready_at - now, "seconds until it is released") for s in held]

    def next_change(self, now: Instant) -> Instant | None:
        """When to ask again even if no event happens; None if only an event changes something."""
        self._wake(now)
        return self._ranks.next_change()

    def unkeepable(self, now: Instant) -> list[UnkeepablePromise]:
        """The promises that can't be kept by known costs, and the shortest that could be kept."""
        self._wake(now)
        return find_unkeepable(self._hierarchy, self._tables, len(self.tracks))

    def known(self, name: str, now: Instant) -> Known | None:
        """What the scheduler knows of a table; None if it is not declared."""
        self._wake(now)
        table = self._tables.get(name)
        if table is None or table.leaving:
            return None
        return Known(
            None if table.freshness is None else Instant(table.freshness),
            table.priority,
            Seconds(table.period_seconds),
            table.cost.cost,
            Seconds(
                table.part_seconds
                if table.entry is not None
                else table.cost.seconds(table.interval_seconds)
            ),
            Seconds(table.error.seconds),
            self._homes(table),
            table.running.track if table.running is not None else None,
        )

    def layout(self, now: Instant) -> TrackLayout:
        """Which tables may use which tracks."""
        self._wake(now)
        return self._lanes.layout

    # --- Ranks ----------------------------------------------------------------------------------

    def _rank(self, table: ScheduledTable, now: float) -> None:
        self._settlement.settle_changes(now)
        self._ranks.rank(table, now)

    def _wake(self, now: float) -> None:
        self._settlement.settle_all(now)
        self._ranks.wake(now)

    def _started(self, entry: Entry, track: int, now: Instant) -> Start:
        """Start the refresh at the head of a queue."""
        table = entry[4]
        number, why = self._ranks.number(entry, now)
        start = Start(
            table.name,
            track,
            table.until,
            table.pending.oldest.since,
            Seconds(table.part_seconds),
            number,
            why,
        )
        if table.allowance is not None and not table.crowded:
            # A refresh that starts early because of a crowd did not wait for a track. No wait
            # counts for more than the allowance: a release before the arrival gains nothing.
            table.wait.observe(min(now - table.ready_at, table.allowance))
        if entry[0] in (Urgency.UNMADE, Urgency.NONE):
            self._lanes.queues[table.lane].passed = entry[1]
        self._ranks.price += 0.05 * (-max_benefit(table)[0] - self._ranks.price)
        self._run(table, start, table.until, now)
        self._foresight.on_tracks[track] = table
        return start

    def _taken_along(
        self, table: ScheduledTable, lead: Start, before: Seconds, now: Instant
    ) -> Start:
        """Start a waiting table together with another one; it needs no track of its own.

        Its end is expected after those of the `before` tables in the same job.
        """
        until = table.pending.newest
        told = table.announced_seconds
        own = table.cost.seconds(table.interval_seconds) if told is None else told
        start = Start(
            table.name,
            lead.track,
            until,
            table.pending.oldest.since,
            Seconds(before + own),
            lead.number,
            f"with {lead.table}",
        )
        self._run(table, start, until, now)
        return start

    def _run(self, table: ScheduledTable, start: Start, until: Instant, now: Instant) -> None:
        """Note that a refresh of this table is under way."""
        self._ranks.leave(table)
        table.taken = table.pending.take(until)
        table.running = start
        table.last_started = now
        table.crowded = False
        table.due_by = inf
        table.announced_seconds = None

    def _ended(self, table: ScheduledTable, track: int, now: Instant) -> None:
        table.taken = []
        if table.allowance is not None:
            interval = max(table.interval_seconds, table.allowance)
            use = table.cost.seconds(interval) / interval
            table.claims_from = claims_again(table.last_started, now, use)
        self._foresight.ended(table, track)
        if table.leaving:
            del self._tables[table.name]
        elif table.pending:
            self._rank(table, now)

    def _waiting(self, table: ScheduledTable, number: float, why: str) -> Waiting:
        return Waiting(
            table.name,
            table.pending.oldest.since,
            Instant(table.ready_at),
            Seconds(table.freshness_delta),
            Seconds(table.part_seconds),
            number,
            why,
            self._homes(table),
        )

    def _homes(self, table: ScheduledTable) -> tuple[int, ...]:
        return self._lanes.layout.lanes[table.lane].homes
