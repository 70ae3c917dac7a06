"""Can a refresh build on what a view stores?

A refresh can't if the view is empty, if somebody else wrote its rows, if its definition or an input
was made anew, or if one of its files is lost. A log that can't be read is damaged; then a refresh
fails and reports it.
"""

from springhouse.errors import SpringhouseError
from springhouse.planner.delta_logs import Logs, PastRefresh, made_anew
from springhouse.planner.provenance import source_of
from springhouse.planner.strict.versions import Chooser
from springhouse.project.declarations.declaration import Project, View
from springhouse.project.lineage.fingerprint import fingerprint
from springhouse.project.lineage.graph import QUARANTINE


class StoredRows:
    """What the views of one project store, as far as it decides how they are refreshed."""

    def __init__(self, project: Project, logs: Logs, chooser: Chooser) -> None:
        self._project = project
        self._logs = logs
        self._chooser = chooser
        self._definitions = {
            name: fingerprint(project, view) for name, view in project.views.items()
        }
        self._lost_files: dict[str, str] = {}

    def note_lost(self, view: str, path: str) -> None:
        """A file of a view is not there any more."""
        self._lost_files[view] = path

    def forget_lost(self, view: str) -> None:
        """A refresh replaced the file that a view had lost."""
        self._lost_files.pop(view, None)

    def why_anew(self, view: View) -> str | None:
        """Why a refresh can't build on what is stored; None if it can."""
        newest = self._logs.log(view.name).newest()
        if newest is None:
            return "first refresh"
        if newest.note is None or newest.note.kind not in ("replace", "merge"):
            return "its rows were changed by another writer"
        if newest.note.definition != self._definitions[view.name]:
            return "its definition changed"
        if self._inputs_made_anew(newest.note):
            return "an input was made anew"
        if view.name in self._lost_files:
            return f'its file "{self._lost_files[view.name]}" is lost'
        return None

    def _inputs_made_anew(self, note: PastRefresh) -> bool:
        """Whether a table that is reflected was deleted and began again at version 0."""
        if note.ids:
            return bool(made_anew(self._logs, note))
        # An early version of this program wrote no ids: then only the number of versions tells.
        reflected = note.after
        for pathway in reflected.reflected:
            commits = self._logs.log(source_of(pathway)).commits()
            if commits and commits[-1].version < (reflected.newest(pathway) or 0):
                return True
        return False

    def damage(self, name: str) -> SpringhouseError | None:
        """What is wrong with the log of a table or view, or of an input of the view, if anything.

        None if nothing is.
        """
        keys = [name, name + QUARANTINE]
        if name in self._project.views:
            keys += self._chooser.inputs(name).keys
        logs = (self._logs.log(key) for key in keys)
        return next((problem for log in logs if (problem := log.damage()) is not None), None)
