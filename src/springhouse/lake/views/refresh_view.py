"""How is a view brought up to date?

Always in one commit: readers see the old rows or the new rows, never none and never both. The
commit also writes the strong delta, the rows that differ, for the readers of this view.

    full          the query runs over one version of each input, and the result replaces the old
                  rows; with `state`, the compiled form of the query runs instead, which also makes
                  the hidden columns and tables that later refreshes build on
    incremental   the compiled statements compute the view's change from the changes of the inputs

The plan says which of the two. A refresh that can't carry out its plan raises an error:
`StateMismatch` if the stored state does not fit the change, `StatementFailed` if Spark failed in a
compiled statement. Then nothing is committed, and the planner decides again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from springhouse.lake.delta import changes
from springhouse.lake.delta.commits import Change, commit
from springhouse.lake.delta.note import Note
from springhouse.lake.delta.stores import Rewritten
from springhouse.lake.delta.tables import TableVersion
from springhouse.lake.delta.writing import paths_of, write_arrow
from springhouse.lake.lake import Lake, required_of_view
from springhouse.lake.landing.landing import Done
from springhouse.lake.spark.kept_change import SharedScan
from springhouse.lake.views.compiled_plans import CompiledPlan
from springhouse.lake.views.incremental import Work
from springhouse.lake.views.prepared import Prepared, statements_of
from springhouse.lake.views.recompute import REFRESH, recompute, stored_provenance
from springhouse.lake.views.view_quality import count_violations
from springhouse.planner.delta_logs import reflected_by
from springhouse.planner.provenance import Provenance
from springhouse.planner.refresh_plan import RefreshPlan
from springhouse.planner.search.operators import WidgetVariant as PlannedWay
from springhouse.planner.way.choose_way import Decision
from springhouse.project.lineage.fingerprint import fingerprint
from springhouse.units import Instant
from springhouse.views.variants import RefreshVariant


def refresh_view(ready: Prepared, plan: RefreshPlan, *, unreadable: bool = False) -> Done:
    """Carry out a plan with a decision; the stored rows may be `unreadable`."""
    decision = plan.decision
    assert decision is not None, "how to refresh it was not decided"
    if decision.way is not PlannedWay.BATCH:
        return _incremental(ready, plan, decision)
    if not decision.builds_state:
        return recompute(ready, plan, None, unreadable=unreadable)
    assert isinstance(ready.found, CompiledPlan)
    with statements_of(ready.lake, ready.tables):
        return recompute(ready, plan, ready.found, unreadable=unreadable)


def _incremental(ready: Prepared, plan: RefreshPlan, decision: Decision) -> Done:
    """Run the steps and commit their files. The view bears its share of a common scan's time."""
    lake, view, inputs, last = ready.lake, ready.view, ready.inputs, ready.note
    scan = ready.scan
    began = ready.began if scan is None else Instant(ready.began - scan.share)
    work, ground, variant = ready.standing.work, ready.ground, ready.variants[decision.way]
    assert work is not None
    assert ground is not None
    assert last is not None
    assert variant.refresh is not None
    refresh = variant.refresh
    with statements_of(lake, ready.tables):
        done = work.perform(refresh) if ready.changed else None
    violations = count_violations(lake, view, done.come if done is not None else None)
    delta = _strong_delta(ground, done, refresh.steps[-1].layout.visible)
    read = dict(inputs.read)
    reflected = _reflected(ready, variant, last, read)
    note = Note(
        kind="merge",
        at=lake.now(),
        before=stored_provenance(lake, view.name),
        after=reflected.provenance,
        variant=variant.way.value,
        reason=plan.reason,
        since=plan.since,
        why=decision.why,
        expected=decision.expected,
        foreseen=decision.foreseen if decision.teaches else 0.0,
        others=plan.other_seconds,
        rows=done.store.rows if done is not None else ground.rows,
        rows_added=delta.inserted,
        rows_removed=delta.deleted,
        definition=fingerprint(ready.project, view),
        changes=delta.paths,
        read=read,
        ids=dict(inputs.ids),
        marks=dict(inputs.marks),
        mixed=reflected.mixed,
        state=_states(last, work),
        stateful=done is not None or last.stateful,
        failed=last.failed if done is None else None,
        violations=violations,
    )
    if scan is not None:
        note = _shared(note, scan, view.name)
    outcome = Done(
        view.name,
        "merge",
        note.rows,
        delta.inserted,
        delta.deleted,
        reason=plan.reason,
        read=read,
        way=note.variant,
    )
    if done is None and _counts(last) == _counts(note):
        return replace(outcome, seconds=lake.now() - began, committed=False)
    note = replace(note, seconds=lake.now() - began)
    _commit(lake, ground, note, done)
    return replace(outcome, seconds=lake.now() - began)


def _commit(lake: Lake, ground: TableVersion, note: Note, done: Rewritten | None) -> None:
    """Commit the files that the steps wrote for the view itself."""
    add = done.added if done is not None else ()
    gone = {file.path for file in done.removed} if done is not None else set()
    remove = [file for file in ground.files if file.path in gone]
    change = Change(note, add, remove, {REFRESH: ground.version + 1})
    commit(ground, change, required_of_view(lake, note))


def _shared(note: Note, scan: SharedScan, view: str) -> Note:
    """The note of a refresh that read its change from a scan shared with other views."""
    return replace(
        note,
        why=f"{note.why}; {scan.told(view)}",
        together=tuple(sorted(scan.readers - {view})),
        saved=scan.change.saved_by_each,
    )


def _counts(note: Note) -> tuple[object, ...]:
    return note.after, note.read, note.ids, note.marks


@dataclass(frozen=True)
class _Reflected:
    """The view's provenance after a refresh, and the inputs with several reflected versions."""

    provenance: Provenance
    mixed: tuple[str, ...] = ()


def _reflected(
    ready: Prepared, variant: RefreshVariant, last: Note, read: Mapping[str, int]
) -> _Reflected:
    lake, project, view = ready.lake, ready.project, ready.view
    end = reflected_by(lake, project, view, read)
    if variant.driver is None:
        return _Reflected(end)
    moved = {**read, variant.driver: last.read[variant.driver]}
    start = reflected_by(lake, project, view, moved)
    after = stored_provenance(lake, view.name).converted(start, end)
    others = {key for key, version in read.items() if version != last.read.get(key)}
    return _Reflected(after, tuple(sorted({*last.mixed, *others} - {variant.driver})))


@dataclass(frozen=True)
class _ViewDelta:
    paths: tuple[str, ...]
    inserted: int
    deleted: int


def _strong_delta(
    ground: TableVersion, done: Rewritten | None, visible: tuple[str, ...]
) -> _ViewDelta:
    """The rows that differ for readers, written to a change file."""
    if done is None:
        return _ViewDelta((), 0, 0)
    names = list(visible)
    found = changes.netted_difference(done.gone.select(names), done.come.select(names))
    if not found.num_rows:
        return _ViewDelta((), 0, 0)
    inserted, deleted = changes.weights(found)
    return _ViewDelta(
        paths_of([write_arrow(ground.storage, found, changes.FOLDER)]), inserted, deleted
    )


def _states(last: Note, work: Work) -> dict[str, tuple[str, ...]]:
    """The files of the hidden tables: the new ones where a step wrote, otherwise the old ones."""
    states = dict(last.state)
    for name, done in work.rewritten.items():
        if name:
            states[name] = tuple(file.path for file in done.store.files)
    return states
