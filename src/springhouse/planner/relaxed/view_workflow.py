"""How are views of a project stated as a workflow with bounds?

Paper 004 plans over channels and operators. Here a table is a channel, the ways in which it can be
refreshed are operators (`search.widgets`), and promises are bounds (`bounds`).
"""

from collections.abc import Iterable, Mapping

from springhouse.planner.bounds import Bound, BoundInconsistency, BoundStaleness
from springhouse.planner.offers import Offered
from springhouse.planner.search.planner import Planner
from springhouse.planner.search.widgets import Widget, view, workflow
from springhouse.planner.search.workflow import Workflow
from springhouse.planner.search.workflow_plan import ANY_DELTA
from springhouse.project.declarations.declaration import Project


def planner_of(project: Project, offered: Mapping[str, Offered]) -> Planner:
    """A planner for these tables, each with the ways in which it can be refreshed."""
    ways_of = {name: ways for name, ways in offered.items() if ways.inputs}
    views = {name: project.views[name] for name in ways_of if name in project.views}
    strict = [n for n in ways_of if n not in views or not views[n].promise.is_relaxed]
    whole = workflow(
        _channels_read(ways_of),
        [_widget(name, ways, strict=name in strict) for name, ways in ways_of.items()],
        strict=strict,
        named={table for declared in views.values() for table in declared.promise.named},
    )
    bounds = [bound for name in views for bound in _bounds(project, whole, name)]
    return Planner(whole, bounds, dict.fromkeys(sorted(ways_of), ANY_DELTA))


def _channels_read(ways_of: Mapping[str, Offered]) -> list[str]:
    """The input channels: tables that these tables read and that are not among them."""
    keys = dict.fromkeys(key for ways in ways_of.values() for key in ways.inputs)
    return [key for key in keys if key not in ways_of]


def _widget(name: str, ways: Offered, *, strict: bool) -> Widget:
    """The operators of a table."""
    return view(
        name,
        ways.inputs,
        ways.variants,
        drivers=ways.drivers,
        alone=ways.alone,
        grows=ways.grows,
        strict=strict,
    )


def _bounds(project: Project, whole: Workflow, name: str) -> Iterable[Bound]:
    """The promises of a view as bounds on its pathways."""
    promise = project.views[name].promise
    yield BoundInconsistency(name, promise.inconsistency_seconds)
    if promise.is_relaxed or promise.staleness_seconds is not None:
        inputs = whole.reads[name]
        for pathway, courses in whole.courses[name].items():
            allowed = min(promise.staleness_along(each, inputs) for each in courses)
            yield BoundStaleness(name, pathway, allowed)
