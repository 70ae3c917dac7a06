"""In which ways can a table be refreshed now, and what would each take?

There is one number for what a refresh takes. The lake's formula (`lake.costs`) says it from what
the Delta logs tell, corrected by what the refreshes of this view took; the planner chooses by it,
and the scheduler orders by it. Tables that are no views have no formula, and before a view has
taught anything its formula says little: then the scheduler's own number is the one, and the planner
asks for it (`learned`).

Between ways that differ clearly the planner's word is the last one. Between ways that nearly cost
the same, or that were not tried often enough, a refresh looks once more when it begins, because
then it reads which keys changed, and so which files it needs (docs/decisions/0040).
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf

from springhouse.errors import LakeError
from springhouse.lake.costs import Cost, Past, corrected, lessons, unread_cost
from springhouse.lake.lake import Lake
from springhouse.lake.note import Note
from springhouse.lake.plans import NoPlan, known_plan
from springhouse.planner.costs import Estimate, Reading
from springhouse.planner.operators import Operator, Variant
from springhouse.planner.refresh_plan import OtherWay
from springhouse.planner.versions import Chooser
from springhouse.planner.ways import Offer, Offered
from springhouse.project.declaration import Project, RefreshMode
from springhouse.project.fingerprint import fingerprint
from springhouse.project.graph import Graph
from springhouse.project.keys import input_key
from springhouse.units import Seconds
from springhouse.views.compile import Compiled
from springhouse.views.variants import Way, can_drive, regrouped, synchronous

_WAYS = {
    Variant.BATCH: Way.BATCH,
    Variant.INCREMENTAL: Way.INCREMENTAL,
    Variant.GROUP_RECOMPUTE: Way.GROUP_RECOMPUTE,
    Variant.ASYNCHRONOUS: Way.ASYNCHRONOUS,
}
_REMEMBERED = 20
_CLEARLY = 2.0
"""A way that costs so many times less than the others is taken without a second look."""


class Offers:
    """What can be done for each table of one project, and at what cost."""

    def __init__(self, project: Project, graph: Graph, lake: Lake, chooser: Chooser) -> None:
        self._project = project
        self._graph = graph
        self._lake = lake
        self._chooser = chooser
        self._compiled: dict[tuple[object, ...], tuple[Compiled, dict[str, str]] | NoPlan] = {}
        self.learned: Callable[[str], Seconds | None] = lambda _: None
        """What the scheduler has learned about a table from its past alone."""

    # --- What can be done ------------------------------------------------------------------------

    def offered(self, name: str) -> Offered:
        """The variants that a table has now."""
        if name not in self._project.views:
            # A streaming table that other tables feed takes in what is new, and nothing else.
            return Offered(self._graph.tables_read(name), (Variant.INCREMENTAL,))
        keys = self._keys(name)
        found = self._compiled_view(name, keys)
        note = self.note(name)
        if isinstance(found, NoPlan) or note is None or not self._has_state(name, note):
            return Offered(keys, (Variant.BATCH,))
        compiled, names = found
        drivers = tuple(key for key, own in names.items() if can_drive(compiled, own))
        variants = [Variant.BATCH, *self._synchronous(compiled)]
        return Offered(keys, (*variants, *([Variant.ASYNCHRONOUS] if drivers else [])), drivers)

    def _has_state(self, name: str, note: Note) -> bool:
        declared = self._project.views[name]
        return note.stateful and note.definition == fingerprint(self._project, declared)

    @staticmethod
    def _synchronous(compiled: Compiled) -> list[Variant]:
        """The variants that take all changes in: by increments, by groups, or by either."""
        every = frozenset(compiled.inputs)
        if synchronous(compiled, every).way is Way.GROUP_RECOMPUTE:
            return [Variant.GROUP_RECOMPUTE]
        if regrouped(compiled, every) is None:
            return [Variant.INCREMENTAL]
        return [Variant.INCREMENTAL, Variant.GROUP_RECOMPUTE]

    def _keys(self, name: str) -> tuple[str, ...]:
        return tuple(key for key in self._chooser.inputs(name).keys if key != name)

    def _compiled_view(
        self, name: str, keys: Sequence[str]
    ) -> tuple[Compiled, dict[str, str]] | NoPlan:
        """What the compiler makes of a view, and what it calls each input; asked once."""
        declared = self._project.views[name]
        made = tuple((s.version if (s := self._lake.log(k).newest()) else -1) >= 0 for k in keys)
        asked = (name, fingerprint(self._project, declared), made, self.note(name) is None)
        if asked not in self._compiled:
            try:
                found = known_plan(self._lake, self._project, declared, keys)
            except LakeError as error:
                # A log is damaged, which its refresh tells. Once it is mended, this is asked again.
                return NoPlan(error.problem, error.where or str(declared.place))
            if isinstance(found, NoPlan):
                self._compiled[asked] = found
            else:
                compiled, flat = found
                names = {input_key(*key): own for own, key in flat.inputs.items()}
                self._compiled[asked] = compiled, names
        return self._compiled[asked]

    # --- What it takes ---------------------------------------------------------------------------

    def cheapest(self, name: str, versions: Mapping[str, int]) -> Offer | None:
        """The cheapest way to bring a view to these versions, all of them at once.

        None where the formula knows nothing: before a refresh has taught it anything, and if the
        view does not say what it reads.
        """
        note = self.note(name)
        if note is None or not versions or not versions.keys() <= note.read.keys():
            return None
        if not self._past(name).lessons:
            return None
        bases = sum(self._rows(key, version) for key, version in versions.items())
        moved = {
            key: rows
            for key, version in versions.items()
            if (rows := self._changed(key, note.read[key], version))
        }
        offered = [
            (self._seconds(name, _WAYS[each], bases, moved), _WAYS[each])
            for each in self._allowed(name)
        ]
        (seconds, way), *others = sorted(offered, key=lambda each: each[0])
        clear = all(other >= _CLEARLY * seconds for other, _ in others)
        settled = clear and self._is_tried(name, way)
        rest = tuple(OtherWay(each.value, other) for other, each in others)
        return Offer(way.value, Seconds(seconds), settled, rest)

    def _allowed(self, name: str) -> list[Variant]:
        """The variants that take all in, as far as the view wants them: there is always one."""
        mode = self._project.views[name].refresh
        every = self.offered(name).variants
        offered: list[Variant] = [e for e in every if e is not Variant.ASYNCHRONOUS]
        if mode is RefreshMode.INCREMENTAL:
            return [each for each in offered if each is not Variant.BATCH] or offered
        return [Variant.BATCH] if mode is RefreshMode.FULL else offered

    def estimate(self, operator: Operator, readings: Sequence[Reading]) -> Estimate:
        """What a planner's invocation costs, and the rows that come out."""
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
        way = _WAYS.get(operator.variant, Way.INCREMENTAL)
        notes = self.notes(name)
        rows = own or max((float(note.rows) for note in notes[-1:]), default=bases)
        seconds = self._seconds(name, way, bases, moved)
        return Estimate(seconds, (rows, deltas if operator.moves else rows))

    def _seconds(self, name: str, way: Way, bases: float, moved: Mapping[str, float]) -> float:
        """What a refresh takes, as far as it can be told without reading anything."""
        past, note = self._past(name), self.note(name)
        # With state there are several ways, and only the formula can tell them apart.
        one_way = note is None or not note.stateful
        if not past.lessons and one_way and (known := self.learned(name)) is not None:
            return known
        if way is Way.BATCH or name not in self._project.views:
            return corrected(Cost(way, 1, int(bases)), past).seconds
        return corrected(self._unread(name, way, moved), past).seconds

    def _past(self, name: str) -> Past:
        return lessons(self.notes(name), foreseen=True)

    def _is_tried(self, name: str, way: Way) -> bool:
        """Whether the last two refreshes went this way, so that what it takes is known."""
        last = [note.variant for note in self.notes(name) if note.kind in ("replace", "merge")]
        return last[-2:] == [way.value] * 2

    def _unread(self, name: str, way: Way, moved: Mapping[str, float]) -> Cost:
        """What a refresh takes after so many rows of some inputs moved, without a look at them."""
        keys = self._keys(name)
        found = self._compiled_view(name, keys)
        if isinstance(found, NoPlan):
            return Cost(way, 1, 0, int(sum(moved.values())), len(keys))
        compiled, names = found
        changed = {names[key]: rows for key, rows in moved.items() if key in names}
        inputs = frozenset(changed) or frozenset(compiled.inputs)
        refresh = compiled.refresh(inputs)
        if way is Way.GROUP_RECOMPUTE and (other := regrouped(compiled, inputs)) is not None:
            assert other.refresh is not None
            refresh = other.refresh
        sizes: dict[str, float] = {own: self._rows(key) for key, own in names.items()}
        return unread_cost(way, refresh, changed, {**sizes, "": self._rows(name)})

    # --- What the logs say -----------------------------------------------------------------------

    def _rows(self, key: str, version: float = inf) -> int:
        """How many rows a table has as of a version, or now, as far as its log tells."""
        for commit in reversed(self._lake.log(key).commits()):
            if commit.version <= version and commit.note is not None and commit.note.rows:
                return commit.note.rows
        return 0

    def _changed(self, key: str, before: int, after: int) -> int:
        """How many rows of an input changed between two versions."""
        found = 0
        for commit in reversed(self._lake.log(key).commits()):
            if commit.version <= before:
                break
            if commit.version <= after and commit.note is not None and commit.changes_data:
                found += commit.note.rows_added + commit.note.rows_removed
        return found

    def notes(self, name: str) -> list[Note]:
        """What the last commits of a table say about themselves."""
        return [c.note for c in self._lake.log(name).commits()[-_REMEMBERED:] if c.note]

    def last_seconds(self, name: str) -> list[float]:
        """What the last refreshes of a table took, the newest last."""
        return [note.seconds for note in self.notes(name)]

    def note(self, name: str) -> Note | None:
        """What the newest commit of a table says; None if there is none, or it is not ours."""
        newest = self._lake.log(name).newest()
        return newest.note if newest is not None else None
