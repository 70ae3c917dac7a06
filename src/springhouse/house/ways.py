"""How is a view refreshed next: from which versions, from all inputs or from one?

The shell around `planner`: it states the project as a workflow of views, takes the blocks out of
the Delta logs, variants and costs from `offers`, and lets the planner search. What comes back is
data, for whoever refreshes, schedules or explains.

A view that promises strict consistency has one way to move: all its inputs at once, to one moment
(`choosing`), in the cheapest variant; there is nothing to search for. One that is allowed some
inconsistency may be refreshed from its urgent inputs alone, and what the planner says is done.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from springhouse.house.choosing import Chooser
from springhouse.house.offers import Offered, Offers
from springhouse.lake.feeds import is_channel
from springhouse.lake.lake import Lake
from springhouse.lake.log import Snapshot
from springhouse.planner.blocks import MONOTONE, STRONG, Kind
from springhouse.planner.bounds import Bound, BoundInconsistency, BoundStaleness, Times
from springhouse.planner.plan import ANY_DELTA, Alternative, Plan, Situation, Step
from springhouse.planner.planner import Planner
from springhouse.planner.provenance import Provenance
from springhouse.planner.pruning import Switches
from springhouse.planner.stored import Stored, blocks_in_logs, held_in_logs
from springhouse.planner.widgets import Widget, view, workflow
from springhouse.planner.workflow import Workflow
from springhouse.project.declaration import Project
from springhouse.project.graph import Graph
from springhouse.units import Instant, Seconds

_MARGIN = 0.05
"""Which part of a promise is kept in reserve, beside what a refresh is expected to take."""


@dataclass(frozen=True)
class Decided:
    """How a view is refreshed next.

    `versions` are those of its inputs to read. With a `driver` only the new rows of that input are
    taken in. `first` are tables that have to be refreshed before. `asked` are the pathways whose
    promise asks for it, `since` is when the oldest data came that they lack.
    """

    table: str
    variant: str
    versions: Mapping[str, int]
    driver: str | None
    reaches: Provenance
    cost: Seconds
    asked: tuple[str, ...]
    since: Instant
    first: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()


class Ways:
    """Plans refreshes of the views of one project. Safe to use from several threads."""

    def __init__(
        self, project: Project, graph: Graph, lake: Lake, chooser: Chooser, offers: Offers
    ) -> None:
        self._project = project
        self._graph = graph
        self._lake = lake
        self._chooser = chooser
        self._offers = offers
        self._planner: tuple[Mapping[str, Offered], Planner] | None = None
        self._lock = threading.RLock()

    def decide(self, name: str, now: Instant) -> Decided | None:
        """How to bring a view within its promises; None if they are kept for now."""
        with self._lock:
            planner = self._planner_of_today()
            situation = self._situation(planner.workflow, name, self._ahead(name, now))
            plan = planner.plan(situation, self._offers, [name])
        return self._decided(planner.workflow, situation, plan, name)

    def decide_all(self, name: str, now: Instant) -> Decided | None:
        """How to bring all that has arrived into a view, whatever it was promised."""
        with self._lock:
            planner = self._planner_of_today(eager=name)
            situation = self._situation(planner.workflow, name, now)
            plan = planner.plan(situation, self._offers, [name])
        return self._decided(planner.workflow, situation, plan, name)

    # --- the workflow ----------------------------------------------------------------------------

    def _planner_of_today(self, eager: str | None = None) -> Planner:
        offered = {
            name: self._offers.offered(name) for name in self._graph.order if self._is_made(name)
        }
        if eager is not None:
            return self._new_planner(offered, eager)
        if self._planner is None or self._planner[0] != offered:
            self._planner = offered, self._new_planner(offered, None)
        return self._planner[1]

    def _new_planner(self, offered: Mapping[str, Offered], eager: str | None) -> Planner:
        made = {name for name, each in offered.items() if each.inputs}
        keys = dict.fromkeys(key for name in made for key in offered[name].inputs)
        inputs = [key for key in keys if key not in made]
        widgets = [self._widget(name, offered[name]) for name in self._graph.order if name in made]
        strict = [name for name in made if not self._is_relaxed(name)]
        whole = workflow(inputs, widgets, strict=strict)
        bounds = [bound for name in made for bound in self._bounds(name, offered[name], eager)]
        # Who is asked what else there is has to look on after the first that will do.
        switches = Switches(stop_early=eager is None)
        return Planner(whole, bounds, dict.fromkeys(sorted(made), ANY_DELTA), switches)

    def _is_made(self, name: str) -> bool:
        """Whether a table is made from others of the project, and not an input channel."""
        project = self._project
        return name in project.views or not is_channel(project, name)

    def _is_relaxed(self, name: str) -> bool:
        declared = self._project.views.get(name)
        return declared is not None and declared.promise.is_relaxed

    def _widget(self, name: str, offered: Offered) -> Widget:
        return view(
            name,
            offered.inputs,
            offered.variants,
            drivers=offered.drivers,
            strict=not self._is_relaxed(name),
        )

    def _bounds(self, name: str, offered: Offered, eager: str | None) -> Iterable[Bound]:
        declared = self._project.views.get(name)
        if declared is None:
            return
        promise = declared.promise
        yield BoundInconsistency(name, promise.inconsistency_seconds)
        if name == eager:
            yield BoundStaleness(name, None, 0.0)
        elif promise.is_relaxed or promise.staleness_seconds is not None:
            for each in offered.inputs:
                yield BoundStaleness(name, each, promise.staleness_through(each))

    # --- the situation ---------------------------------------------------------------------------

    def _situation(self, whole: Workflow, name: str, now: Instant) -> Situation:
        channels = self._chooser.channels()
        above = [key for key in whole.order if key in whole.above([name])]
        inputs = frozenset(whole.inputs)
        logs = {key: self._stored(whole, key, key in inputs) for key in above}
        read = {key: note.read for key in above if (note := self._offers.note(key)) is not None}
        blocks = blocks_in_logs(whole, logs, read, channels, now, above)
        return Situation(now, channels, blocks, held_in_logs(whole, logs))

    def _stored(self, whole: Workflow, key: str, is_input: bool) -> list[Stored]:
        found = []
        for snapshot in self._lake.log(key).snapshots():
            own = Provenance({key: frozenset({snapshot.made})})
            reflects = own if is_input else whole.recast(key, snapshot.provenance)
            note = snapshot.note
            rows = note.rows if note is not None else 0
            changed = note.rows_added + note.rows_removed if note is not None else 0
            found.append(Stored(snapshot.made, reflects, rows, changed, _kind(snapshot)))
        return found

    def _ahead(self, name: str, now: Instant) -> Instant:
        """When a refresh that starts now will be through: promises that break by then ask."""
        promise = self._project.views[name].promise
        bounds = [promise.staleness_seconds, *promise.staleness_by_input.values()]
        shortest = min((each for each in bounds if each), default=Seconds(0.0))
        notes = self._offers.notes(name)
        expected = max((note.seconds for note in notes[-3:]), default=0.0)
        return Instant(now + min(expected * 1.5 + _MARGIN * shortest, shortest / 2))

    # --- the answer ------------------------------------------------------------------------------

    def _decided(
        self, whole: Workflow, situation: Situation, plan: Plan, name: str
    ) -> Decided | None:
        wish = next((each for each in plan.wishes if each.channel == name and each.blocks), None)
        steps = [step for step in plan.steps if step.is_work]
        own = next((step for step in steps if step.outputs[0].channel == name), None)
        if wish is None or own is None or wish.reaches is None:
            return None
        others = [step.outputs[0].channel for step in steps if step is not own]
        times = Times(situation.channels, situation.now)
        held = situation.held.get(name, Provenance())
        arrivals = [times.stale_at(p, held.reflected.get(p, frozenset())) for p in wish.asked]
        return Decided(
            name,
            own.operator.variant.value,
            self._versions(own, name),
            own.operator.driver,
            wish.reaches,
            Seconds(own.cost),
            wish.asked,
            Instant(min(min(arrivals, default=situation.now), situation.now)),
            tuple(others),
            wish.alternatives,
        )

    def _versions(self, step: Step, name: str) -> dict[str, int]:
        """The versions of the inputs to read, as far as they are stored by now."""
        found: dict[str, int] = {}
        for block in step.inputs:
            if block.channel != name and block.versions is not None:
                made = max(block.versions[1], found.get(block.channel, -1))
                found[block.channel] = made
        return {key: self._readable(key, made) for key, made in found.items()}

    def _readable(self, key: str, made: int) -> int:
        """The newest version with the rows of the one that made them: that is kept for longest."""
        snapshots = self._lake.log(key).snapshots()
        return next((s.version for s in reversed(snapshots) if s.made == made), made)


def _kind(snapshot: Snapshot) -> Kind | None:
    """The kind of the change that made a state; None if it is not known."""
    note = snapshot.note
    if note is None:
        return STRONG
    return MONOTONE if note.kind == "append" and note.rows_removed == 0 else STRONG
