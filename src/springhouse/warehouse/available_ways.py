"""How can a table be refreshed now, and what would each way cost?

There is one number for the seconds of a refresh. The planner's formula computes it from the Delta
logs, corrected by the durations of past refreshes (`planner.way.choose_way`). A table that is no
view has no formula, and without past refreshes the formula of a view says little. In both cases the
planner uses the scheduler's own number (`learned`).

If two ways clearly differ, the numbers of rows decide. If they cost nearly the same, or were not
tried often enough, the plan is settled when its refresh begins. The refresh then reads which keys
changed, and so which files it needs (docs/decisions/0040).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf

from springhouse.errors import LakeError
from springhouse.lake.delta.note import Note
from springhouse.lake.lake import Lake
from springhouse.lake.views.closer_look import batch_cost, facts_of
from springhouse.lake.views.compiled_plans import NotIncremental, known_plan
from springhouse.lake.views.experience import past_of, refreshes_of
from springhouse.lake.views.stored_state import NO_STATE
from springhouse.planner.offers import Offer, Offered
from springhouse.planner.refresh_plan import OtherWay
from springhouse.planner.search.invocation_costs import Estimate, InputRead
from springhouse.planner.search.operators import Operator, WidgetVariant
from springhouse.planner.strict.versions import Chooser
from springhouse.planner.way.choose_way import WayFacts, choose_way
from springhouse.planner.way.past_refreshes import Past
from springhouse.planner.way.refresh_cost import WAYS, WayCost
from springhouse.project.declarations.declaration import AppendFlow, Project, RefreshMode
from springhouse.project.lineage.fingerprint import fingerprint
from springhouse.project.lineage.graph import Graph
from springhouse.project.lineage.keys import input_key
from springhouse.units import Seconds
from springhouse.views.compile import Compiled
from springhouse.views.variants import (
    Way,
    can_drive,
    drives_alone,
    only_grows,
    regrouped,
    synchronous,
)


class ProjectOffers:
    """The ways to refresh each table of one project, and their costs."""

    def __init__(self, project: Project, graph: Graph, lake: Lake, chooser: Chooser) -> None:
        self._project = project
        self._graph = graph
        self._lake = lake
        self._chooser = chooser
        self._compiled: dict[
            tuple[object, ...], tuple[Compiled, dict[str, str]] | NotIncremental
        ] = {}
        self.learned: Callable[[str], Seconds | None] = lambda _: None
        """What the scheduler has learned about a table from its past refreshes alone."""

    # --- What can be done ------------------------------------------------------------------------

    def offered(self, name: str) -> Offered:
        """The variants that a table has now."""
        if name not in self._project.views:
            # A streaming table that other tables feed can only add the new rows.
            appends = all(isinstance(f, AppendFlow) for f in self._project.flows_into(name))
            read = self._graph.tables_read(name)
            return Offered(read, (WidgetVariant.INCREMENTAL,), grows=appends)
        keys = self._keys(name)
        found = self._compiled_view(name, keys)
        note = self.note(name)
        if isinstance(found, NotIncremental) or note is None or not self._has_state(name, note):
            return Offered(keys, (WidgetVariant.BATCH,))
        compiled, names = found
        drivers = tuple(key for key, own in names.items() if can_drive(compiled, own))
        alone = tuple(key for key in drivers if drives_alone(compiled, names[key]))
        variants = [WidgetVariant.BATCH, *self._synchronous(compiled)]
        return Offered(
            keys,
            (*variants, *([WidgetVariant.ASYNCHRONOUS] if drivers else [])),
            drivers,
            alone,
            only_grows(compiled),
        )

    def _has_state(self, name: str, note: Note) -> bool:
        declared = self._project.views[name]
        return note.stateful and note.definition == fingerprint(self._project, declared)

    @staticmethod
    def _synchronous(compiled: Compiled) -> list[WidgetVariant]:
        """The variants that load all changes: by increments, by groups, or by either."""
        every = frozenset(compiled.inputs)
        if synchronous(compiled, every).way is Way.GROUP_RECOMPUTE:
            return [WidgetVariant.GROUP_RECOMPUTE]
        if regrouped(compiled, every) is None:
            return [WidgetVariant.INCREMENTAL]
        return [WidgetVariant.INCREMENTAL, WidgetVariant.GROUP_RECOMPUTE]

    def _keys(self, name: str) -> tuple[str, ...]:
        return tuple(key for key in self._chooser.inputs(name).keys if key != name)

    def _compiled_view(
        self, name: str, keys: Sequence[str]
    ) -> tuple[Compiled, dict[str, str]] | NotIncremental:
        """The compiled view and its name for each input; a result is kept for the next call."""
        declared = self._project.views[name]
        made = tuple((s.version if (s := self._lake.log(k).newest()) else -1) >= 0 for k in keys)
        asked = (name, fingerprint(self._project, declared), made, self.note(name) is None)
        if asked not in self._compiled:
            try:
                found = known_plan(self._lake, self._project, declared, keys)
            except LakeError as error:
                # The log is damaged; the refresh reports it. This result is not kept, so a repair
                # counts.
                return NotIncremental(error.problem, error.where or str(declared.place))
            if isinstance(found, NotIncremental):
                self._compiled[asked] = found
            else:
                compiled, flat = found
                names = {input_key(*key): own for own, key in flat.inputs.items()}
                self._compiled[asked] = compiled, names
        return self._compiled[asked]

    # --- What it takes ---------------------------------------------------------------------------

    def cheapest(self, name: str, versions: Mapping[str, int]) -> Offer | None:
        """The cheapest way to bring a view to these versions, all of them at once.

        None if the view would be recomputed, because nothing is stored to build on.
        """
        note = self.note(name)
        if note is None or not versions or not versions.keys() <= note.read.keys():
            return None
        moved = {
            key: rows
            for key, version in versions.items()
            if (rows := self._changed(key, note.read[key], version))
        }
        past, facts = self._past(name), self._facts(name, versions, moved)
        if facts is None:
            bases = sum(self._rows(key, version) for key, version in versions.items())
            cost = past.corrected(batch_cost(bases))
            return Offer(WAYS[cost.way], Seconds(cost.seconds) if past.lessons else None)
        decision = choose_way(facts)
        others = tuple(OtherWay(WAYS[each.way], each.seconds) for each in decision.alternatives)
        seconds = Seconds(decision.seconds) if past.lessons else None
        return Offer(WAYS[decision.way], seconds, others, decision)

    def _facts(
        self, name: str, versions: Mapping[str, int], moved: Mapping[str, float]
    ) -> WayFacts | None:
        """What the logs say about a refresh of a view; None if it can only be recomputed."""
        found = self._compiled_view(name, self._keys(name))
        note = self.note(name)
        if isinstance(found, NotIncremental) or note is None:
            return None
        compiled, names = found
        changed = {names[key]: rows for key, rows in moved.items() if key in names}
        rows: dict[str, float] = {
            own: self._rows(key, versions.get(key, inf)) for key, own in names.items()
        }
        declared = self._project.views[name]
        incremental = declared.refresh is RefreshMode.INCREMENTAL
        return replace(
            facts_of(compiled, changed, {**rows, "": self._rows(name)}, self._past(name)),
            refreshes=refreshes_of(self._lake, name),
            missing="" if self._has_state(name, note) else NO_STATE,
            keep=incremental or declared.promise.is_relaxed,
            incremental=incremental,
        )

    def estimate(self, operator: Operator, readings: Sequence[InputRead]) -> Estimate:
        """The cost of an invocation in a plan, and the number of rows that it returns."""
        name = operator.outputs[0].channel
        inputs = len(operator.ports)
        bases = sum(each.base_rows for each in readings[:inputs])
        deltas = sum(each.delta_rows for each in readings[:inputs])
        own = sum(each.base_rows for each in readings[inputs:])
        moved = {
            port.channel: reading.delta_rows
            for port, reading in zip(operator.ports, readings, strict=False)
            if reading.delta_rows
        }
        notes = self.notes(name)
        rows = own or max((float(note.rows) for note in notes[-1:]), default=bases)
        seconds = self._seconds(name, operator.variant, bases, moved)
        return Estimate(seconds, (rows, deltas if operator.moves else rows))

    def _seconds(
        self, name: str, variant: WidgetVariant, bases: float, moved: Mapping[str, float]
    ) -> float:
        """The seconds of a refresh, as far as they are known without reading anything."""
        past, note = self._past(name), self.note(name)
        # With state there are several ways, and only the formula can distinguish them.
        one_way = note is None or not note.stateful
        if not past.lessons and one_way and (known := self.learned(name)) is not None:
            return known
        if variant is WidgetVariant.BATCH or name not in self._project.views:
            return past.corrected(replace(batch_cost(bases), way=_way_of(variant))).seconds
        facts = self._facts(name, {}, moved)
        if facts is None:
            keys = self._keys(name)
            cost = WayCost(_way_of(variant), 1, 0, int(sum(moved.values())), len(keys))
            return past.corrected(cost, unread=True).seconds
        usual, *others = facts.changes
        cost = next((each for each in others if each.way is variant), usual)
        cost = replace(cost, way=_way_of(variant))
        return past.corrected(cost, unread=True, hopeful=True).seconds

    def _past(self, name: str) -> Past:
        return past_of(self._lake, self._project.views, name)

    # --- What the logs say -----------------------------------------------------------------------

    def _rows(self, key: str, version: float = inf) -> int:
        """The number of rows of a table at a version, or now, as far as its log says."""
        for commit in reversed(self._lake.log(key).commits()):
            if commit.version <= version and commit.note is not None and commit.note.rows:
                return commit.note.rows
        return 0

    def _changed(self, key: str, before: int, after: int) -> int:
        """The number of rows of an input that changed between two versions."""
        found = 0
        for commit in reversed(self._lake.log(key).commits()):
            if commit.version <= before:
                break
            if commit.version <= after and commit.note is not None and commit.changes_data:
                found += commit.note.rows_added + commit.note.rows_removed
        return found

    def notes(self, name: str) -> list[Note]:
        """The notes of the last refreshes of a table."""
        return refreshes_of(self._lake, name)

    def last_seconds(self, name: str) -> list[float]:
        """The seconds of the last refreshes of a table, the newest last."""
        return [note.seconds for note in self.notes(name)]

    def note(self, name: str) -> Note | None:
        """The note of a table's newest commit; None without a commit, or if it is not ours."""
        newest = self._lake.log(name).newest()
        return newest.note if newest is not None else None


def _way_of(variant: WidgetVariant) -> WidgetVariant:
    """The way of a refresh that a variant of an operator means."""
    return variant if variant in WAYS else WidgetVariant.INCREMENTAL
