"""From which versions of its inputs is a view refreshed next?

The states of the inputs come from the logs. `moment` finds the moment that they share, and the
`Chooser` decides whether that moment would bring the view forward.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from springhouse.planner.delta_logs import (
    Channels,
    Logs,
    TableState,
    made_anew,
    newest_note,
    provenance_of,
    state_at,
)
from springhouse.planner.provenance import NOW, Channel, Provenance, join_provenances
from springhouse.planner.strict.moment import (
    Choice,
    InputSnapshot,
    meeting_points,
    newest_common_moment,
)
from springhouse.project.declarations.declaration import Project, PythonQuery, ReadMode
from springhouse.project.lineage.graph import Graph
from springhouse.project.lineage.keys import input_key
from springhouse.units import Instant

_MOST_CANDIDATES = 200
_UNTRACKED = (ReadMode.OTHER, ReadMode.SOURCE)


@dataclass(frozen=True)
class ViewInputs:
    """A view's inputs: keys of tables with known versions, and whether there are other inputs."""

    keys: tuple[str, ...]
    opaque: bool


class Chooser:
    """Chooses versions for the views of one project, and remembers inputs that calls revealed."""

    def __init__(self, project: Project, graph: Graph, logs: Logs) -> None:
        self._project = project
        self._graph = graph
        self._logs = logs
        self._revealed: dict[str, frozenset[str]] = {}

    def reveal(self, view: str, keys: Sequence[str]) -> None:
        """A call of the view's function read these tables; its source text may not name them."""
        # A new set, because other threads may be reading the old one.
        self._revealed[view] = self._revealed.get(view, frozenset()) | frozenset(keys)

    def inputs(self, view: str) -> ViewInputs:
        """The tables that a view reads, as far as they are known."""
        listed = self._graph.inputs(view)
        keys = [input_key(i.reading, i.name) for i in listed if i.reading not in _UNTRACKED]
        revealed = sorted(self._revealed_by(view))
        opaque = any(i.reading in _UNTRACKED for i in listed) or not listed
        return ViewInputs(tuple(dict.fromkeys([*keys, *revealed])), opaque)

    def _revealed_by(self, view: str) -> frozenset[str]:
        """The tables that a function read in its last call, by this or another process."""
        if not isinstance(self._project.views[view].query, PythonQuery):
            return frozenset()
        note = newest_note(self._logs, view)
        read = note.read if note is not None else {}
        return self._revealed.get(view, frozenset()) | frozenset(read)

    def missing(self, view: str) -> list[str]:
        """The inputs that do not exist yet: the view has to wait for them."""
        return [key for key in self.inputs(view).keys if self._logs.log(key).newest() is None]

    def choose(self, view: str, *, meet_siblings: bool = True) -> Choice | None:
        """The versions to read next; None if the inputs have no moment in common.

        While base tables move, a view goes to a moment at which its siblings are, so that their
        readers find a common moment. When base tables stand still, it goes to the newest moment.
        """
        keys = self.inputs(view).keys
        if not keys:
            # No input has versions: VALUES, or files that can't be watched.
            return Choice(NOW, {})
        channels = self.channels()
        candidates = self._candidates_of(keys)
        if not all(candidates.values()):
            return None  # An input reflects a table that was created again: refresh it first.
        bound = self._project.views[view].promise.inconsistency_seconds
        if bound > 0:
            free = self._newest_of_each(candidates)
            left, right = provenance_of(self._logs, free.versions).interval(channels)
            if left - right <= bound:
                return free
        own = self._stored(view)
        since = own.interval(channels)[0] if own else Instant(float("-inf"))
        siblings = [self._candidates(each) for each in self._siblings(view)]
        for moment in meeting_points(siblings, channels, since) if meet_siblings else ():
            choice = newest_common_moment(candidates, channels, not_after=moment)
            if choice is not None and self._is_ahead(own, choice):
                return choice
        return newest_common_moment(candidates, channels)

    def step(self, view: str, not_after: Instant) -> Choice | None:
        """The versions that bring a view forward, but not beyond a moment; None if none do."""
        candidates = self._candidates_of(self.inputs(view).keys)
        choice = newest_common_moment(candidates, self.channels(), not_after=not_after)
        return choice if choice and self._is_ahead(self._stored(view), choice) else None

    def common_moment(self, keys: Sequence[str]) -> Choice | None:
        """The newest moment at which all these tables have a right snapshot."""
        return newest_common_moment(self._candidates_of(keys), self.channels())

    def channels(self) -> Mapping[str, Channel]:
        """Every table as an input channel, looked up at the first access."""
        return Channels(self._logs)

    def _candidates_of(self, keys: Sequence[str]) -> dict[str, list[InputSnapshot]]:
        """The recent snapshots of each input, and older snapshots that another input reflects."""
        recent = {key: self._candidates(key) for key in keys}
        reflected = join_provenances(
            c.provenance for snapshots in recent.values() for c in snapshots
        ).reflected
        return {key: self._candidates(key, reflected.get(key, frozenset())) for key in keys}

    def _candidates(
        self, key: str, older_versions: frozenset[int] = frozenset()
    ) -> list[InputSnapshot]:
        recent = self._right_states(key)
        oldest = recent[0].made if recent else 0
        log = self._logs.log(key)
        states = (state_at(log, version) for version in sorted(older_versions) if version < oldest)
        older = [each for each in states if each is not None and each.made in older_versions]
        return [InputSnapshot(s.version, s.provenance) for s in (*older, *recent)]

    def _right_states(self, key: str) -> list[TableState]:
        """The recent states of a table or view, without states that reflect deleted tables.

        A table that was created again counts its versions from 0 again. So the versions in a state
        do not identify the table that they count; only the ids do.
        """
        recent = self._logs.log(key).snapshots()[-_MOST_CANDIDATES:]
        if key not in self._project.views:
            return list(recent)
        wrong: dict[frozenset[tuple[str, str]], bool] = {}
        right = []
        for state in recent:
            note = state.note
            counts = frozenset([*note.ids.items(), *note.marks.items()] if note else [])
            if counts not in wrong:
                wrong[counts] = note is not None and bool(made_anew(self._logs, note))
            if not wrong[counts]:
                right.append(state)
        return right

    @staticmethod
    def _newest_of_each(candidates: Mapping[str, Sequence[InputSnapshot]]) -> Choice:
        versions = {
            key: snapshots[-1].version for key, snapshots in candidates.items() if snapshots
        }
        return Choice(Instant(0.0), versions)

    def _stored(self, view: str) -> Provenance | None:
        newest = self._logs.log(view).newest()
        if newest is None or (newest.note is not None and made_anew(self._logs, newest.note)):
            return None
        return newest.provenance

    def _is_ahead(self, own: Provenance | None, choice: Choice) -> bool:
        return own is None or own.precedes(provenance_of(self._logs, choice.versions))

    def _siblings(self, view: str) -> list[str]:
        """The views that some reader reads together with this view."""
        siblings: dict[str, None] = {}
        for reader in self._graph.dependents(view):
            declared = self._project.views.get(reader)
            if declared is None:
                continue
            for each in self._graph.tables_read(reader):
                if each in self._project.views and each != view:
                    siblings[each] = None
        return list(siblings)
