"""Which refreshes are wanted now, and why?

The watch knows what has arrived and what is reflected: it asks the sources for their latest offsets
(each by its period), compares them with the offsets in the Delta logs, compares what each view
reflects with what it could, and turns every difference into a `Job`. It starts nothing itself.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from springhouse.errors import LakeError, told
from springhouse.house.choosing import Chooser
from springhouse.house.offers import Offers
from springhouse.house.owning import Permits, unit_of
from springhouse.house.ways import Decided, Ways
from springhouse.lake.feeds import Feed, is_channel, open_feed
from springhouse.lake.flows.sharing import same_records, sharing
from springhouse.lake.healing import lost_by
from springhouse.lake.lake import QUARANTINE, Lake, input_key, made_anew, provenance_of
from springhouse.lake.note import Note
from springhouse.lake.presence import FileLost
from springhouse.lake.quarantine import pending
from springhouse.lake.sources.contract import Range
from springhouse.lake.tables import TableVersion
from springhouse.planner.moment import Choice
from springhouse.planner.provenance import NOW, Provenance, source_of
from springhouse.project.declaration import (
    AppendFlow,
    Flow,
    Project,
    PythonQuery,
    Reading,
    Table,
    View,
)
from springhouse.project.fingerprint import fingerprint
from springhouse.project.graph import Graph
from springhouse.refresh.job import Job
from springhouse.units import Instant, Seconds

OPAQUE_PERIOD = Seconds(60.0)
"""How often a view is refreshed whose inputs nobody can watch (files, another catalog)."""

STREAM_PATIENCE = Seconds(10.0)
"""The longest pause between two runs of a streaming function that found nothing new."""

_LONG_AGO = Instant(float("-inf"))


@dataclass
class _Seen:
    """What the watch knows of one table's sources since it last asked."""

    asked: Instant = _LONG_AGO
    # The versions of the warehouse's own tables among them.
    read: tuple[int, ...] = ()
    waiting_since: Instant | None = None
    problem: str | None = None
    # What looks wrong with its sources, and keeps nobody from asking them.
    warning: str | None = None
    # Where the sources ended, whenever that was seen to have changed: all that is not loaded yet.
    ends: list[tuple[Instant, Mapping[str, int]]] = field(default_factory=list)
    # What waits, from where to where, by transaction; and whether more waits than one commit takes.
    behind: Mapping[str, Range] = field(default_factory=dict)
    is_cut: bool = False
    pause: Seconds = Seconds(0.0)
    ran: Instant | None = None


_MOST_ENDS = 256
"""How many steps of what waits are remembered: a refresh of a part stops at one of them."""


@dataclass(frozen=True)
class Horizon:
    """The ends of all sources at one moment: a single refresh of everything stops there."""

    ends: Mapping[str, int] = field(default_factory=dict)


class Watch:
    """What is wanted in one House. Safe to use from several threads."""

    def __init__(
        self,
        project: Project,
        lake: Lake,
        clock: Callable[[], Instant],
        node: str,
        permits: Permits | None = None,
    ) -> None:
        self.project = project
        self.permits = permits or Permits()
        self.graph = Graph(project)
        self.lake = lake
        self.chooser = Chooser(project, self.graph, lake)
        self.offers = Offers(project, self.graph, lake, self.chooser)
        self.ways = Ways(project, self.graph, lake, self.chooser, self.offers)
        self._clock = clock
        self._node = node
        self.sharing = sharing(project)
        self._feeds: dict[str, Feed] = {}
        # Flows beside others that failed, and when they are tried again.
        self._held: dict[str, Instant] = {}
        self._seen = {name: _Seen() for name in project.tables}
        self._opened: dict[str, TableVersion] = {}
        # When a view was refreshed last, also if there was nothing to commit.
        self._looked: dict[str, Instant] = {}
        # The first file of a view that was not there when it was last looked for.
        self._lost: dict[str, FileLost] = {}
        # The oldest and newest version of a table when its quarantine had all of it.
        self._settled: dict[str, tuple[int, int]] = {}
        self._lock = threading.RLock()

    def feeds(self, table: str) -> tuple[Feed, ...]:
        """The flows into a table whose offsets are ours to keep, opened once."""
        flows = self.project.flows_into(table)
        return tuple(self.feed(flow) for flow in flows if not is_streaming_function(flow))

    def feed(self, flow: Flow) -> Feed:
        """A flow whose offsets are ours to keep, opened once."""
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
        """Leave out a flow that failed, so that it does not hold up the others into its table."""
        self._held[flow] = until

    def release(self, flow: str | None = None) -> None:
        """Try a flow again, or all of them."""
        for name in list(self._held) if flow is None else [flow]:
            self._held.pop(name, None)

    def is_held(self, flow: Flow) -> bool:
        """Whether a flow failed, and its next try is still to come."""
        return self._clock() < self._held.get(flow.name, _LONG_AGO)

    def forget(self, table: str) -> None:
        """Open the sources of a table anew next time: another process went on where we stood."""
        with self._lock:
            for flow in self.project.flows_into(table):
                self._feeds.pop(flow.name, None)

    def take_over(self, table: str) -> None:
        """Go on where another process stood: what was seen of a table before says nothing now."""
        self.forget(table)
        if table in self._seen:
            self._seen[table] = _Seen()

    def poll(self, now: Instant, *, all_of_them: bool = False) -> None:
        """Ask the sources that are due for what they have: by their period.

        What comes from tables of the warehouse is seen in their logs as soon as it is there.
        """
        for name, table in self._owned_tables():
            seen, read = self._seen[name], self._versions_read(name)
            if all_of_them or now - seen.asked >= table.period_seconds or read != seen.read:
                seen.read = read
                self._ask(table, seen, now)

    def next_poll(self, now: Instant) -> Seconds:
        """How long until some source is due."""
        dues = [
            self._seen[name].asked + table.period_seconds - now
            for name, table in self._owned_tables()
        ]
        return Seconds(max(min(dues, default=1.0), 0.0))

    def _versions_read(self, table: str) -> tuple[int, ...]:
        """The newest versions of the warehouse's own tables that a table reads."""
        newest = (self.lake.log(name).newest() for name in self.graph.tables_read(table))
        return tuple(-1 if each is None else each.version for each in newest)

    def _owned_tables(self) -> list[tuple[str, Table]]:
        return [each for each in self.project.tables.items() if self.permits.owns(each[0])]

    def _ask(self, table: Table, seen: _Seen, now: Instant) -> None:
        seen.asked = now
        try:
            waits = self._note_ends(table, seen, now)
            waits = waits or self._stream_waits(table, seen, now) or self._unmade(table, seen)
            waits = waits or self._is_unsettled(table.name)
            told_by_sources = [w for feed in self.feeds(table.name) for w in feed.warnings()]
            seen.warning = "; ".join(told_by_sources) or None
        except Exception as error:  # noqa: BLE001  a source may be anybody's code
            seen.problem = told(error)
            waits = True  # The refresh will meet the same problem, report it, and be retried.
        if not waits:
            seen.waiting_since = None
        elif seen.waiting_since is None:
            seen.waiting_since = now

    def _note_ends(self, table: Table, seen: _Seen, now: Instant) -> bool:
        """Write down where the sources end, if it is further than before; whether data waits."""
        stored = self.stored(table.name)
        behind: dict[str, Range] = {}
        is_cut = False
        problems: list[str] = []
        flows = self.project.flows_into(table.name)
        for flow in flows:
            if is_streaming_function(flow) or self.is_held(flow):
                continue
            try:
                feed = self.feed(flow)
                found = feed.behind(stored)
            except Exception as error:  # noqa: BLE001  a source may be anybody's code
                problems.append(told(error))
                continue
            is_cut = is_cut or feed.is_cut(found)
            behind |= found
        seen.problem = "\n".join(problems) or None
        seen.behind, seen.is_cut = behind, is_cut
        ends = {transaction: given.end for transaction, given in behind.items()}
        begins = {transaction: given.start for transaction, given in behind.items()}
        seen.ends = [each for each in seen.ends if _is_beyond(each[1], begins)]
        if ends and (not seen.ends or seen.ends[-1][1] != ends):
            seen.ends = [*seen.ends[-_MOST_ENDS:], (now, ends)]
        # The refresh will meet the same problems, report them, and be retried.
        return bool(ends or problems)

    def seen_until(self, table: str) -> Instant | None:
        """When the newest data that waits in a table's sources was first seen; None without any."""
        ends = self._seen[table].ends
        return ends[-1][0] if ends else None

    def ends_at(self, table: str, moment: Instant) -> Mapping[str, int] | None:
        """Where the sources ended at a moment, for a refresh that goes no further; None for all."""
        ends = self._seen[table].ends
        if not ends or moment >= ends[-1][0]:
            return None
        return next((there for at, there in reversed(ends) if at <= moment), ends[0][1])

    def companions(self, name: str) -> list[str]:
        """The tables of ours for which the very records wait that wait for this one."""
        if name not in self.sharing or not self._seen[name].behind:
            return []
        found = []
        for other in self.sharing[name].tables:
            seen = self._seen[other]
            if not self.permits.owns(other) or seen.waiting_since is None or seen.problem:
                continue
            (lead,), (along,) = self.feeds(name), self.feeds(other)
            # A source that can't tell is no companion; its own refresh will say what is wrong.
            with suppress(Exception):
                if same_records(lead, self._seen[name].behind, along, seen.behind) is not None:
                    found.append(other)
        return found

    def _unmade(self, table: Table, seen: _Seen) -> bool:
        """Whether the table can be made, empty, for those who read it: worth one try."""
        if seen.ran is not None or self.lake.log(table.name).newest() is not None:
            return False
        return all(self.lake.log(k).newest() for k in self.graph.tables_read(table.name))

    def _is_unsettled(self, table: str) -> bool:
        """Whether a process died before the quarantine had what the table's commits set aside."""
        commits = self.lake.log(table).commits()
        newest = (commits[0].version, commits[-1].version) if commits else None
        if newest is None or self._settled.get(table) == newest:
            return False
        if pending(self.lake, table):
            return True
        self._settled[table] = newest
        return False

    def _stream_waits(self, table: Table, seen: _Seen, now: Instant) -> bool:
        """Whether a streaming function should run: its tables moved, or its pause is over."""
        into = self.project.flows_into(table.name)
        flows = [f for f in into if is_streaming_function(f) and not self.is_held(f)]
        if not flows:
            return False
        inputs = [i for flow in flows for i in self.graph.flow_inputs(flow)]
        watched = {i.name for i in inputs if i.reading is not Reading.OTHER}
        declared = watched & {*self.project.tables, *self.project.views}
        if any(self.lake.log(name).newest() is None for name in declared):
            return False  # Not a failure, and nothing to do, before somebody has made its inputs.
        if seen.ran is None:
            return True
        if any(i.reading not in (Reading.TABLE, Reading.STREAM) for i in inputs) or not inputs:
            return now - seen.ran >= max(seen.pause, table.period_seconds)
        newest = self.lake.log(table.name).newest()
        reflected = newest.note.after if newest and newest.note else Provenance()
        keys = {input_key(i.reading, i.name) for i in inputs if i.reading is Reading.STREAM}
        available = provenance_of(
            self.lake, {key: s.version for key in keys if (s := self.lake.log(key).newest())}
        )
        return reflected.precedes(available)

    def ran(self, table: str, now: Instant, *, found_something: bool) -> None:
        """A refresh of a table ended: what waits is counted from its next poll.

        That is at once if the refresh left something that was known to wait. What has come since
        waits for the source's period: else one that always has a little more would be refreshed
        all the time.
        """
        self._looked[table] = now
        if found_something:
            self._lost.pop(table, None)
        seen = self._seen.get(table)
        if seen is None:
            return
        seen.ran = now
        longer = min(max(seen.pause, 1.0) * 2, STREAM_PATIENCE)
        seen.pause = Seconds(0.0) if found_something else Seconds(longer)
        seen.waiting_since = None
        if not found_something or seen.is_cut or self._is_left(table, seen.behind):
            seen.asked = _LONG_AGO

    def _is_left(self, table: str, waited: Mapping[str, Range]) -> bool:
        """Whether something of what waited for a table is not in it."""
        with suppress(Exception):  # What is wrong with the table is told by its next poll.
            stored = self.stored(table)
            ends = waited.items()
            return stored is None or any(stored.offset(each) < given.end for each, given in ends)
        return True

    def progress(self, table: str) -> dict[str, int]:
        """How far a table's units got: its sources' offsets by partition, or its version."""
        commits = self.lake.log(table).commits()
        if not commits:
            return {}
        found = {unit_of(table): commits[-1].version}
        if table in self.project.tables:
            for transaction, end in commits[-1].transactions.items():
                found[unit_of(table, transaction.rpartition("/")[2])] = end
        return found

    def stored(self, table: str) -> TableVersion | None:
        """The newest version of a table, opened only when it has moved."""
        self.lake.log(table).prove_whole()
        newest = self.lake.log(table).commits()
        if not newest:
            return None
        with self._lock:
            opened = self._opened.get(table)
            # One that was made anew may have come to the same version.
            known = opened is not None and self.lake.log(table).has_id(opened.table_id)
            if opened is None or not known or opened.version != newest[-1].version:
                found = self.lake.find(table)
                if found is None:
                    return None
                self._opened[table] = opened = found
            return opened

    def inspect(self) -> None:
        """Look for the files of all views: one that lost a file is computed anew."""
        for name in self.project.views:
            if not self.permits.owns(name):
                continue
            with suppress(LakeError):  # What is wrong with its log is told by its own refresh.
                lost = lost_by(self.lake, name)
                if lost is not None:
                    self._lost[name] = lost

    def lost(self, view: str) -> FileLost | None:
        """A file of a view that was not there when it was last looked for."""
        return self._lost.get(view)

    def horizon(self) -> Horizon:
        """Where all sources outside the warehouse end now."""
        ends: dict[str, int] = {}
        for table in self.project.tables:
            for flow in self.project.flows_into(table):
                # A source that can't be asked is reported by the refresh of its table, not here.
                with suppress(Exception):
                    if not is_streaming_function(flow):
                        ends |= self.feed(flow).horizon()
        return Horizon(ends)

    def jobs(self, now: Instant) -> list[Job]:
        """Every refresh that is wanted now, in topological order."""
        found: dict[str, Job] = {}
        needed: dict[str, str] = {}
        for name in self.graph.order:
            job = self.job(name, now)
            decided = self.decided(name, now) if job is not None else None
            if decided is not None and decided.first:
                # It waits for others to be refreshed, perhaps sooner than their promises ask.
                needed |= dict.fromkeys(decided.first, name)
            elif job is not None:
                found[name] = job
        for name, reader in needed.items():
            if name in found:
                found[name] = replace(found[name], urgent=True, reason=f"{reader} needs it")
        return list(found.values())

    def job(self, name: str, now: Instant, *, meet_siblings: bool = True) -> Job | None:
        """The refresh that a table or view wants now, if any."""
        if name in self.project.tables:
            return self._table_job(self.project.tables[name])
        return self._view_job(self.project.views[name], now, meet_siblings)

    def _table_job(self, table: Table) -> Job | None:
        since = self._seen[table.name].waiting_since
        if since is None:
            return None
        return Job(table.name, since, self._why_read(table.name))

    def _why_read(self, table: str) -> str:
        with suppress(Exception):  # What is wrong with a source is told by its refresh.
            begun = [each for feed in self.feeds(table) for each in feed.unread()]
            if begun:
                return f"reads {' and '.join(dict.fromkeys(begun))} from the start"
        return "new records"

    def _view_job(self, view: View, now: Instant, meet_siblings: bool) -> Job | None:
        if self._damage(view.name) is not None:
            # The refresh will meet it, report it, and be retried.
            return Job(view.name, now, "a damaged log")
        if self.chooser.missing(view.name):
            return None
        if meet_siblings and self._is_planned(view):
            decided = self.ways.decide(view.name, now)
            if decided is None:
                return None
            sources = sorted({source_of(pathway) for pathway in decided.asked})
            new = f"new data in {', '.join(sources)}"
            return Job(view.name, decided.since, new, seconds=decided.cost)
        choice = self.chooser.choose(view.name, meet_siblings=meet_siblings)
        if choice is None:
            return None
        target = provenance_of(self.lake, choice.versions, apart=view.promise.is_relaxed)
        reason = self._reason(view, target, now) or self._unwatched(view, choice.versions)
        if reason is None:
            return None
        offer = self.offers.cheapest(view.name, choice.versions)
        seconds = offer.seconds if offer is not None else None
        return Job(view.name, self._since(view, target, now), reason, seconds=seconds)

    def decided(self, name: str, now: Instant) -> Decided | None:
        """How the planner would refresh a view that is allowed some inconsistency."""
        view = self.project.views.get(name)
        if view is None or not self._is_planned(view):
            return None
        return self.ways.decide(name, now)

    def is_relaxed(self, name: str) -> bool:
        """Whether a view is allowed some inconsistency."""
        view = self.project.views.get(name)
        return view is not None and view.promise.is_relaxed

    def _is_planned(self, view: View) -> bool:
        """Whether the planner decides: some inconsistency is allowed, and what is stored fits."""
        return view.promise.is_relaxed and self._why_anew(view) is None

    def choice(
        self, view: str, *, meet_siblings: bool = True, not_after: Instant | None = None
    ) -> Choice:
        """The versions of a view's inputs to read now, or as of a moment that it comes to first."""
        choice = None
        if not_after is not None:
            choice = self.chooser.step(view, not_after)
        if choice is None:
            choice = self.chooser.choose(view, meet_siblings=meet_siblings)
        return choice if choice is not None else Choice(NOW, {})

    def _reason(self, view: View, target: Provenance, now: Instant) -> str | None:
        """Why the view wants a refresh to `target`; None if it does not."""
        anew = self._why_anew(view)
        if anew is not None:
            return anew
        newest = self.lake.log(view.name).newest()
        assert newest is not None
        assert newest.note is not None
        reflected = newest.note.after
        if reflected.precedes(target):
            return f"new data in {', '.join(reflected.channels_ahead(target))}"
        looked = max(newest.at, self._looked.get(view.name, newest.at))
        if self.chooser.inputs(view.name).opaque and now - looked >= OPAQUE_PERIOD:
            return "its inputs can't be watched"
        return None

    def _unwatched(self, view: View, versions: Mapping[str, int]) -> str | None:
        """Which of its inputs has other rows that no base table accounts for, if any has."""
        newest = self.lake.log(view.name).newest()
        read = newest.note.read if newest and newest.note else {}
        for key, version in versions.items():
            if key not in self.project.views or not self.chooser.inputs(key).opaque:
                continue
            made = [s.made for s in self.lake.log(key).snapshots() if s.version <= version]
            if made and made[-1] > read.get(key, made[-1]):
                return f"new data in {key}"
        return None

    def _why_anew(self, view: View) -> str | None:
        """Why what is stored is no ground to build on; None if it is."""
        newest = self.lake.log(view.name).newest()
        if newest is None:
            return "first refresh"
        if newest.note is None or newest.note.kind not in ("replace", "merge"):
            return "its rows were changed by another writer"
        if newest.note.definition != fingerprint(self.project, view):
            return "its definition changed"
        if self._made_anew(newest.note):
            return "an input was made anew"
        if view.name in self._lost:
            return f'its file "{self._lost[view.name].path}" is lost'
        return None

    def _made_anew(self, note: Note) -> bool:
        """Whether a table that is reflected was deleted and began again at version 0."""
        if note.ids:
            return bool(made_anew(self.lake, note))
        # Written before ids were: the number of versions is all there is to tell it by.
        reflected = note.after
        for pathway in reflected.reflected:
            commits = self.lake.log(source_of(pathway)).commits()
            if commits and commits[-1].version < (reflected.newest(pathway) or 0):
                return True
        return False

    def _since(self, view: View, target: Provenance, now: Instant) -> Instant:
        """When the oldest data arrived that the view could reflect and does not."""
        newest = self.lake.log(view.name).newest()
        reflected = newest.provenance if newest else Provenance()
        return min(self.unreflected(reflected, target), default=now)

    def unreflected(self, reflected: Provenance, target: Provenance) -> list[Instant]:
        """For each pathway on which `target` is ahead, when the first of the data ahead arrived."""
        channels = self.chooser.channels()
        arrivals = []
        for pathway in reflected.channels_ahead(target):
            have = reflected.oldest(pathway)
            versions = channels[source_of(pathway)]
            if have is not None:
                arrivals.append(versions.until(have))
            elif versions.timestamps:
                arrivals.append(versions.timestamps[0])
        return arrivals

    def waiting_since(self, name: str, now: Instant) -> list[Instant]:
        """When data arrived that `name` does not reflect: in base tables, or in their sources."""
        sources = [*self.graph.upstream(name), name]
        # What another node takes in is not asked for here: what was seen of it once says nothing.
        asked = [t for t in sources if t in self._seen and self.permits.owns(t)]
        waits = [s for t in asked if (s := self._seen[t].waiting_since)]
        if name in self.project.tables:
            return waits
        newest = self.lake.log(name).newest()
        reflected = newest.provenance if newest else Provenance()
        told = {source_of(pathway) for pathway in reflected.reflected}
        bases = {
            *reflected.reflected,
            *(t for t in sources if self.is_channel(t) and t not in told),
        }
        heads: dict[Seconds, dict[str, frozenset[int]]] = {}
        for pathway in bases:
            head = self.lake.log(source_of(pathway)).newest()
            if head is not None:
                allowed = self.allowed(name, pathway)
                heads.setdefault(allowed, {})[pathway] = frozenset({head.made})
        for allowed, each in heads.items():
            # What may wait for longer than the rest waits from when that begins to count.
            arrived = self.unreflected(reflected, Provenance(each))
            waits += [Instant(a + allowed) for a in arrived if a + allowed <= now]
        return waits

    def allowed(self, name: str, pathway: str) -> Seconds:
        """By how much longer than other data what comes through one input may wait."""
        promise = self.project.views[name].promise
        direct = pathway.rpartition(">")[2]
        usual = promise.strictest_seconds or Seconds(0.0)
        return Seconds(max(promise.staleness_through(direct) - usual, 0.0))

    def problem(self, table: str) -> str | None:
        """What keeps a table's sources from being asked, or a log from being read, if anything."""
        seen = self._seen.get(table)
        if seen is not None and seen.problem:
            return seen.problem
        damage = self._damage(table)
        return told(damage) if damage is not None else None

    def warning(self, table: str) -> str | None:
        """What is odd about a table or its sources, though it can be refreshed."""
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
        """What is odd about the sources of a table."""
        seen = self._seen.get(table)
        if seen is None or seen.problem or not self.permits.owns(table):
            return None
        return seen.warning

    def prove_whole(self, view: str) -> None:
        """Raise what is wrong with the log of a view, or of a table that it reads."""
        damage = self._damage(view)
        if damage is not None:
            raise LakeError(damage.problem, where=damage.where, hint=damage.hint)

    def _damage(self, name: str) -> LakeError | None:
        keys = [name, name + QUARANTINE]
        if name in self.project.views:
            keys += self.chooser.inputs(name).keys
        logs = (self.lake.log(key) for key in keys)
        return next((found for log in logs if (found := log.damage()) is not None), None)

    def warnings(self) -> dict[str, str]:
        """What is odd about tables, by table, and is no error."""
        return {name: said for name in self.graph.order if (said := self.warning(name))}

    def is_channel(self, name: str) -> bool:
        return name in self.project.tables and is_channel(self.project, name)


def _is_beyond(ends: Mapping[str, int], begins: Mapping[str, int]) -> bool:
    """Whether there is something between what is loaded and these ends."""
    return any(end > begins.get(transaction, end) for transaction, end in ends.items())


def is_streaming_function(flow: object) -> bool:
    """Whether Structured Streaming runs the flow and keeps its offsets."""
    return isinstance(flow, AppendFlow) and isinstance(flow.query, PythonQuery) and not flow.once
