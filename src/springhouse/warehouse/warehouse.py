"""What can a user do with a warehouse?

A `Warehouse` is a project and its storage. It answers from the Delta logs, and starts Spark only
when rows have to be computed.

    with springhouse.open("shop") as warehouse:
        warehouse.refresh()
        warehouse.query("SELECT * FROM revenue_by_country").show()
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from springhouse.errors import LakeError, SpringhouseError
from springhouse.lake.lake import QUARANTINE
from springhouse.lake.landing.describing import describe_table
from springhouse.lake.landing.inputs import RefreshInputs, names_of
from springhouse.lake.landing.landing import Done
from springhouse.lake.landing.quarantine import settle_quarantine
from springhouse.lake.sinks.delivery import ledger_problem
from springhouse.lake.spark.queries import errors_at, run_sql
from springhouse.lake.storage.clock import steady_clock
from springhouse.lake.upkeep.compaction import vacuum
from springhouse.lake.upkeep.query_comparison import compare_with_query
from springhouse.lake.upkeep.verification import Verified, verify
from springhouse.loop.schedule import Schedule
from springhouse.loop.turns import FreshnessRecord
from springhouse.project.declarations.declaration import (
    Place,
    Project,
    ReadMode,
    Reference,
    SqlQuery,
)
from springhouse.project.declarations.durations import duration_seconds
from springhouse.project.declarations.names import did_you_mean_the
from springhouse.project.lineage.keys import reference_key
from springhouse.project.settings import COMPACT_FILES, RETENTION, RETRY_SECONDS, TRACKS
from springhouse.project.sql.references import find_references
from springhouse.project.sql.sql_text import SqlText
from springhouse.refresh.policy_settings import configured_policy
from springhouse.refresh.promises.feasible import UnkeepablePromise
from springhouse.refresh.retry import Failure
from springhouse.units import Instant, Seconds
from springhouse.warehouse.internals import Internals, Opening, open_internals
from springhouse.warehouse.node.permits import Permits
from springhouse.warehouse.reports.planned_refresh import PlannedRefresh, planned_refreshes
from springhouse.warehouse.reports.table_explanation import (
    TableExplanation,
    ViewExplanation,
    explain_table,
)
from springhouse.warehouse.reports.table_history import CommitRecord, table_history
from springhouse.warehouse.reports.table_status import (
    TableStatus,
    scheduled_statuses,
    table_statuses,
)
from springhouse.warehouse.retained_versions import needed_versions
from springhouse.warehouse.running.courier import Courier
from springhouse.warehouse.running.live import Live
from springhouse.warehouse.running.once import Once
from springhouse.warehouse.running.refresh_events import Listener, SparkNeeded
from springhouse.warehouse.running.runner import RunnerSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Refreshed:
    """What `refresh` or `run` did, and what failed.

    `done` are the commits, `failures` the last errors of tables that still fail. `freshness`
    records, by table, the lags while `run` ran. `warnings` name what is odd about a table and stops
    nothing.
    """

    done: tuple[Done, ...]
    failures: Mapping[str, Failure]
    freshness: Mapping[str, FreshnessRecord] = field(default_factory=dict)
    warnings: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.failures


class Warehouse:
    """A warehouse over one project folder.

    `configuration` overrides settings of the project. `listener` is called with every event: a
    refresh that starts, finishes or fails, and so on. A `read_only` warehouse refuses to refresh.
    `internals` are the parts, for Springhouse itself; they may change with every release.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        configuration: Mapping[str, str] | None = None,
        listener: Listener = lambda event: None,
        clock: Callable[[], Instant] = steady_clock,
        permits: Permits | None = None,
        read_only: bool = False,
    ) -> None:
        self._stop = threading.Event()
        self._read_only = read_only
        self._clock = clock
        self._listener = listener
        opening = Opening(clock, lambda: listener(SparkNeeded()), permits, read_only)
        self.internals: Internals = open_internals(Path(folder), configuration or {}, opening)
        self._lake, self._watch = self.internals.lake, self.internals.watch
        self._failures: Mapping[str, Failure] = {}
        self._freshness: Mapping[str, FreshnessRecord] = {}
        self._live: Live | None = None

    @property
    def project(self) -> Project:
        """The project as it is declared."""
        return self.internals.project

    @property
    def failures(self) -> Mapping[str, Failure]:
        """The tables and flows whose last refresh failed, also while `run` runs."""
        return self._failures

    # --- Refreshing -----------------------------------------------------------------------------

    def refresh(self) -> Refreshed:
        """Bring everything up to date once, with what the sources have now."""
        self._require_writable()
        self._describe()
        once = Once(self._watch, self._clock, self._settings(), self._listener)
        self._failures = once.failures
        courier = self._courier()
        with courier.running():
            once.run(self._stop)
        return Refreshed(
            tuple(once.done),
            {**once.failures, **courier.failures},
            warnings=self._watch.warnings(),
        )

    def run(self, seconds: float | None = None) -> Refreshed:
        """Keep everything fresh, for so many seconds or until `stop` is called."""
        self._require_writable()
        self._describe()
        live = Live(self._watch, self._clock, self._settings(), self._listener)
        self._failures, self._freshness = live.failures, live.kept
        courier = self._courier()
        with courier.running():
            self._live = live
            try:
                live.run(self._stop, None if seconds is None else Seconds(seconds))
            finally:
                self._live = None
        failures = {**live.failures, **courier.failures}
        return Refreshed(tuple(live.done), failures, live.kept, self._watch.warnings())

    def stop(self) -> None:
        """End `run` or `refresh` of another thread, after the commits that are being written."""
        self._stop.set()

    def _require_writable(self) -> None:
        if self._read_only:
            raise SpringhouseError("this warehouse was opened to read only")

    def _describe(self) -> None:
        """Give the stored tables the declared comments and properties."""
        for name in (*self.project.tables, *self.project.views):
            if self._watch.permits.owns(name):
                describe_table(self._lake, self.project, name)

    def _courier(self) -> Courier:
        return Courier(
            self.project,
            self._lake,
            self._clock,
            Seconds(RETRY_SECONDS.read(self.project.configuration)),
            node=self.internals.node,
            owns=self._watch.permits.delivers,
            listener=self._listener,
        )

    def _settings(self) -> RunnerSettings:
        configured = self.project.configuration
        return RunnerSettings(
            TRACKS.read(configured),
            Seconds(RETRY_SECONDS.read(configured)),
            COMPACT_FILES.read(configured),
            configured_policy(configured),
        )

    # --- Asking ---------------------------------------------------------------------------------

    def query(self, sql: str, *, consistent: bool = False) -> "DataFrame":
        """The rows of a query over tables and views; `consistent` reads all as of one moment."""
        place = Place("query", 1)
        references = find_references(SqlText(sql, "query"), names_of(self.project))
        for reference in references:
            if reference.reading is ReadMode.TABLE:
                self._require_declared(reference.name)
        keys = self._tables_in(references)
        versions: Mapping[str, int] = {}
        if consistent and keys:
            for key in keys:
                self._lake.open(key)
            choice = self._watch.chooser.common_moment(keys)
            if choice is None:
                raise LakeError(
                    f"{' and '.join(keys)} have no moment in common yet",
                    hint="Refresh once more, or leave --consistent out.",
                )
            versions = choice.versions
        inputs = RefreshInputs(self._lake, self.project, versions)
        with errors_at(place):
            query = SqlQuery(sql, references, place)
            return run_sql(self._lake.spark.session(), query, inputs.resolve)

    def status(self, *, scheduled: bool = True) -> list[TableStatus]:
        """How fresh every table and view is; unless `scheduled`, without what a scheduler knows."""
        if not scheduled:
            return table_statuses(self._watch, self._failures, self._clock())
        schedule = self._schedule(self._clock())
        return scheduled_statuses(
            self._watch, schedule, self._failures, self._freshness, self._clock()
        )

    def plan(self) -> list[PlannedRefresh]:
        """The refreshes that are wanted now, in the order in which they would start."""
        schedule = self._schedule(self._clock())
        return planned_refreshes(self._watch, schedule, self._clock())

    def unkeepable_promises(self) -> list[UnkeepablePromise]:
        """The promises that take more time than there is, by what past refreshes took."""
        now = self._clock()
        schedule = self._live.schedule if self._live is not None else self._scheduler(now)
        return schedule.unkeepable(now)

    def explain(self, name: str) -> TableExplanation | ViewExplanation:
        """How a table or view is made, and what its rows reflect."""
        return explain_table(self._watch, self._declared(name))

    def history(self, name: str, limit: int | None = None) -> list[CommitRecord]:
        """The commits of a table or view, newest first; `orders_quarantine` is one, too."""
        table = names_of(self.project).parse(name)
        if table == table.removesuffix(QUARANTINE):
            table = self._declared(name)
        return table_history(self._watch, table, limit)

    # --- Upkeep ---------------------------------------------------------------------------------

    def vacuum(self, retention: str | None = None, grace_seconds: float = 3600.0) -> dict[str, int]:
        """Delete the files that nobody can need any more; their number, by table.

        Versions younger than `retention` stay readable, as configured unless it is given. Files
        younger than `grace_seconds` stay, because a commit that is being written may need them.
        """
        keep = RETENTION.read(self.project.configuration)
        if retention is not None:
            keep = duration_seconds(retention)
        counts = {}
        for name in self._lake.tables():
            settle_quarantine(self._lake, name)
        for name in self._lake.tables():
            needed = needed_versions(self._watch, name)
            deleted = vacuum(self._lake, name, needed, keep, Seconds(grace_seconds))
            if deleted:
                counts[name] = len(deleted)
        self._lake.leases.remove_dead()
        return counts

    def verify(
        self,
        name: str | None = None,
        *,
        recompute: bool = False,
        on_table: Callable[[Verified], None] = lambda verified: None,
    ) -> list[Verified]:
        """Compare every table, or one, with its log; with `recompute`, views with their queries.

        `on_table` is called with the result of each table as soon as it is known.
        """
        results = []
        for table in self._lake.tables() if name is None else [self._declared(name)]:
            results.append(self._verify_table(table, recompute))
            on_table(results[-1])
        return results

    def _verify_table(self, name: str, recompute: bool) -> Verified:
        try:
            needed = needed_versions(self._watch, name)
        except SpringhouseError:  # The log of a reader is damaged: its own result says so.
            needed = []
        verified = verify(self._lake, name, needed)
        problems = [*verified.problems, *self._identity_problems(name)]
        view = self.project.views.get(name)
        untold = ""
        if recompute and view is not None and not problems:
            try:
                problems += compare_with_query(self._lake, self.project, view)
            except SpringhouseError as error:
                untold = error.problem
        return replace(verified, problems=tuple(problems), untold=untold)

    def _identity_problems(self, name: str) -> Iterator[str]:
        """The sources and sinks of a table that differ from those that its offsets belong to."""
        if name in self.project.tables:
            for feed in self._watch.feeds(name):
                yield from feed.identity_problems()
        for sink in self.project.sinks_of(name):
            problem = ledger_problem(self._lake, name, sink)
            if problem is not None:
                yield problem

    def close(self) -> None:
        """Stop what runs, and Spark with it."""
        self.stop()
        self._lake.leases.release()
        self._lake.spark.stop()

    def __enter__(self) -> "Warehouse":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- Names and schedules --------------------------------------------------------------------

    def _schedule(self, now: Instant) -> Schedule:
        """The running scheduler, or one from the Delta logs that knows the waiting data."""
        live = self._live
        if live is not None:
            return live.schedule
        self._watch.observing.poll(now, all_of_them=True)
        schedule = self._scheduler(now)
        schedule.hear(self._watch.plans(now), now)
        return schedule

    def _scheduler(self, now: Instant) -> Schedule:
        """A scheduler that knows the Delta logs, but not the waiting data."""
        settings = self._settings()
        return Schedule(self._watch.facts, settings.policy, settings.tracks, now)

    def _tables_in(self, references: Sequence[Reference]) -> list[str]:
        """The keys of the tables that a query reads, also those read through temporary views."""
        keys: list[str] = []
        for reference in references:
            temporary = self.project.temporary_views.get(reference.name)
            if temporary is not None:
                keys += self._tables_in(temporary.query.references)
            elif reference.reading in (ReadMode.TABLE, ReadMode.DELTA):
                keys.append(reference_key(reference))
        return list(dict.fromkeys(keys))

    def _declared(self, name: str) -> str:
        """The normal name of a declared table or view; other names raise an error with a hint."""
        normal = names_of(self.project).parse(name)
        if normal in self.project.tables or normal in self.project.views:
            return normal
        kinds = dict.fromkeys(self.project.tables, "table")
        kinds |= dict.fromkeys(self.project.views, "view")
        raise SpringhouseError(
            f'this project declares no table or view "{name}"',
            hint=did_you_mean_the(normal, kinds) or f"It declares: {', '.join(sorted(kinds))}",
        )

    def _require_declared(self, name: str) -> None:
        base = name.removesuffix(QUARANTINE)
        declared = {*self.project.tables, *self.project.views, *self.project.temporary_views}
        if not declared & {name, base}:
            self._declared(name)


def open(folder: str | Path, **options: Any) -> Warehouse:  # noqa: A001  read as springhouse.open
    """The warehouse over a project folder; Spark starts when it is first needed.

    The options are those of `Warehouse`.
    """
    return Warehouse(folder, **options)
