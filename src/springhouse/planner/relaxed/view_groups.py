"""Which views are planned together?

Views made from the same views share refreshes upstream, so one plan for all of them is cheaper than
separate plans. Such views are a group. A search grows with the size of its workflow, so the views
of a large group are planned one by one.
"""

from collections.abc import Iterable, Mapping, Sequence

from springhouse.project.declarations.declaration import Project
from springhouse.project.lineage.channels import is_channel
from springhouse.project.lineage.graph import Graph

ViewGroup = tuple[str, ...]
"""Views that are planned together, in topological order."""

_MOST_TOGETHER = 24
"""The most tables and views that are planned together."""


class ViewGroups:
    """The groups of those views of one project that may be inconsistent."""

    def __init__(self, project: Project, graph: Graph) -> None:
        self._project = project
        self._graph = graph
        self._groups = self._by_view()
        self._groups_making: dict[str, list[ViewGroup]] = {}

    def is_relaxed(self, name: str) -> bool:
        """Whether a table is a view that may be inconsistent."""
        view = self._project.views.get(name)
        return view is not None and view.promise.is_relaxed

    def is_made(self, name: str) -> bool:
        """Whether a table is made from other tables of the project, and is not an input channel."""
        return name in self._project.views or not is_channel(self._project, name)

    def group_of(self, view: str) -> ViewGroup | None:
        """The group in which a view is planned; None if it promises strict consistency."""
        return self._groups.get(view)

    def tables_made_in(self, group: ViewGroup) -> list[str]:
        """The views of a group and all tables above them, but no input channels."""
        return [each for each in dict.fromkeys(self._with_ancestors(group)) if self.is_made(each)]

    def groups_making(self, name: str) -> Sequence[ViewGroup]:
        """The groups in whose plans a table may be refreshed."""
        if not self._groups_making:
            for group in dict.fromkeys(self._groups.values()):
                for each in self.tables_made_in(group):
                    self._groups_making.setdefault(each, []).append(group)
        return self._groups_making.get(name, [])

    def _with_ancestors(self, views: Iterable[str]) -> list[str]:
        """All tables above these views, and the views themselves."""
        return [each for view in views for each in (*self._graph.upstream(view), view)]

    def _by_view(self) -> dict[str, ViewGroup]:
        """The group of each view that may be inconsistent."""
        relaxed = [name for name in self._graph.order if self.is_relaxed(name)]
        needs = {
            name: {each for each in self._with_ancestors([name]) if each in self._project.views}
            for name in relaxed
        }
        groups: dict[str, ViewGroup] = {}
        for views in _connected(needs):
            is_small = len({*self._with_ancestors(views)}) <= _MOST_TOGETHER
            group = tuple(each for each in relaxed if each in views)
            groups |= {view: group if is_small else (view,) for view in views}
        return groups


def _connected(needs: Mapping[str, set[str]]) -> Iterable[list[str]]:
    """The views in groups; views of one group need common views, directly or through others."""
    leader: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    for name in needs:
        connected = dict.fromkeys(leader[each] for each in needs[name] if each in leader)
        members[name] = [each for other in connected for each in members.pop(other)] + [name]
        leader |= {each: name for view in members[name] for each in needs[view]}
    return members.values()
