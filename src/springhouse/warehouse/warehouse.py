"""What can be asked of a running warehouse?

A `Warehouse` is a project, its lake, and a clock. It answers from the Delta logs, and starts Spark
only when rows have to be computed.

    with springhouse.open("shop") as warehouse:
        warehouse.refresh()
        warehouse.query("SELECT * FROM revenue_by_country").show()
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from springhouse.errors import DeclarationError, LakeError, ProjectErrors, SpringhouseError
from springhouse.lake.lake import QUARANTINE, Lake
from springhouse.lake.landing.describing import describe_table
from springhouse.lake.landing.inputs import RefreshInputs, names_of
from springhouse.lake.landing.landing import Done
from springhouse.lake.landing.quarantine import settle_quarantine
from springhouse.lake.sinks.delivery import ledger_astray, needed_by_sinks
from springhouse.lake.sinks.sink_registry import known_sinks
from springhouse.lake.sources.source_registry import known_sources
from springhouse.lake.spark.queries import errors_at, run_sql
from springhouse.lake.spark.session import LazySession, Spark
from springhouse.lake.storage.clock import steady_clock
from springhouse.lake.storage.storage import Storage
from springhouse.lake.upkeep.compaction import vacuum
from springhouse.lake.upkeep.query_comparison import compare_with_query
from springhouse.lake.upkeep.verification import Verified, verify
from springhouse.loop.schedule import Schedule
from springhouse.project.declarations.declaration import (
    Place,
    Project,
    ReadMode,
    Reference,
    SqlQuery,
)
from springhouse.project.declarations.durations import duration_seconds
from springhouse.project.declarations.names import did_you_mean_the
from springhouse.project.declarations.secrets import Configuration
from springhouse.project.from_yaml import read_pipeline_file
from springhouse.project.lineage.keys import reference_key
from springhouse.project.load import load
from springhouse.project.settings import (
    COMPACT_FILES,
    NODE_NAME,
    RETENTION,
    RETRY_SECONDS,
    TRACKS,
    check_setting,
)
from springhouse.project.sql.references import find_references
from springhouse.project.sql.sql_text import SqlText
from springhouse.refresh.policy_settings import configured_policy
from springhouse.refresh.promises.feasible import Finding
from springhouse.refresh.retry import Failure
from springhouse.units import Instant, Seconds
from springhouse.warehouse.courier import Courier
from springhouse.warehouse.permits import Permits
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
from springhouse.warehouse.runner import FreshnessRecord, Listener, Live, Once, SparkNeeded
from springhouse.warehouse.watch import Watch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_ALONE = "local"
"""The name of a node that is not part of a cluster."""


@dataclass(frozen=True)
class Refreshed:
    """What a refresh of everything did, and what it could not do."""

    done: tuple[Done, ...]
    failures: Mapping[str, Failure]

    @property
    def ok(self) -> bool:
        return not self.failures


class Warehouse:
    """A warehouse over one project folder."""

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
        """`read_only`: nothing is written, not even what Spark says while it starts."""
        self._stop = threading.Event()
        self._read_only = read_only
        self._clock = clock
        self._listener = listener
        given = _proved(configuration or {})
        # A project's Python file may use Spark while it is loaded, so Spark comes before the
        # project: all that it needs stands in the pipeline file.
        location = Path(folder).resolve()
        settings = Configuration({}, location)
        with suppress(DeclarationError):  # Told by `load`, with all that is wrong.
            pipeline = read_pipeline_file(location)
            said = {key: each.value for key, each in pipeline.configuration.items()}
            settings = settings.overridden(said).overridden(given)
            self.lake = self._lake(pipeline.name, pipeline.storage, location, settings)
        session = LazySession(lambda: self.lake.spark.session())  # noqa: PLW0108  not made yet
        declared = load(folder, session, known_sources({}), known_sinks({}))
        settings = settings.overridden(declared.configuration).overridden(given)
        self.project: Project = replace(declared, configuration=settings)
        node = NODE_NAME.find(settings) or _ALONE
        self.watch = Watch(self.project, self.lake, self._clock, node, permits)
        self.failures: Mapping[str, Failure] = {}
        self.kept: Mapping[str, FreshnessRecord] = {}
        self._live: Live | None = None

    def _lake(self, name: str, storage: str, folder: Path, settings: Configuration) -> Lake:
        place = Storage.at(storage, folder)
        # The nodes of a cluster share the storage; each has a Spark with a log of its own.
        node = NODE_NAME.find(settings)
        file = f"spark-{node}.log" if node else "spark.log"
        kept = "://" not in place.root and not self._read_only
        log = Path(place.root) / "logs" / file if kept else None
        spark = Spark(
            settings,
            f"springhouse {name}",
            log,
            on_start=lambda: self._listener(SparkNeeded()),
            folder=folder,
        )
        return Lake(place, spark, folder, self._clock)

    def refresh(self) -> Refreshed:
        """Bring everything up to date once, with what the sources have now."""
        self._prove_may_write()
        self._describe()
        once = Once(self.watch, self._clock, listener=self._listener, **self._settings())
        self.failures = once.failures
        courier = self._courier()
        with courier.running():
            once.run(self._stop)
        return Refreshed(tuple(once.done), {**once.failures, **courier.failures})

    def run(self, seconds: float | None = None) -> Refreshed:
        """Keep everything fresh, for so long or until `stop` is called."""
        self._prove_may_write()
        self._describe()
        live = Live(self.watch, self._clock, listener=self._listener, **self._settings())
        self.failures = live.failures
        self.kept = live.kept
        courier = self._courier()
        with courier.running():
            self._live = live
            try:
                live.run(self._stop, None if seconds is None else Seconds(seconds))
            finally:
                self._live = None
        return Refreshed(tuple(live.done), {**live.failures, **courier.failures})

    def _prove_may_write(self) -> None:
        if self._read_only:
            raise SpringhouseError("this warehouse was opened to read only")

    def _describe(self) -> None:
        """Tell the tables that are there what their declarations say by now."""
        for name in (*self.project.tables, *self.project.views):
            if self.watch.permits.owns(name):
                describe_table(self.lake, self.project, name)

    def _courier(self) -> Courier:
        retry = self._settings()["retry"]
        return Courier(
            self.project,
            self.lake,
            self._clock,
            retry,
            node=NODE_NAME.find(self.project.configuration) or _ALONE,
            owns=self.watch.permits.delivers,
            listener=self._listener,
        )

    def stop(self) -> None:
        """End `run` or `refresh` (of another thread) after the running commits."""
        self._stop.set()

    def query(self, sql: str, *, consistent: bool = False) -> "DataFrame":
        """The rows of a query over tables and views; `consistent` reads all as of one moment."""
        place = Place("query", 1)
        references = find_references(SqlText(sql, "query"), names_of(self.project))
        for reference in references:
            if reference.reading is ReadMode.TABLE:
                self._prove_known(reference.name)
        keys = self._tables_in(references)
        versions: Mapping[str, int] = {}
        if consistent and keys:
            for key in keys:
                self.lake.open(key)
            choice = self.watch.chooser.common_moment(keys)
            if choice is None:
                raise LakeError(
                    f"{' and '.join(keys)} have no moment in common yet",
                    hint="Refresh once more, or leave --consistent out.",
                )
            versions = choice.versions
        inputs = RefreshInputs(self.lake, self.project, versions)
        with errors_at(place):
            query = SqlQuery(sql, references, place)
            return run_sql(self.lake.spark.session(), query, inputs.resolve)

    def _tables_in(self, references: Sequence[Reference]) -> list[str]:
        """The keys of the tables that a query reads, also through temporary views."""
        keys: list[str] = []
        for reference in references:
            temporary = self.project.temporary_views.get(reference.name)
            if temporary is not None:
                keys += self._tables_in(temporary.query.references)
            elif reference.reading in (ReadMode.TABLE, ReadMode.DELTA):
                keys.append(reference_key(reference))
        return list(dict.fromkeys(keys))

    def status(self, *, scheduled: bool = True) -> list[TableStatus]:
        """How fresh every table and view is; unless `scheduled`, without what a scheduler knows."""
        if not scheduled:
            return table_statuses(self.watch, self.failures, self._clock())
        schedule = self._schedule(self._clock())
        return scheduled_statuses(self.watch, schedule, self.failures, self.kept, self._clock())

    def plan(self) -> list[PlannedRefresh]:
        """The refreshes that are wanted now, in the order in which they would start."""
        schedule = self._schedule(self._clock())
        return planned_refreshes(self.watch, schedule, self._clock())

    def unkeepable(self) -> list[Finding]:
        """The promises that can't be kept, by what past refreshes took, and what could be kept."""
        now = self._clock()
        schedule = self._live.schedule if self._live is not None else self._scheduler(now)
        return schedule.unkeepable(now)

    def explain(self, name: str) -> TableExplanation | ViewExplanation:
        """How a table or view is made, and what its rows reflect."""
        return explain_table(self.watch, self._declared(name))

    def history(self, name: str, limit: int | None = None) -> list[CommitRecord]:
        """The commits of a table or view, newest first; `name_quarantine` names a quarantine."""
        table = names_of(self.project).parse(name)
        if table == table.removesuffix(QUARANTINE):
            table = self._declared(name)
        return table_history(self.watch, table, limit)

    def vacuum(self, retention: str | None = None, grace_seconds: float = 3600.0) -> dict[str, int]:
        """Delete files that nobody can need any more; how many, by table."""
        keep = RETENTION.read(self.project.configuration)
        if retention is not None:
            keep = duration_seconds(retention)
        gone = {}
        for name in self.lake.tables():
            settle_quarantine(self.lake, name)
        for name in self.lake.tables():
            needed = self._needed_from(name)
            deleted = vacuum(self.lake, name, needed, keep, Seconds(grace_seconds))
            if deleted:
                gone[name] = len(deleted)
        self.lake.leases.remove_dead()
        return gone

    def verifying(self, name: str | None = None, *, recompute: bool = False) -> Iterator[Verified]:
        """Hold each table, or one, against its log; with `recompute`, views against queries too."""
        tables = self.lake.tables() if name is None else [self._declared(name)]
        for each in tables:
            try:
                needed = self._needed_from(each)
            except SpringhouseError:  # A reader's log is damaged: that is told with the reader.
                needed = []
            found = verify(self.lake, each, needed)
            problems = [*found.problems, *self._astray(each)]
            view = self.project.views.get(each)
            untold = ""
            if recompute and view is not None and not problems:
                try:
                    problems += compare_with_query(self.lake, self.project, view)
                except SpringhouseError as error:
                    untold = error.problem
            yield replace(found, problems=tuple(problems), untold=untold)

    def _astray(self, name: str) -> Iterator[str]:
        """In what the sources and sinks of a table are not those that its offsets count."""
        if name in self.project.tables:
            for feed in self.watch.feeds(name):
                yield from feed.astray()
        for sink in self.project.sinks_of(name):
            problem = ledger_astray(self.lake, name, sink)
            if problem is not None:
                yield problem

    def verify(self, name: str | None = None, *, recompute: bool = False) -> list[Verified]:
        """What each table holds, and in what it is not what its log (or its query) says."""
        return list(self.verifying(name, recompute=recompute))

    def close(self) -> None:
        """Stop what runs, and Spark with it."""
        self.stop()
        self.lake.leases.release()
        self.lake.spark.stop()

    def __enter__(self) -> "Warehouse":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _settings(self) -> dict[str, Any]:
        given = self.project.configuration
        return {
            "tracks": TRACKS.read(given),
            "retry": Seconds(RETRY_SECONDS.read(given)),
            "most_files": COMPACT_FILES.read(given),
            "policy": configured_policy(given),
        }

    def _schedule(self, now: Instant) -> Schedule:
        """The scheduler that runs; if none does, as the Delta logs tell of it, with what waits."""
        live = self._live
        if live is not None:
            return live.schedule
        self.watch.observing.poll(now, all_of_them=True)
        schedule = self._scheduler(now)
        schedule.hear(self.watch.plans(now), now)
        return schedule

    def _scheduler(self, now: Instant) -> Schedule:
        """A scheduler that knows the Delta logs, and not what waits."""
        return Schedule(
            self.watch.facts,
            configured_policy(self.project.configuration),
            TRACKS.read(self.project.configuration),
            now,
        )

    def _needed_from(self, name: str) -> list[int]:
        """The versions of a table that its readers reflect: they will read on from there."""
        # A state is read at the newest version that has it: older ones with the same rows may go.
        read_at = {s.made: s.version for s in self.lake.log(name).snapshots()}
        return [read_at.get(made, made) for made in self._reflected_by_readers(name)]

    def _reflected_by_readers(self, name: str) -> list[int]:
        needed = [*self._streamed_by_readers(name), *needed_by_sinks(self.lake, self.project, name)]
        for reader in self.watch.graph.downstream(name):
            newest = self.lake.log(reader).newest()
            if newest is None:
                continue
            needed += newest.provenance.reflected.get(name, ())
            if name in self.project.views:
                needed += self._reflected_states(name, reader)
        return needed

    def _streamed_by_readers(self, name: str) -> list[int]:
        """The last version of a table that each stream over it has read."""
        needed = []
        for table in self.project.tables:
            stored = self.watch.stored(table)
            for stream in (s for feed in self.watch.feeds(table) for s in feed.streams):
                if (
                    stream.reference.reading is ReadMode.SOURCE
                    or reference_key(stream.reference) != name
                ):
                    continue
                needed.append(max(stored.offset(stream.transaction("0")) - 1, 0) if stored else 0)
        return needed

    def _reflected_states(self, view: str, reader: str) -> list[int]:
        """The newest version of a view that is not newer than what its reader reflects."""
        reflected = self.lake.log(reader).newest()
        assert reflected is not None
        states = [
            s.made
            for s in self.lake.log(view).snapshots()
            if not reflected.provenance.precedes(s.provenance)
        ]
        return states[-1:]

    def _declared(self, name: str) -> str:
        own = names_of(self.project).parse(name)
        if own in self.project.tables or own in self.project.views:
            return own
        kinds = dict.fromkeys(self.project.tables, "table")
        kinds |= dict.fromkeys(self.project.views, "view")
        raise SpringhouseError(
            f'this project declares no table or view "{name}"',
            hint=did_you_mean_the(own, kinds) or f"It declares: {', '.join(sorted(kinds))}",
        )

    def _prove_known(self, name: str) -> None:
        base = name.removesuffix(QUARANTINE)
        declared = {*self.project.tables, *self.project.views, *self.project.temporary_views}
        if not declared & {name, base}:
            self._declared(name)


def open(folder: str | Path, **options: Any) -> Warehouse:  # noqa: A001  read as springhouse.open
    """The warehouse over a project folder; Spark starts when it is first needed."""
    return Warehouse(folder, **options)


def _proved(configuration: Mapping[str, str]) -> Mapping[str, str]:
    """The settings, or everything that is wrong with them."""
    place = Place("configuration", 0)
    wrong = [check_setting(key, value, place) for key, value in configuration.items()]
    errors = [error for error in wrong if error is not None]
    if errors:
        raise ProjectErrors(errors)
    return configuration
