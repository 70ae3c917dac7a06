"""Which refreshes are wanted now, and what exactly would each one do?

The one place that decides. A base table wants a refresh when something waits in its sources
(`Arrivals`). A view wants one when its inputs have moved beyond what it reflects, when what is
stored is no ground to build on, or, if it may be inconsistent, when a promise is about to break
(`ways`). The answer is a `RefreshPlan`.

Nothing is planned anew that did not move. A plan depends on the logs of the view, of all that it is
made of, and of the views that are read together with it; a promise breaks at a moment that is known
before. So `look` compares what the logs say with what they said, and `plans` works out only

    those that a log which moved can reach, and those whose moment has come
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Protocol

from springhouse.errors import SpringhouseError
from springhouse.planner.logs import Log, Logs, PastRefresh, made_anew, newest_note, reflected_by
from springhouse.planner.one_scan import from_one_scan
from springhouse.planner.provenance import NOW, Provenance, source_of
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.planner.relaxed.relaxed_views import NEVER, Offers, Ways
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.strict.moment import Choice
from springhouse.planner.strict.versions import Chooser
from springhouse.planner.way.refresh_cost import WAYS
from springhouse.project.declarations.declaration import Project, PythonQuery, View
from springhouse.project.lineage.channels import is_channel
from springhouse.project.lineage.fingerprint import fingerprint
from springhouse.project.lineage.graph import QUARANTINE, Graph
from springhouse.units import Instant, Seconds

OPAQUE_PERIOD = Seconds(60.0)
"""How often a view is refreshed whose inputs nobody can watch (files, another catalog)."""

_UNWATCHED = "its inputs can't be watched"


class Arrivals(Protocol):
    """What waits in the sources of base tables."""

    def since(self, table: str) -> Instant | None:
        """Since when something waits for a table; None if nothing does, or nobody here knows."""
        ...

    def reason(self, table: str) -> str:
        """Why the table is to be refreshed."""
        ...


@dataclass(frozen=True)
class _Answer:
    """What was worked out for a view, and until when that holds if nothing moves."""

    plan: RefreshPlan | None
    until: Instant = NEVER


class Planning:
    """The plans of one project; with a `lock`, for several threads."""

    def __init__(
        self,
        project: Project,
        graph: Graph,
        logs: Logs,
        arrivals: Arrivals,
        chooser: Chooser,
        offers: Offers,
        lock: AbstractContextManager[object] | None = None,
    ) -> None:
        self._lock = lock or nullcontext()
        self._project = project
        self._graph = graph
        self._logs = logs
        self._arrivals = arrivals
        self._chooser = chooser
        self._offers = offers
        self._ways = Ways(project, graph, logs, offers)
        self._definitions = {
            name: fingerprint(project, view) for name, view in project.views.items()
        }
        self._answers: dict[str, _Answer] = {}
        self._timers: list[tuple[Instant, str]] = []
        self._moved: set[str] = set(project.views)
        self._seen: dict[str, tuple[object, ...]] = {}
        self._reached: dict[str, tuple[str, ...]] = {}
        # When a view was refreshed last, also if there was nothing to commit.
        self._refreshed: dict[str, Instant] = {}
        # Files of views that were not there when they were last looked for.
        self._lost: dict[str, str] = {}

    # --- What happens ----------------------------------------------------------------------------

    def look(self) -> None:
        """See which logs have moved since this was last called."""
        with self._lock:
            every = self._reached = self._reached or self._who_is_reached()
            for key, reached in every.items():
                found = _signature(self._logs.log(key))
                if self._seen.get(key) != found:
                    self._seen[key] = found
                    self._moved.update(reached)
                    if self._tells_its_inputs(key):
                        self._reached = {}

    def _tells_its_inputs(self, key: str) -> bool:
        """Whether only a refresh of a view tells what it reads."""
        view = self._project.views.get(key)
        return view is not None and isinstance(view.query, PythonQuery)

    def refreshed(self, name: str, now: Instant, *, found_something: bool) -> None:
        """A refresh of a view ended."""
        with self._lock:
            self._refreshed[name] = now
            if found_something:
                self._lost.pop(name, None)
            if name in self._project.views:
                self._moved.add(name)

    def reveal(self, view: str, keys: Iterable[str]) -> None:
        """A call of the view's function read these tables, which its source may not have told."""
        with self._lock:
            before = self._chooser.inputs(view).keys
            self._chooser.reveal(view, list(keys))
            self._moved.add(view)
            if self._chooser.inputs(view).keys != before:
                self._reached = {}

    def note_lost(self, view: str, path: str) -> None:
        """A file of a view is not there any more."""
        with self._lock:
            self._lost[view] = path
            self._moved.add(view)

    # --- What is wanted --------------------------------------------------------------------------

    def plans(self, now: Instant) -> list[RefreshPlan]:
        """Every refresh that is wanted now, in topological order."""
        with self._lock:
            self._update(now)
            known = {name: plan for name in self._graph.order if (plan := self._known(name))}
            needed = {step.table: (step, plan) for plan in known.values() for step in plan.first}
            for name, (step, reader) in needed.items():
                # Perhaps sooner than its own promise asks.
                reason = f"{reader.table} needs it"
                known[name] = replace(known.get(name, step), urgent=True, reason=reason)
            return [known[name] for name in self._graph.order if name in known]

    def plan(self, name: str, now: Instant) -> RefreshPlan | None:
        """The refresh that a table or view wants now, if any."""
        with self._lock:
            self._update(now)
            return self._known(name)

    def whole(self, name: str, now: Instant) -> RefreshPlan | None:
        """The refresh that brings all that there is into a table or view; None if nothing waits.

        It goes to the newest moment, without regard to where other views are.
        """
        with self._lock:
            if name in self._project.tables:
                return self._known(name)
            return self._strict(self._project.views[name], now, meet_siblings=False).plan

    def unwatched(self, view: str, now: Instant) -> RefreshPlan | None:
        """The refresh of a view whose inputs can't be watched, moved or not."""
        with self._lock:
            if not self._chooser.inputs(view).opaque or self.missing(view):
                return None
            choice = self._chooser.choose(view, meet_siblings=False) or Choice(NOW, {})
            return self._to(self._project.views[view], choice, _UNWATCHED, now)

    def forced(self, name: str, reason: str, now: Instant) -> RefreshPlan:
        """A refresh of a table or view, whether it is wanted or not."""
        with self._lock:
            if name in self._project.tables:
                return RefreshPlan(name, reason, now)
            self.look()
            planned = self.plan(name, now)
            if planned is not None and not planned.first and not self._damage(name):
                return replace(planned, reason=reason)
            choice = self._chooser.choose(name) or Choice(NOW, {})
            return self._to(self._project.views[name], choice, reason, now)

    def step(self, plan: RefreshPlan, now: Instant) -> RefreshPlan | None:
        """A step of a unit, as it is to be done now that those before it are through.

        None if it is no longer wanted, or if it would reflect data that lies too far apart.
        """
        with self._lock:
            self.look()
            self._update(now)
            found = self._known(plan.table)
            if found is not None and not found.first:
                return found
            if found is None and plan.first:
                return None
            # Only the unit wants it, or newer data came upstream meanwhile. It must not wait for
            # that: the next data would come before the last is through, again and again.
            return self._over_what_was_made(plan)

    def _over_what_was_made(self, plan: RefreshPlan) -> RefreshPlan | None:
        """The step as it was planned, over the versions that the steps before it made."""
        view = self._project.views.get(plan.table)
        newest = self._logs.log(plan.table).newest()
        if view is None or newest is None:
            return replace(plan, first=())
        heads = {key: self._logs.log(key).newest() for key in self._chooser.inputs(view.name).keys}
        made = {key: head.version for key, head in heads.items() if head is not None}
        kept = {key: each for key, each in plan.versions.items() if key not in plan.needs}
        versions = {**made, **kept}
        reaches = self._would_reflect(view, plan.driver, versions)
        if view.promise.is_relaxed and not self._ways.allows(view.name, reaches):
            return None
        return replace(plan, first=(), versions=versions, reaches=reaches)

    def _would_reflect(
        self, view: View, driver: str | None, versions: Mapping[str, int]
    ) -> Provenance:
        """What a view reflects after a refresh over these versions."""
        note, newest = newest_note(self._logs, view.name), self._logs.log(view.name).newest()
        end = reflected_by(self._logs, self._project, view, versions)
        if driver is None or note is None or newest is None:
            return end
        before = {**versions, driver: note.read.get(driver, versions[driver])}
        start = reflected_by(self._logs, self._project, view, before)
        return newest.provenance.converted(start, end)

    def part(self, plan: RefreshPlan, moment: Instant, now: Instant) -> RefreshPlan:
        """The same refresh, but of a view no further than a moment, if that brings it forward.

        One that may be inconsistent has its own way of going only so far: by inputs.
        """
        with self._lock:
            view = self._project.views.get(plan.table)
            if view is None or view.promise.is_relaxed:
                return plan
            step = self._chooser.step(plan.table, moment)
            return plan if step is None else self._to(view, step, plan.reason, now)

    def from_one_scan(self, lead: RefreshPlan, others: Iterable[RefreshPlan]) -> list[RefreshPlan]:
        """A refresh, and those of the others that are best done with it, from one scan."""
        with self._lock:
            return from_one_scan(self._logs, lead, others)

    def _known(self, name: str) -> RefreshPlan | None:
        if name in self._project.views:
            return self._answers[name].plan
        since = self._arrivals.since(name)
        return None if since is None else RefreshPlan(name, self._arrivals.reason(name), since)

    def _update(self, now: Instant) -> None:
        while self._timers and self._timers[0][0] <= now:
            at, name = heappop(self._timers)
            if self._answers[name].until == at:
                self._moved.add(name)
        moved, self._moved = self._moved, set()
        for name in moved:
            answer = self._answers[name] = self._answer(self._project.views[name], now)
            if answer.until < NEVER:
                heappush(self._timers, (answer.until, name))

    # --- One view --------------------------------------------------------------------------------

    def _answer(self, view: View, now: Instant) -> _Answer:
        if self._damage(view.name) is not None:
            # The refresh will meet it, report it, and be retried.
            return _Answer(RefreshPlan(view.name, "a damaged log", now))
        if view.promise.is_relaxed and not self.missing(view.name) and not self.why_anew(view):
            return _Answer(*self._ways.decide(view.name, now))
        return self._strict(view, now, meet_siblings=True)

    def _strict(self, view: View, now: Instant, *, meet_siblings: bool) -> _Answer:
        """The refresh that takes all inputs to one moment."""
        if self._damage(view.name) is not None:
            return _Answer(RefreshPlan(view.name, "a damaged log", now))
        if self.missing(view.name):
            return _Answer(None)
        choice = self._chooser.choose(view.name, meet_siblings=meet_siblings)
        if choice is None:
            return _Answer(None)
        anew = self.why_anew(view)
        plan = self._to(view, choice, anew or "", now)
        looks_again = self._looks_again(view)
        if plan.asked and anew is None:
            plan = replace(plan, reason=f"new data in {', '.join(plan.asked)}")
        elif anew is None and now >= looks_again:
            plan = replace(plan, reason=_UNWATCHED)
        elif anew is None:
            changed = self._unwatched(view, choice.versions)
            if changed is None:
                return _Answer(None, looks_again)
            plan = replace(plan, reason=f"new data in {changed}")
        return _Answer(plan)

    def _to(self, view: View, choice: Choice, reason: str, now: Instant) -> RefreshPlan:
        """The refresh of a view to these versions of its inputs, in the cheapest way."""
        reaches = reflected_by(self._logs, self._project, view, choice.versions)
        newest = self._logs.log(view.name).newest()
        held = newest.provenance if newest is not None else Provenance()
        asked = tuple(held.channels_ahead(reaches)) if held.precedes(reaches) else ()
        plan = RefreshPlan(
            view.name,
            reason,
            min(self.arrived(held, reaches), default=now),
            choice.versions,
            WAYS[WidgetVariant.BATCH],
            reaches=reaches,
            asked=asked,
        )
        offer = self._offers.cheapest(view.name, choice.versions)
        if offer is None:
            return plan
        return replace(
            plan,
            way=offer.way,
            seconds=offer.seconds,
            others=offer.others,
            decision=offer.decision,
        )

    def _looks_again(self, view: View) -> Instant:
        """When a view is to be refreshed though nothing that can be watched has moved."""
        newest = self._logs.log(view.name).newest()
        if newest is None or not self._chooser.inputs(view.name).opaque:
            return NEVER
        return Instant(max(newest.at, self._refreshed.get(view.name, newest.at)) + OPAQUE_PERIOD)

    def _unwatched(self, view: View, versions: Mapping[str, int]) -> str | None:
        """Which of its inputs has other rows that no base table accounts for, if any has."""
        note = newest_note(self._logs, view.name)
        read = note.read if note is not None else {}
        for key, version in versions.items():
            if key not in self._project.views or not self._chooser.inputs(key).opaque:
                continue
            made = [s.made for s in self._logs.log(key).snapshots() if s.version <= version]
            if made and made[-1] > read.get(key, made[-1]):
                return key
        return None

    def missing(self, view: str) -> list[str]:
        """The inputs that nobody has made yet: the view has to wait for them."""
        return self._chooser.missing(view)

    def why_anew(self, view: View) -> str | None:
        """Why what is stored is no ground to build on; None if it is."""
        newest = self._logs.log(view.name).newest()
        if newest is None:
            return "first refresh"
        if newest.note is None or newest.note.kind not in ("replace", "merge"):
            return "its rows were changed by another writer"
        if newest.note.definition != self._definitions[view.name]:
            return "its definition changed"
        if self._inputs_made_anew(newest.note):
            return "an input was made anew"
        if view.name in self._lost:
            return f'its file "{self._lost[view.name]}" is lost'
        return None

    def _inputs_made_anew(self, note: PastRefresh) -> bool:
        """Whether a table that is reflected was deleted and began again at version 0."""
        if note.ids:
            return bool(made_anew(self._logs, note))
        # Written before ids were: the number of versions is all there is to tell it by.
        reflected = note.after
        for pathway in reflected.reflected:
            commits = self._logs.log(source_of(pathway)).commits()
            if commits and commits[-1].version < (reflected.newest(pathway) or 0):
                return True
        return False

    def damage(self, name: str) -> SpringhouseError | None:
        """What is wrong with the log of a table or view, or of what a view reads, if anything."""
        return self._damage(name)

    def _damage(self, name: str) -> SpringhouseError | None:
        keys = [name, name + QUARANTINE]
        if name in self._project.views:
            keys += self._chooser.inputs(name).keys
        logs = (self._logs.log(key) for key in keys)
        return next((found for log in logs if (found := log.damage()) is not None), None)

    # --- Since when ------------------------------------------------------------------------------

    def arrived(self, reflected: Provenance, target: Provenance) -> list[Instant]:
        """For each pathway on which `target` is ahead, when the first of the data ahead arrived."""
        channels = self._chooser.channels()
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
        with self._lock:
            sources = [*self._graph.upstream(name), name]
            tables = [each for each in sources if each in self._project.tables]
            waits = [since for each in tables if (since := self._arrivals.since(each)) is not None]
            if name in self._project.tables:
                return waits
            reflected = self._reflected(name)
            reached = {source_of(pathway) for pathway in reflected.reflected}
            bases = {*reflected.reflected, *(t for t in tables if self._is_new(t, reached))}
            heads: dict[Seconds, dict[str, frozenset[int]]] = {}
            for pathway in bases:
                head = self._logs.log(source_of(pathway)).newest()
                if head is not None:
                    allowed = self.allowed(name, pathway)
                    heads.setdefault(allowed, {})[pathway] = frozenset({head.made})
            for allowed, each in heads.items():
                # What may wait for longer than the rest waits from when that begins to count.
                arrived = self.arrived(reflected, Provenance(each))
                waits += [Instant(a + allowed) for a in arrived if a + allowed <= now]
            return waits

    def _reflected(self, view: str) -> Provenance:
        """What a view reflects, in the pathways that its promises tell apart today."""
        newest = self._logs.log(view).newest()
        if newest is not None and self._project.views[view].promise.named:
            return self._ways.held(view) or newest.provenance
        return newest.provenance if newest is not None else Provenance()

    def _is_new(self, table: str, reached: set[str]) -> bool:
        return table not in reached and is_channel(self._project, table)

    def allowed(self, name: str, pathway: str) -> Seconds:
        """By how much longer than other data what comes along one pathway may wait."""
        usual = self._project.views[name].promise.strictest_seconds or Seconds(0.0)
        return Seconds(max(self.bound(name, pathway) - usual, 0.0))

    def bound(self, view: str, pathway: str) -> Seconds:
        """How long what arrived may wait that comes to a view along a pathway."""
        promise = self._project.views[view].promise
        known = self._ways.bounds(view).get(pathway) if promise.staleness_by_pathway else None
        if known is not None:
            return Seconds(known)
        return promise.staleness_along(pathway.split(">"), self._graph.tables_read(view))

    def bounds(self, name: str, inputs: Collection[str]) -> dict[str, Seconds]:
        """The strictest bound on what comes through each input, if any input has one of its own."""
        declared = self._project.views.get(name) or self._project.tables[name]
        promise = declared.promise
        if not promise.staleness_by_pathway:
            return {}
        found = {each: promise.staleness_along([each], inputs) for each in inputs}
        for pathway, seconds in self._ways.bounds(name).items():
            through = pathway.rpartition(">")[2]
            found[through] = Seconds(min(found.get(through, seconds), seconds))
        return found

    def patience(self, name: str) -> dict[str, Seconds]:
        """By how much longer what comes through each input may wait than what may wait least.

        For the table and for all that is made of it; nothing if that can't be told.
        """
        asked = self._ways.asked(name)
        least = min(asked.values(), default=NEVER)
        if least == NEVER:
            return {}
        return {each: Seconds(seconds - least) for each, seconds in asked.items()}

    # --- What reaches what -----------------------------------------------------------------------

    def _who_is_reached(self) -> dict[str, tuple[str, ...]]:
        """For each log, the views whose plans depend on it."""
        found: dict[str, dict[str, None]] = {}
        keys = {view: self._chooser.inputs(view).keys for view in self._project.views}
        readers: dict[str, list[str]] = {}
        for view, read in keys.items():
            for key in read:
                readers.setdefault(key, []).append(view)
        made_of: dict[str, dict[str, None]] = {}
        for name in self._graph.order:
            read = keys.get(name) or self._graph.tables_read(name)
            above = made_of[name] = dict.fromkeys([name, name + QUARANTINE, *read])
            for each in read:
                above |= made_of.get(each, {})
        for view in self._project.views:
            for key in made_of[view]:
                found.setdefault(key, {})[view] = None
            for reader in readers.get(view, ()):
                # Views that are read together go to one moment.
                for each in keys[reader]:
                    if each in self._project.views:
                        found.setdefault(each, {})[view] = None
        return {key: tuple(reached) for key, reached in found.items()}


def _signature(log: Log) -> tuple[object, ...]:
    """What is another one whenever a log has moved."""
    newest = log.newest()
    damaged = log.damage() is not None
    if newest is None:
        return (None, damaged, len(log.commits()))
    return (newest.made, newest.version, newest.note is None, log.table_id(), damaged)
