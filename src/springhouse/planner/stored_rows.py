"""Can a refresh build on the rows that a view stores?

It can't if the view is empty, if another program wrote the rows, if the definition changed, if an
input was created again, or if one of the view's files is lost. A log that can't be read is damaged;
then a refresh fails and reports the damage.
"""

from springhouse.errors import SpringhouseError
from springhouse.planner.delta_logs import Logs, PastRefresh, made_anew
from springhouse.planner.provenance import source_of
from springhouse.planner.strict.versions import Chooser
from springhouse.project.declarations.declaration import Project, View
from springhouse.project.lineage.fingerprint import fingerprint
from springhouse.project.lineage.graph import QUARANTINE


class StoredRows:
    """The facts about the stored rows of one project's views that decide their refreshes."""

    def __init__(self, project: Project, logs: Logs, chooser: Chooser) -> None:
        self._project = project
        self._logs = logs
        self._chooser = chooser
        self._definitions = {
            name: fingerprint(project, view) for name, view in project.views.items()
        }
        self._lost_files: dict[str, str] = {}

    def note_lost(self, view: str, path: str) -> None:
        """A file of a view no longer exists."""
        self._lost_files[view] = path

    def forget_lost(self, view: str) -> None:
        """A refresh has replaced the lost file of a view."""
        self._lost_files.pop(view, None)

    def why_anew(self, view: View) -> str | None:
        """Why a refresh can't build on the stored rows; None if it can."""
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
        """Whether a reflected table was deleted and created again, from version 0."""
        if note.ids:
            return bool(made_anew(self._logs, note))
        # An early version of this program wrote no ids: then only version numbers can show it.
        reflected = note.after
        for pathway in reflected.reflected:
            commits = self._logs.log(source_of(pathway)).commits()
            if commits and commits[-1].version < (reflected.newest(pathway) or 0):
                return True
        return False

    def damage(self, name: str) -> SpringhouseError | None:
        """The damage in the log of a table or view, or in the log of an input of the view.

        None if no log is damaged.
        """
        keys = [name, name + QUARANTINE]
        if name in self._project.views:
            keys += self._chooser.inputs(name).keys
        logs = (self._logs.log(key) for key in keys)
        return next((problem for log in logs if (problem := log.damage()) is not None), None)
