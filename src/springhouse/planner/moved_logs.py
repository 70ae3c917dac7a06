"""Which views may have another plan now, because a log has moved?

A plan depends on the logs of the view, of all tables above it, and of the views that a reader reads
together with it. `moved_views` compares each log with its state at the last call, and returns the
views that depend on a log that moved.
"""

from springhouse.planner.delta_logs import Log, Logs
from springhouse.planner.strict.versions import Chooser
from springhouse.project.declarations.declaration import Project, PythonQuery
from springhouse.project.lineage.graph import QUARANTINE, Graph


class MovedLogs:
    """The states of one project's logs at the last call, and the views that depend on each log."""

    def __init__(self, project: Project, graph: Graph, logs: Logs, chooser: Chooser) -> None:
        self._project = project
        self._graph = graph
        self._logs = logs
        self._chooser = chooser
        self._signatures: dict[str, tuple[object, ...]] = {}
        self._dependents: dict[str, tuple[str, ...]] = {}

    def moved_views(self) -> set[str]:
        """The views that depend on a log that has moved since the last call."""
        moved: set[str] = set()
        dependents = self._dependents = self._dependents or self._views_by_log()
        for key, views in dependents.items():
            signature = _signature(self._logs.log(key))
            if self._signatures.get(key) != signature:
                self._signatures[key] = signature
                moved.update(views)
                if self._reveals_inputs(key):
                    self.forget_dependents()
        return moved

    def forget_dependents(self) -> None:
        """Compute again, at the next call, which views depend on which log."""
        self._dependents = {}

    def _reveals_inputs(self, key: str) -> bool:
        """Whether only a refresh of a view reveals its inputs."""
        view = self._project.views.get(key)
        return view is not None and isinstance(view.query, PythonQuery)

    def _views_by_log(self) -> dict[str, tuple[str, ...]]:
        """For each log, the views whose plans depend on it."""
        inputs = {view: self._chooser.inputs(view).keys for view in self._project.views}
        readers: dict[str, list[str]] = {}
        for view, keys in inputs.items():
            for key in keys:
                readers.setdefault(key, []).append(view)
        above = self._keys_above(inputs)
        dependents: dict[str, dict[str, None]] = {}
        for view in self._project.views:
            for key in above[view]:
                dependents.setdefault(key, {})[view] = None
            for reader in readers.get(view, ()):
                # Views with a common reader go to one moment.
                for sibling in inputs[reader]:
                    if sibling in self._project.views:
                        dependents.setdefault(sibling, {})[view] = None
        return {key: tuple(views) for key, views in dependents.items()}

    def _keys_above(self, inputs: dict[str, tuple[str, ...]]) -> dict[str, dict[str, None]]:
        """For each table, its own log and the logs of all tables that it is made from."""
        above: dict[str, dict[str, None]] = {}
        for name in self._graph.order:
            keys = inputs.get(name) or self._graph.tables_read(name)
            above[name] = dict.fromkeys([name, name + QUARANTINE, *keys])
            for key in keys:
                above[name] |= above.get(key, {})
        return above


def _signature(log: Log) -> tuple[object, ...]:
    """A value that changes whenever the log moves."""
    newest = log.newest()
    damaged = log.damage() is not None
    if newest is None:
        return (None, damaged, len(log.commits()))
    return (newest.made, newest.version, newest.note is None, log.table_id(), damaged)
