"""What changes for other tables when one table changes?

A table changes when it is declared or dropped, and when the scheduler learns a new pace or cost for
it. `Settlement` notes the changed tables and settles all of them at once, before the next decision:
other tables inherit, the tracks are divided again if it is time, promises that can't be kept stop
being deadlines, and waiting jobs find their new places.
"""

from collections.abc import Iterable, Mapping

from springhouse.refresh.inheritance.hierarchy import Hierarchy
from springhouse.refresh.inheritance.inherit import pass_on
from springhouse.refresh.inheritance.priority import Rule
from springhouse.refresh.policy import Policy
from springhouse.refresh.promises.grants import grant_promises
from springhouse.refresh.ranking.ranks import Ranks
from springhouse.refresh.table.load_cost import TypicalRefresh
from springhouse.refresh.table.scheduled_table import ScheduledTable
from springhouse.refresh.tracks.lanes import DRIFT, Lanes
from springhouse.units import RowCount


class Settlement:
    """The tables that changed since the last settlement, and what a change means for others."""

    def __init__(
        self,
        policy: Policy,
        hierarchy: Hierarchy,
        tables: Mapping[str, ScheduledTable],
        lanes: Lanes,
        ranks: Ranks,
        typical: TypicalRefresh,
    ) -> None:
        self._policy = policy
        self._hierarchy = hierarchy
        self._tables = tables
        self._lanes = lanes
        self._ranks = ranks
        self._typical = typical
        self._changed: dict[str, None] = {}

    # --- What changes ---------------------------------------------------------------------------

    def touch_neighbours(self, name: str) -> None:
        """A table was declared or dropped: its neighbours may inherit something else."""
        if name in self._hierarchy.tables:
            upstream, downstream = self._hierarchy.upstream(name), self._hierarchy.downstream(name)
            for each in (name, *upstream, *downstream):
                self._changed[each] = None

    def forget(self, name: str) -> None:
        """Forget a table that was dropped."""
        self._changed.pop(name, None)

    def note_pace(self, table: ScheduledTable) -> None:
        """Note a table whose data clearly comes at another pace than before."""
        if table.is_base:
            declared = self._hierarchy.tables[table.name].period_seconds or 1.0
            before, after = table.period_seconds, float(table.pace.period(declared))
        else:
            before, after = table.interval_seconds, table.pace.interval(table.interval_seconds)
        if abs(after - before) > DRIFT * before:
            self._changed[table.name] = None

    def learn_cost(
        self, table: ScheduledTable, loaded: float, seconds: float, rows: RowCount | None
    ) -> None:
        """Learn from a refresh that loaded so many seconds of data."""
        table.cost.observe(loaded, seconds, rows)
        self._typical.observe(seconds)
        if table.leaving:
            return
        if self._lanes.note_speed(table) and self._passes_on_cost(table):
            self._changed[table.name] = None
        self._note_margin(table)

    def _passes_on_cost(self, table: ScheduledTable) -> bool:
        """Whether a new cost of this table changes something for the tables upstream."""
        by_chain = self._policy.inheritance.rule is Rule.CHAIN and not table.is_base
        return by_chain or table.allowance is not None

    def _note_margin(self, table: ScheduledTable) -> None:
        """Tell the tables upstream when the margin of a table has clearly changed."""
        if table.allowance is None or table.is_base or not self._policy.heed_promises:
            return
        margin = table.error.seconds
        if abs(margin - table.margin) > DRIFT * max(table.margin, table.load_seconds):
            table.margin = margin
            self._changed[table.name] = None

    # --- What follows ---------------------------------------------------------------------------

    def settle_changes(self, now: float) -> None:
        """Settle if any table changed."""
        if self._changed:
            self._settle(now)

    def settle_all(self, now: float) -> None:
        """Settle if any table changed, or if it is time to divide the tracks again."""
        if self._changed or (self._lanes.moves and self._lanes.is_time(len(self._tables))):
            self._settle(now)

    def _settle(self, now: float) -> None:
        """Pass on the changes, and divide the tracks again if it is time."""
        changed, self._changed = self._changed, {}
        touched = [self._tables[name] for name in self._pass_on(changed)]
        for table in touched:
            self._lanes.note_speed(table)
        moved = dict.fromkeys(touched)
        if self._lanes.is_time(len(self._tables)):
            moved |= dict.fromkeys(self._divide_tracks())
        else:
            for table in moved:
                self._lanes.welcome(table)
        for table in moved:
            if table.pending:
                self._ranks.rank(table, now)

    def _divide_tracks(self) -> list[ScheduledTable]:
        """Divide the tracks, and see which promises can be kept; returns the tables that moved."""
        tables = [self._tables[name] for name in self._hierarchy.tables]
        patience = self._lanes.patience
        moved = self._lanes.lay_out(tables)
        if patience != self._lanes.patience:
            moved += tables
        if self._policy.heed_promises and any(each.promise is not None for each in tables):
            changed = grant_promises(self._hierarchy, self._tables, len(self._lanes.tracks))
            moved += [self._tables[name] for name in self._pass_on(changed)]
        return moved

    def _pass_on(self, changed: Iterable[str]) -> list[str]:
        return pass_on(changed, self._hierarchy, self._tables, self._policy.inheritance)
