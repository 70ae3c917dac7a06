"""How is a view refreshed that may be inconsistent: from all inputs, or from one?

The door to Algorithm 1 of 004 for the tables of a project: their views are stated as a workflow,
blocks are taken out of the logs, variants and costs come from `Offers`, and the search finds the
cheapest plan. A view that promises strict consistency has one way to move: all its inputs at once,
to one moment (`versions`), in the cheapest variant.

Views that are made of the same views are planned together: what is due of them shares what it
needs upstream. Such a group has a workflow of its own, and keeps it for as long as nothing of it
can be refreshed in other ways. Large groups are taken apart: then each view is planned with what it
is made of.

A plan may begin with refreshes of views upstream. They are part of it: the same plan says from
which versions and in which way, and all of it is carried out as a unit.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Protocol

from springhouse.planner.bounds import NO_LIMITS, Bound, BoundInconsistency, BoundStaleness, Times
from springhouse.planner.logs import Channels, Logs, PastRefresh, TableState, newest_note
from springhouse.planner.provenance import Provenance, source_of
from springhouse.planner.refresh_plan import OtherWay, RefreshPlan
from springhouse.planner.relaxed.stored_blocks import Stored, blocks_in_logs, held_in_logs
from springhouse.planner.search.blocks import MONOTONE, STRONG, Kind
from springhouse.planner.search.invocation_costs import Costs
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.search.planner import Planner
from springhouse.planner.search.widgets import Widget, view, workflow
from springhouse.planner.search.workflow import Workflow
from springhouse.planner.search.workflow_plan import (
    ANY_DELTA,
    PlanStep,
    Situation,
    Wish,
    WorkflowPlan,
)
from springhouse.planner.way.choose_way import Decision
from springhouse.project.declarations.declaration import Project
from springhouse.project.lineage.channels import is_channel
from springhouse.project.lineage.graph import Graph
from springhouse.units import Instant, Seconds

_NONE: frozenset[int] = frozenset()

_MARGIN = 0.05
"""Which part of a promise is kept in reserve, beside what a refresh is expected to take."""

_MOST_TOGETHER = 24
"""The most tables and views that are planned together."""

NEVER = Instant(float("inf"))


@dataclass(frozen=True)
class Offered:
    """In which variants a table can be refreshed, and from which inputs alone.

    Where one of those is `alone`, the others are not looked at. A table `grows` if new rows of its
    inputs only bring it new rows.
    """

    inputs: tuple[str, ...]
    variants: tuple[WidgetVariant, ...]
    drivers: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    grows: bool = False


@dataclass(frozen=True)
class Offer:
    """The cheapest way to bring a view to some versions of its inputs, and the other ways.

    Without `seconds` nothing was learned yet; the `decision` behind it is there if one was made.
    """

    way: str
    seconds: Seconds | None
    others: tuple[OtherWay, ...] = ()
    decision: Decision | None = None


class Offers(Costs, Protocol):
    """What can be done for each table of a project, and at what cost.

    `learned` is what a scheduler knows of a table from its past alone.
    """

    learned: Callable[[str], Seconds | None]

    def offered(self, name: str) -> Offered:
        """The variants that a table has now."""
        ...

    def cheapest(self, name: str, versions: Mapping[str, int]) -> Offer | None:
        """The cheapest way to take all changes in; None where nothing is known."""
        ...

    def last_seconds(self, name: str) -> Sequence[float]:
        """What the last refreshes of a table took, the newest last."""
        ...


class Ways:
    """Plans refreshes of the views of one project that may be inconsistent."""

    def __init__(self, project: Project, graph: Graph, logs: Logs, offers: Offers) -> None:
        self._project = project
        self._graph = graph
        self._logs = logs
        self._offers = offers
        self._planners: dict[tuple[str, ...], tuple[Mapping[str, Offered], Planner]] = {}
        self._groups = _groups(project, graph)
        self._planned: dict[tuple[str, ...], _Planned] = {}
        self._made_in: dict[str, list[tuple[str, ...]]] = {}
        # What a plan should take, steps included, that a bound on a pathway asked for last.
        self._took: dict[tuple[str, str], float] = {}
        self._known: dict[tuple[object, ...], tuple[tuple[object, ...], list[Stored]]] = {}

    def decide(self, name: str, now: Instant) -> tuple[RefreshPlan | None, Instant]:
        """How to bring a view within its promises, and until when that answer holds.

        There is no plan if all promises are kept for now.
        """
        group = self._groups[name]
        planner, channels = self._planner(group), Channels(self._logs)
        until = NEVER
        if self._logs.log(name).newest() is not None:
            breaks = self._breaks(name, planner, Times(channels, now))
            until = Instant(min((at for at, _ in breaks if at > now), default=NEVER))
            if all(at > now for at, _ in breaks):
                return None, until
        planned = self._plan(group, planner, channels, now)
        found = self._decided(planned, name, now)
        if found is not None:
            took = sum(each.seconds or 0.0 for each in (*found.first, found))
            self._took |= {(name, pathway): took for pathway in found.asked}
        return found, until

    def _plan(
        self, group: tuple[str, ...], planner: Planner, channels: Channels, now: Instant
    ) -> "_Planned":
        """The plan for all views of a group that are due; made once for each moment."""
        known = self._planned.get(group)
        states = self._states(planner.workflow)
        if known is not None and known.now == now and known.states == states:
            return known
        times, due, latest = Times(channels, now), [], 0.0
        for each in group:
            ahead = [seconds for at, seconds in self._breaks(each, planner, times) if at <= now]
            if ahead:
                due.append(each)
                latest = max(latest, *ahead)
        situation = self._situation(planner.workflow, channels, Instant(now + latest))
        plan = planner.plan(situation, self._offers, due)
        found = _Planned(now, states, planner.workflow, situation, plan)
        self._planned[group] = found
        return found

    def _breaks(self, name: str, planner: Planner, times: Times) -> list[tuple[Instant, Seconds]]:
        """When a refresh has to start, for each bound of a view, and how long before it breaks."""
        held = self._held(planner.workflow, name)
        if held is None or not self._is_relaxed(name) or name not in planner.outputs:
            return []
        found = []
        for pathway, seconds in planner.limits.get(name, NO_LIMITS).staleness.items():
            ahead = self._ahead(name, pathway, seconds)
            versions = held.reflected.get(pathway)
            at = times.stale_at(pathway, versions) + seconds - ahead if versions else times.now
            found.append((Instant(at), ahead))
        return found

    def _states(self, whole: Workflow) -> tuple[object, ...]:
        """What tells whether a log has moved, for each table of a workflow."""
        found = []
        for key in whole.order:
            log = self._logs.log(key)
            newest = log.newest()
            found.append((log.table_id(), newest.version if newest is not None else -1))
        return tuple(found)

    def allows(self, name: str, reflects: Provenance) -> bool:
        """Whether what a view would reflect lies within the bound on its inconsistency."""
        planner = self._planner(self._groups[name])
        # Time never breaks this bound, so any moment will do.
        times = Times(Channels(self._logs), NEVER)
        held = planner.workflow.recast(name, reflects)
        return times.within_inconsistency(planner.limits.get(name, NO_LIMITS), held)

    def bounds(self, name: str) -> Mapping[str, float]:
        """How long data may wait on each pathway of a view; none of one that is never apart."""
        group = self._groups.get(name)
        return self._planner(group).limits.get(name, NO_LIMITS).staleness if group else {}

    def asked(self, name: str) -> Mapping[str, float]:
        """How long what comes to a table through each input may wait, for it and all made of it.

        Nothing is said unless all of that is planned together.
        """
        found: dict[str, float] = {}
        for group in self._with(name):
            planner = self._planner(group)
            whole = planner.workflow
            if not {*self._graph.downstream(name)} <= {*whole.order}:
                return {}
            for read in whole.reads[name]:
                for key in whole.through_input(name, read):
                    seconds = planner.asked[name].get(key, inf)
                    found[read] = min(found.get(read, inf), seconds)
        return found

    def _with(self, name: str) -> list[tuple[str, ...]]:
        """The groups in which a table is made."""
        if not self._made_in:
            for group in dict.fromkeys(self._groups.values()):
                for each in dict.fromkeys(e for view in group for e in self._made_of(view)):
                    if self._is_made(each):
                        self._made_in.setdefault(each, []).append(group)
        return self._made_in.get(name, [])

    def held(self, name: str) -> Provenance | None:
        """What a view reflects, in today's pathways; None of one that is never apart."""
        group = self._groups.get(name)
        return self._held(self._planner(group).workflow, name) if group else None

    # --- the workflow ----------------------------------------------------------------------------

    def _planner(self, group: tuple[str, ...]) -> Planner:
        """The planner of a group of views; a new one if they can be refreshed in other ways."""
        made_of = dict.fromkeys(each for view in group for each in self._made_of(view))
        needed = [each for each in made_of if self._is_made(each)]
        offered = {each: self._offers.offered(each) for each in needed}
        known = self._planners.get(group)
        if known is None or known[0] != offered:
            known = self._planners[group] = offered, self._new_planner(offered)
        return known[1]

    def _made_of(self, name: str) -> tuple[str, ...]:
        return *self._graph.upstream(name), name

    def _new_planner(self, offered: Mapping[str, Offered]) -> Planner:
        made = {name: each for name, each in offered.items() if each.inputs}
        keys = dict.fromkeys(key for each in made.values() for key in each.inputs)
        inputs = [key for key in keys if key not in made]
        widgets = [self._widget(name, each) for name, each in made.items()]
        strict = [name for name in made if not self._is_relaxed(name)]
        views = (self._project.views[name] for name in made if name in self._project.views)
        named = {each for view in views for each in view.promise.named}
        whole = workflow(inputs, widgets, strict=strict, named=named)
        bounds = [bound for name in made for bound in self._bounds(whole, name)]
        return Planner(whole, bounds, dict.fromkeys(sorted(made), ANY_DELTA))

    def _is_made(self, name: str) -> bool:
        """Whether a table is made from others of the project, and not an input channel."""
        project = self._project
        return name in project.views or not is_channel(project, name)

    def _is_relaxed(self, name: str) -> bool:
        return _is_relaxed(self._project, name)

    def _widget(self, name: str, offered: Offered) -> Widget:
        strict = not self._is_relaxed(name)
        return view(
            name,
            offered.inputs,
            offered.variants,
            drivers=offered.drivers,
            alone=offered.alone,
            grows=offered.grows,
            strict=strict,
        )

    def _bounds(self, whole: Workflow, name: str) -> Iterable[Bound]:
        declared = self._project.views.get(name)
        if declared is None:
            return
        promise = declared.promise
        yield BoundInconsistency(name, promise.inconsistency_seconds)
        if promise.is_relaxed or promise.staleness_seconds is not None:
            inputs = whole.reads[name]
            for pathway, courses in whole.courses[name].items():
                allowed = min(promise.staleness_along(each, inputs) for each in courses)
                yield BoundStaleness(name, pathway, allowed)

    # --- the situation ---------------------------------------------------------------------------

    def _held(self, whole: Workflow, name: str) -> Provenance | None:
        """What the newest version of a view reflects, in today's pathways."""
        newest = self._logs.log(name).newest()
        return None if newest is None else whole.recast(name, newest.provenance)

    def _situation(self, whole: Workflow, channels: Channels, now: Instant) -> Situation:
        inputs = frozenset(whole.inputs)
        logs = {key: self._versions(whole, key, key in inputs) for key in whole.order}
        notes = {key: newest_note(self._logs, key) for key in whole.order}
        read = {key: note.read for key, note in notes.items() if note is not None}
        blocks = blocks_in_logs(whole, logs, read, channels, now)
        return Situation(now, channels, blocks, held_in_logs(whole, logs))

    def _versions(self, whole: Workflow, key: str, is_input: bool) -> list[Stored]:
        """The versions of a table, read again only when there are others."""
        log = self._logs.log(key)
        snapshots = log.snapshots()
        asked = (key, () if is_input else whole.pathways(key))
        seen = (log.table_id(), len(snapshots), snapshots[-1].version if snapshots else -1)
        known = self._known.get(asked)
        if known is not None and known[0] == seen:
            return known[1]
        # What follows the last state of a table leaves those before it as they were.
        kept = known[1][:-1] if known is not None and known[0][0] == seen[0] else []
        if len(kept) > len(snapshots) or (
            kept and kept[-1].version != snapshots[len(kept) - 1].made
        ):
            kept = []
        new = snapshots[len(kept) :]
        found = [*kept, *(_stored(whole, key, is_input, each) for each in new)]
        self._known[asked] = seen, found
        return found

    def _ahead(self, name: str, pathway: str, bound: float) -> Seconds:
        """How long a refresh that starts now will take: promises that break by then ask.

        What it begins with upstream takes its time, too; that is another one for each pathway.
        """
        promise = self._project.views[name].promise
        bounds = [promise.staleness_seconds, *promise.staleness_by_pathway.values()]
        shortest = min((each for each in bounds if each), default=Seconds(0.0))
        own = max(self._offers.last_seconds(name)[-3:], default=0.0)
        expected = max(own, self._took.get((name, pathway), 0.0))
        return Seconds(min(expected * 1.5 + _MARGIN * shortest, bound / 2))

    # --- the answer ------------------------------------------------------------------------------

    def _decided(self, planned: "_Planned", name: str, now: Instant) -> RefreshPlan | None:
        """The refresh of a view that a plan says, with the steps upstream that it needs."""
        plan = planned.plan
        wish = next((each for each in plan.wishes if each.channel == name and each.blocks), None)
        own = next((step for step in plan.steps if step.is_work and _makes(step, name)), None)
        if wish is None or own is None:
            return None
        found = self._refresh(planned, own, now, wish)
        first = [self._refresh(planned, step, now) for step in _upstream(plan, own)]
        return replace(found, first=tuple(first))

    def _refresh(
        self, planned: "_Planned", step: PlanStep, now: Instant, wish: Wish | None = None
    ) -> RefreshPlan:
        """One step as the refresh of a table; with a `wish`, what asked for it is known."""
        situation, name = planned.situation, step.outputs[0].channel
        held = situation.held.get(name, Provenance())
        reaches = step.outputs[-1].end if wish is None or wish.reaches is None else wish.reaches
        asked = tuple(held.channels_ahead(reaches)) if wish is None else wish.asked
        times = Times(situation.channels, situation.now)
        arrivals = [times.stale_at(p, held.reflected.get(p, _NONE)) for p in asked]
        sources = sorted({source_of(pathway) for pathway in asked})
        found = RefreshPlan(
            name,
            f"new data in {', '.join(sources)}",
            Instant(min(*arrivals, now)) if arrivals else now,
        )
        if name in self._project.tables:
            return found
        found = replace(
            found,
            versions=self._read(step, name),
            way=_in_words(step.operator.variant.value),
            driver=step.operator.driver,
            seconds=Seconds(step.cost),
            reaches=reaches,
            asked=asked,
        )
        others: dict[str, float] = {}
        for each in wish.alternatives if wish is not None else ():
            others.setdefault(_in_words(each.operator.partition(": ")[2]), each.cost)
        others.pop(str(found), None)
        return replace(found, others=tuple(OtherWay(*each) for each in others.items()))

    def _read(self, step: PlanStep, name: str) -> dict[str, int]:
        """The versions of the inputs to read, as far as they are stored by now."""
        note = newest_note(self._logs, name)
        last = note.read if note is not None else {}
        found: dict[str, int] = {}
        for port in step.operator.ports:
            if port.untouched and port.channel in last:
                # It is read as it was read before, if at all: nothing of it moves.
                found[port.channel] = last[port.channel]
        for block in step.inputs:
            if block.channel != name and block.versions is not None:
                made = max(block.versions[1], found.get(block.channel, -1))
                found[block.channel] = made
        return {key: self._readable(key, made) for key, made in found.items()}

    def _readable(self, key: str, made: int) -> int:
        """The newest version with the rows of the one that made them: that is kept for longest."""
        snapshots = self._logs.log(key).snapshots()
        return next((s.version for s in reversed(snapshots) if s.made == made), made)


@dataclass(frozen=True)
class _Planned:
    """A plan for a group of views, and the moment and the logs that it was made for."""

    now: Instant
    states: tuple[object, ...]
    workflow: Workflow
    situation: Situation
    plan: WorkflowPlan


def _makes(step: PlanStep, channel: str) -> bool:
    return any(block.channel == channel for block in step.outputs)


def _upstream(plan: WorkflowPlan, own: PlanStep) -> list[PlanStep]:
    """The steps that make what a step reads, directly or not, in the order of the plan."""
    made = {block: step for step in plan.steps for block in step.outputs}
    needed: dict[int, PlanStep] = {}
    waiting = [own]
    while waiting:
        step = waiting.pop()
        for block in step.inputs:
            above = made.get(block)
            if above is not None and above is not step and id(above) not in needed:
                needed[id(above)] = above
                waiting.append(above)
    return [step for step in plan.steps if step.is_work and id(step) in needed and step is not own]


def _groups(project: Project, graph: Graph) -> dict[str, tuple[str, ...]]:
    """For each view that may be inconsistent, those that are planned together with it."""
    relaxed = [name for name in graph.order if _is_relaxed(project, name)]
    made_of = {
        name: {each for each in (*graph.upstream(name), name) if each in project.views}
        for name in relaxed
    }
    leader: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    for name in relaxed:
        joined = dict.fromkeys(leader[each] for each in made_of[name] if each in leader)
        found = [each for other in joined for each in members.pop(other)] + [name]
        members[name] = found
        leader |= {each: name for view in found for each in made_of[view]}
    groups: dict[str, tuple[str, ...]] = {}
    for found in members.values():
        size = len({each for view in found for each in (*graph.upstream(view), view)})
        together = tuple(each for each in relaxed if each in found)
        groups |= {view: together if size <= _MOST_TOGETHER else (view,) for view in found}
    return groups


def _is_relaxed(project: Project, name: str) -> bool:
    declared = project.views.get(name)
    return declared is not None and declared.promise.is_relaxed


def _in_words(variant: str) -> str:
    """A variant as plans and commits call it."""
    return "full" if variant == WidgetVariant.BATCH.value else variant


def _stored(whole: Workflow, key: str, is_input: bool, state: TableState) -> Stored:
    own = Provenance({key: frozenset({state.made})})
    reflects = own if is_input else whole.recast(key, state.provenance)
    note = state.note
    rows = note.rows if note is not None else 0
    changed = note.rows_added + note.rows_removed if note is not None else 0
    return Stored(state.made, reflects, rows, changed, _kind(note))


def _kind(note: PastRefresh | None) -> Kind:
    """The kind of the change that made a state: of a view, too, one that only added rows."""
    return MONOTONE if note is not None and note.rows_removed == 0 else STRONG
