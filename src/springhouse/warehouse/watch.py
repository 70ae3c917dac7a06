"""What do the real sources and Delta logs say to the loop?

The watch opens the sources of each table, and compares their latest offsets with those in the Delta
logs: it is the `Sources` of `loop.observing`. It writes nothing and starts nothing.
`planner.planning` decides what to refresh, and how.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from springhouse.errors import LakeError, error_text
from springhouse.lake.delta.tables import TableVersion
from springhouse.lake.ingest.feeds import Feed, open_feed
from springhouse.lake.ingest.sharing import same_records, sharing
from springhouse.lake.lake import Lake
from springhouse.lake.landing.quarantine import pending_records
from springhouse.lake.sources.source import Range
from springhouse.lake.storage.presence import FileLost
from springhouse.lake.views.healing import lost_by
from springhouse.logged_errors import passing
from springhouse.loop.facts import facts_of
from springhouse.loop.observing import LastRun, SourceAnswer
from springhouse.planner.delta_logs import provenance_of
from springhouse.planner.provenance import Provenance
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.project.declarations.declaration import (
    AppendFlow,
    Flow,
    Project,
    PythonQuery,
    ReadMode,
)
from springhouse.project.lineage.channels import is_channel
from springhouse.project.lineage.graph import Input
from springhouse.project.lineage.keys import input_key
from springhouse.units import Instant
from springhouse.warehouse.available_ways import ProjectOffers
from springhouse.warehouse.node.permits import Permits, unit_of

LOG = logging.getLogger("springhouse.watch")

_LONG_AGO = Instant(float("-inf"))


@dataclass(frozen=True)
class Horizon:
    """The ends of all sources at one moment; a single refresh of everything stops there."""

    ends: Mapping[str, int] = field(default_factory=dict)


class Watch:
    """The sources and logs of one warehouse. Safe to use from several threads."""

    def __init__(
        self,
        project: Project,
        lake: Lake,
        clock: Callable[[], Instant],
        node: str,
        permits: Permits | None = None,
    ) -> None:
        self.permits = permits or Permits()
        self.lake = lake
        self._lock = threading.RLock()
        self.facts = facts_of(
            project,
            lake,
            self,
            lambda graph, chooser: ProjectOffers(project, graph, lake, chooser),
            self.permits.owns,
            self._lock,
        )
        self.project = project
        self.graph = self.facts.graph
        self.chooser = self.facts.chooser
        self.offers = self.facts.offers
        self.observing = self.facts.observing
        self.planning = self.facts.planning
        self._clock = clock
        self._node = node
        self.sharing = sharing(project)
        self._feeds: dict[str, Feed] = {}
        # Flows that failed while others went on, and the moment of their next try.
        self._held: dict[str, Instant] = {}
        self._behind: dict[str, Mapping[str, Range]] = {}
        self._opened: dict[str, TableVersion] = {}
        # The first lost file of a view, from the last inspection.
        self._lost: dict[str, FileLost] = {}
        # The oldest and newest version of a table at which its quarantine was complete.
        self._settled: dict[str, tuple[int, int]] = {}

    def feeds(self, table: str) -> tuple[Feed, ...]:
        """The flows into a table whose offsets Springhouse keeps; each is opened once."""
        flows = self.project.flows_into(table)
        return tuple(self.feed(flow) for flow in flows if not is_streaming_function(flow))

    def feed(self, flow: Flow) -> Feed:
        """A flow whose offsets Springhouse keeps; it is opened once."""
        with self._lock:
            if flow.name not in self._feeds:
                self._feeds[flow.name] = open_feed(
                    self.lake,
                    self.project,
                    flow,
                    self._clock,
                    self._node,
                    lambda partition: self.permits.owns_partition(flow.target, partition),
                )
            return self._feeds[flow.name]

    def hold(self, flow: str, until: Instant) -> None:
        """Leave out a flow that failed, so that the other flows into its table go on."""
        self._held[flow] = until

    def release(self, flow: str | None = None) -> None:
        """Try a flow again, or all of them."""
        for name in list(self._held) if flow is None else [flow]:
            self._held.pop(name, None)

    def is_held(self, flow: Flow) -> bool:
        """Whether a flow failed and waits for its next try."""
        return self._clock() < self._held.get(flow.name, _LONG_AGO)

    def forget(self, table: str) -> None:
        """Open the sources of a table again next time, because another process used them since."""
        with self._lock:
            for flow in self.project.flows_into(table):
                self._feeds.pop(flow.name, None)

    def take_over(self, table: str) -> None:
        """Go on where another process ended, without the outdated observations of the table."""
        self.forget(table)
        self.observing.take_over(table)

    def versions_read(self, table: str) -> tuple[int, ...]:
        """The newest versions of the warehouse's own tables that a table reads."""
        newest = (self.lake.log(name).newest() for name in self.graph.tables_read(table))
        return tuple(-1 if each is None else each.version for each in newest)

    def ask(self, table: str, last: LastRun, now: Instant) -> SourceAnswer:
        """The data in the sources of a table that the table lacks."""
        try:
            found = self._ends(table)
            calls = self._stream_waits(table, last, now) or self._unmade(table, last)
            warnings = [each for feed in self.feeds(table) for each in feed.warnings()]
            return replace(
                found,
                calls=calls or self._is_unsettled(table),
                warning="; ".join(warnings) or None,
            )
        except Exception as error:  # noqa: BLE001  a source may be anybody's code
            return SourceAnswer(problem=error_text(error))

    def _ends(self, table: str) -> SourceAnswer:
        """The ends of the sources, and the ends of their loaded data."""
        stored = self.stored(table)
        behind: dict[str, Range] = {}
        is_cut = False
        problems: list[str] = []
        for flow in self.project.flows_into(table):
            if is_streaming_function(flow) or self.is_held(flow):
                continue
            try:
                feed = self.feed(flow)
                found = feed.behind(stored)
            except Exception as error:  # noqa: BLE001  a source may be anybody's code
                problems.append(error_text(error))
                continue
            is_cut = is_cut or feed.is_cut(found)
            behind |= found
        self._behind[table] = behind
        return SourceAnswer(
            {transaction: given.start for transaction, given in behind.items()},
            {transaction: given.end for transaction, given in behind.items()},
            is_cut,
            problem="\n".join(problems) or None,
        )

    def companions(self, table: str, others: Sequence[str]) -> list[str]:
        """The tables among `others` for which exactly the same records wait."""
        behind = self._behind.get(table)
        if table not in self.sharing or not behind:
            return []
        found = []
        for other in self.sharing[table].tables:
            if other not in others:
                continue
            (lead,), (along,) = self.feeds(table), self.feeds(other)
            with passing(LOG, "the refresh of each table reports it", Exception):
                if same_records(lead, behind, along, self._behind.get(other, {})) is not None:
                    found.append(other)
        return found

    def _unmade(self, table: str, last: LastRun) -> bool:
        """Whether an empty table can be made for its readers, which is worth one try."""
        if last.at is not None or self.lake.log(table).newest() is not None:
            return False
        return all(self.lake.log(each).newest() for each in self.graph.tables_read(table))

    def _is_unsettled(self, table: str) -> bool:
        """Whether the quarantine may lack records that commits set aside, after a crash."""
        commits = self.lake.log(table).commits()
        newest = (commits[0].version, commits[-1].version) if commits else None
        if newest is None or self._settled.get(table) == newest:
            return False
        if pending_records(self.lake, table):
            return True
        self._settled[table] = newest
        return False

    def _stream_waits(self, table: str, last: LastRun, now: Instant) -> bool:
        """Whether a streaming function should run: its inputs moved, or its pause is over."""
        into = self.project.flows_into(table)
        flows = [f for f in into if is_streaming_function(f) and not self.is_held(f)]
        if not flows:
            return False
        inputs = [i for flow in flows for i in self.graph.flow_inputs(flow)]
        if self._lacks_inputs(inputs):
            return False  # Its inputs do not exist yet: this is no failure, and there is no work.
        if last.at is None:
            return True
        if any(i.reading not in (ReadMode.TABLE, ReadMode.STREAM) for i in inputs) or not inputs:
            return now - last.at >= max(last.pause, self.project.tables[table].period_seconds)
        return self._streams_moved(table, inputs)

    def _lacks_inputs(self, inputs: Sequence[Input]) -> bool:
        """Whether a table or view that a function reads does not exist yet."""
        watched = {i.name for i in inputs if i.reading is not ReadMode.OTHER}
        declared = watched & {*self.project.tables, *self.project.views}
        return any(self.lake.log(name).newest() is None for name in declared)

    def _streams_moved(self, table: str, inputs: Sequence[Input]) -> bool:
        """Whether the streamed inputs of a function have versions that it did not read."""
        newest = self.lake.log(table).newest()
        reflected = newest.note.after if newest and newest.note else Provenance()
        keys = {input_key(i.reading, i.name) for i in inputs if i.reading is ReadMode.STREAM}
        available = provenance_of(
            self.lake, {key: s.version for key in keys if (s := self.lake.log(key).newest())}
        )
        return reflected.precedes(available)

    def ran(self, table: str, now: Instant, *, found_something: bool) -> None:
        """A refresh of a table or view ended."""
        if found_something:
            self._lost.pop(table, None)
        with self._lock:
            self.planning.refreshed(table, now, found_something=found_something)
            self.observing.ran(table, now, found_something=found_something)

    def has(self, table: str, ends: Mapping[str, int]) -> bool:
        """Whether a table has everything up to these ends."""
        with passing(LOG, "the next poll of the table reports it", Exception):
            stored = self.stored(table)
            return stored is not None and all(stored.offset(t) >= end for t, end in ends.items())
        return False

    def progress(self, table: str) -> dict[str, int]:
        """The offset of each unit of a table: by partition, or the version."""
        commits = self.lake.log(table).commits()
        if not commits:
            return {}
        found = {unit_of(table): commits[-1].version}
        if table in self.project.tables:
            for transaction, end in commits[-1].transactions.items():
                found[unit_of(table, transaction.rpartition("/")[2])] = end
        return found

    def stored(self, table: str) -> TableVersion | None:
        """The newest version of a table; the table is opened again only for a new version."""
        self.lake.log(table).validate_log()
        newest = self.lake.log(table).commits()
        if not newest:
            return None
        with self._lock:
            opened = self._opened.get(table)
            # A table that was dropped and created again may have the same version number.
            known = opened is not None and self.lake.log(table).has_id(opened.table_id)
            if opened is None or not known or opened.version != newest[-1].version:
                found = self.lake.find(table)
                if found is None:
                    return None
                self._opened[table] = opened = found
            return opened

    def inspect(self) -> None:
        """Look for lost files of all views: a view with a lost file is recomputed."""
        for name in self.project.views:
            if not self.permits.owns(name):
                continue
            with passing(LOG, "the refresh of the view reports it", LakeError):
                lost = lost_by(self.lake, name)
                if lost is not None:
                    self._lost[name] = lost
                    self.planning.note_lost(name, lost.path)

    def lost(self, view: str) -> FileLost | None:
        """A lost file of a view, from the last inspection."""
        return self._lost.get(view)

    def horizon(self) -> Horizon:
        """The current ends of all sources outside the warehouse."""
        ends: dict[str, int] = {}
        for table in self.project.tables:
            for flow in self.project.flows_into(table):
                with passing(LOG, "the refresh of the table reports it", Exception):
                    if not is_streaming_function(flow):
                        ends |= self.feed(flow).horizon()
        return Horizon(ends)

    def plans(self, now: Instant) -> list[RefreshPlan]:
        """Every refresh that is wanted now, in topological order."""
        with self._lock:
            self.planning.look()
            return self.planning.plans(now)

    def plan(self, name: str, now: Instant) -> RefreshPlan | None:
        """The refresh that a table or view needs now, if any."""
        with self._lock:
            self.planning.look()
            return self.planning.plan(name, now)

    def forced(self, name: str, reason: str) -> RefreshPlan:
        """A plan for a table or view, whether a refresh is wanted or not."""
        return self.planning.plan_forced(name, reason, self._clock())

    def purpose(self, table: str) -> str:
        """The reason for refreshing a table with waiting data."""
        with passing(LOG, "the refresh of the table reports it", Exception):
            begun = [each for feed in self.feeds(table) for each in feed.unread()]
            if begun:
                return f"reads {' and '.join(dict.fromkeys(begun))} from the start"
        return "new records"

    def problem(self, table: str) -> str | None:
        """The error of a table's sources or of its log, if any."""
        problem = self.observing.answer(table).problem
        if problem:
            return problem
        damage = self.planning.damage(table)
        return error_text(damage) if damage is not None else None

    def warning(self, table: str) -> str | None:
        """A warning about a table or its sources; refreshes still work."""
        if self.source_warning(table):
            return self.source_warning(table)
        log = self.lake.log(table)
        dated = log.dated_ahead()
        if dated is None:
            return None
        day = datetime.fromtimestamp(dated, UTC).isoformat(" ", "seconds")
        return (
            f"version {log.commits()[-1].version} is dated {day}, which is still to come: a clock "
            "was wrong. It counts as made when it was first seen."
        )

    def source_warning(self, table: str) -> str | None:
        """A warning about the sources of a table."""
        answer = self.observing.answer(table)
        return answer.warning if not answer.problem and self.permits.owns(table) else None

    def validate_log(self, view: str) -> None:
        """Raise an error if the log of a view, or of a table that it reads, is damaged."""
        damage = self.planning.damage(view)
        if damage is not None:
            raise LakeError(damage.problem, where=damage.where, hint=damage.hint)

    def warnings(self) -> dict[str, str]:
        """The warnings, by table."""
        return {name: said for name in self.graph.order if (said := self.warning(name))}

    def is_channel(self, name: str) -> bool:
        return name in self.project.tables and is_channel(self.project, name)


def is_streaming_function(flow: object) -> bool:
    """Whether Structured Streaming runs the flow and keeps its offsets."""
    return isinstance(flow, AppendFlow) and isinstance(flow.query, PythonQuery) and not flow.once
