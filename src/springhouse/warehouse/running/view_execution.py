"""How is one view refreshed, from its plan to its commit?

The lake prepares the refresh. The planner settles the way by the stored state and the changes. Then
the lake carries the refresh out. If the lake can't, the planner decides again:

    the stored state does not fit the change   the view is rebuilt
    Spark failed in a compiled statement       the query of the view runs instead, and the commit
                                               says why: a view that plain Spark can compute can
                                               always be refreshed
"""

from springhouse.lake.lake import Lake
from springhouse.lake.landing.landing import Done
from springhouse.lake.spark.queries import errors_at
from springhouse.lake.views.healing import RecomputeInstead
from springhouse.lake.views.incremental import StateMismatch
from springhouse.lake.views.prepared import Prepared, StatementFailed, prepared, statements_of
from springhouse.lake.views.refresh_view import refresh_view
from springhouse.planner.refresh_plan import RefreshPlan, settle_plan
from springhouse.planner.way.choose_way import decide_rebuild, decide_without_statements
from springhouse.project.declarations.declaration import Project, RefreshMode


def refreshed(
    lake: Lake, project: Project, plan: RefreshPlan, anew: RecomputeInstead | None = None
) -> Done:
    """Refresh a view as planned; with `anew`, recompute it, whatever is stored."""
    ready = prepared(lake, project, plan, anew)
    unreadable = anew is not None and anew.unreadable
    with errors_at(ready.view.place):
        plan = _settled(ready, plan, anew)
        while True:
            try:
                return refresh_view(ready, plan, unreadable=unreadable)
            except StateMismatch as astray:
                problem = f"rebuilt: {astray.problem}"
                plan = plan.by(decide_rebuild(ready.facts, problem, state=True))
            except StatementFailed as failed:
                plan = _without_statements(ready, plan, failed)


def _settled(ready: Prepared, plan: RefreshPlan, anew: RecomputeInstead | None) -> RefreshPlan:
    """The plan with the way that fits the stored state and the changed keys."""
    if anew is not None:
        return plan.by(decide_rebuild(ready.facts, anew.why, state=_wants_state(ready)))
    try:
        with statements_of(ready.lake, ready.tables):
            return settle_plan(plan, ready.facts, ready.look)
    except StatementFailed as failed:
        return _without_statements(ready, plan, failed)


def _wants_state(ready: Prepared) -> bool:
    """Whether state is stored for a view, or its declaration asks for state."""
    view, note = ready.view, ready.note
    asked = view.refresh is RefreshMode.INCREMENTAL or view.promise.is_relaxed
    return asked or (note is not None and note.stateful)


def _without_statements(ready: Prepared, plan: RefreshPlan, failed: StatementFailed) -> RefreshPlan:
    before = ready.note.failed if ready.note is not None else None
    return plan.by(decide_without_statements(ready.facts, failed.problem, before))
