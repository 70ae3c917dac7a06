"""Which facts about a project's table does the scheduler need?

The declaration says what a table reads and promises. The logs say how long its refreshes took, and
up to which arrivals it reflects the data.

All times are times of arrival. If a source first showed data at ten, loading it makes the base
table fresh up to ten. A view is as fresh as the newest base version that it reflects.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from springhouse.loop.facts import Facts
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.project.declarations.declaration import Promise
from springhouse.project.lineage.channels import is_channel
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.units import Instant, RowCount, Seconds

_REMEMBERED = 20
"""The cost of a table is learned from so many of its last refreshes."""

_LONG_AGO = Seconds(3600.0)
"""After a longer pause than this, a refresh says nothing about how much data it had to load."""


@dataclass(frozen=True)
class PastLoad:
    """A refresh of the past: the seconds of data that it loaded, its duration, and its rows."""

    loaded: Seconds
    seconds: Seconds
    rows: RowCount


class SchedulerFacts:
    """The facts about the tables of one project, for the scheduler."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def profile(self, name: str) -> TableProfile:
        """The declaration of a table, for the scheduler."""
        project, graph = self._facts.project, self._facts.graph
        known = {*project.tables, *project.views}
        upstream = tuple(each for each in graph.tables_read(name) if each in known and each != name)
        base = project.tables.get(name)
        period = base.period_seconds if base is not None and not upstream else None
        promise = self.promise(name)
        return TableProfile(
            name,
            upstream,
            period,
            promise.priority,
            promise.strictest_seconds,
            promise_by_input=self._facts.planning.waits.bounds(name, upstream),
            patience_by_input=self._facts.planning.waits.patience(name),
        )

    def promise(self, name: str) -> Promise:
        """The promise of a table."""
        project = self._facts.project
        return (project.tables.get(name) or project.views[name]).promise

    def is_relaxed(self, name: str) -> bool:
        """Whether a table is a view that may be inconsistent."""
        view = self._facts.project.views.get(name)
        return view is not None and view.promise.is_relaxed

    def past_loads(self, name: str) -> Iterable[PastLoad]:
        """The last refreshes of a table, from its log."""
        refreshes = [
            (commit.at, commit.note)
            for commit in self._facts.logs.log(name).commits()
            if commit.note is not None and commit.note.kind in ("append", "replace", "merge")
        ]
        for (before, _), (at, note) in pairwise(refreshes[-_REMEMBERED - 1 :]):
            loaded = Seconds(max(at - before, 0.0))
            if note.seconds > 0.0 and loaded < _LONG_AGO:
                rows = RowCount(note.rows_added + note.rows_removed)
                yield PastLoad(loaded, Seconds(note.seconds), rows)

    def reached(self, name: str) -> Instant | None:
        """The time of arrival up to which a table reflects all data; None if it is empty."""
        newest = self._facts.logs.log(name).newest()
        if newest is None:
            return None
        project = self._facts.project
        if name in project.tables and is_channel(project, name):
            return newest.at
        left, _ = newest.provenance.interval(self._facts.chooser.channels())
        return left if left > float("-inf") else newest.at

    def would_reach(self, plan: RefreshPlan, now: Instant) -> Instant:
        """The time of arrival up to which a table would reflect all data after a refresh."""
        if plan.table in self._facts.project.tables:
            return self._facts.observing.seen_until(plan.table) or now
        left, _ = plan.reaches.interval(self._facts.chooser.channels())
        return left if left > float("-inf") else now

    def takes_parts(self, name: str) -> bool:
        """Whether loading only a part of the waiting data saves work.

        A recomputation is as expensive for a part. For a view that may be inconsistent, the planner
        chooses the part, input by input.
        """
        if self.is_relaxed(name):
            return False
        newest = self._facts.logs.log(name).newest()
        by_change = newest is not None and newest.note is not None and newest.note.kind == "merge"
        return by_change or name in self._facts.project.tables
