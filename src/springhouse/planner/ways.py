"""How is a view refreshed that may be inconsistent: from all inputs, or from one?

The door to Algorithm 1 of 004 for the tables of a project: their views are stated as a workflow,
blocks are taken out of the logs, variants and costs come from `Offers`, and the search finds the
cheapest plan. A view that promises strict consistency has one way to move: all its inputs at once,
to one moment (`versions`), in the cheapest variant.

Only what a view is made of matters to it, so every view has a workflow of its own, and keeps it for
as long as nothing of it can be refreshed in other ways.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from springhouse.planner.blocks import MONOTONE, STRONG, Kind
from springhouse.planner.bounds import (
    NO_LIMITS,
    Bound,
    BoundInconsistency,
    BoundStaleness,
    Limits,
    Times,
)
from springhouse.planner.choose_way import Decision
from springhouse.planner.costs import Costs
from springhouse.planner.logs import Channels, Logs, PastRefresh, TableState, newest_note
from springhouse.planner.operators import Variant
from springhouse.planner.plan import ANY_DELTA, Plan, Situation, Step
from springhouse.planner.planner import Planner
from springhouse.planner.provenance import Provenance, source_of
from springhouse.planner.refresh_plan import OtherWay, RefreshPlan
from springhouse.planner.stored import Stored, blocks_in_logs, held_in_logs
from springhouse.planner.widgets import Widget, view, workflow
from springhouse.planner.workflow import Workflow
from springhouse.project.channels import is_channel
from springhouse.project.declaration import Project
from springhouse.project.graph import Graph
from springhouse.units import Instant, Seconds

_MARGIN = 0.05
"""Which part of a promise is kept in reserve, beside what a refresh is expected to take."""

NEVER = Instant(float("inf"))


@dataclass(frozen=True)
class Offered:
    """In which variants a table can be refreshed, and from which inputs alone."""

    inputs: tuple[str, ...]
    variants: tuple[Variant, ...]
    drivers: tuple[str, ...] = ()


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
        self._planners: dict[str, tuple[Mapping[str, Offered], Planner]] = {}
        self._known: dict[tuple[object, ...], tuple[tuple[object, ...], list[Stored]]] = {}

    def decide(self, name: str, now: Instant) -> tuple[RefreshPlan | None, Instant]:
        """How to bring a view within its promises, and until when that answer holds.

        There is no plan if all promises are kept for now.
        """
        planner = self._planner(name)
        channels = Channels(self._logs)
        whole = planner.workflow
        limits, ahead = planner.limits.get(name, NO_LIMITS), self._ahead(name)
        times = Times(channels, Instant(now + ahead))
        held = self._held(whole, name)
        until = NEVER if held is None else _next_break(times, limits, held, ahead)
        if held is not None and not times.violated(limits, held):
            return None, until
        situation = self._situation(whole, channels, times.now)
        plan = planner.plan(situation, self._offers, [name])
        return self._decided(whole, situation, plan, name), until

    # --- the workflow ----------------------------------------------------------------------------

    def _planner(self, name: str) -> Planner:
        """The planner of what a view is made of; a new one if that can be done in other ways."""
        needed = [each for each in self._made_of(name) if self._is_made(each)]
        offered = {each: self._offers.offered(each) for each in needed}
        known = self._planners.get(name)
        if known is None or known[0] != offered:
            known = self._planners[name] = offered, self._new_planner(offered)
        return known[1]

    def _made_of(self, name: str) -> tuple[str, ...]:
        return *self._graph.upstream(name), name

    def _new_planner(self, offered: Mapping[str, Offered]) -> Planner:
        made = {name: each for name, each in offered.items() if each.inputs}
        keys = dict.fromkeys(key for each in made.values() for key in each.inputs)
        inputs = [key for key in keys if key not in made]
        widgets = [self._widget(name, each) for name, each in made.items()]
        strict = [name for name in made if not self._is_relaxed(name)]
        whole = workflow(inputs, widgets, strict=strict)
        bounds = [bound for name, each in made.items() for bound in self._bounds(name, each)]
        return Planner(whole, bounds, dict.fromkeys(sorted(made), ANY_DELTA))

    def _is_made(self, name: str) -> bool:
        """Whether a table is made from others of the project, and not an input channel."""
        project = self._project
        return name in project.views or not is_channel(project, name)

    def _is_relaxed(self, name: str) -> bool:
        declared = self._project.views.get(name)
        return declared is not None and declared.promise.is_relaxed

    def _widget(self, name: str, offered: Offered) -> Widget:
        strict = not self._is_relaxed(name)
        return view(name, offered.inputs, offered.variants, drivers=offered.drivers, strict=strict)

    def _bounds(self, name: str, offered: Offered) -> Iterable[Bound]:
        declared = self._project.views.get(name)
        if declared is None:
            return
        promise = declared.promise
        yield BoundInconsistency(name, promise.inconsistency_seconds)
        if promise.is_relaxed or promise.staleness_seconds is not None:
            for each in offered.inputs:
                yield BoundStaleness(name, each, promise.staleness_through(each))

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

    def _ahead(self, name: str) -> Seconds:
        """How long a refresh that starts now will take: promises that break by then ask."""
        promise = self._project.views[name].promise
        bounds = [promise.staleness_seconds, *promise.staleness_by_input.values()]
        shortest = min((each for each in bounds if each), default=Seconds(0.0))
        expected = max(self._offers.last_seconds(name)[-3:], default=0.0)
        return Seconds(min(expected * 1.5 + _MARGIN * shortest, shortest / 2))

    # --- the answer ------------------------------------------------------------------------------

    def _decided(
        self, whole: Workflow, situation: Situation, plan: Plan, name: str
    ) -> RefreshPlan | None:
        wish = next((each for each in plan.wishes if each.channel == name and each.blocks), None)
        steps = [step for step in plan.steps if step.is_work]
        own = next((step for step in steps if step.outputs[0].channel == name), None)
        if wish is None or own is None or wish.reaches is None:
            return None
        first = tuple(step.outputs[0].channel for step in steps if step is not own)
        times = Times(situation.channels, situation.now)
        held = situation.held.get(name, Provenance())
        arrivals = [times.stale_at(p, held.reflected.get(p, frozenset())) for p in wish.asked]
        sources = sorted({source_of(pathway) for pathway in wish.asked})
        found = RefreshPlan(
            name,
            f"new data in {', '.join(sources)}",
            Instant(min(min(arrivals, default=situation.now), situation.now)),
            self._read(own, name),
            _in_words(own.operator.variant.value),
            driver=own.operator.driver,
            seconds=Seconds(own.cost),
            reaches=wish.reaches,
            asked=wish.asked,
            first=first,
        )
        others: dict[str, float] = {}
        for each in wish.alternatives:
            others.setdefault(_in_words(each.operator.partition(": ")[2]), each.cost)
        others.pop(str(found), None)
        return replace(found, others=tuple(OtherWay(*each) for each in others.items()))

    def _read(self, step: Step, name: str) -> dict[str, int]:
        """The versions of the inputs to read, as far as they are stored by now."""
        found: dict[str, int] = {}
        for block in step.inputs:
            if block.channel != name and block.versions is not None:
                made = max(block.versions[1], found.get(block.channel, -1))
                found[block.channel] = made
        return {key: self._readable(key, made) for key, made in found.items()}

    def _readable(self, key: str, made: int) -> int:
        """The newest version with the rows of the one that made them: that is kept for longest."""
        snapshots = self._logs.log(key).snapshots()
        return next((s.version for s in reversed(snapshots) if s.made == made), made)


def _in_words(variant: str) -> str:
    """A variant as plans and commits call it."""
    return "full" if variant == Variant.BATCH.value else variant


def _next_break(times: Times, limits: Limits, held: Provenance, ahead: Seconds) -> Instant:
    """When the next bound breaks that is kept now, less the time that a refresh takes."""
    breaks = (
        times.stale_at(pathway, held.reflected.get(pathway, frozenset())) + seconds
        for pathway, seconds in limits.staleness.items()
    )
    return Instant(min((at for at in breaks if at > times.now), default=NEVER) - ahead)


def _stored(whole: Workflow, key: str, is_input: bool, state: TableState) -> Stored:
    own = Provenance({key: frozenset({state.made})})
    reflects = own if is_input else whole.recast(key, state.provenance)
    note = state.note
    rows = note.rows if note is not None else 0
    changed = note.rows_added + note.rows_removed if note is not None else 0
    return Stored(state.made, reflects, rows, changed, _kind(note))


def _kind(note: PastRefresh | None) -> Kind:
    """The kind of the change that made a state."""
    if note is None:
        return STRONG
    return MONOTONE if note.kind == "append" and note.rows_removed == 0 else STRONG
