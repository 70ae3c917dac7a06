"""What does the search find in the logs of a workflow's tables?

`LogSituations` reads every state of a table from its log once and remembers it, because a log has
thousands of states and only gains new ones. `stored_blocks` picks the blocks that a plan may need.
"""

from springhouse.planner.delta_logs import Channels, Logs, PastRefresh, TableState, newest_note
from springhouse.planner.provenance import Provenance
from springhouse.planner.relaxed.stored_blocks import Stored, blocks_in_logs, held_in_logs
from springhouse.planner.search.blocks import MONOTONE, STRONG, Kind
from springhouse.planner.search.workflow import Workflow
from springhouse.planner.search.workflow_plan import Situation
from springhouse.units import Instant


class LogSituations:
    """Reads situations from the logs of one project."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._known: dict[tuple[object, ...], tuple[tuple[object, ...], list[Stored]]] = {}

    def situation(self, whole: Workflow, channels: Channels, now: Instant) -> Situation:
        """The facts that the search needs, at a moment."""
        inputs = frozenset(whole.inputs)
        logs = {key: self._versions(whole, key, key in inputs) for key in whole.order}
        notes = {key: newest_note(self._logs, key) for key in whole.order}
        read = {key: note.read for key, note in notes.items() if note is not None}
        blocks = blocks_in_logs(whole, logs, read, channels, now)
        return Situation(now, channels, blocks, held_in_logs(whole, logs))

    def newest_versions(self, whole: Workflow) -> tuple[object, ...]:
        """The newest version of each table, with its id; the value changes when a log moves."""
        versions = []
        for key in whole.order:
            log = self._logs.log(key)
            newest = log.newest()
            versions.append((log.table_id(), newest.version if newest is not None else -1))
        return tuple(versions)

    def held(self, whole: Workflow, name: str) -> Provenance | None:
        """The provenance of a view's newest version, in the present pathways."""
        newest = self._logs.log(name).newest()
        return None if newest is None else whole.recast(name, newest.provenance)

    def _versions(self, whole: Workflow, key: str, is_input: bool) -> list[Stored]:
        """The versions of a table, read again only after a change of its log."""
        log = self._logs.log(key)
        states = log.snapshots()
        question = (key, () if is_input else whole.pathways(key))
        signature = (log.table_id(), len(states), states[-1].version if states else -1)
        known_signature, known = self._known.get(question, (None, []))
        if known_signature == signature:
            return known
        # A new state changes none of the states before the last one.
        is_same_table = known_signature is not None and known_signature[0] == signature[0]
        same = known[:-1] if is_same_table else []
        if len(same) > len(states) or (same and same[-1].version != states[len(same) - 1].made):
            same = []
        versions = [*same, *(_stored(whole, key, is_input, each) for each in states[len(same) :])]
        self._known[question] = signature, versions
        return versions


def _stored(whole: Workflow, key: str, is_input: bool, state: TableState) -> Stored:
    own = Provenance({key: frozenset({state.made})})
    reflects = own if is_input else whole.recast(key, state.provenance)
    note = state.note
    rows = note.rows if note is not None else 0
    changed = note.rows_added + note.rows_removed if note is not None else 0
    return Stored(state.made, reflects, rows, changed, _kind(note))


def _kind(note: PastRefresh | None) -> Kind:
    """The kind of the change that made a state: monotone if it only added rows."""
    return MONOTONE if note is not None and note.rows_removed == 0 else STRONG
